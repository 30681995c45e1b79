"""Matrix products."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray


class Matmul(Operation):
    """Multiply matrices.

    ``out[i, j] = sum over k of a[i, k] * b[k, j]``

    Axes before the last two are batch axes, which are broadcast. A vector (K,) is a row as ``a``
    and a column as ``b``, and its axis is removed from the output. ``transpose_a`` and
    ``transpose_b`` swap the last two axes of an input first. Integers wrap around; u8 is summed as
    s32, the dtype of the output.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    >>> b = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    >>> get("matmul")(a, b).tolist()
    [[4.0, 5.0], [10.0, 11.0]]
    """

    title = "matmul"
    takes = ("a", "b")
    options = (Parameter("transpose_a", "bool", False), Parameter("transpose_b", "bool", False))

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        dtype = self.same_dtype(inputs)
        a = self._matrix(inputs, 0, values["transpose_a"])
        b = self._matrix(inputs, 1, values["transpose_b"])
        rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
        inner = b[-2] if len(b) > 1 else b[0]
        if a[-1] != inner:
            raise self.shape_error(
                f"the last axis of 'a' and the second to last axis of 'b' must be equal, got "
                f"{a[-1]} and {inner}: {self._described(inputs, values)}. "
                "transpose_a and transpose_b swap the last two axes."
            )
        try:
            batch = np.broadcast_shapes(a[:-2], b[:-2])
        except ValueError:
            raise self.shape_error(
                f"the axes before the last two must broadcast, got {a[:-2]} of 'a' and {b[:-2]} of "
                "'b'. Axes must be equal or 1, counted from the last."
            ) from None
        return Tensor((*batch, *rows, *columns), "s32" if dtype == "u8" else dtype)

    def _matrix(self, inputs: Inputs, index: int, transposed: bool) -> tuple[int, ...]:
        shape, name = inputs[index].shape, self.takes[index]
        if not shape:
            raise self.wrong_shape(name, "of 1 or more axes", shape, "Use 'scalar_mul'.")
        if not transposed:
            return shape
        if len(shape) == 1:
            raise self.wrong_value(
                f"transpose_{name}", f"False for {name!r} of shape {shape}", True
            )
        return (*shape[:-2], shape[-1], shape[-2])

    def _described(self, inputs: Inputs, values: OperationValues) -> str:
        return " and ".join(
            f"{name!r} of shape {t.shape}{' transposed' if values[f'transpose_{name}'] else ''}"
            for name, t in zip(self.takes, inputs, strict=True)
        )

    def define(self, task: Task, a: NDArray, b: NDArray) -> NDArray:
        if task["transpose_a"]:
            a = np.swapaxes(a, -1, -2)
        if task["transpose_b"]:
            b = np.swapaxes(b, -1, -2)
        wide = {"f32": np.float64, "u8": np.int32}.get(task.inputs[0].dtype, a.dtype)
        return np.asarray(np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False)))
