"""Operators of TensorFlow graphs, added to an ONNX graph: convolutions, elements, shapes.

An operator whose inputs are all constants is computed. ``indexing`` has those that move values by
their index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dala.ml.convert.builder import (
    FIRST,
    Attributes,
    GraphBuilder,
    GraphValue,
    Handler,
    Operand,
    channels_first,
    constant_of,
    unsupported,
)
from dala.ml.convert.layers import same_pads
from dala.typing import NDArray


# convolutions -------------------------------------------------------------------------------------
def _picture(value: Operand) -> GraphValue:
    if not isinstance(value, GraphValue) or len(value.shape) != 4:
        raise ValueError("a convolution needs a tensor of four axes")
    return value


def _spread(size: int, kernel: int, stride: int, dilation: int, same: bool) -> int:
    """Return the size of a convolution's output."""
    return -(-(size if same else size - (kernel - 1) * dilation) // stride)


def _conv(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x, weights = _picture(inputs[0]), constant_of(inputs[1])
    depthwise = "Depthwise" in at.op
    groups = weights.shape[2] if depthwise else 1
    if depthwise:
        turned = weights.transpose(2, 3, 0, 1).reshape(-1, 1, *weights.shape[:2])
    else:
        turned = weights.transpose(3, 2, 0, 1)
    fused = at.words("fused_ops")
    bias: NDArray = np.zeros(len(turned), np.float32)
    if "BiasAdd" in fused:
        bias = constant_of(inputs[2]).reshape(-1)
    size, strides, dilations = x.shape[1:3], at.pair("strides"), at.pair("dilations")
    made = b.layers.conv(b.name(x, True), turned, bias, size, strides, dilations, at.same, groups)
    out = (
        _spread(n, k, s, d, at.same)
        for n, k, s, d in zip(size, turned.shape[2:], strides, dilations, strict=True)
    )
    found = GraphValue(made, (x.shape[0], *out, len(turned)), True)
    return _fused(b, at, found, fused, inputs)


def _fused(
    b: GraphBuilder, at: Attributes, x: GraphValue, words: Sequence[str], inputs: Sequence[Operand]
) -> GraphValue:
    """Add the operations that are fused with a convolution or a product."""
    for word in words:
        if word == "BiasAdd":
            continue
        if word == "Prelu":
            x = _prelu(b, at, [x, inputs[-1]])
        elif word == "LeakyRelu":
            x = _leaky(b, at, [x])
        elif word in _ACTIVATIONS:
            x = _activation(b, word, x)
        else:
            raise unsupported(f"fused operation {word!r}")
    return x


def _transposed_conv(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    sizes, weights, x = constant_of(inputs[0]), constant_of(inputs[1]), _picture(inputs[2])
    out = tuple(int(n) for n in sizes[1:3])
    strides, kernel = at.pair("strides"), weights.shape[:2]
    # The padding is that of the convolution whose gradient this is.
    pads = same_pads(out, kernel, strides, (1, 1)) if at.same else (0, 0, 0, 0)
    extra = [
        n - ((m - 1) * s + k - pads[i] - pads[i + 2])
        for i, (n, m, s, k) in enumerate(zip(out, x.shape[1:3], strides, kernel, strict=True))
    ]
    turned = np.ascontiguousarray(weights.transpose(3, 2, 0, 1), np.float32)
    made = b.graph.node(
        "ConvTranspose", b.name(x, True), b.graph.constant(turned), kernel_shape=kernel,
        strides=strides, pads=pads, output_padding=extra,
    )  # fmt: skip
    return GraphValue(made, (x.shape[0], *out, turned.shape[1]), True)


def _pool(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x = _picture(inputs[0])
    kernel, strides, size = at.pair("ksize"), at.pair("strides"), x.shape[1:3]
    out = [_spread(n, k, s, 1, at.same) for n, k, s in zip(size, kernel, strides, strict=True)]
    source = b.name(x, True)
    if at.op == "AvgPool" and tuple(kernel) == tuple(size) and out == [1, 1]:
        made = b.graph.node("GlobalAveragePool", source)
    else:
        op = "MaxPool" if at.op == "MaxPool" else "AveragePool"
        made = b.layers.pool(source, op, size, kernel, strides, at.same)
    return GraphValue(made, (x.shape[0], *out, x.shape[3]), True)


def _resize(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x, size = _picture(inputs[0]), [int(n) for n in constant_of(inputs[1])]
    made = b.layers.resize(
        b.name(x, True), size, at.flag("align_corners"), at.flag("half_pixel_centers")
    )
    return GraphValue(made, (x.shape[0], *size, x.shape[3]), True)


def _depth_to_space(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """Move blocks of channels to squares of pixels; the channels of a pixel are the innermost."""
    x, block = _picture(inputs[0]), int(at.number("block_size"))
    if block < 1 or x.shape[3] % (block * block):
        raise ValueError(f"{x.shape[3]} channels are no squares of {block} x {block} pixels")
    made = b.graph.node("DepthToSpace", b.name(x, True), blocksize=block, mode="DCR")
    size = x.shape[1] * block, x.shape[2] * block
    return GraphValue(made, (x.shape[0], *size, x.shape[3] // block**2), True)


# elements -----------------------------------------------------------------------------------------
_ACTIVATIONS: Final = {
    "Relu": "Relu", "Sigmoid": "Sigmoid", "Elu": "Elu", "Exp": "Exp", "Sqrt": "Sqrt", "Abs": "Abs",
    "Tanh": "Tanh", "Relu6": "", "Reciprocal": "Reciprocal", "Neg": "Neg",
}  # fmt: skip
_BINARY: Final[dict[str, tuple[str, Callable[[NDArray, NDArray], NDArray]]]] = {
    "Add": ("Add", np.add), "AddV2": ("Add", np.add), "BiasAdd": ("Add", np.add),
    "Sub": ("Sub", np.subtract), "Mul": ("Mul", np.multiply),
    "RealDiv": ("Div", np.true_divide), "Maximum": ("Max", np.maximum),
    "Minimum": ("Min", np.minimum),
}  # fmt: skip


def _activation(b: GraphBuilder, op: str, x: GraphValue) -> GraphValue:
    if op == "Relu6":
        made = b.layers.activation(x.name, "relu6")
    else:
        made = b.graph.node(_ACTIVATIONS[op], x.name)
    return GraphValue(made, x.shape, x.first)


def _unary(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    return _activation(b, at.op, b.settled(inputs[0]))


def _binary(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    op, compute = _BINARY[at.op]
    one, other = inputs
    if not isinstance(one, GraphValue) and not isinstance(other, GraphValue):
        return compute(one, other)
    shape = np.broadcast_shapes(one.shape, other.shape)
    # Constants of up to four axes and other pictures can be turned; a vector would need padding.
    first = any(isinstance(v, GraphValue) and v.first for v in inputs) and all(
        not isinstance(v, GraphValue) or len(v.shape) == 4 for v in inputs
    )
    made = b.graph.node(op, b.name(one, first), b.name(other, first))
    return GraphValue(made, shape, first)


def _floor_div(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    one, other = inputs
    if not isinstance(one, GraphValue) and not isinstance(other, GraphValue):
        return np.floor_divide(one, other)
    found = b.settled(_binary(b, Attributes({}, "RealDiv"), inputs))
    return GraphValue(b.graph.node("Floor", found.name), found.shape, found.first)


def _squared_difference(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    found = _binary(b, Attributes({}, "Sub"), inputs)
    if not isinstance(found, GraphValue):
        return found * found
    made = b.graph.node("Mul", found.name, found.name)
    return GraphValue(made, found.shape, found.first)


def _sum(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    found = inputs[0]
    for other in inputs[1:]:
        found = _binary(b, Attributes({}, "Add"), [found, other])
    return found


def _prelu(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> GraphValue:
    x, slope = b.settled(inputs[0]), constant_of(inputs[1])
    made = b.graph.node(
        "PRelu", x.name, b.graph.constant(channels_first(slope) if x.first else slope)
    )
    return GraphValue(made, x.shape, x.first)


def _leaky(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> GraphValue:
    x = b.settled(inputs[0])
    slope = at.number("alpha", at.number("leakyrelu_alpha", 0.2))
    return GraphValue(b.graph.node("LeakyRelu", x.name, alpha=float(slope)), x.shape, x.first)


# shapes -------------------------------------------------------------------------------------------
def _same(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    return inputs[0]


def _pad(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x, amounts = b.settled(inputs[0]), constant_of(inputs[1]).astype(np.int64)
    shape = tuple(n + int(a) + int(c) for n, (a, c) in zip(x.shape, amounts, strict=True))
    if x.first:
        amounts = amounts[list(FIRST)]
    ends = b.graph.constant(np.concatenate([amounts[:, 0], amounts[:, 1]]))
    fill = float(constant_of(inputs[2]).reshape(())) if len(inputs) > 2 else 0.0
    value = b.graph.constant(np.array(fill, np.float32))
    return GraphValue(b.graph.node("Pad", x.name, ends, value), shape, x.first)


def _reshape(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    return b.reshape(inputs[0], [int(n) for n in constant_of(inputs[1])])


def _transpose(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    order = [int(n) for n in constant_of(inputs[1])]
    x = inputs[0]
    if not isinstance(x, GraphValue):
        return x.transpose(order)
    shape = tuple(x.shape[n] for n in order)
    if x.first and order == list(FIRST):  # it is stored as asked for
        return GraphValue(x.name, shape)
    if not x.first and order == [0, 2, 3, 1]:
        return GraphValue(x.name, shape, True)
    return GraphValue(b.graph.node("Transpose", b.name(x, False), perm=order), shape)


def _concat(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    *parts, axes = inputs
    shapes = [p.shape for p in parts]
    axis = int(constant_of(axes).reshape(())) % len(shapes[0])
    if all(not isinstance(p, GraphValue) for p in parts):
        return np.concatenate([constant_of(p) for p in parts], axis)
    first = len(shapes[0]) == 4 and any(isinstance(p, GraphValue) and p.first for p in parts)
    shape = list(shapes[0])
    shape[axis] = sum(s[axis] for s in shapes)
    names = [b.name(p, first) for p in parts]
    made = b.graph.node("Concat", *names, axis=(0, 2, 3, 1)[axis] if first else axis)
    return GraphValue(made, tuple(shape), first)


def _split(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> tuple[Operand, ...]:
    """Split a value along an axis into parts of given sizes, or into equal ones."""
    equal = at.op == "Split"
    x, along = b.settled(inputs[1 if equal else 0]), inputs[0 if equal else 2]
    axis = int(constant_of(along).reshape(())) % len(x.shape)
    if equal:
        count = int(at.number("num_split", 1))
        sizes = [x.shape[axis] // count] * count
    else:
        sizes = [int(n) for n in constant_of(inputs[1])]
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 1:
        raise ValueError(f"cannot split an axis of {x.shape[axis]} into {sizes}")
    source, parts, start = b.name(x, False), [], 0
    for size in sizes:
        made = b.slice(source, axis, start, start + size)
        start += size
        parts.append(GraphValue(made, (*x.shape[:axis], size, *x.shape[axis + 1 :])))
    return tuple(parts)


def _sparse(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    """Compute a tensor from indexes, a shape, values and the value elsewhere."""
    indexes, shape, values, fill = (constant_of(v) for v in inputs)
    made: NDArray = np.full(tuple(int(n) for n in shape), fill.reshape(()))
    if indexes.size:
        made[tuple(indexes.reshape(-1, made.ndim).T)] = values
    return made


def _mean(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    x, axes = b.settled(inputs[0]), [int(n) for n in constant_of(inputs[1]).reshape(-1)]
    axes = sorted(n % len(x.shape) for n in axes)
    keep = at.flag("keep_dims")
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    if not keep:
        shape = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    made = b.graph.node("ReduceMean", b.name(x, False), axes=axes, keepdims=int(keep))
    return GraphValue(made, shape)


def _matmul(b: GraphBuilder, at: Attributes, inputs: Sequence[Operand]) -> Operand:
    if at.flag("transpose_a"):
        raise unsupported("attribute transpose_a")
    x, weights = b.settled(inputs[0]), np.asarray(constant_of(inputs[1]), np.float32)
    if at.flag("transpose_b"):
        weights = weights.T
    made = b.graph.node("MatMul", b.name(x, False), b.graph.constant(weights))
    found = GraphValue(made, (*x.shape[:-1], weights.shape[1]))
    fused = at.words("fused_ops")
    if "BiasAdd" in fused:
        added = b.graph.node("Add", found.name, b.name(inputs[2], False))
        found = GraphValue(added, found.shape)
    return _fused(b, at, found, fused, inputs)


#: By name of the TensorFlow operator: a function from the attributes and inputs to the outputs.
HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(
        ("Conv2D", "_FusedConv2D", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative"), _conv
    ),
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_ACTIVATIONS, _unary),
    "AddN": _sum,
    "AvgPool": _pool,
    "ConcatV2": _concat,
    "Conv2DBackpropInput": _transposed_conv,
    "DepthToSpace": _depth_to_space,
    "FloorDiv": _floor_div,
    "Identity": _same,
    "LeakyRelu": _leaky,
    "MatMul": _matmul,
    "_FusedMatMul": _matmul,
    "MaxPool": _pool,
    "Mean": _mean,
    "Pad": _pad,
    "PadV2": _pad,
    "Prelu": _prelu,
    "Reshape": _reshape,
    "ResizeBilinear": _resize,
    "SparseToDense": _sparse,
    "Split": _split,
    "SplitV": _split,
    "SquaredDifference": _squared_difference,
    "Transpose": _transpose,
}
