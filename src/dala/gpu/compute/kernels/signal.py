"""Convolution of one-dimensional signals."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray


class Convolve1d(Operation):
    """Convolve along the last axis.

    ``out[..., n] = sum over k of a[..., n - k] * kernel[k]``

    The kernel is flipped, as in np.convolve, and ``a`` is 0 beyond its ends. ``mode`` "full"
    returns all N + K - 1 results where the two overlap, "same" the middle max(N, K) of those, and
    "valid" the max(N, K) - min(N, K) + 1 where they overlap completely.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([1, 2, 3], np.float32)
    >>> kernel = np.array([0, 1, 0.5], np.float32)
    >>> get("convolve1d")(a, kernel).tolist(), get("convolve1d")(a, kernel, mode="full").tolist()
    ([1.0, 2.5, 4.0], [0.0, 1.0, 2.5, 4.0, 1.5])
    """

    title = "convolve1d"
    takes = ("a", "kernel")
    dtypes = ("f32", "f64")
    options = (Parameter("mode", "choice", "same", choices=("same", "full", "valid")),)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        dtype = self.same_dtype(inputs)
        shape = inputs[0].shape
        taps = self.want_rank(inputs, 1, 1)[0]
        if not shape:
            raise self.wrong_shape("a", "of 1 or more axes", shape)
        if not taps or not shape[-1]:
            raise self.shape_error(
                f"'a' and 'kernel' must not be empty along the last axis, got {shape[-1]} and "
                f"{taps} numbers."
            )
        long, short = max(shape[-1], taps), min(shape[-1], taps)
        size = {"full": long + short - 1, "same": long, "valid": long - short + 1}[values["mode"]]
        return Tensor((*shape[:-1], size), dtype)

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        """Return the values with ``first``, the index of the output's start in the full result."""
        short = min(inputs[0].shape[-1], inputs[1].shape[0])
        return {"first": {"full": 0, "same": (short - 1) // 2, "valid": short - 1}[values["mode"]]}

    def define(self, task: Task, a: NDArray, kernel: NDArray) -> NDArray:
        first, count = task["first"], task.output.shape[-1]
        rows = a.reshape(-1, a.shape[-1]).astype(np.float64)
        taps = kernel.astype(np.float64)
        out = np.empty((len(rows), count))
        for row, target in zip(rows, out, strict=True):
            target[:] = np.convolve(row, taps)[first : first + count]
        return out
