"""Conversion of TensorFlow.js models to ONNX: the file, its weights, the walk of the graph.

``tfjs_ops`` and ``indexing`` have the operators, and ``builder`` the graph that they add to.
``keras`` converts models of layers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final

import numpy as np

from dala.budget import check_deadline
from dala.errors import ModelError, ParameterError
from dala.ml.convert import damaged
from dala.ml.convert.builder import GraphBuilder, GraphNode, Json, Layers, Operand, unsupported
from dala.ml.convert.onnx_file import Attribute
from dala.ml.convert.tfjs_ops import HANDLERS, outputs
from dala.typing import NDArray
from dala.untrusted.place import Place


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


#: The largest file of weights.
_MAX_BYTES: Final = 2 << 30
#: What reading a damaged file raises.
_DAMAGE: Final = (
    LookupError, ValueError, ArithmeticError, TypeError, AttributeError, RecursionError,
)  # fmt: skip
#: NumPy dtypes of weights, and of weights that are stored in fewer bits.
_DTYPES: Final = {"float32": "<f4", "int32": "<i4", "bool": "?", "uint8": "u1"}
_STORED: Final = {"float16": "<f2", "uint8": "u1", "uint16": "<u2"}


def convert_tfjs(topology: bytes, weights: bytes, name: str = "network") -> bytes:
    """Convert a model of a graph or of layers, its JSON and its weights, to ONNX."""
    with damaged("convert_tfjs: not a TensorFlow.js model, or damaged", *_DAMAGE):
        model = json.loads(topology)
        graph = model["modelTopology"]
        arrays = _arrays(model["weightsManifest"], weights)
        if "node" not in graph:
            return convert_layers(graph, arrays, name)
        nodes = {node["name"]: node for node in graph["node"]}
        signature = model.get("signature") or model["userDefinedMetadata"]["signature"]
        return _build(signature, nodes, arrays, name)


def convert_tfjs_file(path: Path) -> bytes:
    """Convert a model's JSON file, and the weights beside it, to ONNX.

    Raises:
        ModelError: the file is no such model, or damaged, or its weights are missing or in
            another folder.

    Example::

        Path("upscale.onnx").write_bytes(convert_tfjs_file(Path("package/models/model.json")))
    """
    title = repr(path.name)
    with damaged(
        f"load_model: {title} is not a TensorFlow.js model, or damaged", OSError, *_DAMAGE
    ):
        topology = path.read_bytes()
        groups = json.loads(topology)["weightsManifest"]
        names = [str(name) for group in groups for name in group["paths"]]
    place, parts = Place([path.parent]), []
    for name in names:
        try:
            part = place.open(name, "load_model", argument="weights")
            parts.append(part.content(_MAX_BYTES, "load_model"))
        except (ParameterError, OSError) as error:
            problem = str(error).removeprefix("load_model: ")
            raise ModelError(
                f"load_model: the weights {name!r} of {title} cannot be read: {problem}"
            ) from None
    try:
        return convert_tfjs(topology, b"".join(parts), path.stem)
    except ModelError as error:
        raise ModelError(f"load_model: {title}: {error}") from None


def _arrays(manifest: Json, data: bytes) -> dict[str, NDArray]:
    """Return the weights by name; those stored in fewer bits become f32."""
    found: dict[str, NDArray] = {}
    at = 0
    for group in manifest:
        for entry in group["weights"]:
            stored = entry.get("quantization")
            kind = _STORED[stored["dtype"]] if stored else _DTYPES[entry["dtype"]]
            count = int(np.prod(entry["shape"], dtype=np.int64))
            raw = np.frombuffer(data, kind, count, at)
            at += raw.nbytes
            array: NDArray = raw.reshape(entry["shape"])
            if stored:
                array = array.astype(np.float32)
                if "scale" in stored:
                    array = array * np.float32(stored["scale"]) + np.float32(stored["min"])
            found[entry["name"]] = array
    return found


def _build(signature: Json, nodes: dict[str, Json], arrays: dict[str, NDArray], name: str) -> bytes:
    builder = GraphBuilder(name)
    values: dict[str, Operand] = {}
    for key, entry in signature["inputs"].items():
        sizes = (int(d["size"]) for d in entry["tensorShape"]["dim"])
        shape = [max(1, n) for n in sizes]  # -1 is any batch: one here
        # Inputs of integers are f32 too, so that a prepared picture is fed as it is.
        values[_plain(entry["name"])] = builder.input(key, shape)

    def value(of: str) -> Operand:
        # An explicit stack, since networks are deeper than Python's recursion limit.
        waiting = [_owner(of)]
        opened: set[str] = set()
        while waiting:
            check_deadline("convert_tfjs")
            at = waiting[-1]
            if at in values:
                waiting.pop()
                continue
            if at in arrays:
                values[at] = arrays[at]
                continue
            node = nodes[at]
            # "^name" orders side effects, of which there are none.
            names = [_plain(n) for n in node.get("input") or () if not n.startswith("^")]
            missing = [n for n in names if n not in values]
            if not missing:
                for k, one in enumerate(_added(builder, node, [values[n] for n in names])):
                    values[f"{at}:{k}" if k else at] = one
            elif at in opened:
                raise ValueError("the graph has a cycle")
            else:
                opened.add(at)
                waiting.extend(_owner(n) for n in missing)
        return values[of]

    for key, entry in signature["outputs"].items():
        builder.output(value(_plain(entry["name"])), key)
    return builder.graph.save()


def _added(builder: GraphBuilder, node: Json, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Add a node, and return its outputs."""
    op = node["op"]
    if op not in HANDLERS:
        raise unsupported(f"operator {op!r} at {node['name']!r}")
    attributes = {key: _attribute(found) for key, found in (node.get("attr") or {}).items()}
    return outputs(GraphNode(builder, op, attributes, inputs))


def _attribute(found: Json) -> Any:
    """Return the value of an attribute: a number, a bool, a text, a dtype, or a list of them."""
    if "list" in found:
        return [*map(_text, found["list"].get("s") or ()), *(found["list"].get("i") or ())]
    if "s" in found:
        return _text(found["s"])
    return next((found[key] for key in ("b", "f", "i", "type") if key in found), None)


def _text(text: str) -> str:
    return base64.b64decode(text).decode("utf-8", "replace")


def _plain(name: str) -> str:
    """Return the name of a tensor without the number 0 of its node's output."""
    return name.removesuffix(":0")


def _owner(name: str) -> str:
    """Return the node of a tensor."""
    return name.partition(":")[0]
