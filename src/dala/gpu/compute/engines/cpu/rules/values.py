"""Recognize stored values by evaluating them for all 256 values of a byte.

A channel that a pixel program keeps is not a plain copy in the IR: it is scaled to 0..1 and back,
clamped and rounded. Trying every byte is simpler than recognizing that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from dala.gpu.compute.lang.ir import FLOATS, Program, Value
from dala.typing import NDArray

_NUMPY: Final[dict[str, Callable[..., NDArray]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "gt": np.greater, "lt": np.less, "ge": np.greater_equal, "le": np.less_equal,
    "select": np.where, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_KINDS: Final = {"f32": np.dtype("f4"), "s32": np.dtype("i4"), "bool": np.dtype("?")}

#: Returns the 256 values of a leaf of an expression, or None for other values.
_Leaf: TypeAlias = Callable[[Value], NDArray | None]


def kept_channels(result: tuple[Value, ...], program: Program) -> dict[int, tuple[int, int]]:
    """Return the stored channels that always equal a channel of an argument at the same pixel."""
    return {c: k for c, v in enumerate(result) if (k := _kept_channel(v, program)) is not None}


def _kept_channel(v: Value, program: Program) -> tuple[int, int] | None:
    """Return the (argument, channel) that a stored value always equals at the same pixel."""
    if program.out.dtype != "u8":
        same = at_center(v) and program.args[v.attr[0]].dtype == program.out.dtype
        return v.attr if same else None
    reads: list[Value] = []

    def leaf(v: Value) -> NDArray | None:
        if v.op not in ("pixel", "image"):
            return None
        if not any(v.attr == r.attr for r in reads) or not at_center(v):
            reads.append(v)
        return np.arange(256, dtype=np.int32)

    numbers = _evaluate(v, leaf, {})
    if len(reads) != 1 or not at_center(reads[0]) or not _is_identity(numbers):
        return None
    argument, channel = reads[0].attr
    return (argument, channel) if program.args[argument].dtype == "u8" else None


def scaled_byte(v: Value, scaled: Callable[[Value], bool]) -> Value | None:
    """Return the byte, as a float, that a stored value always equals, or None."""
    found: list[Value] = []

    def leaf(v: Value) -> NDArray | None:
        if not scaled(v):
            return None
        if v not in found:
            found.append(v)
        return np.arange(256, dtype=np.float32)

    numbers = _evaluate(v, leaf, {})
    return found[0] if len(found) == 1 and _is_identity(numbers) else None


def at_center(v: Value) -> bool:
    """Return whether a value reads its own pixel."""
    if v.op == "pixel":
        return True
    return v.op == "image" and all(a.op == "const" and a.attr == 0 for a in v.args)


def _is_identity(numbers: NDArray | None) -> bool:
    return numbers is not None and np.array_equal(numbers, np.arange(256))


def _evaluate(v: Value, leaf: _Leaf, seen: dict[Value, NDArray | None]) -> NDArray | None:
    """Evaluate a value for all 256 values of its leaves; None if it cannot be evaluated."""
    if v in seen:
        return seen[v]
    kind = _KINDS.get(v.type)
    found = leaf(v) if kind is not None else None
    if kind is not None and found is None:
        if v.op == "const":
            found = np.asarray(v.attr, kind)
        elif v.op == "cast" or v.op in _NUMPY:
            args = [_evaluate(a, leaf, seen) for a in v.args]
            known = [a for a in args if a is not None]
            if len(known) == len(args):
                found = _compute(v, kind, known)
    seen[v] = found
    return found


def _compute(v: Value, kind: np.dtype[np.generic], args: list[NDArray]) -> NDArray | None:
    if v.op != "cast":
        with np.errstate(all="ignore"):
            return _NUMPY[v.op](*args)
    from_int = v.args[0].type not in FLOATS
    if v.type == "bool" or not (from_int or v.attr == "in_range"):
        return None
    return (args[0] if from_int else np.trunc(args[0])).astype(kind)
