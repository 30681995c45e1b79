"""The same numbers in another order or shape."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.operation import Operation, elements
from dala.gpu.compute.params import Parameter

#: The language knows arrays of so many axes.
MAX_RANK = 4


class Reshape(Operation):
    """The same numbers, in the same order, in another shape"""

    title = "reshape"
    takes = ("a",)
    options = (Parameter("shape", "ints"),)

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor | None:
        shape = values["shape"]
        if shape is None:
            return None
        if shape.count(-1) > 1 or any(n < -1 for n in shape):
            raise ParameterError(
                f"run_kernel: parameter 'shape' of kernel 'reshape' has sizes of 0 or more, and at "
                f"most one -1 for what is left; {shape} came."
            )
        count = elements(inputs[0])
        if -1 in shape:
            known = -int(np.prod(shape))
            left = count // known if known else 0
            shape = tuple(left if n == -1 else n for n in shape)
        return Tensor(shape, inputs[0].dtype)

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        wanted = self.result(inputs, values) or output
        self.want(output, Tensor(wanted.shape, inputs[0].dtype))
        if elements(output) != elements(inputs[0]):
            raise self.shape_error(
                f"keeps the number of elements: {inputs[0].shape} has {elements(inputs[0])}, "
                f"{output.shape} has {elements(output)}."
            )
        return {}

    def define(self, task: Task, a: Any) -> Any:
        return a.reshape(task.output.shape)


class Transpose(Operation):
    """Axes in another order: the output's axis i is the input's axis axes[i]; else reversed"""

    title = "transpose"
    takes = ("a",)
    options = (Parameter("axes", "ints"),)

    def _axes(self, rank: int, axes: tuple[int, ...] | None) -> tuple[int, ...]:
        if axes is None:
            return tuple(reversed(range(rank)))
        turned = tuple(a + rank if a < 0 else a for a in axes)
        if sorted(turned) != list(range(rank)):
            raise ParameterError(
                f"run_kernel: parameter 'axes' of kernel 'transpose' names each of the {rank} axes "
                f"once, {axes} came."
            )
        return turned

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        shape = self.want_rank(inputs, 0, *range(MAX_RANK + 1))
        axes = self._axes(len(shape), values["axes"])
        return Tensor(tuple(shape[a] for a in axes), inputs[0].dtype)

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        self.want(output, self.result(inputs, values))
        return {"axes": self._axes(len(inputs[0].shape), values["axes"])}

    def define(self, task: Task, a: Any) -> Any:
        return a.transpose(task["axes"])

    def lower(self, task: Task) -> tuple[Kernel, dict[str, Any]] | None:
        return (_transposed(task["axes"]), {}) if len(task["axes"]) > 1 else None


class Gather(Operation):
    """Entries by number: out[..., i, ...] = a[..., index[i], ...] along an axis

    The index may have any shape; its axes take the place of ``axis``. Numbers beyond either end
    mean the entry at that end.
    """

    title = "gather"
    takes = ("a", "index")
    options = (Parameter("axis", "int", 0),)

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        a, index = inputs
        if index.dtype not in ("s32", "u32", "s64"):
            raise DtypeMismatch(
                "run_kernel: input 'index' of kernel 'gather' has a whole-number dtype (s32, s64 "
                f"or u32), {index.dtype!r} came."
            )
        if not index.shape:
            raise self.shape_error("takes an 'index' of one axis or more, () came. Give (1,).")
        axis = values["axis"] + (len(a.shape) if values["axis"] < 0 else 0)
        if not 0 <= axis < len(a.shape):
            raise ParameterError(
                f"run_kernel: parameter 'axis' of kernel 'gather' is {values['axis']}, but 'a' of "
                f"shape {a.shape} has {len(a.shape)} axes."
            )
        shape = a.shape[:axis] + index.shape + a.shape[axis + 1 :]
        if not 1 <= len(shape) <= MAX_RANK:
            raise self.shape_error(f"makes outputs of 1 to {MAX_RANK} axes, {shape} came.")
        if 0 in a.shape and 0 not in shape:
            raise self.shape_error(f"has nothing to take from: 'a' is empty {a.shape}.")
        return Tensor(shape, a.dtype)

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        self.want(output, self.result(inputs, values))
        return {"axis": values["axis"] % len(inputs[0].shape)}

    def define(self, task: Task, a: Any, index: Any) -> Any:
        return np.take(a, index.astype(np.int64), axis=task["axis"], mode="clip")

    def lower(self, task: Task) -> tuple[Kernel, dict[str, Any]] | None:
        a, index = task.inputs
        return _gathering(len(a.shape), len(index.shape), task["axis"]), {}


def _from_text(name: str, text: str) -> Kernel:
    return Kernel(name, declare(sources.from_text(text, name), lookup=lambda free: None))


@cache
def _transposed(axes: tuple[int, ...]) -> Kernel:
    names = [f"i{n}" for n in range(len(axes))]
    read = ", ".join(names[axes.index(n)] for n in range(len(axes)))
    lines = [
        "def transpose(a: Array):",
        f"    {', '.join(names)} = position()",
        f"    return a[{read}]",
    ]
    return _from_text("transpose", "\n".join(lines))


@cache
def _gathering(rank: int, index_rank: int, axis: int) -> Kernel:
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
    return _from_text("gather", "\n".join(lines))


OPERATIONS = (Gather, Reshape, Transpose)
