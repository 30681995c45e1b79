"""The ONNX graph of a TensorFlow graph under construction: values, layouts, nodes.

A value of four axes is channels-last in TensorFlow. Convolutions and what follows them stay
channels-first in ONNX, and values are turned only where an operator needs the other layout. Shapes
are known at conversion. Integers are kept as f32, exact up to 2^24, which all providers run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import ModelError
from dala.ml.convert.onnx_file import Attribute, Graph
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


#: A parsed JSON value.
Json: TypeAlias = Any

FIRST: Final = (0, 3, 1, 2)


def unsupported(what: str) -> ModelError:
    """Return the error for a model that is sound, but has something that is not converted.

    >>> print(unsupported("layer 'Lambda'"))
    convert_tfjs: unsupported layer 'Lambda'.
    """
    return ModelError(f"convert_tfjs: unsupported {what}.")


@dataclass(frozen=True)
class GraphValue:
    """A tensor of the ONNX graph, with its shape in TensorFlow."""

    name: str
    shape: tuple[int, ...]
    #: Whether it is stored channels-first.
    first: bool = False


Operand: TypeAlias = "GraphValue | NDArray"


class GraphBuilder:
    """Adds the nodes of a TensorFlow graph to an ONNX graph."""

    def __init__(self, name: str) -> None:
        self.graph = Layers(name)

    def input(self, name: str, shape: Sequence[int]) -> GraphValue:
        """Add an input of the network, of f32."""
        return GraphValue(self.graph.input(name, shape), tuple(shape))

    def output(self, value: Operand, name: str) -> None:
        """Add an output of the network, laid out as in TensorFlow."""
        found = self.settled(value)
        self.graph.output(self.name(found, False), found.shape, name=name)

    def settled(self, value: Operand) -> GraphValue:
        """Return a value of the graph; constants become one."""
        if isinstance(value, GraphValue):
            return value
        made = self.graph.constant(np.asarray(value, np.float32))
        return GraphValue(made, value.shape)

    def reshape(self, value: Operand, shape: Sequence[int]) -> Operand:
        """Return a value with another shape; one of its sizes may be -1."""
        if not isinstance(value, GraphValue):
            return value.reshape(shape)
        wanted = list(shape)
        if -1 in wanted:
            known = math.prod(n for n in wanted if n != -1)
            wanted[wanted.index(-1)] = math.prod(value.shape) // max(1, known)
        to = self.graph.ints(wanted)
        return GraphValue(self.graph.node("Reshape", self.name(value, False), to), tuple(wanted))

    def parts(self, x: GraphValue, axis: int, sizes: Sequence[int]) -> list[GraphValue]:
        """Return the parts of a value along an axis; their sizes add up to that of the axis."""
        source, found, start = self.name(x, False), [], 0
        for size in sizes:
            made = self.graph.slice(source, axis, start, start + size)
            found.append(GraphValue(made, (*x.shape[:axis], size, *x.shape[axis + 1 :])))
            start += size
        return found

    def name(self, value: Operand, first: bool) -> str:
        """Return the name of a value, channels-first if asked for and if it has four axes."""
        if not isinstance(value, GraphValue):
            data = np.asarray(value, np.float32)
            return self.graph.constant(channels_first(data) if first else data)
        if value.first == first or len(value.shape) != 4:
            return value.name
        return self.graph.first(value.name) if first else self.graph.last(value.name)


@dataclass(frozen=True)
class GraphNode:
    """A node of a TensorFlow graph: its operator, attributes and inputs, to be added to a graph."""

    builder: GraphBuilder
    op: str
    attributes: Mapping[str, Any]
    inputs: Sequence[Operand]

    def made(
        self,
        op: str,
        *names: str,
        shape: Sequence[int],
        first: bool = False,
        **attributes: Attribute,
    ) -> GraphValue:
        """Add an ONNX node, and return its output."""
        made = self.builder.graph.node(op, *names, output=None, **attributes)
        return GraphValue(made, tuple(shape), first)

    def like(self, x: GraphValue, op: str, *names: str, **attributes: Attribute) -> GraphValue:
        """Add an ONNX node on the elements of a value, and return its output."""
        return self.made(op, x.name, *names, shape=x.shape, first=x.first, **attributes)

    # inputs -----------------------------------------------------------------------------------
    def value(self, k: int) -> GraphValue:
        """Return an input as a value of the graph."""
        return self.builder.settled(self.inputs[k])

    def picture(self, k: int = 0) -> GraphValue:
        """Return an input of four axes, which is no constant."""
        value = self.inputs[k]
        if not isinstance(value, GraphValue) or len(value.shape) != 4:
            raise ValueError("a convolution needs a tensor of four axes")
        return value

    def name(self, k: int) -> str:
        """Return the name of an input, laid out as in TensorFlow."""
        return self.builder.name(self.inputs[k], False)

    def constant(self, k: int) -> NDArray:
        """Return the array of an input that is a constant."""
        value = self.inputs[k]
        if isinstance(value, GraphValue):
            raise ValueError("weights, sizes and axes must be constants")
        return value

    def number(self, k: int) -> int:
        """Return the int of an input."""
        return int(self.constant(k).reshape(()))

    def ints(self, k: int) -> list[int]:
        """Return the ints of an input."""
        return [int(n) for n in np.atleast_1d(self.constant(k))]

    @property
    def first(self) -> bool:
        """Whether pictures among the inputs are channels-first, and all others can be turned.

        Constants of up to four axes and other pictures can be turned; a vector would need padding.
        """
        values = [v for v in self.inputs if isinstance(v, GraphValue)]
        return any(v.first for v in values) and all(len(v.shape) == 4 for v in values)

    # attributes -------------------------------------------------------------------------------
    def pair(self, key: str) -> tuple[int, int]:
        """Return the two middle numbers of a list of four, 1 if it is absent."""
        numbers = self.attributes.get(key, (1, 1, 1, 1))
        found = int(numbers[1]), int(numbers[2])
        if min(found) < 1:
            raise unsupported(f"{key} {numbers!r}")
        return found

    def given(self, key: str, default: float = 0) -> float:
        """Return a number or a bool."""
        return float(self.attributes.get(key, default))

    @property
    def same(self) -> bool:
        """Whether the padding is "SAME"."""
        padding = self.attributes["padding"]
        if padding not in ("SAME", "VALID"):
            raise unsupported(f"padding {padding!r}")
        return bool(padding == "SAME")


def channels_first(data: NDArray) -> NDArray:
    """Return a constant channels-first, so that it broadcasts as before."""
    if data.ndim == 4:
        return data.transpose(FIRST)
    if data.ndim == 1:
        return data.reshape(-1, 1, 1)
    if data.ndim == 3:
        return data.transpose(2, 0, 1)
    return data


#: From a node to its output or outputs.
Handler: TypeAlias = Callable[[GraphNode], "Operand | Sequence[Operand]"]
