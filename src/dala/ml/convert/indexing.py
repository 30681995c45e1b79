"""Operators of TensorFlow graphs that move values by their index, or compare them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dala.ml.convert.builder import (
    Attributes,
    GraphBuilder,
    GraphValue,
    Handler,
    Operand,
    constant_of,
    unsupported,
)
from dala.ml.convert.onnx_file import DTYPES
from dala.typing import NDArray


def _number(value: Operand) -> int:
    return int(constant_of(value).reshape(()))


def _cast(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x, whole = inputs[0], at.kind("DstT") in ("DT_INT32", "DT_INT64")
    if not isinstance(x, GraphValue):
        return x.astype(np.int32 if whole else np.float32)
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


def _shape(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    return np.array(inputs[0].shape, np.int32)


def _size(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    return np.array(math.prod(inputs[0].shape), np.int32)


def _range(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    start, end, step = (float(constant_of(v).reshape(())) for v in inputs)
    made: NDArray = np.arange(start, end, step)
    return made


def _fill(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    return np.full([int(n) for n in constant_of(inputs[0])], constant_of(inputs[1]).reshape(()))


def _strided_slice(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """A slice as in NumPy; bits of masks mark open ends, new axes and axes that are removed."""
    x, (begin, end, step) = inputs[0], (constant_of(v).tolist() for v in inputs[1:])
    masks = {k: int(at.number(f"{k}_mask")) for k in ("begin", "end", "new_axis", "shrink_axis")}
    if at.number("ellipsis_mask"):
        raise unsupported("attribute ellipsis_mask")
    index: list[slice | int | None] = []
    for k, (low, high, by) in enumerate(zip(begin, end, step, strict=True)):
        bits = {name for name, mask in masks.items() if mask >> k & 1}
        if "new_axis" in bits:
            index.append(None)
        elif "shrink_axis" in bits:
            index.append(int(low))
        else:
            ends = (None if "begin" in bits else low), (None if "end" in bits else high)
            index.append(slice(*ends, by))
    if not isinstance(x, GraphValue):
        return np.asarray(x[tuple(index)])
    shape = np.broadcast_to(np.zeros(()), x.shape)[tuple(index)].shape
    made = b.name(x, False)
    for axis, part in enumerate(p for p in index if p is not None):
        part = slice(part, part + 1 or None) if isinstance(part, int) else part
        start, stop, by = part.indices(x.shape[axis])
        if by != 1:
            raise unsupported(f"step {by} of a slice")
        if (start, stop) != (0, x.shape[axis]):
            made = b.slice(made, axis, start, stop)
    return b.reshape(GraphValue(made, _cut(x.shape, index)), shape)


def _cut(shape: Sequence[int], index: Sequence[slice | int | None]) -> tuple[int, ...]:
    """Return the shape of a slice in which all axes stay."""
    sizes = list(shape)
    for axis, part in enumerate(p for p in index if p is not None):
        sizes[axis] = 1 if isinstance(part, int) else len(range(*part.indices(sizes[axis])))
    return tuple(sizes)


def _tile(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x, times = inputs[0], [int(n) for n in constant_of(inputs[1])]
    if not isinstance(x, GraphValue):
        return np.tile(x, times)
    made = b.graph.node("Tile", b.name(x, False), b.graph.constant(np.array(times, np.int64)))
    return GraphValue(made, tuple(n * k for n, k in zip(x.shape, times, strict=True)))


def _compare(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """A comparison: 1 where it holds, 0 elsewhere."""
    op, compute = _COMPARISONS[at.op]
    one, other = inputs
    if not isinstance(one, GraphValue) and not isinstance(other, GraphValue):
        return compute(one, other)
    made = b.graph.node(op, b.name(one, False), b.name(other, False))
    if op != "Mul":
        made = b.graph.node("Cast", made, to=DTYPES["float32"])
    return GraphValue(made, np.broadcast_shapes(one.shape, other.shape))


def _select(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """The first value where the condition holds, the second elsewhere."""
    condition, one, other = inputs
    where = b.graph.node("Cast", b.name(condition, False), to=DTYPES["bool"])
    made = b.graph.node("Where", where, b.name(one, False), b.name(other, False))
    return GraphValue(made, np.broadcast_shapes(condition.shape, one.shape, other.shape))


def _top_k(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> tuple[Operand, ...]:
    """The largest values along the last axis, the largest first, and their indexes."""
    x, count = b.settled(inputs[0]), _number(inputs[1])
    wanted = b.graph.constant(np.array([count], np.int64))
    values, indexes = b.graph.split_node("TopK", 2, b.name(x, False), wanted, axis=-1)
    indexes = b.graph.node("Cast", indexes, to=DTYPES["float32"])
    shape = (*x.shape[:-1], count)
    return GraphValue(values, shape), GraphValue(indexes, shape)


def _reduce(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """The sum or the largest value along axes."""
    x = b.settled(inputs[0])
    axes = sorted({int(n) % len(x.shape) for n in constant_of(inputs[1]).reshape(-1)})
    keep = at.flag("keep_dims")
    shape = [1 if k in axes else n for k, n in enumerate(x.shape) if keep or k not in axes]
    source = b.name(x, False)
    if at.op == "Sum":
        along = b.graph.constant(np.array(axes, np.int64))
        made = b.graph.node("ReduceSum", source, along, keepdims=int(keep))
    else:
        made = b.graph.node("ReduceMax", source, axes=axes, keepdims=int(keep))
    return GraphValue(made, tuple(shape))


#: The ONNX operator and the NumPy function of each comparison; of 0 and 1, "and" is the product.
_COMPARISONS: Final[dict[str, tuple[str, Callable[[NDArray, NDArray], NDArray]]]] = {
    "Equal": ("Equal", np.equal),
    "Greater": ("Greater", np.greater),
    "GreaterEqual": ("GreaterOrEqual", np.greater_equal),
    "Less": ("Less", np.less),
    "LessEqual": ("LessOrEqual", np.less_equal),
    "LogicalAnd": ("Mul", np.logical_and),
}

#: By name of the TensorFlow operator.
HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(_COMPARISONS, _compare),
    "ArgMax": _arg_max,
    "Cast": _cast,
    "ExpandDims": _expand,
    "Fill": _fill,
    "GatherNd": _gather,
    "Max": _reduce,
    "Pack": _pack,
    "Range": _range,
    "Select": _select,
    "SelectV2": _select,
    "Shape": _shape,
    "Size": _size,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Sum": _reduce,
    "Tile": _tile,
    "TopKV2": _top_k,
    "Unpack": _unpack,
}
