"""A reader of ONNX files that checks them before ONNX Runtime opens them.

Only the structure is read: nodes, names, shapes, and where weights are. A file whose structure does
not fit its length, that needs more memory than it has weights for, whose nodes form a cycle, or
that names files outside its folder is refused, with the node or tensor at fault.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from dala import budget
from dala.errors import LimitExceeded, ModelError

#: The bytes of a file, or a part of them.
Data: TypeAlias = memoryview

#: Bytes of an element, by ONNX dtype number; strings (8) have no fixed size.
_ITEM_BYTES: Final = {
    1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 8, 15: 16,
    16: 2, 17: 1, 18: 1, 19: 1, 20: 1,
}  # fmt: skip
#: Dtypes of which two elements are stored in a byte.
_HALF_BYTES: Final = (21, 22)
#: Elements of one tensor from which a shape is absurd: 16 GB of f32.
MAX_ELEMENTS: Final = 1 << 32
#: Graphs within graphs, such as branches, that are read.
_MAX_DEPTH: Final = 32
#: Operators that make a tensor of a size given by a tensor, and which input that is.
_SIZED: Final = {"ConstantOfShape": 0, "Expand": 1, "Resize": 3, "Tile": 1}


@dataclass
class OnnxNode:
    """A node of a graph."""

    op: str
    name: str
    domain: str
    inputs: list[str]
    outputs: list[str]

    def __str__(self) -> str:
        return f"{self.op} {self.name!r}" if self.name else f"{self.op} of {self.outputs}"


@dataclass
class OnnxWeight:
    """A weight: its shape and where its bytes are."""

    name: str
    shape: tuple[int, ...]
    kind: int
    #: Bytes in the file; None if they are in another one.
    stored: int | None
    external: dict[str, str] = field(default_factory=dict)
    #: The values, for short lists of ints.
    values: tuple[int, ...] | None = None


@dataclass
class OnnxGraph:
    """The structure of a file: every node and weight, those of inner graphs included."""

    nodes: list[OnnxNode] = field(default_factory=list)
    #: The nodes of each graph by itself, the outermost first.
    graphs: list[list[OnnxNode]] = field(default_factory=list)
    weights: list[OnnxWeight] = field(default_factory=list)
    #: The version of the operators, by domain ("" is ONNX's own).
    opsets: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    @property
    def operators(self) -> dict[str, int]:
        """How many nodes there are of each operator, most first."""
        return dict(Counter(node.op for node in self.nodes).most_common())


def check_file(path: Path, title: str) -> OnnxGraph:
    """Read the structure of an ONNX file and check it.

    Raises:
        ModelError: the file is damaged, has a cycle or absurd shapes, or names files outside its
            folder.
        LimitExceeded: its weights exceed the memory of ``dala.limits``.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                raise ValueError("it is empty")
            _check_memory(size, title)
            # Closed when the last view of it is gone: errors hold some.
            graph = _model(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except OSError as error:
        raise ModelError(f"load_model: {title} cannot be read: {error.strerror}.") from None
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ModelError(
            f"load_model: {title} is not an ONNX file, or is damaged: {error}"
        ) from None
    try:
        total = sum(_weight_bytes(weight, path.parent) for weight in graph.weights)
        _check_sizes(graph)
    except ValueError as error:
        raise ModelError(f"load_model: {title} is refused: {error}") from None
    graph.bytes = total
    _check_memory(total, title)
    return graph


def _check_memory(count: int, title: str) -> None:
    most = budget.current().memory
    if most is not None and count > most:
        raise LimitExceeded(
            f"load_model: {title} needs {count:,} bytes, more than dala.limits(memory={most}).",
            call="load_model",
            argument="memory",
        )


def _weight_bytes(weight: OnnxWeight, folder: Path) -> int:
    """Return the bytes of a weight in memory; raise ValueError if they do not fit its shape."""
    count = 1
    for n in weight.shape:
        if n < 0:
            raise ValueError(f"the weight {weight.name!r} has the shape {weight.shape}")
        count *= n
    if count > MAX_ELEMENTS:
        raise ValueError(f"the weight {weight.name!r} has the absurd shape {weight.shape}")
    if weight.external:
        return _external_bytes(weight, folder)
    half = weight.kind in _HALF_BYTES
    wanted = (count + 1) // 2 if half else count * _ITEM_BYTES.get(weight.kind, 0)
    if weight.kind == 8 or weight.stored is None:
        return 0
    # Numbers outside "raw data" are packed in other sizes, but never in less than a byte each.
    if weight.stored < min(wanted, count):
        raise ValueError(
            f"the weight {weight.name!r} of shape {weight.shape} has {weight.stored:,} bytes, less "
            f"than {wanted:,}"
        )
    return wanted


def _external_bytes(weight: OnnxWeight, folder: Path) -> int:
    location = weight.external.get("location", "")
    where = f"the weight {weight.name!r} is in the file {location!r}"
    given = Path(location)
    if not location or given.is_absolute() or ".." in given.parts or ":" in location:
        raise ValueError(f"{where}, outside the model's folder")
    target = (folder / given).resolve()
    if folder.resolve() not in target.parents:
        raise ValueError(f"{where}, which leads outside the model's folder")
    if not target.is_file():
        raise ValueError(f"{where}, which is missing")
    size = target.stat().st_size
    start, length = (int(weight.external.get(key, "0") or 0) for key in ("offset", "length"))
    if start < 0 or length < 0 or start + length > size:
        raise ValueError(f"{where}, which ends before it")
    return length or size - start


def _check_sizes(graph: OnnxGraph) -> None:
    """Raise ValueError for cycles, and for tensors of an absurd size."""
    known = {w.name: w.values for w in graph.weights if w.values is not None}
    for node in graph.nodes:
        at = _SIZED.get(node.op)
        if at is None or len(node.inputs) <= at or node.inputs[at] not in known:
            continue
        count = 1
        values = known[node.inputs[at]] or ()
        for n in values:
            count *= max(n, 1)
        if count > MAX_ELEMENTS:
            raise ValueError(f"the node {node} makes a tensor of the absurd shape {values}")
    for nodes in graph.graphs:
        _check_cycles(nodes)


def _check_cycles(nodes: list[OnnxNode]) -> None:
    makers = {name: k for k, node in enumerate(nodes) for name in node.outputs if name}
    state = [0] * len(nodes)  # 1: its inputs are being followed, 2: done
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            k = stack[-1]
            if state[k] == 2:
                stack.pop()
                continue
            sources = [makers[name] for name in nodes[k].inputs if name in makers]
            waiting = [s for s in sources if state[s] != 2]
            if not waiting:
                state[k] = 2
                stack.pop()
            elif state[k] == 1:
                raise ValueError(f"the node {nodes[k]} is part of a cycle")
            else:
                state[k] = 1
                stack.extend(waiting)


# protocol buffers ---------------------------------------------------------------------------------
def _varint(data: Data, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("it ends in the middle of a number")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than 64 bits")


def _fields(data: Data) -> Iterator[tuple[int, int | Data]]:
    """Yield the number and value of each field: an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("a field has the number 0")
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field has the unknown type {kind}")
        if at + size > len(data):
            raise ValueError("a field is longer than the file")
        yield number, data[at : at + size]
        at += size


def _message(value: int | Data) -> Data:
    if isinstance(value, int):
        raise ValueError("a number stands where a message belongs")
    return value


def _text(value: int | Data) -> str:
    return bytes(_message(value)).decode()


def _signed(n: int) -> int:
    return n - (1 << 64) if n >= 1 << 63 else n


def _ints(value: int | Data) -> list[int]:
    """Return one int, or packed ones."""
    if isinstance(value, int):
        return [_signed(value)]
    found, at = [], 0
    while at < len(value):
        n, at = _varint(value, at)
        found.append(_signed(n))
    return found


def _model(data: Data) -> OnnxGraph:
    found = OnnxGraph()
    graphs = 0
    for number, value in _fields(data):
        if number == 7:
            graphs += 1
            _graph(_message(value), found, 0)
        elif number == 8:
            parts = dict(_fields(_message(value)))
            version = parts.get(2, 0)
            domain = _text(parts[1]) if 1 in parts else ""
            found.opsets[domain] = version if isinstance(version, int) else 0
    if graphs != 1:
        raise ValueError("it has no graph" if not graphs else "it has several graphs")
    return found


def _graph(data: Data, found: OnnxGraph, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError(f"its graphs are nested more than {_MAX_DEPTH} deep")
    nodes: list[OnnxNode] = []
    found.graphs.append(nodes)
    for number, value in _fields(data):
        if number == 1:
            nodes.append(_node(_message(value), found, depth))
        elif number == 5:
            found.weights.append(_tensor(_message(value)))


def _node(data: Data, found: OnnxGraph, depth: int) -> OnnxNode:
    node = OnnxNode("", "", "", [], [])
    attributes = []
    for number, value in _fields(data):
        if number == 1:
            node.inputs.append(_text(value))
        elif number == 2:
            node.outputs.append(_text(value))
        elif number == 3:
            node.name = _text(value)
        elif number == 4:
            node.op = _text(value)
        elif number == 5:
            attributes.append(_message(value))
        elif number == 7:
            node.domain = _text(value)
    found.nodes.append(node)
    for attribute in attributes:
        for number, value in _fields(attribute):
            if number == 5:
                weight = _tensor(_message(value))
                weight.name = weight.name or (node.outputs or [""])[0]
                found.weights.append(weight)
            elif number in (6, 11):
                _graph(_message(value), found, depth + 1)
    return node


def _tensor(data: Data) -> OnnxWeight:
    weight = OnnxWeight("", (), 0, 0)
    shape: list[int] = []
    values: list[int] = []
    raw: Data | None = None
    stored, outside = 0, False
    for number, value in _fields(data):
        if number == 1:
            shape += _ints(value)
        elif number == 2 and isinstance(value, int):
            weight.kind = value
        elif number == 8:
            weight.name = _text(value)
        elif number == 9:
            raw = _message(value)
            stored += len(raw)
        elif number in (4, 5, 6, 7, 10, 11):
            stored += 1 if isinstance(value, int) else len(value)
            if number == 7 and len(values) <= 16:
                values += _ints(value)
        elif number == 13:
            parts = dict(_fields(_message(value)))
            weight.external[_text(parts[1]) if 1 in parts else ""] = (
                _text(parts[2]) if 2 in parts else ""
            )
        elif number == 14:
            outside = value == 1
    weight.shape = tuple(shape)
    weight.stored = None if outside else stored
    if outside and not weight.external:
        weight.external = {"location": ""}
    elif not outside:
        weight.external = {}
    if weight.kind == 7 and len(shape) <= 1 and (shape or [1])[0] <= 16:
        if raw is not None and len(raw) % 8 == 0:
            values = [
                int.from_bytes(raw[k : k + 8], "little", signed=True) for k in range(0, len(raw), 8)
            ]
        weight.values = tuple(values)
    return weight
