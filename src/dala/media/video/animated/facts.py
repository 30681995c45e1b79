"""Facts of the headers of an animated picture: size, delays, number of plays.

Pillow decodes the pictures, but has the delays only as rounded milliseconds and one frame at a
time. Reading the headers of all frames takes no decoding.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from dala.media.video.animated.gif import scan
from dala.media.video.streams import SharedStream
from dala.typing import PathLike

#: Delays of at most this are shown as ``_DEFAULT_DELAY``, as all browsers do.
_SHORTEST: Final = Fraction(1, 100)
_DEFAULT_DELAY: Final = Fraction(1, 10)
_PNG: Final = b"\x89PNG\r\n\x1a\n"
#: The suffixes of animated pictures that are written, and their kind.
SUFFIXES: Final = {".gif": "gif", ".apng": "apng", ".webp": "webp"}


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
    kind = "apng" if suffix == ".png" and codec == "apng" else SUFFIXES.get(suffix)
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
    for kind, start, size in _png_chunks(data):
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
    for kind, start, size in webp_chunks(data):
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
