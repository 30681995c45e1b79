"""A writer of flatbuffers, and a small TFLite network with every operator that is converted."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A number in a table, by its ``struct`` format."""

    value: int
    kind: str = "i"


#: A table by the numbers of its fields, a vector of tables, a vector of numbers, or text.
Value: TypeAlias = "Scalar | Mapping[int, Value] | Sequence[Mapping[int, Value]] | np.ndarray | str"


def flatbuffer(root: Mapping[int, Value], magic: bytes) -> bytes:
    """Return a flatbuffer with a root table."""
    out = bytearray(struct.pack("<I4s", 0, magic))
    struct.pack_into("<I", out, 0, _table(out, root))
    return bytes(out)


def _table(out: bytearray, fields: Mapping[int, Value]) -> int:
    """Append a table and what it refers to; return its position."""
    count = max(fields, default=-1) + 1
    _align(out)
    sizes = struct.pack("<2H", 4 + 2 * count, 4 + 4 * len(fields))
    slots = {field: 4 + 4 * n for n, field in enumerate(fields)}
    vtable = len(out)
    out += sizes + struct.pack(f"<{count}H", *(slots.get(n, 0) for n in range(count)))
    _align(out)
    at = len(out)
    out += struct.pack("<i", at - vtable) + bytes(4 * len(fields))
    for field, value in fields.items():
        spot = at + slots[field]
        if isinstance(value, Scalar):
            struct.pack_into(f"<{value.kind}", out, spot, value.value)
        else:
            struct.pack_into("<I", out, spot, _value(out, value) - spot)
    return at


def _value(out: bytearray, value: Value) -> int:
    if isinstance(value, Mapping):
        return _table(out, value)
    _align(out)
    at = len(out)
    if isinstance(value, str):
        raw = value.encode()
        out += struct.pack("<I", len(raw)) + raw + b"\0"
    elif isinstance(value, np.ndarray):
        out += struct.pack("<I", value.size) + value.tobytes()
    else:
        assert isinstance(value, Sequence)
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for n, each in enumerate(value):
            spot = at + 4 + 4 * n
            struct.pack_into("<I", out, spot, _table(out, each) - spot)
    return at


def _align(out: bytearray) -> None:
    out += bytes(-len(out) % 4)


# a network ----------------------------------------------------------------------------------------
_KINDS = {"float32": 0, "float16": 1, "int32": 2}


class _Network:
    def __init__(self) -> None:
        self.tensors: list[Mapping[int, Value]] = []
        self.buffers: list[Mapping[int, Value]] = [{}]
        self.codes: list[int] = []
        self.ops: list[Mapping[int, Value]] = []

    def tensor(self, name: str, shape: Sequence[int]) -> int:
        sizes = np.array(shape, "<i4")
        self.tensors.append({0: sizes, 1: Scalar(0, "b"), 2: Scalar(0, "I"), 3: name})
        return len(self.tensors) - 1

    def weights(self, data: np.ndarray) -> int:
        self.buffers.append({0: np.frombuffer(data.tobytes(), "u1")})
        kind = _KINDS[data.dtype.name]
        where = Scalar(len(self.buffers) - 1, "I")
        sizes = np.array(data.shape, "<i4")
        self.tensors.append({0: sizes, 1: Scalar(kind, "b"), 2: where, 3: f"w{len(self.tensors)}"})
        return len(self.tensors) - 1

    def op(self, code: int, inputs: Sequence[int], shape: Sequence[int], **options: Scalar) -> int:
        if code not in self.codes:
            self.codes.append(code)
        out = self.tensor(f"t{len(self.tensors)}", shape)
        fields: dict[int, Value] = {
            0: Scalar(self.codes.index(code), "I"),
            1: np.array(inputs, "<i4"),
            2: np.array([out], "<i4"),
        }
        if options:
            fields[3] = Scalar(1, "b")
            fields[4] = {int(name[1:]): value for name, value in options.items()}
        self.ops.append(fields)
        return out

    def save(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        graph: dict[int, Value] = {
            0: self.tensors,
            1: np.array(inputs, "<i4"),
            2: np.array(outputs, "<i4"),
            3: self.ops,
        }
        codes = [{0: Scalar(code, "b"), 3: Scalar(code)} for code in self.codes]
        model: dict[int, Value] = {0: Scalar(3, "I"), 1: codes, 2: [graph], 4: self.buffers}
        return flatbuffer(model, b"TFL3")


def tflite_network() -> bytes:
    """Return a TFLite file with every operator that :mod:`dala.ml.convert.tflite` converts."""
    rng = np.random.default_rng(7)

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype("<f4")

    net = _Network()
    one, relu6 = Scalar(1), Scalar(3, "b")
    x = net.tensor("input", (1, 8, 8, 3))
    half = net.op(6, [net.weights(floats(4, 3, 3, 3).astype("<f2"))], (4, 3, 3, 3))
    y = net.op(3, [x, half, net.weights(floats(4))], (1, 8, 8, 4), f1=one, f2=one, f3=relu6)
    y = net.op(4, [y, net.weights(floats(1, 3, 3, 4)), net.weights(floats(4))], (1, 8, 8, 4),
               f1=one, f2=one, f3=one, f4=Scalar(1, "b"))  # fmt: skip
    z = net.op(19, [y], (1, 8, 8, 4))
    y = net.op(0, [y, z], (1, 8, 8, 4), f0=Scalar(0, "b"))
    window = {"f1": Scalar(2), "f2": Scalar(2), "f3": Scalar(2), "f4": Scalar(2)}
    y = net.op(17, [y], (1, 4, 4, 4), **window)
    pads = np.array([[0, 0], [1, 1], [1, 1], [0, 0]], "<i4")
    y = net.op(34, [y, net.weights(pads)], (1, 6, 6, 4))
    y = net.op(1, [y], (1, 3, 3, 4), **window)
    y = net.op(23, [y, net.weights(np.array([6, 6], "<i4"))], (1, 6, 6, 4),
               f3=Scalar(1, "b"))  # fmt: skip
    y = net.op(21, [y], (1, 6, 6, 4))
    y = net.op(2, [y, y], (1, 6, 6, 8), f0=Scalar(3), f1=Scalar(0, "b"))
    y = net.op(22, [y], (1, 288))
    return net.save([x], [y])
