"""Models of several outputs, as models of one that holds them all.

Reading an output from ONNX Runtime's GPU costs half a millisecond, however small it is: the
provider takes memory from the driver for it and gives it back. So the outputs are joined on the
GPU, read at once, and taken apart here. It also lets more models be captured: an output that is
only a copy, such as that of a last Flatten, is not part of a captured graph, but a part of the
joined output is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from dala.ml.convert.onnx_file import (
    DTYPES,
    Data,
    Graph,
    bytes_field,
    fields,
    message,
    number_field,
)
from dala.ml.runtime.onnx_graph import OnnxGraph, OnnxValue
from dala.typing import NDArray

#: The name of the output that holds the others; names of added values begin with it.
PACKED: Final = "dala.packed"
#: Bytes of a file above which its outputs stay apart: protocol buffers end at 2 GB.
_MAX_BYTES: Final = 1 << 30


def can_pack(graph: OnnxGraph) -> bool:
    """Return whether a model has several outputs of f32 whose shapes are known before a run.

    Weights in other files are found by the path of the model, which a changed one does not have.
    """
    batches = {value.shape[0] for value in graph.inputs if value.shape}
    names = {value.name for value in graph.outputs}
    return (
        len(names) == len(graph.outputs) > 1
        and all(_is_known(value, batches) for value in graph.outputs)
        and not any(weight.external for weight in graph.weights)
        and not any(name.startswith(PACKED) for node in graph.nodes for name in node.outputs)
    )


def _is_known(value: OnnxValue, batches: set[int | str]) -> bool:
    """Return whether an output is of f32, with fixed sizes but for the batch, as of an input."""
    if value.kind != DTYPES["float32"] or not value.shape:
        return False
    first, *others = value.shape
    batch = first in batches if isinstance(first, str) else first > 0
    return bool(batch and first) and all(isinstance(n, int) and n > 0 for n in others)


def pack_outputs(graph: OnnxGraph, model: bytes | os.PathLike[str]) -> bytes | None:
    """Return a model, given by its bytes or path, with its outputs joined; None if it cannot be.

    Args:
        graph: the structure of the model.
        model: the bytes of the file, or its path.
    """
    if not can_pack(graph):
        return None
    data = model if isinstance(model, bytes) else Path(model).read_bytes()
    if len(data) > _MAX_BYTES:
        return None
    parts = []
    for number, value in fields(memoryview(data)):
        if isinstance(value, int):
            parts.append(number_field(number, value))
        else:
            parts.append(bytes_field(number, _joined(value, graph) if number == 7 else value))
    return b"".join(parts)


def _joined(data: Data, graph: OnnxGraph) -> bytes:
    """Return a graph without its outputs, with the nodes that join them, and the joined output."""
    added = Graph("packed", prefix=PACKED)

    def reshaped(value: str, *shape: int) -> str:
        return added.node("Reshape", value, added.node("Constant", value=np.array(shape, np.int64)))

    parts = []
    for output in graph.outputs:
        # By its declared sizes: if the file lies, the run fails instead of mixing up the outputs.
        first, *others = output.shape or ()
        count = prod(n for n in others if isinstance(n, int))
        if isinstance(first, int):
            parts.append(reshaped(output.name, first * count))
        else:  # 0 keeps the size of the batch
            parts.append(reshaped(reshaped(output.name, 0, count), -1))
    added.output(added.node("Concat", *parts, axis=0), ("count",), name=PACKED)
    kept = [(number, message(value)) for number, value in fields(data) if number != 12]
    made = next(message(value) for n, value in fields(memoryview(added.save())) if n == 7)
    new = [(number, message(value)) for number, value in fields(made) if number in (1, 12)]
    return b"".join(bytes_field(number, value) for number, value in (*kept, *new))


def unpack(joined: NDArray, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray]:
    """Return the parts of a joined output by name.

    >>> parts = unpack(np.arange(8.0), {"boxes": (2, 3), "scores": (2,)})
    >>> parts["boxes"].tolist(), parts["scores"].tolist()
    ([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [6.0, 7.0])
    """
    found, start = {}, 0
    for name, shape in shapes.items():
        end = start + prod(shape)
        found[name] = joined[start:end].reshape(shape)
        start = end
    return found
