"""A writer of ONNX files: graphs of nodes and weights as protocol-buffer bytes.

The format is a few nested messages, so no package is needed for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala.budget import check_deadline
from dala.typing import NDArray

#: The bytes of a file, or a part of them.
Data: TypeAlias = memoryview


# reading ------------------------------------------------------------------------------------------
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


def fields(data: Data) -> Iterator[tuple[int, int | Data]]:
    """Yield the number and value of each field: an int, or bytes."""
    at = 0
    while at < len(data):
        check_deadline("load_model")
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


def message(value: int | Data) -> Data:
    """Return the bytes of a field; raise ValueError if it is a number."""
    if isinstance(value, int):
        raise ValueError("a number stands where a message belongs")
    return value


class ProtoMessage:
    """The fields of a message by number. Of a field that stands several times, the last counts."""

    def __init__(self, data: Data) -> None:
        self._found: dict[int, list[int | Data]] = {}
        for number, value in fields(data):
            self._found.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._found

    def all(self, *numbers: int) -> list[int | Data]:
        """Return the values of all fields of these numbers."""
        return [value for number in numbers for value in self._found.get(number, ())]

    def data(self, number: int) -> list[Data]:
        """Return the bytes of all fields of a number."""
        return [message(value) for value in self.all(number)]

    def messages(self, number: int) -> list[ProtoMessage]:
        """Return the messages in all fields of a number."""
        return [ProtoMessage(value) for value in self.data(number)]

    def texts(self, number: int) -> list[str]:
        """Return the texts of all fields of a number."""
        return [bytes(value).decode() for value in self.data(number)]

    def text(self, number: int) -> str:
        """Return a text; "" if there is none."""
        return (self.texts(number) or [""])[-1]

    def number(self, number: int) -> int:
        """Return a number; 0 if there is none."""
        last = (self.all(number) or [0])[-1]
        return last if isinstance(last, int) else 0

    def ints(self, number: int) -> list[int]:
        """Return the ints of all fields of a number: one each, or packed ones."""
        found: list[int] = []
        for value in self.all(number):
            if isinstance(value, int):
                found.append(value)
                continue
            at = 0
            while at < len(value):
                n, at = _varint(value, at)
                found.append(n)
        return [n - (1 << 64) if n >= 1 << 63 else n for n in found]


# writing ------------------------------------------------------------------------------------------
def varint(n: int) -> bytes:
    """Return a number of variable length; negative ones as 64 bits."""
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number_field(field: int, n: int) -> bytes:
    """Return a field with a number."""
    return varint(field << 3) + varint(n)


def bytes_field(field: int, data: bytes | Data) -> bytes:
    """Return a field with bytes, or a message."""
    return b"".join((varint(field << 3 | 2), varint(len(data)), data))


def text_field(field: int, text: str) -> bytes:
    """Return a field with text."""
    return bytes_field(field, text.encode())


#: The value of a node's attribute.
Attribute: TypeAlias = "str | float | int | NDArray | Sequence[int]"

#: ONNX dtype numbers.
DTYPES: Final = {
    "float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
}  # fmt: skip
_OPSET: Final = 13
_IR: Final = 8


class Graph:
    """A graph under construction; ``save`` returns the bytes of the file.

    >>> g = Graph("double")
    >>> x = g.input("x", ("n", 2))
    >>> g.output(g.node("Mul", x, g.constant(np.array(2.0, np.float32))), ("n", 2), name="y")
    >>> len(g.save()) > 50
    True
    """

    def __init__(self, name: str, prefix: str = "") -> None:
        self.name = name
        #: Begins the names of values and nodes, where they must differ from those of a model.
        self.prefix = prefix
        self._nodes: list[bytes] = []
        self._weights: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._count = 0
        self.metadata: dict[str, str] = {}

    def fresh(self, hint: str) -> str:
        """Return an unused name."""
        self._count += 1
        return f"{self.prefix}{hint}_{self._count}"

    def input(self, name: str, shape: Sequence[int | str], dtype: str = "float32") -> str:
        """Add an input; names in the shape are variable sizes."""
        self._inputs.append(_value(name, shape, dtype))
        return name

    def output(
        self, value: str, shape: Sequence[int | str], *, name: str, dtype: str = "float32"
    ) -> None:
        """Add an output with a name."""
        self.node("Identity", value, output=name)
        self._outputs.append(_value(name, shape, dtype))

    def constant(self, array: npt.ArrayLike, hint: str = "weight") -> str:
        """Add a weight and return its name."""
        name = self.fresh(hint)
        self._weights.append(_tensor(name, np.asarray(array)))
        return name

    def ints(self, numbers: npt.ArrayLike) -> str:
        """Add a constant of s64 and return its name."""
        return self.constant(np.asarray(numbers, np.int64))

    def node(
        self, op: str, *inputs: str, output: str | None = None, **attributes: Attribute
    ) -> str:
        """Add a node with one output, and return the output's name."""
        made = output or self.fresh(op)
        self._add(op, inputs, [made], attributes)
        return made

    def slice(self, source: str, axis: int, start: int, end: int) -> str:
        """Add the part of a value from ``start`` to ``end`` along an axis."""
        at = (self.ints([n]) for n in (start, end, axis))
        return self.node("Slice", source, *at)

    def clip(self, source: str, low: float, high: float) -> str:
        """Add a value between two numbers."""
        ends = (self.constant(np.float32(n)) for n in (low, high))
        return self.node("Clip", source, *ends)

    def split_node(self, op: str, count: int, *inputs: str, **attributes: Attribute) -> list[str]:
        """Add a node with several outputs, and return their names."""
        made = [self.fresh(op) for _ in range(count)]
        self._add(op, inputs, made, attributes)
        return made

    def _add(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Mapping[str, Attribute],
    ) -> None:
        data = b"".join(text_field(1, name) for name in inputs)
        data += b"".join(text_field(2, name) for name in outputs)
        data += text_field(3, self.fresh(f"n_{op}")) + text_field(4, op)
        data += b"".join(bytes_field(5, _attribute(k, v)) for k, v in attributes.items())
        self._nodes.append(data)

    def save(self) -> bytes:
        """Return the bytes of the file."""
        graph = b"".join(bytes_field(1, node) for node in self._nodes)
        graph += text_field(2, self.name)
        graph += b"".join(bytes_field(5, weight) for weight in self._weights)
        graph += b"".join(bytes_field(11, value) for value in self._inputs)
        graph += b"".join(bytes_field(12, value) for value in self._outputs)
        opset = text_field(1, "") + number_field(2, _OPSET)
        model = number_field(1, _IR) + text_field(2, "dala") + bytes_field(7, graph)
        model += bytes_field(8, opset)
        for key, value in self.metadata.items():
            model += bytes_field(14, text_field(1, key) + text_field(2, value))
        return model


def _tensor(name: str, array: NDArray) -> bytes:
    data = b"".join(number_field(1, n) for n in array.shape)
    data += number_field(2, DTYPES[array.dtype.name]) + text_field(8, name)
    return data + bytes_field(9, np.ascontiguousarray(array).tobytes())


def _value(name: str, shape: Sequence[int | str], dtype: str) -> bytes:
    dims = b"".join(
        bytes_field(1, number_field(1, n) if isinstance(n, int) else text_field(2, n))
        for n in shape
    )
    kind = number_field(1, DTYPES[dtype]) + bytes_field(2, dims)
    return text_field(1, name) + bytes_field(2, bytes_field(1, kind))


def _attribute(name: str, value: Attribute) -> bytes:
    data = text_field(1, name)
    if isinstance(value, str):
        return data + text_field(4, value) + number_field(20, 3)
    if isinstance(value, float):
        return data + varint(2 << 3 | 5) + struct.pack("<f", value) + number_field(20, 1)
    if isinstance(value, int):
        return data + number_field(3, value) + number_field(20, 2)
    if isinstance(value, np.ndarray):
        return data + bytes_field(5, _tensor("", value)) + number_field(20, 4)
    return data + b"".join(number_field(8, int(n)) for n in value) + number_field(20, 7)
