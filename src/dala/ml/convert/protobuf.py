"""The format of protocol buffers, as far as ONNX files need it: fields of numbers and bytes.

It is ours because the packages ``onnx`` and ``protobuf`` copy all weights to read a file, and are
many times as large as these lines.

>>> data = number_field(1, 8) + text_field(2, "dala")
>>> found = ProtoMessage(memoryview(data))
>>> found.number(1), found.text(2)
(8, 'dala')
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from dala.budget import check_deadline

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
