"""The ONNX graph of a TensorFlow graph under construction: values, layouts, attributes.

A value of four axes is channels-last in TensorFlow. Convolutions and what follows them stay
channels-first in ONNX, and values are turned only where an operator needs the other layout. Shapes
are known at conversion. Integers are kept as f32, exact up to 2^24, which all providers run.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import ModelError
from dala.ml.convert.layers import Layers
from dala.typing import NDArray

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
    dtype: str = "float32"


Operand: TypeAlias = "GraphValue | NDArray"


class GraphBuilder:
    """Adds the nodes of a TensorFlow graph to an ONNX graph."""

    def __init__(self, name: str, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self.layers = Layers(name)
        self.graph = self.layers.graph

    def input(self, name: str, shape: Sequence[int], dtype: str) -> GraphValue:
        """Add an input of the network."""
        return GraphValue(self.graph.input(name, shape, dtype), tuple(shape), False, dtype)

    def output(self, value: GraphValue, name: str) -> None:
        """Add an output of the network, laid out as in TensorFlow."""
        made = self.name(value, False)
        self.graph.output(made, value.shape, name=name, dtype=value.dtype)

    def add(self, node: Json, inputs: Sequence[Operand]) -> list[Operand]:
        """Add a node, and return its outputs."""
        op = node["op"]
        handler = self._handlers.get(op)
        if handler is None:
            raise unsupported(f"operator {op!r} at {node['name']!r}")
        made = handler(self, Attributes(node.get("attr") or {}, op), inputs)
        return list(made) if isinstance(made, tuple) else [made]

    def settled(self, value: Operand) -> GraphValue:
        """Return a value of the graph; constants become one."""
        if isinstance(value, GraphValue):
            return value
        made = self.graph.constant(np.asarray(value, np.float32))
        return GraphValue(made, value.shape)

    def slice(self, source: str, axis: int, start: int, end: int) -> str:
        """Add the part of a value from ``start`` to ``end`` along an axis."""
        at = (self.graph.constant(np.array([n], np.int64)) for n in (start, end, axis))
        return self.graph.node("Slice", source, *at)

    def reshape(self, value: Operand, shape: Sequence[int]) -> Operand:
        """Return a value with another shape; one of its sizes may be -1."""
        if not isinstance(value, GraphValue):
            return value.reshape(shape)
        wanted = list(shape)
        if -1 in wanted:
            known = math.prod(n for n in wanted if n != -1)
            wanted[wanted.index(-1)] = math.prod(value.shape) // max(1, known)
        to = self.graph.constant(np.array(wanted, np.int64))
        return GraphValue(self.graph.node("Reshape", self.name(value, False), to), tuple(wanted))

    def name(self, value: Operand, first: bool) -> str:
        """Return the name of a value, channels-first if asked for and if it has four axes."""
        if not isinstance(value, GraphValue):
            data = np.asarray(value, np.float32)
            return self.graph.constant(channels_first(data) if first else data)
        if value.first == first or len(value.shape) != 4:
            return value.name
        return self.layers.first(value.name) if first else self.layers.last(value.name)


class Attributes:
    """The attributes of a node."""

    def __init__(self, found: Json, op: str) -> None:
        self._found, self.op = found, op

    def pair(self, key: str) -> tuple[int, int]:
        """Return the two middle numbers of a list of four, 1 if it is absent."""
        if key not in self._found:
            return 1, 1
        numbers = [int(n) for n in self._found[key]["list"]["i"]]
        return numbers[1], numbers[2]

    def flag(self, key: str) -> bool:
        """Return a bool, False if it is absent."""
        return bool(self._found.get(key, {}).get("b", False))

    def number(self, key: str, default: float = 0) -> float:
        """Return a number."""
        found = self._found.get(key, {})
        return float(found.get("f", found.get("i", default)))

    def kind(self, key: str) -> str:
        """Return a dtype, such as "DT_INT32"."""
        return str(self._found[key]["type"])

    def numbers(self, key: str) -> list[int]:
        """Return a list of ints, empty if it is absent."""
        return [int(n) for n in self._found.get(key, {}).get("list", {}).get("i") or ()]

    def words(self, key: str) -> list[str]:
        """Return a list of strings."""
        found = self._found.get(key, {}).get("list", {}).get("s") or []
        return [_text(word) for word in found]

    @property
    def same(self) -> bool:
        """Whether the padding is "SAME"."""
        padding = _text(self._found["padding"]["s"])
        if padding not in ("SAME", "VALID"):
            raise unsupported(f"padding {padding!r}")
        return padding == "SAME"


def _text(text: str) -> str:
    return base64.b64decode(text).decode()


def channels_first(data: NDArray) -> NDArray:
    """Return a constant channels-first, so that it broadcasts as before."""
    if data.ndim == 4:
        return data.transpose(FIRST)
    if data.ndim == 1:
        return data.reshape(-1, 1, 1)
    if data.ndim == 3:
        return data.transpose(2, 0, 1)
    return data


def constant_of(value: Operand) -> NDArray:
    """Return the array of a constant."""
    if isinstance(value, GraphValue):
        raise ValueError("weights, sizes and axes must be constants")
    return value


#: From the builder, a node's attributes and its inputs to its output or outputs.
Handler: TypeAlias = Callable[
    [GraphBuilder, Attributes, Sequence[Operand]], "Operand | tuple[Operand, ...]"
]
