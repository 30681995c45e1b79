"""Conversion of TensorFlow.js layers models, which Keras saves, to ONNX.

Pictures of any size go through: what is convolved, added and scaled up depends on no size. Layers
with a code of their own (``Lambda``, custom ones) are refused by name, and so is everything else
that is not listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from dala.ml.convert.builder import Json, unsupported
from dala.ml.convert.layers import Layers, same_pads
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


class _Network:
    """An ONNX graph of layers; values are channels-first."""

    def __init__(self, name: str, arrays: Mapping[str, NDArray]) -> None:
        self.layers = Layers(name)
        self.graph = self.layers.graph
        self._arrays = arrays

    def weight(self, layer: Json, kind: str) -> NDArray:
        """Return an array of a layer."""
        wanted = f"{layer['config']['name']}/{kind}"
        if wanted not in self._arrays:
            raise ValueError(f"no weights {wanted!r}")
        return np.asarray(self._arrays[wanted], np.float32)

    def begin(self, layer: Json) -> str:
        """Add the input: pictures of any size."""
        shape = layer["config"].get("batch_input_shape") or layer["config"]["batch_shape"]
        if len(shape) != 4 or shape[3] not in (1, 3):
            raise unsupported(f"input shape {shape}")
        sizes = [size or axis for size, axis in zip(shape[1:3], ("height", "width"), strict=True)]
        made = self.graph.input(str(layer["config"]["name"]), (1, *sizes, int(shape[3])))
        return self.layers.first(made)

    def end(self, value: str, name: str) -> bytes:
        """Add the output, and return the file."""
        shape = (1, "out_height", "out_width", "out_channels")
        self.graph.output(self.layers.last(value), shape, name=name)
        return self.graph.save()

    def add(self, layer: Json, inputs: Sequence[str]) -> str:
        """Add a layer."""
        kind = layer["class_name"]
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise unsupported(f"layer {kind!r} at {layer['config'].get('name')!r}")
        if layer["config"].get("data_format", "channels_last") != "channels_last":
            raise unsupported(f"layout of {layer['config'].get('name')!r}")
        return handler(self, layer, inputs)

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

    def activated(self, value: str, kind: str) -> str:
        """Add an activation by its name."""
        if kind == "linear":
            return value
        if kind in ("relu", "relu6"):
            return self.layers.activation(value, kind)
        if kind not in _ACTIVATIONS:
            raise unsupported(f"activation {kind!r}")
        return self.graph.node(_ACTIVATIONS[kind], value)


_Handler: TypeAlias = Callable[[_Network, Json, Sequence[str]], str]
_ACTIVATIONS: Final = {"sigmoid": "Sigmoid", "tanh": "Tanh", "elu": "Elu", "softplus": "Softplus"}


def _conv(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    """Add a convolution, of all channels or of each alone."""
    config, alone = layer["config"], layer["class_name"] == "DepthwiseConv2D"
    weights = network.weight(layer, "depthwise_kernel" if alone else "kernel")
    if alone and weights.shape[3] != 1:
        raise unsupported("depth multiplier")
    weights = weights.transpose(2, 3, 0, 1) if alone else weights.transpose(3, 2, 0, 1)
    count = weights.shape[0]
    bias = network.weight(layer, "bias") if config["use_bias"] else np.zeros(count, np.float32)
    strides = tuple(int(n) for n in config["strides"])
    dilations = tuple(int(n) for n in config["dilation_rate"])
    if config["padding"] not in ("same", "valid") or strides != (1, 1):
        # Otherwise the padding depends on the size of the picture.
        raise unsupported(f"strides or padding at {config['name']!r}")
    kernel = weights.shape[2:]
    same = config["padding"] == "same"
    pads = same_pads(kernel, kernel, strides, dilations) if same else (0, 0, 0, 0)
    made = network.graph.node(
        "Conv",
        inputs[0],
        network.graph.constant(np.ascontiguousarray(weights)),
        network.graph.constant(bias),
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
        group=count if alone else int(config.get("groups", 1)),
    )
    return network.activated(made, config["activation"])


def _activation(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    return network.activated(inputs[0], layer["config"]["activation"])


def _relu(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    config = layer["config"]
    if config.get("negative_slope") or config.get("threshold"):
        raise unsupported("slope or threshold of 'ReLU'")
    made, most = network.graph.node("Relu", inputs[0]), config.get("max_value")
    if most is None:
        return made
    ends = (network.graph.constant(np.array(n, np.float32)) for n in (0, most))
    return network.graph.node("Clip", made, *ends)


def _leaky(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    return network.graph.node("LeakyRelu", inputs[0], alpha=float(layer["config"]["alpha"]))


def _prelu(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    slopes = network.weight(layer, "alpha")
    if slopes.shape[:2] != (1, 1):
        raise unsupported("slopes of 'PReLU': they differ between positions")
    slope = network.graph.constant(slopes.reshape(-1, 1, 1))
    return network.graph.node("PRelu", inputs[0], slope)


def _concatenate(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    if layer["config"]["axis"] not in (3, -1):
        raise unsupported(f"axis of {layer['config']['name']!r}")
    return network.graph.node("Concat", *inputs, axis=1)


def _elementwise(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    op = {"Add": "Add", "Multiply": "Mul"}[layer["class_name"]]
    total = inputs[0]
    for other in inputs[1:]:
        total = network.graph.node(op, total, other)
    return total


def _up(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    """Repeat pixels, or interpolate between them."""
    down, across = (float(n) for n in layer["config"]["size"])
    kind = layer["config"].get("interpolation", "nearest")
    if kind not in ("nearest", "bilinear"):
        raise unsupported(f"interpolation {kind!r}")
    scales = network.graph.constant(np.array([1, 1, down, across], np.float32))
    # TensorFlow.js takes no half-pixel centers here, unlike Keras, which saved the file.
    return network.graph.node(
        "Resize", inputs[0], "", scales, mode="linear" if kind == "bilinear" else "nearest",
        nearest_mode="floor", coordinate_transformation_mode="asymmetric",
    )  # fmt: skip


def _normalize(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    config = layer["config"]
    mean, variance = (network.weight(layer, f"moving_{kind}") for kind in ("mean", "variance"))
    scale = network.weight(layer, "gamma") if config["scale"] else np.ones_like(mean)
    bias = network.weight(layer, "beta") if config["center"] else np.zeros_like(mean)
    given = (network.graph.constant(a) for a in (scale, bias, mean, variance))
    return network.graph.node(
        "BatchNormalization", inputs[0], *given, epsilon=float(config["epsilon"])
    )


def _same(network: _Network, layer: Json, inputs: Sequence[str]) -> str:
    return inputs[0]


_HANDLERS: Final[Mapping[str, _Handler]] = {
    "Conv2D": _conv, "DepthwiseConv2D": _conv, "Activation": _activation, "ReLU": _relu,
    "LeakyReLU": _leaky, "PReLU": _prelu, "Concatenate": _concatenate, "Add": _elementwise,
    "Multiply": _elementwise, "UpSampling2D": _up,
    "BatchNormalization": _normalize, "Dropout": _same,
}  # fmt: skip
