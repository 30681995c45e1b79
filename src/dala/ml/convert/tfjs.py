"""Conversion of TensorFlow.js graph models with fused convolutions, such as PoseNet."""

from __future__ import annotations

import base64
import json
from typing import Any, TypeAlias

import numpy as np

from dala.errors import ModelError
from dala.ml.convert.layers import Layers
from dala.typing import NDArray

#: A parsed JSON value.
Json: TypeAlias = Any


def convert_tfjs(topology: bytes, weights: bytes, name: str = "network") -> bytes:
    """Convert a graph model, its JSON and its weights file, to ONNX."""
    try:
        model = json.loads(topology)
        nodes = {node["name"]: node for node in model["modelTopology"]["node"]}
        arrays = _arrays(model["weightsManifest"], weights)
        return _build(model["signature"], nodes, arrays, name)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"convert_tfjs: not a graph model, or damaged: {type(error).__name__}: {error}"
        ) from None


def _arrays(manifest: Json, data: bytes) -> dict[str, NDArray]:
    found: dict[str, NDArray] = {}
    at = 0
    for group in manifest:
        for entry in group["weights"]:
            if "quantization" in entry or entry["dtype"] != "float32":
                raise ValueError(f"the weights {entry['name']!r} are not float32")
            count = int(np.prod(entry["shape"], dtype=np.int64))
            array = np.frombuffer(data, "<f4", count, at)
            found[entry["name"]] = array.reshape(entry["shape"])
            at += array.nbytes
    return found


def _build(signature: Json, nodes: dict[str, Json], arrays: dict[str, NDArray], name: str) -> bytes:
    layers = Layers(name)
    values: dict[str, str] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for key, entry in signature["inputs"].items():
        shape = _shape(entry)
        plain = entry["name"].split(":")[0]
        values[plain] = layers.first(layers.graph.input(key, shape))
        sizes[plain] = shape[1], shape[2]

    def value(of: str) -> str:
        # An explicit stack, since networks are deeper than Python's recursion limit.
        waiting = [of]
        while waiting:
            if len(waiting) > len(nodes):
                raise ValueError("the graph has a cycle")
            node = nodes[waiting[-1]]
            source = node["input"][0].split(":")[0] if node.get("input") else ""
            if waiting[-1] in values:
                waiting.pop()
            elif source and source not in values:
                waiting.append(source)
            else:
                done = waiting.pop()
                values[done], sizes[done] = _conv(
                    layers, node, arrays, values[source], sizes[source]
                )
        return values[of]

    for key, entry in signature["outputs"].items():
        made = layers.last(value(entry["name"].split(":")[0]))
        layers.graph.output(made, _shape(entry), name=key)
    return layers.graph.save()


def _conv(
    layers: Layers, node: Json, arrays: dict[str, NDArray], x: str, size: tuple[int, int]
) -> tuple[str, tuple[int, int]]:
    """Add a convolution with its fused operations; return its name and output size."""
    kind, attrs = node["op"], node["attr"]
    depthwise = kind == "FusedDepthwiseConv2dNative"
    if kind != "_FusedConv2D" and not depthwise:
        raise ValueError(f"unsupported operator {kind!r}")
    weights, bias = (arrays[n.split(":")[0]] for n in node["input"][1:3])
    groups = weights.shape[2] if depthwise else 1
    turned = weights.transpose(2, 3, 0, 1).reshape(-1, 1, *weights.shape[:2])
    weights = turned if depthwise else weights.transpose(3, 2, 0, 1)
    strides = [int(n) for n in attrs["strides"]["list"]["i"]][1:3]
    dilations = [int(n) for n in attrs["dilations"]["list"]["i"]][1:3]
    same = _text(attrs["padding"]["s"]) == "SAME"
    made = layers.conv(x, weights, bias, size, strides, dilations, same, groups)
    for fused in attrs["fused_ops"]["list"]["s"]:
        word = _text(fused)
        if word in ("Relu", "Relu6"):
            made = layers.activation(made, word.lower())
        elif word != "BiasAdd":
            raise ValueError(f"unsupported fused operation {word!r}")
    reach = [0 if same else (k - 1) * d for k, d in zip(weights.shape[2:], dilations, strict=True)]
    height, width = (-(-(n - r) // s) for n, r, s in zip(size, reach, strides, strict=True))
    return made, (height, width)


def _text(text: str) -> str:
    return base64.b64decode(text).decode()


def _shape(entry: Json) -> list[int]:
    return [int(d["size"]) for d in entry["tensorShape"]["dim"]]
