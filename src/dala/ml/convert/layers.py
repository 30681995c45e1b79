"""Layers of channels-last networks, added to a channels-first ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dala.ml.convert.onnx_file import Graph
from dala.typing import NDArray


class Layers(Graph):
    """An ONNX graph with layers. Values are channels-first; ``first`` and ``last`` convert."""

    def first(self, x: str) -> str:
        """Convert from channels-last to channels-first."""
        return self.node("Transpose", x, perm=(0, 3, 1, 2))

    def last(self, x: str) -> str:
        """Convert from channels-first to channels-last."""
        return self.node("Transpose", x, perm=(0, 2, 3, 1))

    def conv(
        self,
        x: str,
        weights: NDArray,
        bias: NDArray,
        size: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        same: bool,
        groups: int = 1,
    ) -> str:
        """Add a convolution of ``x``, of (height, width) ``size``.

        ``weights`` has the shape (out, in / groups, height, width).
        """
        kernel = weights.shape[2:]
        pads = same_pads(size, kernel, strides, dilations) if same else (0, 0, 0, 0)
        return self.node(
            "Conv", x, self.constant(np.ascontiguousarray(weights, np.float32)),
            self.constant(np.asarray(bias, np.float32)), kernel_shape=kernel,
            strides=strides, dilations=dilations, pads=pads, group=groups,
        )  # fmt: skip


def same_pads(
    size: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    """Return the padding for an output of ceil(size / stride): top, left, bottom, right.

    >>> same_pads((224, 224), (3, 3), (2, 2), (1, 1))
    (0, 0, 1, 1)
    """
    before, after = [], []
    for n, k, s, d in zip(size, kernel, strides, dilations, strict=True):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    return (*before, *after)
