"""Facts of the headers of an animated picture: size, delays, number of plays.

Pillow decodes the pictures, but has the delays only as rounded milliseconds and one frame at a
time. Reading the headers of all frames takes no decoding.
"""

from __future__ import annotations

import io
import math
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from dala.budget import check_deadline, checked
from dala.media.frame import MAX_PIXELS
from dala.media.video.streams import SharedStream
from dala.media.video.suffixes import ANIMATED
from dala.typing import NDArray, PathLike


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


#: Delays of at most this are shown as ``_DEFAULT_DELAY``, as all browsers do.
_SHORTEST: Final = Fraction(1, 100)
_DEFAULT_DELAY: Final = Fraction(1, 10)
_PNG: Final = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class AnimationFacts:
    """The facts of an animated picture, from its headers."""

    #: "gif", "apng" or "webp".
    kind: str
    width: int
    height: int
    #: Seconds that each frame is shown.
    delays: tuple[Fraction, ...]
    #: How often it plays; 0 is forever.
    plays: int
    #: Number of pictures in the file before the first frame: an APNG's picture for old viewers.
    skip: int = 0
    #: False if the file ends early.
    whole: bool = True


#: Bytes of a PNG among which acTL stands, before the pixels.
_PNG_HEAD: Final = 1 << 20


def kind_of(source: PathLike | SharedStream) -> str | None:
    """Return "gif", "apng" or "webp" for a file that may be animated; None for any other."""
    try:
        if isinstance(source, SharedStream):
            return _kind(source.head)
        with Path(os.fsdecode(source)).open("rb") as file:
            return _kind(lambda count: (file.seek(0), file.read(count))[1])
    except (OSError, TypeError, ValueError):  # what opens it as a video says why
        return None


def _kind(head: Callable[[int], bytes]) -> str | None:
    start = head(12)
    if start[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    if start[:4] == b"RIFF" and start[8:] == b"WEBP":
        return "webp"
    if start.startswith(_PNG) and b"acTL" in head(_PNG_HEAD):
        return "apng"
    return None


def animation_kind(path: PathLike, codec: str | None = None) -> str | None:
    """Return "gif", "apng" or "webp" for the name of a file to write; None for a video.

    >>> animation_kind("a.gif"), animation_kind("a.png", "apng"), animation_kind("a.mp4")
    ('gif', 'apng', None)
    """
    if not isinstance(path, str | os.PathLike):
        return None
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if codec is not None and not isinstance(codec, str):
        return None  # refused later
    kind = "apng" if suffix == ".png" and codec == "apng" else ANIMATED.get(suffix)
    return kind if codec in (None, kind) else None


def count_frames(source: PathLike) -> int:
    """Return the number of frames of an animated picture; 1 for any other file."""
    kind = kind_of(source)
    if kind is None:
        return 1
    try:
        return max(1, len(facts_of(Path(os.fsdecode(source)).read_bytes(), kind).delays))
    except (OSError, ValueError):
        return 1


def facts_of(data: bytes, kind: str) -> AnimationFacts:
    """Return the facts of the file with these bytes. Of a damaged file: up to the damage.

    Raises:
        ValueError: there is not even a header.
    """
    try:
        return _SCANS[kind](data)
    except (struct.error, IndexError):
        raise ValueError("the header is incomplete") from None


def _shown(delay: Fraction) -> Fraction:
    return delay if delay > _SHORTEST else _DEFAULT_DELAY


def _gif(data: bytes) -> AnimationFacts:
    found = scan(data)
    delays = tuple(_shown(Fraction(picture.delay, 100)) for picture in found.pictures)
    return AnimationFacts("gif", found.width, found.height, delays, found.plays, whole=found.whole)


def _apng(data: bytes) -> AnimationFacts:
    width, height = struct.unpack_from(">II", data, 16)
    delays: list[Fraction] = []
    plays, skip, seen, promised = 1, 0, False, 0
    for kind, start, size in checked(_png_chunks(data), "video.open"):
        if kind == b"acTL" and size >= 8:
            promised, plays = struct.unpack_from(">II", data, start)
        elif kind == b"fcTL" and size >= 26 and start + 26 <= len(data):
            above, below = struct.unpack_from(">HH", data, start + 20)
            delays.append(_shown(Fraction(above, below or 100)))
        elif kind == b"IDAT" and not seen:
            seen, skip = True, 0 if delays else 1
    whole = len(delays) >= promised
    return AnimationFacts("apng", width, height, tuple(delays), plays, skip, whole)


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    at = 8
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        yield kind, at + 8, size
        at += 12 + size


def _webp(data: bytes) -> AnimationFacts:
    width = height = 0
    delays: list[Fraction] = []
    plays = 1
    for kind, start, size in checked(webp_chunks(data), "video.open"):
        if kind == b"VP8X" and size >= 10:
            width, height = _three(data, start + 4) + 1, _three(data, start + 7) + 1
        elif kind == b"ANIM" and size >= 6:
            plays = struct.unpack_from("<H", data, start + 4)[0]
        elif kind == b"ANMF" and start + 16 <= len(data):
            delays.append(_shown(Fraction(_three(data, start + 12), 1000)))
    return AnimationFacts("webp", width, height, tuple(delays), plays)


def webp_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and size of each chunk of a WebP file.

    >>> [(kind, size) for kind, _, size in webp_chunks(b"RIFF....WEBPANIM" + bytes([6, 0, 0, 0]))]
    [(b'ANIM', 6)]
    """
    at = 12
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        yield kind, at + 8, size
        at += 8 + size + size % 2


def common_unit(times: Iterable[Fraction], finest: int = 1_000_000) -> Fraction:
    """Return the unit in which all times are integers; a microsecond where it would be finer.

    >>> common_unit([Fraction(0), Fraction(1, 30), Fraction(1, 12)])
    Fraction(1, 60)
    """
    common = math.lcm(*(time.denominator for time in times))
    return Fraction(1, common if common <= finest else 1_000_000)


def _three(data: bytes, at: int) -> int:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16


_SCANS: Final[dict[str, Callable[[bytes], AnimationFacts]]] = {
    "gif": _gif,
    "apng": _apng,
    "webp": _webp,
}
