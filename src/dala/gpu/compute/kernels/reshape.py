"""Reshape, transpose and gather."""

from __future__ import annotations

from functools import cache

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.operation import Inputs, Lowered, Operation, OperationValues, elements
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray

#: The most axes of an array in the kernel language.
MAX_RANK = 4


class Reshape(Operation):
    """Change the shape and keep the order of the numbers.

    One size in ``shape`` may be -1; it is then computed from the others.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.arange(6, dtype=np.float32)
    >>> get("reshape")(a, shape=(2, -1)).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """

    title = "reshape"
    options = (Parameter("shape", "ints"),)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor | None:
        shape = values["shape"]
        if shape is None:
            return None
        if shape.count(-1) > 1 or any(n < -1 for n in shape):
            raise self.wrong_value(
                "shape", "sizes of 0 or more, with at most one -1 for the rest", shape
            )
        count = elements(inputs[0])
        if -1 in shape:
            known = -int(np.prod(shape))
            left = count // known if known else 0
            shape = tuple(left if n == -1 else n for n in shape)
        return Tensor(shape, inputs[0].dtype)

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        wanted = self.result(inputs, values) or output
        self.want(output, Tensor(wanted.shape, inputs[0].dtype))
        if elements(output) != elements(inputs[0]):
            raise self.shape_error(
                f"the number of elements must not change: {inputs[0].shape} has "
                f"{elements(inputs[0])}, {output.shape} has {elements(output)}."
            )
        return {}

    def define(self, task: Task, a: NDArray) -> NDArray:
        return a.reshape(task.output.shape)


class Transpose(Operation):
    """Permute the axes: output axis i is input axis ``axes[i]``. Reverses them by default.

    Then the output's axes in ``reverse`` are flipped: ``axes=(1, 0), reverse=(0,)`` is a quarter
    turn.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    >>> get("transpose")(a).tolist(), get("transpose")(a, axes=(1, 0), reverse=(0,)).tolist()
    ([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], [[3.0, 6.0], [2.0, 5.0], [1.0, 4.0]])
    """

    title = "transpose"
    options = (Parameter("axes", "ints"), Parameter("reverse", "ints"))

    def _axes(self, rank: int, axes: tuple[int, ...] | None) -> tuple[int, ...]:
        if axes is None:
            return tuple(reversed(range(rank)))
        turned = tuple(a + rank if a < 0 else a for a in axes)
        if sorted(turned) != list(range(rank)):
            raise self.wrong_value("axes", f"each of the {rank} axes once", axes)
        return turned

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        shape = self.want_rank(inputs, 0, *range(MAX_RANK + 1))
        axes = self._axes(len(shape), values["axes"])
        return Tensor(tuple(shape[a] for a in axes), inputs[0].dtype)

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        rank = len(inputs[0].shape)
        reverse = sorted(a + rank if a < 0 else a for a in values["reverse"] or ())
        if len(set(reverse)) < len(reverse) or any(not 0 <= a < rank for a in reverse):
            raise self.wrong_value(
                "reverse", f"some of the {rank} axes, each once", values["reverse"]
            )
        return {"axes": self._axes(rank, values["axes"]), "reverse": tuple(reverse)}

    def define(self, task: Task, a: NDArray) -> NDArray:
        return np.flip(a.transpose(task["axes"]), task["reverse"])

    def lower(self, task: Task) -> Lowered:
        axes, reverse = task["axes"], task["reverse"]
        return (_transpose_kernel(axes, reverse), {}) if len(axes) > 1 or reverse else None


class Gather(Operation):
    """Gather entries along an axis by index.

    ``out[..., i, ...] = a[..., index[i], ...]``. The axes of ``index`` replace ``axis``.
    Out-of-range indices are clamped.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    >>> index = np.array([2, 0, 0], np.int32)
    >>> get("gather")(a, index).tolist()
    [[5.0, 6.0], [1.0, 2.0], [1.0, 2.0]]
    """

    title = "gather"
    takes = ("a", "index")
    options = (Parameter("axis", "int", 0),)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        a, index = inputs
        if index.dtype not in ("s32", "u32", "s64"):
            raise self.wrong_dtype("index", "of dtype s32, s64 or u32", index.dtype)
        if not index.shape:
            raise self.wrong_shape("index", "of 1 or more axes", index.shape)
        axis = values["axis"] + (len(a.shape) if values["axis"] < 0 else 0)
        if not 0 <= axis < len(a.shape):
            raise self.wrong_value("axis", f"an axis of 'a' of shape {a.shape}", values["axis"])
        shape = a.shape[:axis] + index.shape + a.shape[axis + 1 :]
        if not 1 <= len(shape) <= MAX_RANK:
            raise self.wrong_shape("output", f"of 1 to {MAX_RANK} axes", shape)
        if 0 in a.shape and 0 not in shape:
            raise self.wrong_shape("a", "an array with entries", a.shape)
        return Tensor(shape, a.dtype)

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        return {"axis": values["axis"] % len(inputs[0].shape)}

    def lower(self, task: Task) -> Lowered:
        a, index = task.inputs
        return _gather_kernel(len(a.shape), len(index.shape), task["axis"]), {}


@cache
def _transpose_kernel(axes: tuple[int, ...], reverse: tuple[int, ...]) -> Kernel:
    names = [f"i{n}" for n in range(len(axes))]
    read = ", ".join(
        f"a.shape[{n}] - 1 - {names[axes.index(n)]}" if axes.index(n) in reverse
        else names[axes.index(n)]
        for n in range(len(axes))
    )  # fmt: skip
    lines = [
        "def transpose(a: Array):",
        f"    {', '.join(names)}{',' if len(axes) == 1 else ''} = position()",
        f"    return a[{read}]",
    ]
    return text_kernel("transpose", "\n".join(lines))


@cache
def _gather_kernel(rank: int, index_rank: int, axis: int) -> Kernel:
    total = rank + index_rank - 1
    names = [f"i{n}" for n in range(total)]
    read = [*names[:axis], "k", *names[axis + index_rank :]]
    at = ", ".join(names[axis : axis + index_rank]) or "0"
    lines = [
        "def gather(a: Array, index: Array):",
        f"    {', '.join(names)}{',' if total == 1 else ''} = position()",
        f"    k = index[{at}]",
        f"    return a[{', '.join(read)}]",
    ]
    return text_kernel("gather", "\n".join(lines))
