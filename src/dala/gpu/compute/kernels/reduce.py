"""Many numbers to one: sums, extremes, and where the largest is."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.convert import count_of
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.params import Parameter

#: dtypes that a sum of an input's may be stored in; the first is what a plain call makes.
SUMS = {
    "f32": ("f32",),
    "f64": ("f64",),
    "s32": ("s32", "u32", "s64", "f32", "f64"),
    "s64": ("s64",),
    "u32": ("u32", "s32", "s64", "f32", "f64"),
    "u8": ("u32", "u8", "s32", "s64", "f32", "f64"),
}


def one_axis(kernel: str, shape: tuple[int, ...], axis: int) -> int:
    """An axis, counted from the front."""
    rank = len(shape)
    if not -rank <= axis < rank:
        raise ParameterError(
            f"run_kernel: parameter 'axis' of kernel {kernel!r} is {axis}, but 'a' of shape "
            f"{shape} has {rank} axes. "
            + (f"Use {-rank}..{rank - 1}." if rank else "Reshape it to (1,).")
        )
    return axis % rank


def layout(shape: tuple[int, ...], first: int, last: int) -> tuple[int, int, int]:
    """How many numbers lie before, in and after the axes ``first`` up to ``last``."""
    return count_of(shape[:first]), count_of(shape[first:last]), count_of(shape[last:])


def passes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Reductions of one axis each, one after another, that reduce all of them: layouts.

    Neighbours go together, the last first: it has the most to take away.
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
    """Refuses an output of a dtype that the result cannot be stored in."""
    if output not in allowed:
        raise DtypeMismatch(
            f"run_kernel: kernel {kernel!r} of {given} makes an output of dtype "
            f"{', '.join(allowed)}; {output!r} came."
        )


def saturated(result: Any, dtype: str) -> Any:
    """Whole numbers as they are stored: those for u8 end at 255, all others wrap."""
    return np.minimum(result, 255) if dtype == "u8" else result


class _Reduction(Operation):
    """What reductions share: axes, and the outputs that fit."""

    several: ClassVar[bool] = True
    #: False where nothing has no result.
    of_nothing: ClassVar[bool] = False

    def axes(self, shape: tuple[int, ...], values: dict[str, Any]) -> tuple[int, ...]:
        """The axes that go, in order."""
        axis = values["axis"]
        if axis is None:
            return tuple(range(len(shape)))
        named = axis if isinstance(axis, tuple) else (axis,)
        found = sorted({one_axis(self.name, shape, a) for a in named})
        if not found or len(found) < len(named):
            raise ParameterError(
                f"run_kernel: parameter 'axis' of kernel {self.name!r} names one axis or more, "
                f"each once, or is None for all; {named} came for 'a' of shape {shape}."
            )
        return tuple(found)

    def stored(self, dtype: str) -> tuple[str, ...]:
        """dtypes of outputs, the first by default."""
        return (dtype,)

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        shape = inputs[0].shape
        axes = self.axes(shape, values)
        left = tuple(n for i, n in enumerate(shape) if i not in axes)
        if not self.of_nothing and 0 not in left and 0 in shape:
            raise self.shape_error(
                f"has no result for nothing: 'a' has shape {shape}, and axis {axes} is empty."
            )
        return Tensor(left, self.stored(inputs[0].dtype)[0])

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        shape, plain = inputs[0].shape, self.result(inputs, values)
        axes = self.axes(shape, values)
        kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
        fitting = {plain.shape, kept} | ({(1,)} if not plain.shape else set())
        if output.shape not in fitting:
            listed = " or ".join(str(s) for s in sorted(fitting, key=len))
            raise self.shape_error(
                f"makes an output of shape {listed} here, {output.shape} came. "
                f"Use buffer_zeros({plain.shape}, {plain.dtype!r})."
            )
        allowed = self.stored(inputs[0].dtype)
        want_dtype(self.name, inputs[0].dtype, output.dtype, allowed)
        return {"axes": axes, "passes": passes(shape, axes)}


class ReduceSum(_Reduction):
    """The sum of all numbers, or along axes

    ``axis`` is None (all), a number (from the end if negative), or several. The output has the
    shape without these axes, or with 1 in their place. Whole numbers are added exactly and wrap
    around in the output's dtype, which may be a wider one or a float; u8 saturates. The sum of
    nothing is 0.
    """

    title = "reduce_sum"
    options = (Parameter("axis", "ints"),)
    of_nothing = True

    def stored(self, dtype: str) -> tuple[str, ...]:
        return SUMS[dtype]

    def define(self, task: Task, a: Any) -> Any:
        wide = np.float64 if a.dtype.kind == "f" else np.int64
        return saturated(np.sum(a, axis=task["axes"], dtype=wide), task.output.dtype)


class ReduceMax(_Reduction):
    """The largest of all numbers, or along axes; NaN if there is one

    ``axis`` as in reduce_sum.
    """

    title = "reduce_max"
    options = (Parameter("axis", "ints"),)

    def define(self, task: Task, a: Any) -> Any:
        return np.max(a, axis=task["axes"])


class ReduceMin(_Reduction):
    """The smallest of all numbers, or along axes; NaN if there is one

    ``axis`` as in reduce_sum.
    """

    title = "reduce_min"
    options = (Parameter("axis", "ints"),)

    def define(self, task: Task, a: Any) -> Any:
        return np.min(a, axis=task["axes"])


class ArgMax(_Reduction):
    """Where the largest number is: its index along an axis, or in all of the buffer

    ``axis`` is None (all; the index counts through the buffer, last axis fastest) or a number. The
    first of equals; NaN counts as the largest.
    """

    title = "argmax"
    options = (Parameter("axis", "int"),)

    def stored(self, dtype: str) -> tuple[str, ...]:
        return ("s32", "u32", "s64")

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        found = super().fit(inputs, output, values)
        count = count_of(tuple(inputs[0].shape[a] for a in found["axes"]))
        if count > 1 << {"s32": 31, "u32": 32, "s64": 63}[output.dtype]:
            raise self.shape_error(
                f"counts up to {count - 1} here, which {output.dtype} cannot hold. Use 's64'."
            )
        return found

    def define(self, task: Task, a: Any) -> Any:
        axes = task["axes"]
        return np.argmax(a, axis=axes[0] if len(axes) < a.ndim else None)


OPERATIONS = (ArgMax, ReduceMax, ReduceMin, ReduceSum)
