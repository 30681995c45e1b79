"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.params import Parameter


class Matmul(Operation):
    """The product of two matrices: out[i, j] = sum over k of a[i, k] * b[k, j]

    Axes before the last two count matrices; they are broadcast against each other. A vector (K,)
    as ``a`` is one row, as ``b`` one column, and its axis is missing in the output.
    ``transpose_a`` and ``transpose_b`` exchange the last two axes of an input first. Whole numbers
    wrap around; u8 is summed as s32, which the output then is.
    """

    title = "matmul"
    takes = ("a", "b")
    options = (Parameter("transpose_a", "bool", False), Parameter("transpose_b", "bool", False))

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        dtype = self.same_dtype(inputs)
        a = self._matrix(inputs, 0, values["transpose_a"])
        b = self._matrix(inputs, 1, values["transpose_b"])
        rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
        inner = b[-2] if len(b) > 1 else b[0]
        if a[-1] != inner:
            raise self.shape_error(
                f"sums over the last axis of 'a' and the one before the last of 'b', which differ: "
                f"{self._described(inputs, values)} have {a[-1]} and {inner}. "
                "transpose_a and transpose_b exchange the last two axes."
            )
        try:
            batch = np.broadcast_shapes(a[:-2], b[:-2])
        except ValueError:
            raise self.shape_error(
                f"counts matrices by the axes before the last two, and {a[:-2]} of 'a' does not "
                f"broadcast to {b[:-2]} of 'b'. Axes must be equal or 1, counted from the last."
            ) from None
        return Tensor((*batch, *rows, *columns), "s32" if dtype == "u8" else dtype)

    def _matrix(self, inputs: tuple[Tensor, ...], index: int, transposed: bool) -> tuple[int, ...]:
        shape, name = inputs[index].shape, self.takes[index]
        if not shape:
            raise self.shape_error(
                f"takes {name!r} with at least one axis, shape () came. Use 'scalar_mul'."
            )
        if not transposed:
            return shape
        if len(shape) == 1:
            raise ParameterError(
                f"run_kernel: parameter 'transpose_{name}' of kernel 'matmul' is True, but "
                f"{name!r} is a vector of shape {shape}, which has no axes to exchange."
            )
        return (*shape[:-2], shape[-1], shape[-2])

    def _described(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> str:
        return " and ".join(
            f"{name!r} of shape {t.shape}{' transposed' if values[f'transpose_{name}'] else ''}"
            for name, t in zip(self.takes, inputs, strict=True)
        )

    def define(self, task: Task, a: Any, b: Any) -> Any:
        if task["transpose_a"]:
            a = np.swapaxes(a, -1, -2)
        if task["transpose_b"]:
            b = np.swapaxes(b, -1, -2)
        wide = {"f32": np.float64, "u8": np.int32}.get(task.inputs[0].dtype, a.dtype)
        return np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))


OPERATIONS = (Matmul,)
