"""Cumulative sums and histograms."""

from __future__ import annotations

import math

import numpy as np

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernels.reduce import SUMS, layout, one_axis, saturated, want_dtype
from dala.gpu.compute.operation import Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray

#: The most bins of a histogram.
MAX_BINS = 1 << 20

_LIMITS = {
    "s32": (-(1 << 31), (1 << 31) - 1),
    "s64": (-(1 << 63), (1 << 63) - 1),
    "u32": (0, (1 << 32) - 1),
    "u8": (0, 255),
}


class CumSum(Operation):
    """Compute the cumulative sum along an axis: ``out[i] = a[0] + ... + a[i]``.

    ``axis`` is the last by default. Output dtypes are as in reduce_sum; integers wrap in the
    output's dtype, u8 saturates at 255.
    """

    title = "cumsum"
    options = (Parameter("axis", "int", -1),)

    def result(self, inputs: tuple[Tensor, ...], values: OperationValues) -> Tensor:
        one_axis(self.name, inputs[0].shape, values["axis"])
        return Tensor(inputs[0].shape, SUMS[inputs[0].dtype][0])

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: OperationValues
    ) -> OperationValues:
        a = inputs[0]
        axis = one_axis(self.name, a.shape, values["axis"])
        want_dtype(self.name, a.dtype, output.dtype, SUMS[a.dtype])
        self.want(output, Tensor(a.shape, output.dtype))
        return {"axis": axis, "layout": layout(a.shape, axis, axis + 1)}

    def define(self, task: Task, *arrays: NDArray) -> NDArray:
        (a,) = arrays
        wide = np.float64 if a.dtype.kind == "f" else np.int64
        return saturated(np.cumsum(a, axis=task["axis"], dtype=wide), task.output.dtype)


class Histogram(Operation):
    """Count the numbers in bins of equal width.

    Bin i of ``bins`` (256) starts at low + i * (high - low) / bins and ends before the next bin;
    the last bin includes ``high``. Numbers outside ``low``..``high`` and NaN are ignored. ``low``
    and ``high`` are 0 and 256 by default for integers, 0 and 1 for floats.
    """

    title = "histogram"
    options = (
        Parameter("bins", "int", 256, 1, MAX_BINS),
        Parameter("low", "float"),
        Parameter("high", "float"),
    )

    def _range(self, dtype: str, values: OperationValues) -> tuple[float, float]:
        low = 0.0 if values["low"] is None else values["low"]
        usual = 1.0 if dtype in ("f32", "f64") else 256.0
        high = usual if values["high"] is None else values["high"]
        if not (low < high and math.isfinite(high - low)):
            raise ParameterError.invalid(self.name, "low", f"finite and below high, {high:g}", low)
        return low, high

    def result(self, inputs: tuple[Tensor, ...], values: OperationValues) -> Tensor:
        self._range(inputs[0].dtype, values)
        return Tensor((values["bins"],), "u32")

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: OperationValues
    ) -> OperationValues:
        low, high = self._range(inputs[0].dtype, values)
        if output.dtype not in ("u32", "s32"):
            raise DtypeMismatch.invalid(self.name, "output", "of dtype u32 or s32", output.dtype)
        self.want(output, Tensor((values["bins"],), output.dtype))
        edges = edges_of(inputs[0].dtype, low, high, values["bins"])
        return {"bins": values["bins"], "low": low, "high": high, "edges": edges.tobytes()}

    def define(self, task: Task, *arrays: NDArray) -> NDArray:
        (a,) = arrays
        edges = np.frombuffer(task["edges"], a.dtype)
        x = a.reshape(-1)
        if len(edges) > 1:
            x = x[(x >= edges[0]) & (x <= edges[-1])]
        else:
            x = x[:0]
        at = np.searchsorted(edges[:-1], x, side="right") - 1
        counts: NDArray = np.bincount(at, minlength=task["bins"])
        return counts


def edges_of(dtype: str, low: float, high: float, bins: int) -> NDArray:
    """Return the starts of the bins and the largest number that counts, in the input's dtype.

    Each start is the smallest number of the dtype that is not below the exact edge. Comparisons
    with it are exact, so every engine chooses the same bins. Bins that start beyond the dtype's
    largest number are empty and left out.
    """
    true = low + np.arange(bins) * ((high - low) / bins)
    if dtype == "f64":
        return np.append(true, high)
    if dtype == "f32":
        with np.errstate(over="ignore"):
            near = np.append(true, high).astype(np.float32)
            above = np.nextafter(near[:-1], np.float32(math.inf))
            below = np.nextafter(near[-1], np.float32(-math.inf))
        top = below if float(near[-1]) > high else near[-1]
        return np.append(np.where(near[:-1] < true, above, near[:-1]), top)
    first, last = _LIMITS[dtype]
    top = min(math.floor(high), last)
    starts = [max(math.ceil(x), first) for x in true.tolist() if math.ceil(x) <= top]
    return np.array([*starts, top] if starts and top >= first else [0], NUMPY[dtype])


OPERATIONS = (CumSum, Histogram)
