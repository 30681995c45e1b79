"""Convolution of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.params import Parameter


class Convolve1d(Operation):
    """Convolution along the last axis: out[..., n] = sum over k of a[..., n - k] * kernel[k]

    The kernel is flipped, as in np.convolve, and ``a`` is 0 beyond its ends. ``mode`` "full" gives
    every n where the two touch, N + K - 1 of them; "same" the middle max(N, K) of those; "valid"
    only those where the shorter lies wholly within the longer, max(N, K) - min(N, K) + 1.
    """

    title = "convolve1d"
    takes = ("a", "kernel")
    dtypes = ("f32", "f64")
    options = (Parameter("mode", "choice", "same", choices=("same", "full", "valid")),)

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        dtype = self.same_dtype(inputs)
        shape = inputs[0].shape
        taps = self.want_rank(inputs, 1, 1)[0]
        if not shape:
            raise self.shape_error("takes 'a' with at least one axis, shape () came.")
        if not taps or not shape[-1]:
            raise self.shape_error(
                f"needs numbers along the last axis of both: 'a' has {shape[-1]} of them, "
                f"'kernel' {taps}."
            )
        long, short = max(shape[-1], taps), min(shape[-1], taps)
        size = {"full": long + short - 1, "same": long, "valid": long - short + 1}[values["mode"]]
        return Tensor((*shape[:-1], size), dtype)

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        """Engines see ``first``: which of the full result's numbers the output begins with."""
        self.want(output, self.result(inputs, values))
        short = min(inputs[0].shape[-1], inputs[1].shape[0])
        return {"first": {"full": 0, "same": (short - 1) // 2, "valid": short - 1}[values["mode"]]}

    def define(self, task: Task, a: Any, kernel: Any) -> Any:
        first, count = task["first"], task.output.shape[-1]
        rows = a.reshape(-1, a.shape[-1]).astype(np.float64)
        taps = kernel.astype(np.float64)
        out = np.empty((len(rows), count))
        for row, target in zip(rows, out, strict=True):
            target[:] = np.convolve(row, taps)[first : first + count]
        return out


OPERATIONS = (Convolve1d,)
