"""Operators of TensorFlow graphs that move values by their index, or compare them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dala.ml.convert.builder import (
    Attributes,
    GraphBuilder,
    GraphValue,
    Handler,
    Operand,
    constant_of,
)
from dala.ml.convert.onnx_file import DTYPES


def _number(value: Operand) -> int:
    return int(constant_of(value).reshape(()))


def _cast(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x, whole = inputs[0], at.kind("DstT") in ("DT_INT32", "DT_INT64")
    if not isinstance(x, GraphValue):
        return x.astype(np.int32 if whole else np.float32)
    if x.dtype != "float32":  # an input of the network
        made = b.graph.node("Cast", x.name, to=DTYPES["float32"])
        return GraphValue(made, x.shape, x.first)
    if not whole or at.kind("SrcT") != "DT_FLOAT":
        return x
    cut = b.graph.node("Cast", x.name, to=DTYPES["int32"])
    return GraphValue(b.graph.node("Cast", cut, to=DTYPES["float32"]), x.shape, x.first)


def _expand(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    shape = list(inputs[0].shape)
    axis = _number(inputs[1])
    shape.insert(axis + len(shape) + 1 if axis < 0 else axis, 1)
    return b.reshape(inputs[0], shape)


def _squeeze(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    shape = inputs[0].shape
    axes = [n % len(shape) for n in at.numbers("squeeze_dims")]
    axes = axes or [k for k, n in enumerate(shape) if n == 1]
    if any(shape[k] != 1 for k in axes):
        raise ValueError(f"cannot squeeze the axes {axes} of {shape}")
    return b.reshape(inputs[0], [n for k, n in enumerate(shape) if k not in axes])


def _unpack(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> tuple[Operand, ...]:
    """Split a value along an axis into parts without that axis."""
    x = b.settled(inputs[0])
    axis = int(at.number("axis")) % len(x.shape)
    shape = [n for k, n in enumerate(x.shape) if k != axis]
    if x.shape[axis] == 1:
        return (b.reshape(x, shape),)
    source, parts = b.name(x, False), []
    for k in range(x.shape[axis]):
        part = GraphValue(
            b.slice(source, axis, k, k + 1), (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        )
        parts.append(b.reshape(part, shape))
    return tuple(parts)


def _pack(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """Join values of one shape along a new axis."""
    shape = list(inputs[0].shape)
    axis = int(at.number("axis")) % (len(shape) + 1)
    if all(not isinstance(v, GraphValue) for v in inputs):
        return np.stack([constant_of(v) for v in inputs], axis)
    one = [*shape[:axis], 1, *shape[axis:]]
    names = [b.name(b.reshape(v, one), False) for v in inputs]
    made = b.graph.node("Concat", *names, axis=axis)
    return GraphValue(made, (*shape[:axis], len(inputs), *shape[axis:]))


def _arg_max(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """The index of the first of the largest values."""
    x = b.settled(inputs[0])
    axis = _number(inputs[1]) % len(x.shape)
    made = b.graph.node("ArgMax", b.name(x, False), axis=axis, keepdims=0)
    made = b.graph.node("Cast", made, to=DTYPES["float32"])
    return GraphValue(made, tuple(n for k, n in enumerate(x.shape) if k != axis))


def _gather(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """The parts of a value at indexes (..., n) into its first n axes."""
    x, indexes = b.settled(inputs[0]), inputs[1]
    if isinstance(indexes, GraphValue):
        where = b.graph.node("Cast", b.name(indexes, False), to=DTYPES["int64"])
    else:
        where = b.graph.constant(indexes.astype(np.int64))
    *shape, deep = indexes.shape
    made = b.graph.node("GatherND", b.name(x, False), where)
    return GraphValue(made, (*shape, *x.shape[deep:]))


#: By name of the TensorFlow operator.
HANDLERS: Final[dict[str, Handler]] = {
    "ArgMax": _arg_max,
    "Cast": _cast,
    "ExpandDims": _expand,
    "GatherNd": _gather,
    "Pack": _pack,
    "Squeeze": _squeeze,
    "Unpack": _unpack,
}
