"""Conversion of TensorFlow.js layers models, which Keras saves, to ONNX.

Pictures of any size go through: what is convolved, added and scaled up depends on no size. Layers
with a code of their own (``Lambda``, custom ones) are refused by name, and so is everything else
that is not listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

import numpy as np

from dala.ml.convert.builder import Json, unsupported
from dala.ml.convert.layers import Layers
from dala.ml.convert.onnx_file import Attribute
from dala.typing import NDArray


def convert_layers(topology: Json, arrays: Mapping[str, NDArray], name: str) -> bytes:
    """Convert a model of layers to ONNX.

    Args:
        topology: the ``modelTopology`` of the file.
        arrays: the weights by name, such as "conv/kernel".
        name: the name of the graph.
    """
    found = topology.get("model_config", topology)
    config = found["config"]
    listed = config["layers"] if isinstance(config, dict) else config
    if found["class_name"] == "Sequential":
        return _Network(name, arrays).sequence(listed)
    if found["class_name"] not in ("Functional", "Model"):
        raise unsupported(f"model {found['class_name']!r}")
    return _Network(name, arrays).graph_of(listed, config["input_layers"], config["output_layers"])


@dataclass(frozen=True)
class _Layer:
    """A layer, and the values that it reads."""

    network: _Network
    kind: str
    config: Json
    inputs: Sequence[str] = ()

    @property
    def name(self) -> str:
        return str(self.config["name"])

    def weight(self, kind: str) -> NDArray:
        """Return an array of the layer."""
        wanted = f"{self.name}/{kind}"
        if wanted not in self.network.arrays:
            raise ValueError(f"no weights {wanted!r}")
        return np.asarray(self.network.arrays[wanted], np.float32)

    def node(self, op: str, *names: str, **attributes: Attribute) -> str:
        """Add a node that reads the first value."""
        return self.network.graph.node(op, self.inputs[0], *names, output=None, **attributes)

    def activated(self, value: str, kind: str) -> str:
        """Add an activation by its name."""
        if kind == "linear":
            return value
        if kind == "relu6":
            return self.network.graph.clip(value, 0, 6)
        if kind not in _ACTIVATIONS:
            raise unsupported(f"activation {kind!r}")
        return self.network.graph.node(_ACTIVATIONS[kind], value)


class _Network:
    """An ONNX graph of layers; values are channels-first."""

    def __init__(self, name: str, arrays: Mapping[str, NDArray]) -> None:
        self.graph = Layers(name)
        self.arrays = arrays

    def begin(self, layer: Json) -> str:
        """Add the input: pictures of any size."""
        shape = layer["config"].get("batch_input_shape") or layer["config"]["batch_shape"]
        if len(shape) != 4 or shape[3] not in (1, 3):
            raise unsupported(f"input shape {shape}")
        sizes = [size or axis for size, axis in zip(shape[1:3], ("height", "width"), strict=True)]
        made = self.graph.input(str(layer["config"]["name"]), (1, *sizes, int(shape[3])))
        return self.graph.first(made)

    def end(self, value: str, name: str) -> bytes:
        """Add the output, and return the file."""
        shape = (1, "out_height", "out_width", "out_channels")
        self.graph.output(self.graph.last(value), shape, name=name)
        return self.graph.save()

    def add(self, given: Json, inputs: Sequence[str]) -> str:
        """Add a layer."""
        layer = _Layer(self, given["class_name"], given["config"], inputs)
        handler = _HANDLERS.get(layer.kind)
        if handler is None:
            raise unsupported(f"layer {layer.kind!r} at {layer.config.get('name')!r}")
        if layer.config.get("data_format", "channels_last") != "channels_last":
            raise unsupported(f"layout of {layer.config.get('name')!r}")
        return handler(layer)

    def sequence(self, listed: Sequence[Json]) -> bytes:
        """Add layers that follow each other."""
        value = self.begin(listed[0])
        rest = listed[1:] if listed[0]["class_name"] == "InputLayer" else listed
        for layer in rest:
            value = self.add(layer, [value])
        return self.end(value, str(listed[-1]["config"]["name"]))

    def graph_of(self, listed: Sequence[Json], inputs: Json, outputs: Json) -> bytes:
        """Add layers that name those they read."""
        if len(inputs) != 1 or len(outputs) != 1:
            raise unsupported("model of several inputs or outputs")
        values: dict[str, str] = {}
        for layer in listed:  # a layer follows those it reads
            name = layer["config"]["name"]
            if layer["class_name"] == "InputLayer":
                values[name] = self.begin(layer)
                continue
            if len(layer["inbound_nodes"]) != 1:
                raise unsupported(f"layer that is used twice: {name!r}")
            (read,) = layer["inbound_nodes"]
            values[name] = self.add(layer, [values[node[0]] for node in read])
        return self.end(values[outputs[0][0]], str(outputs[0][0]))


_ACTIVATIONS: Final = {
    name.lower(): name for name in ("Relu", "Sigmoid", "Tanh", "Elu", "Softplus")
}


def _conv(layer: _Layer) -> str:
    """Add a convolution, of all channels or of each alone."""
    config, alone = layer.config, layer.kind == "DepthwiseConv2D"
    weights = layer.weight("depthwise_kernel" if alone else "kernel")
    if alone and weights.shape[3] != 1:
        raise unsupported("depth multiplier")
    weights = weights.transpose(2, 3, 0, 1) if alone else weights.transpose(3, 2, 0, 1)
    count = weights.shape[0]
    bias = layer.weight("bias") if config["use_bias"] else np.zeros(count, np.float32)
    strides, dilations = (tuple(map(int, config[key])) for key in ("strides", "dilation_rate"))
    if config["padding"] not in ("same", "valid") or strides != (1, 1):
        # Otherwise the padding depends on the size of the picture.
        raise unsupported(f"strides or padding at {layer.name!r}")
    groups = count if alone else int(config.get("groups", 1))
    same = config["padding"] == "same"
    size = weights.shape[2:]  # with strides of 1 any size has the same padding
    made = layer.network.graph.conv(
        layer.inputs[0], weights, bias, size, strides, dilations, same, groups
    )
    return layer.activated(made, config["activation"])


def _relu(layer: _Layer) -> str:
    if layer.config.get("negative_slope") or layer.config.get("threshold"):
        raise unsupported("slope or threshold of 'ReLU'")
    made, most = layer.node("Relu"), layer.config.get("max_value")
    return made if most is None else layer.network.graph.clip(made, 0, most)


def _prelu(layer: _Layer) -> str:
    slopes = layer.weight("alpha")
    if slopes.shape[:2] != (1, 1):
        raise unsupported("slopes of 'PReLU': they differ between positions")
    return layer.node("PRelu", layer.network.graph.constant(slopes.reshape(-1, 1, 1)))


def _concatenate(layer: _Layer) -> str:
    if layer.config["axis"] not in (3, -1):
        raise unsupported(f"axis of {layer.name!r}")
    return layer.node("Concat", *layer.inputs[1:], axis=1)


def _elementwise(layer: _Layer) -> str:
    op = {"Add": "Add", "Multiply": "Mul"}[layer.kind]
    return reduce(partial(layer.network.graph.node, op), layer.inputs)


def _up(layer: _Layer) -> str:
    """Repeat pixels, or interpolate between them."""
    down, across = (float(n) for n in layer.config["size"])
    kind = layer.config.get("interpolation", "nearest")
    if kind not in ("nearest", "bilinear"):
        raise unsupported(f"interpolation {kind!r}")
    scales = layer.network.graph.constant(np.array([1, 1, down, across], np.float32))
    # TensorFlow.js takes no half-pixel centers here, unlike Keras, which saved the file.
    return layer.node(
        "Resize", "", scales, mode="linear" if kind == "bilinear" else "nearest",
        nearest_mode="floor", coordinate_transformation_mode="asymmetric",
    )  # fmt: skip


def _normalize(layer: _Layer) -> str:
    mean, variance = (layer.weight(f"moving_{kind}") for kind in ("mean", "variance"))
    scale = layer.weight("gamma") if layer.config["scale"] else np.ones_like(mean)
    bias = layer.weight("beta") if layer.config["center"] else np.zeros_like(mean)
    given = map(layer.network.graph.constant, (scale, bias, mean, variance))
    return layer.node("BatchNormalization", *given, epsilon=float(layer.config["epsilon"]))


_HANDLERS: Final[Mapping[str, Callable[[_Layer], str]]] = {
    "Conv2D": _conv,
    "DepthwiseConv2D": _conv,
    "Activation": lambda layer: layer.activated(layer.inputs[0], layer.config["activation"]),
    "ReLU": _relu,
    "LeakyReLU": lambda layer: layer.node("LeakyRelu", alpha=float(layer.config["alpha"])),
    "PReLU": _prelu,
    "Concatenate": _concatenate,
    "Add": _elementwise,
    "Multiply": _elementwise,
    "UpSampling2D": _up,
    "BatchNormalization": _normalize,
    "Dropout": lambda layer: layer.inputs[0],
}
