"""Finding out what a stored number is by trying every byte.

What a pixel program makes of a channel it keeps is no plain copy in the IR: it is scaled to 0..1,
back, clamped and rounded. With 256 values to try there is no need to understand that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dala.gpu.compute.lang.ir import FLOATS, Program, Value

_NUMPY: Final[dict[str, Any]] = {
    "cast": None, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "gt": np.greater, "lt": np.less, "ge": np.greater_equal, "le": np.less_equal,
    "select": np.where, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_KINDS: Final = {"f32": np.float32, "s32": np.int32, "bool": np.bool_}


def kept_channel(v: Value, program: Program) -> tuple[int, int] | None:
    """The channel (argument, channel) at the same pixel that a stored number always equals."""
    if program.out.dtype != "u8":
        return v.attr if _here(v) and program.args[v.attr[0]].dtype == program.out.dtype else None
    reads: list[Value] = []

    def leaf(v: Value) -> Any:
        if v.op not in ("pixel", "image"):
            return None
        if not any(v.attr == r.attr for r in reads) or not _here(v):
            reads.append(v)
        return np.arange(256, dtype=np.int32)

    numbers = _try_all(v, leaf, {})
    if len(reads) != 1 or not _here(reads[0]) or not _same(numbers):
        return None
    argument, channel = reads[0].attr
    return (argument, channel) if program.args[argument].dtype == "u8" else None


def scaled_byte(v: Value, scaled: Callable[[Value], bool]) -> Value | None:
    """The scaled byte that a stored number is, where it is one and nothing else."""
    found: list[Value] = []

    def leaf(v: Value) -> Any:
        if not scaled(v):
            return None
        if v not in found:
            found.append(v)
        return np.arange(256, dtype=np.float32) * np.float32(1.0 / 255.0)

    numbers = _try_all(v, leaf, {})
    return found[0] if len(found) == 1 and _same(numbers) else None


def _here(v: Value) -> bool:
    if v.op == "pixel":
        return True
    return v.op == "image" and all(a.op == "const" and a.attr == 0 for a in v.args)


def _same(numbers: Any) -> bool:
    return numbers is not None and np.array_equal(numbers, np.arange(256))


def _try_all(v: Value, leaf: Callable[[Value], Any], seen: dict[Value, Any]) -> Any:
    """What a value is for each of the 256 values of the leaves, or None if that cannot be told."""
    if v in seen:
        return seen[v]
    kind = _KINDS.get(v.type)
    found = leaf(v) if kind is not None else None
    if kind is not None and found is None:
        if v.op == "const":
            found = kind(v.attr)
        elif v.op in _NUMPY:
            args = [_try_all(a, leaf, seen) for a in v.args]
            if all(a is not None for a in args):
                found = _compute(v, kind, args)
    seen[v] = found
    return found


def _compute(v: Value, kind: Any, args: list[Any]) -> Any:
    if v.op != "cast":
        with np.errstate(all="ignore"):
            return _NUMPY[v.op](*args)
    whole = v.args[0].type not in FLOATS
    if v.type == "bool" or not (whole or v.attr == "in_range"):
        return None
    return args[0].astype(kind) if whole else np.trunc(args[0]).astype(kind)
