"""The pictures of a GIF: where they are in the file, and how they add up to whole frames.

Pillow decodes the parts. It does not add them up as browsers do: an opaque first picture makes it
clear to a color where others clear to nothing.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass

import numpy as np

from dala.budget import check_deadline
from dala.media.frame import MAX_PIXELS
from dala.typing import NDArray


@dataclass(frozen=True, slots=True)
class GifPicture:
    """One picture of a GIF: a part of the canvas."""

    left: int
    top: int
    width: int
    height: int
    #: 1/100 s that it is shown.
    delay: int
    #: What happens after: 2 clears its part of the canvas, 3 brings back what was there.
    disposal: int
    #: Index of the transparent color; None if there is none.
    key: int | None
    interlaced: bool
    #: The colors, three bytes each.
    palette: bytes
    #: Position of the compressed indices in the file, and of their end.
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GifFile:
    """The blocks of a GIF file."""

    width: int
    height: int
    pictures: tuple[GifPicture, ...]
    #: How often it plays; 0 is forever.
    plays: int
    #: False if the file ends in the middle of a block.
    whole: bool


def scan(data: bytes) -> GifFile:
    """Return the blocks of a GIF file; of a damaged one, up to the damage.

    Raises:
        struct.error: there is not even a header.
    """
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    common, at = _palette(data, 13, flags)
    pictures: list[GifPicture] = []
    plays, control, whole = 1, b"", True
    while at < len(data):
        check_deadline("video.open")
        mark = data[at]
        if mark == 0x21:  # an extension
            label, body = data[at + 1 : at + 2], data[at + 3 : at + 19]
            if label == b"\xf9" and len(body) > 3:
                control = body
            looping = label == b"\xff" and body[:11] in (b"NETSCAPE2.0", b"ANIMEXTS1.0")
            if looping and len(body) > 15 and body[12] & 7 == 1:
                repeats = body[13] | body[14] << 8
                plays = repeats + 1 if repeats else 0
            at = _after_blocks(data, at + 2)
        elif mark == 0x2C:  # a picture
            if at + 11 > len(data):
                whole = False
                break
            left, top, wide, high, flags = struct.unpack_from("<4HB", data, at + 1)
            palette, start = _palette(data, at + 10, flags)
            at = _after_blocks(data, start + 1)
            how = control[0] if control else 0
            pictures.append(
                GifPicture(
                    left,
                    top,
                    wide,
                    high,
                    delay=control[1] | control[2] << 8 if control else 0,
                    disposal=how >> 2 & 7,
                    key=control[3] if how & 1 else None,
                    interlaced=bool(flags & 0x40),
                    palette=palette or common,
                    start=start,
                    end=at,
                )
            )
            control = b""
        elif mark == 0x3B:
            break
        else:
            at += 1  # not in the standard; others skip it too
    return GifFile(width, height, tuple(pictures), plays, whole and at <= len(data))


def _palette(data: bytes, at: int, flags: int) -> tuple[bytes, int]:
    """Return the palette at a position, if the flags say that there is one, and its end."""
    size = 3 << (flags & 7) + 1 if flags & 0x80 else 0
    return data[at : at + size], at + size


def _after_blocks(data: bytes, at: int) -> int:
    """Return the position after the data blocks that start at a position."""
    while at < len(data) and data[at]:
        at += 1 + data[at]
    return at + 1


class GifCanvas:
    """The canvas of a GIF: pictures are added one after the other."""

    def __init__(self, data: bytes, file: GifFile, width: int, height: int) -> None:
        self._data = data
        self._file = file
        self._pixels = np.zeros((height, width, 4), np.uint8)
        self._next = 0
        self._before: NDArray | None = None  # what a picture with disposal 3 covers

    def frame(self, number: int) -> NDArray:
        """Return a whole frame as RGBA."""
        if number < self._next:
            self._pixels[:] = 0
            self._next, self._before = 0, None
        while self._next <= number:
            check_deadline("video.open")
            self._add(self._next)
            self._next += 1
        return self._pixels

    def _add(self, number: int) -> None:
        pictures = self._file.pictures
        if number:
            self._dispose(pictures[number - 1])
        picture = pictures[number]
        part = self._part(picture)
        if picture.disposal == 3:
            self._before = part.copy()
        made = _decoded(self._data, picture)[: part.shape[0], : part.shape[1]]
        np.copyto(part, made, where=made[..., 3:] > 0)

    def _dispose(self, picture: GifPicture) -> None:
        if picture.disposal == 2:
            self._part(picture)[:] = 0
        elif picture.disposal == 3 and self._before is not None:
            self._part(picture)[:] = self._before

    def _part(self, picture: GifPicture) -> NDArray:
        left, top = picture.left, picture.top
        return self._pixels[top : top + picture.height, left : left + picture.width]


def _decoded(data: bytes, picture: GifPicture) -> NDArray:
    """Return a picture as RGBA, decoded by Pillow as a GIF of its own."""
    from PIL import Image

    if not picture.width or not picture.height:
        return np.zeros((0, 0, 4), np.uint8)
    if picture.width * picture.height > MAX_PIXELS:
        raise ValueError(f"a part has {picture.width} x {picture.height} pixels")
    # A picture without colors has those of the standard: black and white.
    palette = picture.palette or bytes([0, 0, 0, 255, 255, 255])
    power = max((len(palette) // 3 - 1).bit_length(), 1)
    palette = palette.ljust(3 << power, b"\0")
    size = struct.pack("<HH", picture.width, picture.height)
    control = struct.pack("<BHB", picture.key is not None, 0, picture.key or 0)
    file = b"".join([
        b"GIF89a", size, bytes([0x80 | power - 1, 0, 0]), palette,
        b"\x21\xf9\x04", control, b"\0",
        b"\x2c\0\0\0\0", size, bytes([0x40 if picture.interlaced else 0]),
        data[picture.start : picture.end], b";",
    ])  # fmt: skip
    with Image.open(io.BytesIO(file), formats=("GIF",)) as image:
        return np.asarray(image.convert("RGBA"))
