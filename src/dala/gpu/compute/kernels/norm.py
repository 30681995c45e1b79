"""Softmax and layer normalization."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernels.reduce import layout, one_axis
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray


class Softmax(Operation):
    """Compute the softmax along an axis.

    ``exp(a - m) / sum(exp(a - m))``, where m is the maximum, which keeps exp in range.

    ``axis`` is the last by default. A row with a NaN or +inf, or only -inf, gives NaN, as by the
    formula.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2, 3], [0, 0, 0]], np.float32)
    >>> print(get("softmax")(a).round(3))
    [[0.09  0.245 0.665]
     [0.333 0.333 0.333]]
    """

    title = "softmax"
    options = (Parameter("axis", "int", -1),)
    dtypes = ("f32", "f64")

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        one_axis(self.name, inputs[0].shape, values["axis"])
        return inputs[0]

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        shape = inputs[0].shape
        axis = one_axis(self.name, shape, values["axis"])
        return {"axis": axis, "layout": layout(shape, axis, axis + 1)}

    def define(self, task: Task, a: NDArray) -> NDArray:
        axis = task["axis"]
        x = a.astype(np.float64)
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return np.asarray(e / e.sum(axis=axis, keepdims=True))


class LayerNorm(Operation):
    """Normalize the last axis to mean 0 and variance 1, then scale and shift.

    ``(a - mean) / sqrt(variance + epsilon) * gamma + beta``

    This is the population variance, computed from differences to the mean. ``gamma`` and ``beta``
    have the length of the last axis; they are 1 and 0 by default. ``epsilon`` is 1e-5 by default.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2, 3], [0, 0, 6]], np.float32)
    >>> print(get("layer_norm")(a).round(3))
    [[-1.225  0.     1.225]
     [-0.707 -0.707  1.414]]
    """

    title = "layer_norm"
    takes = ("a", "gamma", "beta")
    optional = 2
    options = (Parameter("epsilon", "float", 1e-5, 0.0, 1e30),)
    dtypes = ("f32", "f64")

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        a = inputs[0]
        self.same_dtype(inputs)
        if not a.shape:
            raise self.wrong_shape("a", "of 1 or more axes", a.shape)
        for name, t in zip(self.takes[1:], inputs[1:], strict=False):
            if t.shape != a.shape[-1:]:
                raise self.wrong_shape(
                    name, f"of shape {a.shape[-1:]}, as the last axis of 'a'", t.shape
                )
        return a

    def define(
        self, task: Task, a: NDArray, gamma: NDArray | float = 1.0, beta: NDArray | float = 0.0
    ) -> NDArray:
        x = a.astype(np.float64)
        x = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(x * x, axis=-1, keepdims=True)
        return np.asarray(x / np.sqrt(variance + task["epsilon"]) * gamma + beta)
