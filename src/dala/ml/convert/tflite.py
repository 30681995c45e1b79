"""Conversion of convolutional TFLite networks in f32, such as BlazeFace and DeepLab.

Their operators are those of TensorFlow graphs, with other numbers, attributes and weights.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from dala.budget import checked
from dala.errors import ModelError
from dala.ml.convert import damaged
from dala.ml.convert.builder import GraphBuilder, GraphNode, Operand
from dala.ml.convert.tfjs_ops import activated, outputs
from dala.ml.convert.tflite_file import Network, Op, Table, read_tflite

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


def convert_tflite(data: bytes, name: str = "network") -> bytes:
    """Convert a TFLite file to ONNX; inputs and outputs keep their names and shapes.

    Raises:
        ModelError: the file is damaged, or has an operator that is not supported.
    """
    network = read_tflite(data)
    with damaged("convert_tflite: the network is damaged", *_DAMAGE):
        return _converted(network, name)


def _converted(network: Network, name: str) -> bytes:
    builder, tensors = GraphBuilder(name), network.tensors
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
