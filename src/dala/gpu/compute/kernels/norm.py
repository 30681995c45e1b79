"""Numbers brought to a common scale: softmax, layer normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernels.reduce import layout, one_axis
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.params import Parameter


class Softmax(Operation):
    """exp(a - m) / sum(exp(a - m)) along an axis, m being the largest number there

    ``axis`` is -1, the last, by default. Subtracting m changes nothing but keeps exp in range.
    Where there is a NaN or +inf, or nothing but -inf, the whole row is NaN, as the formula says.
    """

    title = "softmax"
    options = (Parameter("axis", "int", -1),)
    dtypes = ("f32", "f64")

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        one_axis(self.name, inputs[0].shape, values["axis"])
        return inputs[0]

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        self.want(output, self.result(inputs, values))
        shape = inputs[0].shape
        axis = one_axis(self.name, shape, values["axis"])
        return {"axis": axis, "layout": layout(shape, axis, axis + 1)}

    def define(self, task: Task, a: Any) -> Any:
        axis = task["axis"]
        x = a.astype(np.float64)
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)


class LayerNorm(Operation):
    """(a - mean) / sqrt(variance + epsilon) * gamma + beta, over the last axis

    The variance is that of all numbers (divided by their count), taken from differences to the
    mean. ``gamma`` and ``beta`` have the last axis' length; left out, they are 1 and 0. ``epsilon``
    is 1e-5.
    """

    title = "layer_norm"
    takes = ("a", "gamma", "beta")
    optional = 2
    options = (Parameter("epsilon", "float", 1e-5, 0.0, 1e30),)
    dtypes = ("f32", "f64")

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        a = inputs[0]
        self.same_dtype(inputs)
        if not a.shape:
            raise self.shape_error("takes 'a' with one axis or more, shape () came.")
        for name, t in zip(self.takes[1:], inputs[1:], strict=False):
            if t.shape != a.shape[-1:]:
                raise self.shape_error(
                    f"takes {name!r} of shape {a.shape[-1:]}, as long as the last axis of 'a'; "
                    f"{t.shape} came."
                )
        return a

    def define(self, task: Task, a: Any, gamma: Any = 1.0, beta: Any = 0.0) -> Any:
        x = a.astype(np.float64)
        x = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(variance + task["epsilon"]) * gamma + beta


OPERATIONS = (LayerNorm, Softmax)
