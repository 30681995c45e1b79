"""The functions of programs that store bytes: those of ``elementary``, on arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.elementary.double import DOUBLE
from dala.gpu.compute.engines.elementary.single import SINGLE
from dala.typing import NDArray

_TYPES: Final = {"f64": np.float64, "i32": np.int32}


class Numbers(np.ndarray[Any, np.dtype[Any]]):
    """An array with the operators of :class:`~dala.gpu.compute.engines.cpu.vector.numbers.Num`."""

    def of(self, value: float) -> Any:
        return np.full_like(self, value)

    def equals(self, other: Any) -> Any:
        return self == other

    def compare(self, rule: str, other: Any) -> Any:
        assert rule == "uno"
        return np.isnan(self) | np.isnan(other)

    def choose(self, yes: Any, no: Any) -> Any:  # type: ignore[override]
        return np.where(self, yes, no).view(Numbers)

    def to(self, kind: str) -> Any:
        return self.astype(_TYPES[kind])

    def bits(self) -> Any:
        return self.view(np.int64 if self.dtype.kind == "f" else np.float64)

    def call(self, intrinsic: str, *others: Any) -> Any:
        return getattr(np, intrinsic)(self, *others)

    def multiply_add(self, factor: Any, addend: Any) -> Any:
        return self * factor + addend

    def within(self, low: float, high: float) -> Any:
        return np.clip(self, low, high)  # NaN stays NaN


def exact_function(op: str, *args: NDArray) -> NDArray:
    """Compute a function as the CPU engine does."""
    functions = SINGLE if args[0].dtype == np.float32 else DOUBLE
    wide = (a.astype(np.float64).view(Numbers) for a in args)
    return np.asarray(functions[op](*wide)).astype(args[0].dtype)
