"""Operators of TensorFlow graphs, added to an ONNX graph: convolutions, elements, shapes.

An operator whose inputs are all constants is computed. ``indexing`` has those that move values by
their index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dala import memory
from dala.ml.convert import indexing
from dala.ml.convert.builder import (
    FIRST,
    GraphNode,
    GraphValue,
    Handler,
    Operand,
    channels_first,
    same_pads,
    unsupported,
)
from dala.ml.convert.onnx_file import DTYPES
from dala.typing import NDArray


# convolutions -------------------------------------------------------------------------------------
def _spread(size: int, kernel: int, stride: int, dilation: int, same: bool) -> int:
    """Return the size of a convolution's output."""
    return -(-(size if same else size - (kernel - 1) * dilation) // stride)


def _conv(node: GraphNode) -> Operand:
    x, weights, same = node.picture(), node.constant(1), node.same
    turned, groups = weights.transpose(3, 2, 0, 1), 1
    if "Depthwise" in node.op:
        turned = weights.transpose(2, 3, 0, 1).reshape(-1, 1, *weights.shape[:2])
        groups = weights.shape[2]
    bias: NDArray = np.zeros(len(turned), np.float32)
    if "BiasAdd" in node.attributes.get("fused_ops", ()):
        bias = node.constant(2).reshape(-1)
    size, strides, dilations = x.shape[1:3], node.pair("strides"), node.pair("dilations")
    source = node.builder.name(x, True)
    made = node.builder.graph.conv(source, turned, bias, size, strides, dilations, same, groups)
    out = (
        _spread(n, k, s, d, same)
        for n, k, s, d in zip(size, turned.shape[2:], strides, dilations, strict=True)
    )
    return _fused(node, GraphValue(made, (x.shape[0], *out, len(turned)), True))


def _fused(node: GraphNode, x: GraphValue) -> GraphValue:
    """Add the operations that are fused with a convolution or a product."""
    for word in node.attributes.get("fused_ops", ()):
        if word == "Prelu":
            x = _prelu(replace(node, inputs=[x, node.inputs[-1]]))
        elif word == "LeakyRelu":
            x = _leaky(replace(node, inputs=[x]))
        elif word in _ACTIVATIONS:
            x = activated(node, word, x)
        elif word != "BiasAdd":
            raise unsupported(f"fused operation {word!r}")
    return x


def _transposed_conv(node: GraphNode) -> Operand:
    out, weights, x = node.ints(0)[1:3], node.constant(1), node.picture(2)
    strides, kernel = node.pair("strides"), weights.shape[:2]
    # The padding is that of the convolution whose gradient this is.
    pads = same_pads(out, kernel, strides, (1, 1)) if node.same else (0, 0, 0, 0)
    extra = [
        n - ((m - 1) * s + k - pads[i] - pads[i + 2])
        for i, (n, m, s, k) in enumerate(zip(out, x.shape[1:3], strides, kernel, strict=True))
    ]
    turned = np.ascontiguousarray(weights.transpose(3, 2, 0, 1), np.float32)
    source, held = node.builder.name(x, True), node.builder.graph.constant(turned)
    return node.made(
        "ConvTranspose", source, held, shape=(x.shape[0], *out, turned.shape[1]), first=True,
        kernel_shape=kernel, strides=strides, pads=pads, output_padding=extra,
    )  # fmt: skip


def _pool(node: GraphNode) -> Operand:
    x, same = node.picture(), node.same
    kernel, strides, size = node.pair("ksize"), node.pair("strides"), x.shape[1:3]
    out = [_spread(n, k, s, 1, same) for n, k, s in zip(size, kernel, strides, strict=True)]
    source = node.builder.name(x, True)
    if node.op == "AvgPool" and kernel == size and out == [1, 1]:
        made = node.builder.graph.node("GlobalAveragePool", source)
    else:
        op = "MaxPool" if node.op == "MaxPool" else "AveragePool"
        pads = same_pads(size, kernel, strides, (1, 1)) if same else (0, 0, 0, 0)
        made = node.builder.graph.node(op, source, kernel_shape=kernel, strides=strides, pads=pads)
    return GraphValue(made, (x.shape[0], *out, x.shape[3]), True)


def _resize(node: GraphNode) -> Operand:
    """Add a bilinear resize, with aligned corners, half-pixel centers, or neither."""
    graph, x, size = node.builder.graph, node.picture(), node.ints(1)
    halves = "half_pixel" if node.given("half_pixel_centers") else "asymmetric"
    mode = "align_corners" if node.given("align_corners") else halves
    source = node.builder.name(x, True)
    batch = graph.node("Slice", graph.node("Shape", source), *(graph.ints([n]) for n in (0, 2)))
    sizes = graph.node("Concat", batch, graph.ints(size), axis=0)
    shape = (x.shape[0], *size, x.shape[3])
    return node.made(
        "Resize", source, "", "", sizes, shape=shape, first=True, mode="linear",
        coordinate_transformation_mode=mode,
    )  # fmt: skip


def _depth_to_space(node: GraphNode) -> Operand:
    """Move blocks of channels to squares of pixels; the channels of a pixel are the innermost."""
    x, block = node.picture(), int(node.given("block_size"))
    if block < 1 or x.shape[3] % (block * block):
        raise ValueError(f"{x.shape[3]} channels are no squares of {block} x {block} pixels")
    shape = (x.shape[0], x.shape[1] * block, x.shape[2] * block, x.shape[3] // block**2)
    source = node.builder.name(x, True)
    return node.made("DepthToSpace", source, shape=shape, first=True, blocksize=block, mode="DCR")


# elements -----------------------------------------------------------------------------------------
_ACTIVATIONS: Final = (
    "Relu", "Relu6", "Sigmoid", "Elu", "Exp", "Sqrt", "Abs", "Tanh", "Reciprocal", "Neg",
)  # fmt: skip
_Compute = Callable[[NDArray, NDArray], NDArray]
#: The ONNX operator and the NumPy function of operators on the elements of two values.
_BINARY: Final[dict[str, tuple[str, _Compute]]] = {
    "Add": ("Add", np.add), "AddV2": ("Add", np.add), "BiasAdd": ("Add", np.add),
    "Sub": ("Sub", np.subtract), "Mul": ("Mul", np.multiply),
    "RealDiv": ("Div", np.true_divide), "Maximum": ("Max", np.maximum),
    "Minimum": ("Min", np.minimum), "FloorDiv": ("Div", np.floor_divide),
    "SquaredDifference": ("Sub", lambda a, b: np.square(np.subtract(a, b))),
}  # fmt: skip
#: The same of comparisons: 1 where it holds, 0 elsewhere. Of 0 and 1, "and" is the product.
_COMPARISONS: Final[dict[str, tuple[str, _Compute]]] = {
    "Equal": ("Equal", np.equal),
    "Greater": ("Greater", np.greater),
    "GreaterEqual": ("GreaterOrEqual", np.greater_equal),
    "Less": ("Less", np.less),
    "LessEqual": ("LessOrEqual", np.less_equal),
    "LogicalAnd": ("Mul", np.logical_and),
}
_ON_PAIRS: Final = _BINARY | _COMPARISONS


def activated(node: GraphNode, op: str, x: GraphValue) -> GraphValue:
    """Add an activation by its name in TensorFlow."""
    if op == "Relu6":
        return replace(x, name=node.builder.graph.clip(x.name, 0, 6))
    return node.like(x, op)


def _unary(node: GraphNode) -> Operand:
    return activated(node, node.op, node.value(0))


def _binary(node: GraphNode) -> Operand:
    op, compute = _ON_PAIRS[node.op]
    one, other = node.inputs
    if not isinstance(one, GraphValue) and not isinstance(other, GraphValue):
        return compute(one, other)
    shape = np.broadcast_shapes(one.shape, other.shape)
    first = node.first and node.op in _BINARY
    names = [node.builder.name(v, first) for v in node.inputs]
    found = node.made(op, *names, shape=shape, first=first)
    if node.op == "FloorDiv":
        return node.like(found, "Floor")
    if node.op == "SquaredDifference":
        return node.like(found, "Mul", found.name)
    if node.op in _COMPARISONS and op != "Mul":
        return node.like(found, "Cast", to=DTYPES["float32"])
    return found


def _sum(node: GraphNode) -> Operand:
    found = node.inputs[0]
    for other in node.inputs[1:]:
        found = _binary(replace(node, op="Add", inputs=[found, other]))
    return found


def _prelu(node: GraphNode) -> GraphValue:
    x, slope = node.value(0), node.constant(1)
    held = node.builder.graph.constant(channels_first(slope) if x.first else slope)
    return node.like(x, "PRelu", held)


def _leaky(node: GraphNode) -> GraphValue:
    slope = node.given("alpha", node.given("leakyrelu_alpha", 0.2))
    return node.like(node.value(0), "LeakyRelu", alpha=slope)


# shapes -------------------------------------------------------------------------------------------
def _pad(node: GraphNode) -> Operand:
    x, amounts = node.value(0), node.constant(1).astype(np.int64)
    shape = tuple(n + int(a) + int(c) for n, (a, c) in zip(x.shape, amounts, strict=True))
    if x.first:
        amounts = amounts[list(FIRST)]
    fill = float(node.constant(2).reshape(())) if len(node.inputs) > 2 else 0.0
    given = (np.concatenate([amounts[:, 0], amounts[:, 1]]), np.array(fill, np.float32))
    names = map(node.builder.graph.constant, given)
    return node.made("Pad", x.name, *names, shape=shape, first=x.first)


def _transpose(node: GraphNode) -> Operand:
    x, order = node.inputs[0], node.ints(1)
    if not isinstance(x, GraphValue):
        return x.transpose(order)
    shape = tuple(x.shape[n] for n in order)
    if x.first and order == list(FIRST):  # it is stored as asked for
        return GraphValue(x.name, shape)
    if not x.first and order == [0, 2, 3, 1]:
        return GraphValue(x.name, shape, True)
    return node.made("Transpose", node.name(0), shape=shape, perm=order)


def _concat(node: GraphNode) -> Operand:
    *parts, _ = node.inputs
    shape = list(parts[0].shape)
    axis = node.number(-1) % len(shape)
    if all(not isinstance(p, GraphValue) for p in parts):
        return np.concatenate(parts, axis)  # type: ignore[arg-type]  # none is a GraphValue
    first = len(shape) == 4 and any(isinstance(p, GraphValue) and p.first for p in parts)
    shape[axis] = sum(p.shape[axis] for p in parts)
    names = [node.builder.name(p, first) for p in parts]
    place = (0, 2, 3, 1)[axis] if first else axis
    return node.made("Concat", *names, shape=shape, first=first, axis=place)


def _split(node: GraphNode) -> Sequence[Operand]:
    """Split a value along an axis into parts of given sizes, or into equal ones."""
    equal = node.op == "Split"
    x, along = node.value(1 if equal else 0), node.number(0 if equal else 2)
    axis = along % len(x.shape)
    if equal:
        count = int(node.given("num_split", 1))
        if count > indexing.MOST_PARTS:
            raise ValueError(f"cannot split an axis into {count:,} parts")
        sizes = [x.shape[axis] // count] * count
    else:
        sizes = node.ints(1)
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 1:
        raise ValueError(f"cannot split an axis of {x.shape[axis]} into {sizes}")
    return node.builder.parts(x, axis, sizes)


def _sparse(node: GraphNode) -> Operand:
    """Compute a tensor from indexes, a shape, values and the value elsewhere."""
    indexes, shape, values, fill = (node.constant(k) for k in range(4))
    sizes = [int(n) for n in shape]
    if min(sizes, default=0) < 0:
        raise ValueError(f"a tensor of {sizes}")
    memory.check(math.prod(sizes) * fill.dtype.itemsize, "load_model")
    made: NDArray = np.full(sizes, fill.reshape(()))
    if indexes.size:
        made[tuple(indexes.reshape(-1, made.ndim).T)] = values
    return made


def _matmul(node: GraphNode) -> Operand:
    if node.given("transpose_a"):
        raise unsupported("attribute transpose_a")
    x, weights = node.value(0), np.asarray(node.constant(1), np.float32)
    if node.given("transpose_b"):
        weights = weights.T
    names = node.builder.name(x, False), node.builder.graph.constant(weights)
    found = node.made("MatMul", *names, shape=(*x.shape[:-1], weights.shape[1]))
    if "BiasAdd" in node.attributes.get("fused_ops", ()):
        found = node.like(found, "Add", node.name(2))
    return _fused(node, found)


#: By name of the TensorFlow operator.
HANDLERS: Final[dict[str, Handler]] = {
    **indexing.HANDLERS,
    **dict.fromkeys(
        ("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative"), _conv
    ),
    **dict.fromkeys(_ON_PAIRS, _binary),
    **dict.fromkeys(_ACTIVATIONS, _unary),
    **dict.fromkeys(("AvgPool", "AveragePool", "MaxPool"), _pool),
    **dict.fromkeys(("MatMul", "_FusedMatMul"), _matmul),
    **dict.fromkeys(("Pad", "PadV2"), _pad),
    **dict.fromkeys(("Split", "SplitV"), _split),
    "AddN": _sum,
    "ConcatV2": _concat,
    "Conv2DBackpropInput": _transposed_conv,
    "DepthToSpace": _depth_to_space,
    "Identity": lambda node: node.inputs[0],
    "LeakyRelu": _leaky,
    "Prelu": _prelu,
    "Reshape": lambda node: node.builder.reshape(node.inputs[0], node.ints(1)),
    "ResizeBilinear": _resize,
    "SparseToDense": _sparse,
    "Transpose": _transpose,
}


def outputs(node: GraphNode) -> list[Operand]:
    """Add a node, and return its outputs. A single number that was computed is an array too."""
    made = HANDLERS[node.op](node)
    each = [made] if isinstance(made, GraphValue | np.ndarray | np.generic) else made
    return [np.asarray(one) if isinstance(one, np.generic) else one for one in each]
