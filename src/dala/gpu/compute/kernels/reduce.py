"""Reductions: sum, minimum, maximum and argmax."""

from __future__ import annotations

from math import prod
from typing import ClassVar

import numpy as np

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray

#: Output dtypes of a sum by input dtype; the first is the default.
SUMS = {
    "f32": ("f32",), "f64": ("f64",), "s32": ("s32", "u32", "s64", "f32", "f64"), "s64": ("s64",),
    "u32": ("u32", "s32", "s64", "f32", "f64"), "u8": ("u32", "u8", "s32", "s64", "f32", "f64"),
}  # fmt: skip


def one_axis(kernel: str, shape: tuple[int, ...], axis: int) -> int:
    """Convert an axis to a non-negative index; raise if there is no such axis."""
    rank = len(shape)
    if not -rank <= axis < rank:
        expected = f"an axis of 'a' of shape {shape}"
        advice = f"Use {-rank} to {rank - 1}." if rank else "Reshape it to (1,)."
        raise ParameterError.invalid(kernel, "axis", expected, axis, advice)
    return axis % rank


def layout(shape: tuple[int, ...], first: int, last: int) -> tuple[int, int, int]:
    """Return the sizes (outer, n, inner) before, in and after the axes ``first:last``."""
    return prod(shape[:first]), prod(shape[first:last]), prod(shape[last:])


def passes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return the (outer, n, inner) layouts of one-axis reductions that together reduce all axes.

    Adjacent axes are merged. The last axis is reduced first.
    """
    found = []
    last = len(shape)
    while last > 0:
        first = last - 1
        if first in axes:
            while first > 0 and first - 1 in axes:
                first -= 1
            found.append(layout(shape, first, last))
            shape = shape[:first] + shape[last:]
        last = first
    return tuple(found) or ((1, 1, 1),)


def want_dtype(kernel: str, given: str, output: str, allowed: tuple[str, ...]) -> None:
    """Raise if an output's dtype cannot store the result."""
    if output not in allowed:
        expected = f"of dtype {' or '.join(allowed)} for an input of {given}"
        raise DtypeMismatch.invalid(kernel, "output", expected, output)


def saturated(result: NDArray, dtype: str) -> NDArray:
    """Clamp integers to 255 for u8; other dtypes wrap when stored."""
    return np.minimum(result, 255) if dtype == "u8" else result


class _Reduction(Operation):
    """Base class of reductions over axes."""

    options: ClassVar[tuple[Parameter, ...]] = (Parameter("axis", "ints"),)
    #: True if an empty input has a result.
    accepts_empty: ClassVar[bool] = False

    def axes(self, shape: tuple[int, ...], values: OperationValues) -> tuple[int, ...]:
        """Return the axes to reduce, in order."""
        axis = values["axis"]
        if axis is None:
            return tuple(range(len(shape)))
        named = axis if isinstance(axis, tuple) else (axis,)
        found = sorted({one_axis(self.name, shape, a) for a in named})
        if not found or len(found) < len(named):
            raise self.wrong_value("axis", "one or more axes, each once, or None for all", named)
        return tuple(found)

    def stored(self, dtype: str) -> tuple[str, ...]:
        """Return the dtypes of outputs, the default first."""
        return (dtype,)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        shape = inputs[0].shape
        axes = self.axes(shape, values)
        left = tuple(n for i, n in enumerate(shape) if i not in axes)
        if not self.accepts_empty and 0 not in left and 0 in shape:
            raise self.shape_error(
                f"an empty input has no result: 'a' has shape {shape}, and axis {axes} is empty."
            )
        return Tensor(left, self.stored(inputs[0].dtype)[0])

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        shape, plain = inputs[0].shape, self.result(inputs, values)
        axes = self.axes(shape, values)
        kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
        fitting = {plain.shape, kept} | ({(1,)} if not plain.shape else set())
        if output.shape not in fitting:
            listed = " or ".join(str(s) for s in sorted(fitting, key=len))
            advice = f"Use buffer_zeros({plain.shape}, {plain.dtype!r})."
            raise self.wrong_shape("output", f"of shape {listed}", output.shape, advice)
        allowed = self.stored(inputs[0].dtype)
        want_dtype(self.name, inputs[0].dtype, output.dtype, allowed)
        return {"axes": axes, "passes": passes(shape, axes)}


class ReduceSum(_Reduction):
    """Sum all numbers, or along axes.

    ``axis`` is None (all), an axis (negative counts from the end), or several. The output has the
    input's shape without these axes, or with size 1 for them. Integers are added exactly and wrap
    around in the output's dtype, which may be wider or a float; u8 saturates. The sum of an empty
    input is 0.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    >>> get("reduce_sum")(a).tolist(), get("reduce_sum")(a, axis=-1).tolist()
    (21.0, [6.0, 15.0])
    """

    title = "reduce_sum"
    accepts_empty = True

    def stored(self, dtype: str) -> tuple[str, ...]:
        return SUMS[dtype]

    def define(self, task: Task, a: NDArray) -> NDArray:
        wide = np.float64 if a.dtype.kind == "f" else np.int64
        return saturated(np.sum(a, axis=task["axes"], dtype=wide), task.output.dtype)


class ReduceMax(_Reduction):
    """Compute the maximum of all numbers, or along axes. NaN propagates.

    ``axis`` as in reduce_sum.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 5], [7, 0]], np.float32)
    >>> get("reduce_max")(a).tolist(), get("reduce_max")(a, axis=0).tolist()
    (7.0, [7.0, 5.0])
    """

    title = "reduce_max"

    def define(self, task: Task, a: NDArray) -> NDArray:
        return np.asarray(np.max(a, axis=task["axes"]))


class ReduceMin(_Reduction):
    """Compute the minimum of all numbers, or along axes. NaN propagates.

    ``axis`` as in reduce_sum.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 5], [7, 0]], np.float32)
    >>> get("reduce_min")(a).tolist(), get("reduce_min")(a, axis=0).tolist()
    (0.0, [1.0, 0.0])
    """

    title = "reduce_min"

    def define(self, task: Task, a: NDArray) -> NDArray:
        return np.asarray(np.min(a, axis=task["axes"]))


class ArgMax(_Reduction):
    """Find the index of the maximum along an axis, or in the whole buffer.

    ``axis`` is None (an index into the flattened buffer) or an axis. Of equal numbers the first is
    returned; NaN counts as the largest.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 5, 2], [7, 0, 7]], np.float32)
    >>> get("argmax")(a).tolist(), get("argmax")(a, axis=1).tolist()
    (3, [1, 0])
    """

    title = "argmax"
    options = (Parameter("axis", "int"),)

    def stored(self, dtype: str) -> tuple[str, ...]:
        return ("s32", "u32", "s64")

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        found = super().fit(inputs, output, values)
        count = prod(inputs[0].shape[a] for a in found["axes"])
        if count > 1 << {"s32": 31, "u32": 32, "s64": 63}[output.dtype]:
            raise self.shape_error(
                f"indices up to {count - 1} do not fit into {output.dtype}. Use 's64'."
            )
        return found

    def define(self, task: Task, a: NDArray) -> NDArray:
        axes = task["axes"]
        return np.asarray(np.argmax(a, axis=axes[0] if len(axes) < a.ndim else None))
