"""Conversion of TensorFlow.js models to ONNX: the file, its weights, the walk of the graph.

``tfjs_ops`` and ``indexing`` have the operators, and ``builder`` the graph that they add to.
``keras`` converts models of layers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from dala.budget import check_deadline
from dala.errors import ModelError, ParameterError
from dala.ml.convert import damaged
from dala.ml.convert.builder import (
    GraphBuilder,
    GraphNode,
    Json,
    Operand,
    unsupported,
)
from dala.ml.convert.keras import convert_layers
from dala.ml.convert.tfjs_ops import HANDLERS, outputs
from dala.typing import NDArray
from dala.untrusted.place import Place

#: The largest file of weights.
_MAX_BYTES: Final = 2 << 30
#: What reading a damaged file raises.
_DAMAGE: Final = (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError)
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
