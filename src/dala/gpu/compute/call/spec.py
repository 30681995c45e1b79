"""Specs: the dicts that ``submit`` and ``Pipeline.add`` take, checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dala.errors import (
    ArityError,
    DeviceMismatch,
    DtypeMismatch,
    ParameterError,
    ShapeMismatch,
    did_you_mean,
)
from dala.gpu.compute.buffer import Buffer

#: What a spec of each operation must hold, and what it may hold besides.
_KEYS: Final = {
    "run_kernel": (("kernel", "inputs", "output"), ("params",)),
    "copy_buffer": (("src", "dst"), ()),
    "barrier": ((), ()),
}


def operation(spec: Mapping[str, Any], call: str) -> str:
    """The spec's operation, once its keys are the ones it needs."""
    if not isinstance(spec, Mapping):
        raise ParameterError(
            f"{call}: a spec is a dict such as {{'op': 'run_kernel', ...}}, "
            f"{type(spec).__name__} came."
        )
    op = spec.get("op")
    if not isinstance(op, str) or op not in _KEYS:
        came = f"{op!r} came" if "op" in spec else "'op' is missing"
        raise ParameterError(
            f"{call}: the op of a spec is one of {', '.join(map(repr, _KEYS))}; {came}."
        )
    needed, optional = _KEYS[op]
    known = {"op", *needed, *optional}
    for key in spec:
        if key not in known:
            hint = did_you_mean(str(key), known) or f"It takes: {', '.join(sorted(known))}."
            raise ParameterError(f"{call}: {op} has no {key!r}. {hint}")
    missing = [repr(key) for key in needed if key not in spec]
    if missing:
        raise ParameterError(f"{call}: {op} needs {', '.join(missing)} as well.")
    return op


def check_copy(source: Any, target: Any, call: str) -> None:
    """Checks the two buffers of a copy: alive, alike, on one device."""
    for which, given in (("src", source), ("dst", target)):
        if not isinstance(given, Buffer):
            raise ArityError(
                f"{call}: {which!r} of copy_buffer must be a Buffer, {type(given).__name__} came. "
                "Make one with buffer(...) or from_array(...)."
            )
        given.storage(f"{call}(copy_buffer), {which!r}")
    if target.engine is not source.engine:
        raise DeviceMismatch(
            f"{call}: copy_buffer has 'src' on {source.engine.id} and 'dst' on {target.engine.id}. "
            f"Move one: src.to({target.engine.id!r})."
        )
    if source.dtype != target.dtype:
        raise DtypeMismatch(
            f"{call}: copy_buffer has 'src' of dtype {source.dtype!r} and 'dst' of dtype "
            f"{target.dtype!r}; they must be the same."
        )
    if source.shape != target.shape:
        raise ShapeMismatch(
            f"{call}: copy_buffer has 'src' of {source.shape} and 'dst' of {target.shape}; they "
            "must be the same."
        )
    target.check_writable(f"{call}(copy_buffer)")
