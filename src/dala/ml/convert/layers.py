"""Layers of channels-last networks, added to a channels-first ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dala.ml.convert.onnx_file import Graph
from dala.typing import NDArray


class Layers:
    """Adds layers to an ONNX graph. Values are channels-first; ``first`` and ``last`` convert."""

    def __init__(self, name: str) -> None:
        self.graph = Graph(name)

    def first(self, x: str) -> str:
        """Convert from channels-last to channels-first."""
        return self.graph.node("Transpose", x, perm=(0, 3, 1, 2))

    def last(self, x: str) -> str:
        """Convert from channels-first to channels-last."""
        return self.graph.node("Transpose", x, perm=(0, 2, 3, 1))

    def activation(self, x: str, kind: str) -> str:
        """Add an activation: "none", "relu" or "relu6"."""
        if kind == "relu":
            return self.graph.node("Relu", x)
        if kind == "relu6":
            low, high = (self.graph.constant(np.array(n, np.float32)) for n in (0, 6))
            return self.graph.node("Clip", x, low, high)
        return x

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
        return self.graph.node(
            "Conv", x, self.graph.constant(np.ascontiguousarray(weights, np.float32)),
            self.graph.constant(np.asarray(bias, np.float32)), kernel_shape=kernel,
            strides=strides, dilations=dilations, pads=pads, group=groups,
        )  # fmt: skip

    def pool(
        self, x: str, op: str, size: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
        same: bool,
    ) -> str:  # fmt: skip
        """Add a pooling layer, "MaxPool" or "AveragePool"."""
        pads = same_pads(size, kernel, strides, (1, 1)) if same else (0, 0, 0, 0)
        return self.graph.node(op, x, kernel_shape=kernel, strides=strides, pads=pads)

    def resize(self, x: str, size: Sequence[int], corners: bool, halves: bool) -> str:
        """Add a bilinear resize, with aligned corners, half-pixel centers, or neither."""
        mode = "align_corners" if corners else "half_pixel" if halves else "asymmetric"
        shape = self.graph.node("Shape", x)
        ends = [self.graph.constant(np.array([n], np.int64)) for n in (0, 2)]
        batch = self.graph.node("Slice", shape, *ends)
        wanted = self.graph.constant(np.array(size, np.int64))
        sizes = self.graph.node("Concat", batch, wanted, axis=0)
        return self.graph.node(
            "Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode=mode
        )


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
