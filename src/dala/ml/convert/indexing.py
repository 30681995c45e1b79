"""Operators of TensorFlow graphs that move values by their index, or reduce them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dala.ml.convert.builder import GraphNode, GraphValue, Handler, Operand, unsupported
from dala.ml.convert.onnx_file import DTYPES

#: The most parts into which a value is split.
MOST_PARTS: Final = 4096


def _cast(node: GraphNode) -> Operand:
    x, whole = node.inputs[0], node.attributes["DstT"] in ("DT_INT32", "DT_INT64")
    if not isinstance(x, GraphValue):
        return x.astype(np.int32 if whole else np.float32)
    if not whole or node.attributes["SrcT"] != "DT_FLOAT":
        return x
    return node.like(node.like(x, "Cast", to=DTYPES["int32"]), "Cast", to=DTYPES["float32"])


def _expand(node: GraphNode) -> Operand:
    shape, axis = list(node.inputs[0].shape), node.number(1)
    shape.insert(axis + len(shape) + 1 if axis < 0 else axis, 1)
    return node.builder.reshape(node.inputs[0], shape)


def _squeeze(node: GraphNode) -> Operand:
    shape = node.inputs[0].shape
    axes = [int(n) % len(shape) for n in node.attributes.get("squeeze_dims", ())]
    axes = axes or [k for k, n in enumerate(shape) if n == 1]
    if any(shape[k] != 1 for k in axes):
        raise ValueError(f"cannot squeeze the axes {axes} of {shape}")
    return node.builder.reshape(node.inputs[0], [n for k, n in enumerate(shape) if k not in axes])


def _unpack(node: GraphNode) -> Sequence[Operand]:
    """Split a value along an axis into parts without that axis."""
    x = node.value(0)
    axis = int(node.given("axis")) % len(x.shape)
    count, shape = x.shape[axis], _without(x.shape, [axis])
    if count > MOST_PARTS:
        raise ValueError(f"cannot unpack an axis of {count:,}")
    parts = [x] if count == 1 else node.builder.parts(x, axis, [1] * count)
    return [node.builder.reshape(part, shape) for part in parts]


def _pack(node: GraphNode) -> Operand:
    """Join values of one shape along a new axis."""
    shape = node.inputs[0].shape
    axis = int(node.given("axis")) % (len(shape) + 1)
    if all(not isinstance(v, GraphValue) for v in node.inputs):
        return np.stack([node.constant(k) for k in range(len(node.inputs))], axis)
    before, after = shape[:axis], shape[axis:]
    parts = [node.builder.reshape(v, [*before, 1, *after]) for v in node.inputs]
    names = [node.builder.name(part, False) for part in parts]
    return node.made("Concat", *names, shape=(*before, len(names), *after), axis=axis)


def _arg_max(node: GraphNode) -> Operand:
    """The index of the first of the largest values."""
    x = node.value(0)
    axis = node.number(1) % len(x.shape)
    source = node.builder.name(x, False)
    made = node.made("ArgMax", source, shape=_without(x.shape, [axis]), axis=axis, keepdims=0)
    return node.like(made, "Cast", to=DTYPES["float32"])


def _gather(node: GraphNode) -> Operand:
    """The parts of a value at indexes (..., n) into its first n axes."""
    graph, x, indexes = node.builder.graph, node.value(0), node.inputs[1]
    if isinstance(indexes, GraphValue):
        where = graph.node("Cast", node.name(1), to=DTYPES["int64"])
    else:
        where = graph.ints(indexes)
    *shape, deep = indexes.shape
    source = node.builder.name(x, False)
    return node.made("GatherND", source, where, shape=(*shape, *x.shape[deep:]))


def _range(node: GraphNode) -> Operand:
    start, end, step = (float(node.constant(k).reshape(())) for k in range(len(node.inputs)))
    return np.arange(start, end, step)


def _strided_slice(node: GraphNode) -> Operand:
    """A slice as in NumPy; bits of masks mark open ends, new axes and axes that are removed."""
    x, (begin, end, step) = node.inputs[0], (node.constant(k).tolist() for k in (1, 2, 3))
    masks = {k: int(node.given(f"{k}_mask")) for k in ("begin", "end", "new_axis", "shrink_axis")}
    if node.given("ellipsis_mask"):
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
    made, sizes = node.name(0), list(x.shape)
    for axis, part in enumerate(p for p in index if p is not None):
        part = slice(part, part + 1 or None) if isinstance(part, int) else part
        start, stop, by = part.indices(x.shape[axis])
        if by != 1:
            raise unsupported(f"step {by} of a slice")
        if (start, stop) != (0, x.shape[axis]):
            made = node.builder.graph.slice(made, axis, start, stop)
        sizes[axis] = len(range(start, stop))
    return node.builder.reshape(GraphValue(made, tuple(sizes)), shape)


def _tile(node: GraphNode) -> Operand:
    x, times = node.inputs[0], node.ints(1)
    if not isinstance(x, GraphValue):
        return np.tile(x, times)
    shape = [n * k for n, k in zip(x.shape, times, strict=True)]
    names = node.name(0), node.builder.graph.ints(times)
    return node.made("Tile", *names, shape=shape)


def _select(node: GraphNode) -> Operand:
    """The first value where the condition holds, the second elsewhere."""
    where = node.builder.graph.node("Cast", node.name(0), to=DTYPES["bool"])
    shape = np.broadcast_shapes(*(v.shape for v in node.inputs))
    return node.made("Where", where, node.name(1), node.name(2), shape=shape)


def _top_k(node: GraphNode) -> Sequence[Operand]:
    """The largest values along the last axis, the largest first, and their indexes."""
    graph, x, count = node.builder.graph, node.value(0), node.number(1)
    wanted, source = graph.ints([count]), node.builder.name(x, False)
    shape = (*x.shape[:-1], count)
    values, indexes = (
        GraphValue(made, shape) for made in graph.split_node("TopK", 2, source, wanted, axis=-1)
    )
    return values, node.like(indexes, "Cast", to=DTYPES["float32"])


def _reduce(node: GraphNode) -> Operand:
    """The sum, the mean or the largest value along axes."""
    x, keep = node.value(0), int(node.given("keep_dims"))
    axes = sorted({n % len(x.shape) for n in node.ints(1)})
    shape = [1 if k in axes else n for k, n in enumerate(x.shape) if keep or k not in axes]
    source, op = node.builder.name(x, False), f"Reduce{node.op}"
    if node.op == "Sum":  # its axes are an input
        along = node.builder.graph.ints(axes)
        return node.made(op, source, along, shape=shape, keepdims=keep)
    return node.made(op, source, shape=shape, axes=axes, keepdims=keep)


def _without(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    return [n for k, n in enumerate(shape) if k not in axes]


#: By name of the TensorFlow operator.
HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(("Max", "Mean", "Sum"), _reduce),
    **dict.fromkeys(("Select", "SelectV2"), _select),
    "ArgMax": _arg_max,
    "Cast": _cast,
    "ExpandDims": _expand,
    "Fill": lambda node: np.full(node.ints(0), node.constant(1).reshape(())),
    "GatherNd": _gather,
    "Pack": _pack,
    "Range": _range,
    "Shape": lambda node: np.array(node.inputs[0].shape, np.int32),
    "Size": lambda node: np.array(math.prod(node.inputs[0].shape), np.int32),
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "TopKV2": _top_k,
    "Unpack": _unpack,
}
