"""A reader of ONNX files that checks them before ONNX Runtime opens them.

Only the structure is read: nodes, names, shapes, and where weights are. A file whose structure does
not fit its length, that needs more memory than it has weights for, whose nodes form a cycle, or
that names files outside its folder is refused, with the node or tensor at fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import prod
from pathlib import Path
from typing import Final, NamedTuple

from dala import budget
from dala.errors import LimitExceeded, ModelError, ParameterError
from dala.ml.convert.onnx_file import Data, ProtoMessage
from dala.untrusted.opened import Opened, open_trusted
from dala.untrusted.place import NotThere, Place

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


class ModelSource(NamedTuple):
    """The bytes or the file of a model, and the files of its weights, as ONNX Runtime opens them.

    The files are open already, so that it reads what was checked, and looks no name up.
    """

    model: bytes | Opened
    #: By the names that the model has for them.
    weights: Mapping[str, Opened] = {}


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
    #: Bytes in the file; None if they are in another one, or made from a sparse weight.
    stored: int | None
    external: dict[str, str] = field(default_factory=dict)
    #: The values, for short lists of ints.
    values: tuple[int, ...] | None = None


@dataclass
class OnnxValue:
    """An input or output: its dtype number and its shape, of ints and names of variable sizes.

    The shape is None if the file does not tell it.
    """

    name: str
    kind: int = 0
    shape: tuple[int | str, ...] | None = None


@dataclass
class OnnxGraph:
    """The structure of a file: every node and weight, those of inner graphs included."""

    nodes: list[OnnxNode] = field(default_factory=list)
    #: The nodes of each graph by itself, the outermost first.
    graphs: list[list[OnnxNode]] = field(default_factory=list)
    weights: list[OnnxWeight] = field(default_factory=list)
    #: Those of the outermost graph.
    inputs: list[OnnxValue] = field(default_factory=list)
    outputs: list[OnnxValue] = field(default_factory=list)
    #: The version of the operators, by domain ("" is ONNX's own).
    opsets: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    @property
    def operators(self) -> dict[str, int]:
        """How many nodes there are of each operator, most first."""
        return dict(Counter(node.op for node in self.nodes).most_common())


def open_model(path: Path, title: str) -> tuple[ModelSource, OnnxGraph]:
    """Open an ONNX file and the files of its weights, and check its structure.

    Raises:
        ModelError: the file is damaged, has a cycle or absurd shapes, or names files outside its
            folder.
        LimitExceeded: its weights exceed the memory of ``dala.limits``.
    """
    try:
        file = open_trusted(path)
        if not file.stat().st_size:
            raise ValueError("it is empty")
        _check_memory(file.stat().st_size, title)
        # Closed when the last view of it is gone: errors hold some.
        graph = read_graph(memoryview(file.mapped()))
    except OSError as error:
        budget.check_deadline("load_model")
        raise ModelError(f"load_model: {title} cannot be read: {error.strerror}.") from None
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ModelError(
            f"load_model: {title} is not an ONNX file, or is damaged: {error}"
        ) from None
    files: dict[str, Opened] = {}
    try:
        total = sum(_weight_bytes(weight, path.parent, files) for weight in graph.weights)
        _check_sizes(graph)
    except ValueError as error:
        raise ModelError(f"load_model: {title} is refused: {error}") from None
    graph.bytes = total
    _check_memory(total, title)
    return ModelSource(file, files), graph


def _check_memory(count: int, title: str) -> None:
    most = budget.current().memory
    if most is not None and count > most:
        raise LimitExceeded(
            f"load_model: {title} needs {count:,} bytes, more than dala.limits(memory={most}).",
            argument="memory",
        )


def _weight_bytes(weight: OnnxWeight, folder: Path, files: dict[str, Opened]) -> int:
    """Return the bytes of a weight in memory; raise ValueError if they do not fit its shape."""
    if min(weight.shape, default=0) < 0:
        raise ValueError(f"the weight {weight.name!r} has the shape {weight.shape}")
    count = prod(weight.shape)
    if count > MAX_ELEMENTS:
        raise ValueError(f"the weight {weight.name!r} has the absurd shape {weight.shape}")
    if weight.external:
        return _external_bytes(weight, folder, files)
    half = weight.kind in _HALF_BYTES
    wanted = (count + 1) // 2 if half else count * _ITEM_BYTES.get(weight.kind, 0)
    if weight.kind == 8:
        return 0
    if weight.stored is None:
        return wanted
    # Numbers outside "raw data" are packed in other sizes, but never in less than a byte each.
    if weight.stored < min(wanted, count):
        raise ValueError(
            f"the weight {weight.name!r} of shape {weight.shape} has {weight.stored:,} bytes, less "
            f"than {wanted:,}"
        )
    return wanted


def _external_bytes(weight: OnnxWeight, folder: Path, files: dict[str, Opened]) -> int:
    location = weight.external.get("location", "")
    where = f"the weight {weight.name!r} is in the file {location!r}"
    given = Path(location)
    if not location or given.is_absolute() or ".." in given.parts or ":" in location:
        raise ValueError(f"{where}, outside the model's folder")
    try:
        if location not in files:
            files[location] = Place([folder]).open(location, "load_model")
    except NotThere:
        raise ValueError(f"{where}, which is missing") from None
    except ParameterError:
        raise ValueError(f"{where}, which leads outside the model's folder") from None
    size = files[location].stat().st_size
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
        values = known[node.inputs[at]] or ()
        if prod(max(n, 1) for n in values) > MAX_ELEMENTS:
            raise ValueError(f"the node {node} makes a tensor of the absurd shape {values}")
    for nodes in graph.graphs:
        _check_cycles(nodes)


def _check_cycles(nodes: list[OnnxNode]) -> None:
    makers = {name: k for k, node in enumerate(nodes) for name in node.outputs if name}
    sources = {
        k: [makers[name] for name in node.inputs if name in makers] for k, node in enumerate(nodes)
    }
    try:
        TopologicalSorter(sources).prepare()
    except CycleError as error:
        raise ValueError(f"the node {nodes[error.args[1][0]]} is part of a cycle") from None


def read_graph(data: Data) -> OnnxGraph:
    """Read the structure of a file; raise ValueError if it is damaged."""
    found, model = OnnxGraph(), ProtoMessage(data)
    found.opsets = {opset.text(1): opset.number(2) for opset in model.messages(8)}
    graphs = model.data(7)
    if len(graphs) != 1:
        raise ValueError("it has no graph" if not graphs else "it has several graphs")
    _graph(graphs[0], found, 0)
    for function in model.messages(25):
        _nodes(function.messages(7), found, 0)
    return found


def _graph(data: Data, found: OnnxGraph, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError(f"its graphs are nested more than {_MAX_DEPTH} deep")
    graph = ProtoMessage(data)
    _nodes(graph.messages(1), found, depth)
    found.weights += map(_tensor, graph.messages(5))
    for sparse in graph.messages(15):
        found.weights += _sparse(sparse)
    if not depth:
        found.inputs += map(_value, graph.messages(11))
        found.outputs += map(_value, graph.messages(12))


def _nodes(given: Iterable[ProtoMessage], found: OnnxGraph, depth: int) -> None:
    nodes: list[OnnxNode] = []
    found.graphs.append(nodes)
    nodes += (_node(node, found, depth) for node in given)


def _value(value: ProtoMessage) -> OnnxValue:
    """Return an input or output, with its dtype and shape if it is a tensor."""
    made = OnnxValue(value.text(1))
    for tensor in (tensor for kind in value.messages(2) for tensor in kind.messages(1)):
        made.kind = tensor.number(1)
        for shape in tensor.messages(2):
            # The size of an axis, or its name; "" if the file has neither.
            sizes = shape.messages(1)
            made.shape = tuple(n.ints(1)[0] if 1 in n else n.text(2) for n in sizes)
    return made


def _node(given: ProtoMessage, found: OnnxGraph, depth: int) -> OnnxNode:
    node = OnnxNode(given.text(4), given.text(3), given.text(7), given.texts(1), given.texts(2))
    found.nodes.append(node)
    for attribute in given.messages(5):
        for weight in map(_tensor, (*attribute.messages(5), *attribute.messages(10))):
            weight.name = weight.name or (node.outputs or [""])[0]
            found.weights.append(weight)
        for sparse in (*attribute.messages(22), *attribute.messages(23)):
            found.weights += _sparse(sparse)
        for graph in (*attribute.data(6), *attribute.data(11)):
            _graph(graph, found, depth + 1)
    return node


def _sparse(given: ProtoMessage) -> list[OnnxWeight]:
    """Return the parts of a sparse weight, and the whole that ONNX Runtime makes of it."""
    parts = list(map(_tensor, (*given.messages(1), *given.messages(2))))
    name, kind = (parts[0].name, parts[0].kind) if parts else ("", 1)
    return [*parts, OnnxWeight(name, tuple(given.ints(3)), kind, None)]


def _tensor(given: ProtoMessage) -> OnnxWeight:
    weight = OnnxWeight(given.text(8), tuple(given.ints(1)), given.number(2), None)
    raw = given.data(9)
    if given.number(14) == 1:
        entries = {entry.text(1): entry.text(2) for entry in given.messages(13)}
        weight.external = entries or {"location": ""}
    else:
        packed = given.all(4, 5, 6, 7, 10, 11)
        weight.stored = sum(map(len, raw))
        weight.stored += sum(1 if isinstance(value, int) else len(value) for value in packed)
    shape = weight.shape
    if weight.kind == 7 and len(shape) <= 1 and (shape or (1,))[0] <= 16:
        whole = raw[-1] if raw and len(raw[-1]) % 8 == 0 else None
        weight.values = tuple(given.ints(7) if whole is None else whole.cast("q"))
    return weight
