"""Conversion of convolutional TFLite networks in f32, such as BlazeFace and DeepLab.

Their operators are those of TensorFlow graphs, with other numbers, attributes and weights.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from dala.budget import checked
from dala.errors import ModelError
from dala.ml.convert import damaged
from dala.ml.convert.builder import GraphBuilder, GraphNode, Operand
from dala.ml.convert.tfjs_ops import activated, outputs
from dala.typing import NDArray

_DTYPES: Final = {0: "<f4", 1: "<f2", 2: "<i4", 3: "u1", 4: "<i8", 6: "?", 9: "i1"}


class Table:
    """A flatbuffer table: fields by number, with defaults for absent ones."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]
        self.count = (struct.unpack_from("<H", data, self.fields)[0] - 4) // 2

    def _position(self, field: int) -> int:
        if field >= self.count:
            return 0
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * field)[0]
        return self.at + offset if offset else 0

    def number(self, field: int, kind: str = "i", default: int = 0) -> int:
        """Return a scalar; ``kind`` is a ``struct`` format."""
        position = self._position(field)
        return int(struct.unpack_from(f"<{kind}", self.data, position)[0]) if position else default

    def _target(self, field: int) -> int:
        position = self._position(field)
        return position + struct.unpack_from("<I", self.data, position)[0] if position else 0

    def table(self, field: int) -> Table | None:
        """Return a nested table, or None."""
        target = self._target(field)
        return Table(self.data, target) if target else None

    def tables(self, field: int) -> list[Table]:
        """Return a vector of tables."""
        start = self._target(field)
        if not start:
            return []
        count = struct.unpack_from("<I", self.data, start)[0]
        if 4 * count > len(self.data) - start:
            raise ValueError("a vector is longer than the file")
        spots = [start + 4 + 4 * k for k in range(count)]
        return [Table(self.data, s + struct.unpack_from("<I", self.data, s)[0]) for s in spots]

    def array(self, field: int, dtype: str) -> NDArray:
        """Return a vector of numbers."""
        start = self._target(field)
        if not start:
            return np.zeros(0, dtype)
        count = struct.unpack_from("<I", self.data, start)[0]
        return np.frombuffer(self.data, dtype, count, start + 4)

    def indexes(self, field: int) -> list[int]:
        """Return a vector of ints."""
        return list(map(int, self.array(field, "<i4")))

    def text(self, field: int) -> str:
        """Return a string."""
        return self.array(field, "u1").tobytes().decode("utf-8", "replace")


@dataclass
class TFLiteTensor:
    """A tensor of the graph; ``data`` is set for weights."""

    name: str
    shape: tuple[int, ...]
    data: NDArray | None


@dataclass
class Op:
    """An operator: its built-in number, the indexes of its tensors, and its options."""

    code: int
    inputs: list[int]
    outputs: list[int]
    options: Table | None


@dataclass
class Network:
    """The first subgraph of a file."""

    tensors: list[TFLiteTensor]
    ops: list[Op]
    inputs: list[int]
    outputs: list[int]


def read_tflite(data: bytes) -> Network:
    """Read a TFLite file.

    Raises:
        ModelError: the file is not a TFLite file, or damaged.
    """
    try:
        if data[4:8] != b"TFL3":
            raise ValueError("the magic bytes TFL3 are missing")
        return _network(data)
    except (ValueError, IndexError, struct.error, KeyError) as error:
        raise ModelError(f"read_tflite: not a TFLite file, or damaged: {error}") from None


def _network(data: bytes) -> Network:
    model = Table(data, struct.unpack_from("<I", data, 0)[0])
    codes = [max(t.number(0, "b"), t.number(3)) for t in model.tables(1)]
    graph = model.tables(2)[0]
    buffers = model.tables(4)
    tensors = []
    for t in graph.tables(0):
        shape = tuple(t.indexes(0))
        raw = buffers[t.number(2, "I")].array(0, "u1")
        kind, weights = t.number(1, "b"), None
        if raw.size:
            weights = np.frombuffer(raw.tobytes(), _DTYPES[kind]).reshape(shape)
        tensors.append(TFLiteTensor(t.text(3), shape, weights))
    ops = [
        Op(codes[o.number(0, "I")], o.indexes(1), o.indexes(2), o.table(4)) for o in graph.tables(3)
    ]
    return Network(tensors, ops, graph.indexes(1), graph.indexes(2))


#: What converting a damaged network raises.
_DAMAGE: Final = (LookupError, ValueError, ArithmeticError, TypeError, struct.error)
#: Activations of operators by number.
_ACTIVATIONS: Final = {0: "", 1: "Relu", 3: "Relu6"}


class _Rule(NamedTuple):
    """A TFLite operator as one of TensorFlow."""

    op: str
    #: The fields of the options that have height and width of an attribute.
    pairs: Mapping[str, tuple[int, int]] = {}
    #: Those that have a flag.
    flags: Mapping[str, int] = {}
    #: That of the activation.
    activation: int | None = None


#: By number of the TFLite built-in operator.
RULES: Final = {
    0: _Rule("Add", activation=0),
    1: _Rule("AveragePool", {"ksize": (4, 3), "strides": (2, 1)}, activation=5),
    2: _Rule("ConcatV2", activation=1),
    3: _Rule("Conv2D", {"strides": (2, 1), "dilations": (5, 4)}, activation=3),
    4: _Rule("DepthwiseConv2dNative", {"strides": (2, 1), "dilations": (6, 5)}, activation=4),
    6: _Rule("Cast"),
    17: _Rule("MaxPool", {"ksize": (4, 3), "strides": (2, 1)}, activation=5),
    19: _Rule("Relu"),
    21: _Rule("Relu6"),
    22: _Rule("Reshape"),
    23: _Rule("ResizeBilinear", flags={"align_corners": 2, "half_pixel_centers": 3}),
    34: _Rule("Pad"),
}


def convert_tflite(data: bytes) -> bytes:
    """Convert a TFLite file to ONNX; inputs and outputs keep their names and shapes.

    Raises:
        ModelError: the file is damaged, or has an operator that is not supported.
    """
    network = read_tflite(data)
    with damaged("convert_tflite: the network is damaged", *_DAMAGE):
        return _converted(network)


def _converted(network: Network) -> bytes:
    builder, tensors = GraphBuilder("network"), network.tensors
    values: dict[int, Operand] = {k: t.data for k, t in enumerate(tensors) if t.data is not None}
    for k in network.inputs:
        values[k] = builder.input(tensors[k].name, tensors[k].shape)
    for op in checked(network.ops, "convert_tflite"):
        rule = RULES.get(op.code)
        if rule is None:
            raise ModelError(
                f"convert_tflite: unsupported operator {op.code}. Supported: "
                f"{', '.join(map(str, RULES))}."
            )
        inputs = [values[k] for k in op.inputs if k >= 0]
        values[op.outputs[0]] = _added(builder, network, op, rule, inputs)
    for k in network.outputs:
        builder.output(values[k], tensors[k].name)
    return builder.graph.save()


def _added(
    builder: GraphBuilder, network: Network, op: Op, rule: _Rule, inputs: list[Operand]
) -> Operand:
    """Add an operator, and return its output."""
    options = op.options
    if options is None and (rule.pairs or rule.flags or rule.op == "ConcatV2"):
        raise ModelError(f"convert_tflite: the operator {op.code} has no options.")
    attributes = {"DstT": "DT_FLOAT", **(_attributes(options, rule) if options else {})}
    node = GraphNode(builder, rule.op, attributes, inputs)
    if "Conv" in rule.op:
        weights = node.constant(1)
        if rule.op == "Conv2D":  # (out, height, width, in)
            inputs[1] = weights.transpose(1, 2, 3, 0)
        else:  # (1, height, width, out), those of an input channel together
            inputs[1] = weights[0].reshape(*weights.shape[1:3], node.picture().shape[3], -1)
        attributes["fused_ops"] = ["BiasAdd"] if len(inputs) > 2 else []
    elif rule.op == "ConcatV2" and options is not None:
        inputs.append(np.array(options.number(0)))
    elif rule.op == "Reshape":
        inputs[1:] = [np.array(network.tensors[op.outputs[0]].shape)]
    (made,) = outputs(node)
    activation = _ACTIVATIONS[attributes.get("activation", 0)]
    return activated(node, activation, builder.settled(made)) if activation else made


def _attributes(options: Table, rule: _Rule) -> dict[str, Any]:
    """Return the attributes as of TensorFlow; numbers that are left out are 1."""
    made: dict[str, Any] = {"padding": "VALID" if options.number(0, "b") else "SAME"}
    for name, fields in rule.pairs.items():
        made[name] = [1, *(options.number(field, "i", 1) for field in fields), 1]
    made |= {name: options.number(field, "b") for name, field in rule.flags.items()}
    if rule.activation is not None:
        made["activation"] = options.number(rule.activation, "b")
    return made
