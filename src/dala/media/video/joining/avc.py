"""Parts of H.264: units, parameter sets, and the headers that containers keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: Types of units: the slice of a picture at which decoding can begin, and the parameter sets.
_IDR: Final = 5
_SEQUENCE: Final = 7
_PICTURE: Final = 8
_START: Final = b"\0\0\1"
#: Profiles whose headers say nothing of chroma and depth.
_SHORT_HEADERS: Final = (66, 77, 88)
#: Ids of sequence parameter sets end here.
_MOST_IDS: Final = 32


@dataclass
class AvcHeaders:
    """The parameter sets of an H.264 stream.

    >>> made = AvcHeaders.parse(bytes([1, 66, 0, 30, 255, 225, 0, 5, 103, 66, 0, 30, 128, 1, 0, 2,
    ...     104, 128]))
    >>> made.length_size, made.free_id(), len(made.sequences)
    (4, 1, 1)
    """

    #: Bytes before each unit of a packet that say its length; 0 for start codes.
    length_size: int = 0
    sequences: list[bytes] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)
    #: What follows them: chroma and depth.
    rest: bytes = b""

    @classmethod
    def parse(cls, extradata: bytes) -> AvcHeaders:
        """Return the headers of a stream from its extradata, in either form.

        Raises:
            ValueError: it is not such data.
        """
        if not extradata or extradata[0] != 1:
            made = cls()
            made.add(units(extradata, 0))
            return made
        if len(extradata) < 7:
            raise ValueError("the headers are too short")
        at, sets = 5, []
        for mask in (31, 255):
            count, at = extradata[at] & mask, at + 1
            found = []
            for _ in range(count):
                size = int.from_bytes(extradata[at : at + 2], "big")
                found.append(extradata[at + 2 : at + 2 + size])
                at += 2 + size
            sets.append(found)
            if at > len(extradata) or (mask == 31 and at == len(extradata)):
                raise ValueError("the headers end early")
        return cls((extradata[4] & 3) + 1, sets[0], sets[1], extradata[at:])

    def add(self, found: list[bytes]) -> None:
        """Add the parameter sets among units, unless they are known."""
        for unit in found:
            kind = unit[0] & 31 if unit else 0
            into = {_SEQUENCE: self.sequences, _PICTURE: self.pictures}.get(kind)
            if into is not None and unit not in into:
                into.append(unit)

    def free_id(self) -> int | None:
        """Return an id that none of the parameter sets has; None if there is none."""
        used = {_golomb(unit[4:]) for unit in self.sequences}
        used |= {_golomb(unit[1:]) for unit in self.pictures}
        return next((id for id in range(_MOST_IDS) if id not in used), None)

    @property
    def level(self) -> int:
        """The level, times ten."""
        return self.sequences[0][3]

    def extradata(self, chroma: int = 1, depth: int = 8) -> bytes:
        """Return the headers as MP4 and Matroska keep them, for lengths of four bytes."""
        first = self.sequences[0]
        level = max(unit[3] for unit in self.sequences)
        made = bytearray((1, first[1], first[2], level, 0xFF))
        for mark, sets in ((0xE0, self.sequences), (0, self.pictures)):
            made.append(mark | len(sets))
            for unit in sets:
                made += len(unit).to_bytes(2, "big") + unit
        if self.rest:
            made += self.rest
        elif first[1] not in _SHORT_HEADERS:
            made += bytes((0xFC | chroma, 0xF8 | (depth - 8), 0xF8 | (depth - 8), 0))
        return bytes(made)


def units(data: bytes, length_size: int) -> list[bytes]:
    """Return the units of a packet, with lengths before them or start codes (0).

    >>> units(bytes([0, 0, 1, 103, 66, 0, 0, 0, 1, 104, 128]), 0)
    [b'gB', b'h\\x80']
    """
    if length_size == 0:
        return [part.rstrip(b"\0") for part in data.split(_START)[1:]]
    found, at = [], 0
    while at + length_size <= len(data):
        size = int.from_bytes(data[at : at + length_size], "big")
        at += length_size
        found.append(data[at : at + size])
        at += size
    return found


def with_lengths(found: list[bytes]) -> bytes:
    """Return units as a packet with lengths of four bytes."""
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in found)


def is_idr(found: list[bytes]) -> bool:
    """Return whether decoding can begin at a picture, and nothing after it needs what is before."""
    return any(unit and unit[0] & 31 == _IDR for unit in found)


def is_header(unit: bytes) -> bool:
    """Return whether a unit is a parameter set.

    >>> is_header(bytes([103])), is_header(bytes([101]))
    (True, False)
    """
    return bool(unit) and unit[0] & 31 in (_SEQUENCE, _PICTURE)


def _golomb(data: bytes) -> int:
    """Return the first number of a parameter set, in Exp-Golomb code."""
    start = data[:8].ljust(8, b"\0").replace(b"\0\0\3", b"\0\0")
    text = f"{int.from_bytes(start, 'big'):0{8 * len(start)}b}"
    zeros = len(text) - len(text.lstrip("0"))
    return int(text[zeros : 2 * zeros + 1] or "0", 2) - 1
