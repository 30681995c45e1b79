"""A reader of TFLite files, which are flatbuffers: tensors, weights and operators."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from dala.errors import ModelError
from dala.typing import NDArray

_DTYPES: Final = {0: "<f4", 1: "<f2", 2: "<i4", 3: "u1", 4: "<i8", 6: "?", 9: "i1"}


class Table:
    """A flatbuffer table: fields by number, with defaults for absent ones."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]
        self.count = (struct.unpack_from("<H", data, self.fields)[0] - 4) // 2

    def _position(self, field: int) -> int:
        if field >= self.count:
            return 0
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * field)[0]
        return self.at + offset if offset else 0

    def number(self, field: int, kind: str = "i", default: int = 0) -> int:
        """Return a scalar; ``kind`` is a ``struct`` format."""
        position = self._position(field)
        return int(struct.unpack_from(f"<{kind}", self.data, position)[0]) if position else default

    def _target(self, field: int) -> int:
        position = self._position(field)
        return position + struct.unpack_from("<I", self.data, position)[0] if position else 0

    def table(self, field: int) -> Table | None:
        """Return a nested table, or None."""
        target = self._target(field)
        return Table(self.data, target) if target else None

    def tables(self, field: int) -> list[Table]:
        """Return a vector of tables."""
        start = self._target(field)
        if not start:
            return []
        count = struct.unpack_from("<I", self.data, start)[0]
        if 4 * count > len(self.data) - start:
            raise ValueError("a vector is longer than the file")
        spots = [start + 4 + 4 * k for k in range(count)]
        return [Table(self.data, s + struct.unpack_from("<I", self.data, s)[0]) for s in spots]

    def array(self, field: int, dtype: str) -> NDArray:
        """Return a vector of numbers."""
        start = self._target(field)
        if not start:
            return np.zeros(0, dtype)
        count = struct.unpack_from("<I", self.data, start)[0]
        return np.frombuffer(self.data, dtype, count, start + 4)

    def indexes(self, field: int) -> list[int]:
        """Return a vector of ints."""
        return list(map(int, self.array(field, "<i4")))

    def text(self, field: int) -> str:
        """Return a string."""
        return self.array(field, "u1").tobytes().decode("utf-8", "replace")


@dataclass
class TFLiteTensor:
    """A tensor of the graph; ``data`` is set for weights."""

    name: str
    shape: tuple[int, ...]
    data: NDArray | None


@dataclass
class Op:
    """An operator: its built-in number, the indexes of its tensors, and its options."""

    code: int
    inputs: list[int]
    outputs: list[int]
    options: Table | None


@dataclass
class Network:
    """The first subgraph of a file."""

    tensors: list[TFLiteTensor]
    ops: list[Op]
    inputs: list[int]
    outputs: list[int]


def read_tflite(data: bytes) -> Network:
    """Read a TFLite file.

    Raises:
        ModelError: the file is not a TFLite file, or damaged.
    """
    try:
        if data[4:8] != b"TFL3":
            raise ValueError("the magic bytes TFL3 are missing")
        return _network(data)
    except (ValueError, IndexError, struct.error, KeyError) as error:
        raise ModelError(f"read_tflite: not a TFLite file, or damaged: {error}") from None


def _network(data: bytes) -> Network:
    model = Table(data, struct.unpack_from("<I", data, 0)[0])
    codes = [max(t.number(0, "b"), t.number(3)) for t in model.tables(1)]
    graph = model.tables(2)[0]
    buffers = model.tables(4)
    tensors = []
    for t in graph.tables(0):
        shape = tuple(t.indexes(0))
        raw = buffers[t.number(2, "I")].array(0, "u1")
        kind, weights = t.number(1, "b"), None
        if raw.size:
            weights = np.frombuffer(raw.tobytes(), _DTYPES[kind]).reshape(shape)
        tensors.append(TFLiteTensor(t.text(3), shape, weights))
    ops = [
        Op(codes[o.number(0, "I")], o.indexes(1), o.indexes(2), o.table(4)) for o in graph.tables(3)
    ]
    return Network(tensors, ops, graph.indexes(1), graph.indexes(2))
