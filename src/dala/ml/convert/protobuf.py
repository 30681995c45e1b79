"""The format of protocol buffers, as far as ONNX files need it: fields of numbers and bytes.

>>> data = number_field(1, 8) + text_field(2, "dala")
>>> (_, version), (_, producer) = fields(memoryview(data))
>>> version, text_of(producer)
(8, 'dala')
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

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


def text_of(value: int | Data) -> str:
    """Return the text in a field."""
    return bytes(message(value)).decode()


def _signed(n: int) -> int:
    return n - (1 << 64) if n >= 1 << 63 else n


def ints_of(value: int | Data) -> list[int]:
    """Return one int, or packed ones."""
    if isinstance(value, int):
        return [_signed(value)]
    found, at = [], 0
    while at < len(value):
        n, at = _varint(value, at)
        found.append(_signed(n))
    return found


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
