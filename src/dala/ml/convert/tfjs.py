"""Conversion of TensorFlow.js models to ONNX: the file, its weights, the walk of the graph.

``tfjs_ops`` and ``indexing`` have the operators, and ``builder`` the graph that they add to.
``keras`` converts models of layers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import numpy as np

from dala.errors import ModelError
from dala.ml.convert import indexing, tfjs_ops
from dala.ml.convert.builder import GraphBuilder, GraphValue, Json
from dala.ml.convert.keras import convert_layers
from dala.typing import NDArray

#: NumPy dtypes of weights, and of weights that are stored in fewer bits.
_DTYPES: Final = {"float32": "<f4", "int32": "<i4", "bool": "?", "uint8": "u1"}
_STORED: Final = {"float16": "<f2", "uint8": "u1", "uint16": "<u2"}


def convert_tfjs(topology: bytes, weights: bytes, name: str = "network") -> bytes:
    """Convert a model of a graph or of layers, its JSON and its weights, to ONNX."""
    try:
        model = json.loads(topology)
        graph = model["modelTopology"]
        arrays = _arrays(model["weightsManifest"], weights)
        if "node" not in graph:
            return convert_layers(graph, arrays, name)
        nodes = {node["name"]: node for node in graph["node"]}
        signature = model.get("signature") or model["userDefinedMetadata"]["signature"]
        return _build(signature, nodes, arrays, name)
    except ModelError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"convert_tfjs: not a TensorFlow.js model, or damaged: {type(error).__name__}: {error}"
        ) from None


def convert_tfjs_file(path: Path) -> bytes:
    """Convert a model's JSON file, and the weights beside it, to ONNX.

    Raises:
        ModelError: the file is no such model, or damaged, or its weights are missing or in
            another folder.

    Example::

        Path("upscale.onnx").write_bytes(convert_tfjs_file(Path("package/models/model.json")))
    """
    title = repr(path.name)
    try:
        topology = path.read_bytes()
        groups = json.loads(topology)["weightsManifest"]
        names = [str(name) for group in groups for name in group["paths"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(
            f"load_model: {title} is not a TensorFlow.js model, or damaged: "
            f"{type(error).__name__}: {error}"
        ) from None
    folder, parts = path.parent.resolve(), []
    for name in names:
        part = (folder / name).resolve()
        if not part.is_relative_to(folder):
            raise ModelError(f"load_model: {title} has weights outside of its folder: {name!r}.")
        try:
            parts.append(part.read_bytes())
        except OSError as error:
            raise ModelError(
                f"load_model: the weights {name!r} of {title} cannot be read: {error.strerror}."
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
    builder = GraphBuilder(name, {**tfjs_ops.HANDLERS, **indexing.HANDLERS})
    values: dict[str, GraphValue | NDArray] = {}
    for key, entry in signature["inputs"].items():
        shape = [max(1, n) for n in _shape(entry)]  # -1 is any batch: one here
        # Inputs of integers are f32 too, so that a prepared picture is fed as it is.
        values[_plain(entry["name"])] = builder.input(key, shape, "float32")

    def value(of: str) -> GraphValue:
        # An explicit stack, since networks are deeper than Python's recursion limit.
        waiting = [_owner(of)]
        opened: set[str] = set()
        while waiting:
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
                made = builder.add(node, [values[n] for n in names])
                values.update({at if not k else f"{at}:{k}": one for k, one in enumerate(made)})
            elif at in opened:
                raise ValueError("the graph has a cycle")
            else:
                opened.add(at)
                waiting.extend(_owner(n) for n in missing)
        return builder.settled(values[of])

    for key, entry in signature["outputs"].items():
        found = value(_plain(entry["name"]))
        builder.output(found, key)
    return builder.graph.save()


def _plain(name: str) -> str:
    """Return the name of a tensor without the number 0 of its node's output."""
    return name.removesuffix(":0")


def _owner(name: str) -> str:
    """Return the node of a tensor."""
    return name.partition(":")[0]


def _shape(entry: Json) -> list[int]:
    return [int(d["size"]) for d in entry["tensorShape"]["dim"]]
