"""2D convolution for neural networks."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray


class Conv2d(Operation):
    """Convolve images of many channels with a bank of filters.

    ``out[n, o, y, x] = bias[o] + sum over c, i, j of weight[o, c, i, j] *
    x[n, c, y * stride + i * dilation - padding, x * stride + j * dilation - padding]``

    ``x`` is (N, C, H, W) or (C, H, W), ``weight`` is (O, C / groups, kh, kw), ``bias`` is (O,) and
    optional. The weights are not flipped. Values outside the image are 0. With ``groups``, the
    channels are split into equal groups, each of which computes its share of the outputs.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> x = np.arange(9, dtype=np.float32).reshape(1, 3, 3)
    >>> weight = np.ones((1, 1, 2, 2), np.float32)
    >>> get("conv2d")(x, weight).tolist()
    [[[8.0, 12.0], [20.0, 24.0]]]
    >>> get("conv2d")(x, weight, stride=2, padding=1).tolist()
    [[[0.0, 3.0], [9.0, 24.0]]]
    """

    title = "conv2d"
    takes = ("x", "weight", "bias")
    optional = 1
    dtypes = ("f32", "f64")
    options = (
        Parameter("stride", "ints", (1, 1), low=1, size=2, spread=True, high=1 << 20),
        Parameter("padding", "ints", (0, 0), low=0, size=2, spread=True, high=1 << 20),
        Parameter("dilation", "ints", (1, 1), low=1, size=2, spread=True, high=1 << 20),
        Parameter("groups", "int", 1, low=1),
    )

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        dtype = self.same_dtype(inputs)
        x = self.want_rank(inputs, 0, 3, 4)
        weight = self.want_rank(inputs, 1, 4)
        channels, outputs, groups = x[-3], weight[0], values["groups"]
        if channels % groups or outputs % groups:
            expected = (
                f"a divisor of the channels of 'x' ({channels}) and the outputs of 'weight' "
                f"({outputs})"
            )
            raise self.wrong_value("groups", expected, groups)
        if weight[1] != channels // groups:
            expected = (
                f"of shape (outputs, {channels // groups}, height, width), as 'x' of shape {x} has "
                f"{channels} channels in {groups} groups"
            )
            raise self.wrong_shape("weight", expected, weight)
        if len(inputs) > 2 and inputs[2].shape != (outputs,):
            expected = f"of shape ({outputs},), one number for each output of 'weight'"
            raise self.wrong_shape("bias", expected, inputs[2].shape)
        size = tuple(self._size(x, weight, values, i) for i in (0, 1))
        return Tensor((*x[:-3], outputs, *size), dtype)

    def _size(
        self, x: tuple[int, ...], weight: tuple[int, ...], values: OperationValues, axis: int
    ) -> int:
        padded = x[-2 + axis] + 2 * values["padding"][axis]
        window = (weight[2 + axis] - 1) * values["dilation"][axis] + 1
        if weight[2 + axis] < 1 or window > padded:
            side = ("height", "width")[axis]
            raise self.shape_error(
                f"the {side} of the window must be from 1 to {padded} ({x[-2 + axis]} pixels and "
                f"twice the padding of {values['padding'][axis]}), got {max(window, 0)} "
                f"({weight[2 + axis]} weights, dilation {values['dilation'][axis]})."
            )
        return int((padded - window) // values["stride"][axis]) + 1

    def define(
        self, task: Task, x: NDArray, weight: NDArray, bias: NDArray | None = None
    ) -> NDArray:
        groups, dilation, stride = task["groups"], task["dilation"], task["stride"]
        top, left = task["padding"]
        x = (x if x.ndim == 4 else x[None]).astype(np.float64)
        x = np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))
        outputs, inner, rows, columns = weight.shape
        parts = weight.reshape(groups, outputs // groups, inner, rows, columns).astype(np.float64)
        height, width = task.output.shape[-2:]
        total = np.zeros((len(x), groups, outputs // groups, height, width))
        for i in range(rows):
            for j in range(columns):
                y0, x0 = i * dilation[0], j * dilation[1]
                y1, x1 = y0 + (height - 1) * stride[0] + 1, x0 + (width - 1) * stride[1] + 1
                seen = x[:, :, y0 : y1 : stride[0], x0 : x1 : stride[1]]
                seen = seen.reshape(len(x), groups, inner, height, width)
                total += np.einsum("ngchw,goc->ngohw", seen, parts[..., i, j], optimize=True)
        total = total.reshape(task.output.shape)
        return np.asarray(total if bias is None else total + bias[:, None, None])
