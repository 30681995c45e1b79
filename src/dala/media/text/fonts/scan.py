"""Scan the font folders of this machine, reading only the names in each file.

fontconfig, Core Text and DirectWrite are not used. The scan runs once, when a family is first
looked up by name. ``DALA_FONT_PATH`` (folders, separated as in ``PATH``) is searched first.
"""

from __future__ import annotations

import bisect
import os
import pathlib
import struct
import sys
from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from typing import BinaryIO, Final

SUFFIXES: Final = (".ttf", ".otf", ".ttc", ".otc")

_MAGIC: Final = (b"\x00\x01\x00\x00", b"OTTO", b"true", b"typ1")
#: Tables of color glyphs.
_COLOR_TABLES: Final = frozenset((b"CBDT", b"sbix", b"COLR", b"SVG "))


@dataclass(frozen=True)
class FontFile:
    """A face in a font file, or in a Python package (``path`` is then the name of its font)."""

    path: str
    index: int
    family: str
    #: Other names: full name, PostScript name, legacy family.
    names: tuple[str, ...]
    weight: int
    italic: bool
    #: 5 is normal, 3 condensed, 7 expanded.
    stretch: int = 5
    #: Range of the weight axis of a variable font.
    axis: tuple[float, float] | None = None
    color: bool = False
    package: str = field(default="", compare=False)


def folders() -> list[pathlib.Path]:
    """Return the font folders of this system, those of the user first."""
    home = pathlib.Path.home()
    configured = [
        pathlib.Path(one) for one in os.environ.get("DALA_FONT_PATH", "").split(os.pathsep) if one
    ]
    if sys.platform == "darwin":
        usual = [
            home / "Library/Fonts",
            pathlib.Path("/Library/Fonts"),
            pathlib.Path("/System/Library/Fonts"),
        ]
    elif sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", str(home / "AppData/Local"))
        windows = os.environ.get("WINDIR", "C:/Windows")
        usual = [pathlib.Path(local) / "Microsoft/Windows/Fonts", pathlib.Path(windows) / "Fonts"]
    else:
        data = os.environ.get("XDG_DATA_HOME", str(home / ".local/share"))
        shared = os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(":")
        usual = [pathlib.Path(data) / "fonts", home / ".fonts"]
        usual += [pathlib.Path(one) / "fonts" for one in shared if one]
    return configured + usual


def scan(places: list[pathlib.Path] | None = None) -> list[FontFile]:
    """Return every face in folders; unreadable files are skipped."""
    found: list[FontFile] = []
    for place in folders() if places is None else places:
        for root, _, names in sorted(os.walk(place)):
            for name in sorted(names):
                if name.lower().endswith(SUFFIXES):
                    try:
                        found += read_file(os.path.join(root, name))
                    except (OSError, ValueError, struct.error):
                        continue
    return found


@lru_cache(maxsize=1)
def system_fonts() -> tuple[FontFile, ...]:
    """Return the faces on this machine; the scan is cached."""
    return tuple(scan())


def read_file(path: str) -> list[FontFile]:
    """Return the faces in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError, struct.error: it is not a TrueType or OpenType font.
    """
    with open(path, "rb") as file:
        return read_faces(file, path)


def read_faces(file: BinaryIO, path: str) -> list[FontFile]:
    """Return the faces in an open file."""
    return [_read_face(file, start, index, path) for index, start in enumerate(_starts(file))]


def _starts(file: BinaryIO) -> tuple[int, ...]:
    """Return where each face in an open file begins."""
    magic = file.read(4)
    if magic == b"ttcf":
        _, count = struct.unpack(">II", file.read(8))
        if not 0 < count <= 256:
            raise ValueError(f"a collection of {count} fonts")
        return struct.unpack(f">{count}I", file.read(4 * count))
    if magic not in _MAGIC:
        raise ValueError("not a TrueType or OpenType font")
    return (0,)


def _read_face(file: BinaryIO, start: int, index: int, path: str) -> FontFile:
    tables = _tables(file, start)
    if b"name" not in tables:
        raise ValueError("a font without names")
    names = _names(_table(file, tables[b"name"]))
    family = names.get(16) or names.get(1) or pathlib.Path(path).stem
    weight, italic, stretch = 400, False, 5
    if b"OS/2" in tables:
        system = _table(file, tables[b"OS/2"])
        weight, stretch = struct.unpack_from(">HH", system, 4)
        italic = bool(struct.unpack_from(">H", system, 62)[0] & 0x201)
    elif b"head" in tables:
        (style,) = struct.unpack_from(">H", _table(file, tables[b"head"]), 44)
        weight, italic = 700 if style & 1 else 400, bool(style & 2)
    if weight < 10:  # old fonts use 1 to 9
        weight *= 100
    axis = _weight_axis(_table(file, tables[b"fvar"])) if b"fvar" in tables else None
    others = {names[n] for n in (1, 4, 6, 16) if names.get(n)} - {family}
    return FontFile(
        path=path,
        index=index,
        family=family,
        names=tuple(sorted(others)),
        weight=weight,
        italic=italic,
        stretch=stretch or 5,
        axis=axis,
        color=not _COLOR_TABLES.isdisjoint(tables),
    )


def may_have(file: FontFile, characters: str) -> bool:
    """Return False if a file lacks one of the characters, without opening the face."""
    if file.package:
        return True
    starts, ends = coverage(file.path, file.index)
    for character in characters:
        at = bisect.bisect_right(starts, ord(character)) - 1
        if at < 0 or ends[at] < ord(character):
            return False
    return True


@lru_cache(maxsize=4096)
def coverage(path: str, index: int) -> tuple[array[int], array[int]]:
    """Return the characters of a face as sorted ranges: their first and last code points."""
    with open(path, "rb") as file:
        table = _table(file, _tables(file, _starts(file)[index])[b"cmap"], 1 << 24)
    ranges: set[tuple[int, int]] = set()
    (count,) = struct.unpack_from(">H", table, 2)
    for n in range(count):
        platform, _, offset = struct.unpack_from(">HHI", table, 4 + 8 * n)
        (kind,) = struct.unpack_from(">H", table, offset)
        if kind == 12 and platform in (0, 3):
            (groups,) = struct.unpack_from(">I", table, offset + 12)
            for first, last, _ in struct.iter_unpack(">III", table[offset + 16 :][: 12 * groups]):
                ranges.add((first, last))
        elif kind == 4 and platform in (0, 3):
            (double,) = struct.unpack_from(">H", table, offset + 6)
            lasts = struct.unpack_from(f">{double // 2}H", table, offset + 14)
            firsts = struct.unpack_from(f">{double // 2}H", table, offset + 16 + double)
            ranges.update(zip(firsts, lasts, strict=True))
    merged: list[list[int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return array("L", [one[0] for one in merged]), array("L", [one[1] for one in merged])


def _tables(file: BinaryIO, start: int) -> dict[bytes, tuple[int, int]]:
    """Return offset and length of each table by its tag."""
    file.seek(start + 4)
    (count,) = struct.unpack(">H6x", file.read(8))
    entries = struct.iter_unpack(">4s4xII", file.read(16 * count))
    return {tag: (offset, length) for tag, offset, length in entries}


def _table(file: BinaryIO, place: tuple[int, int], most: int = 1 << 20) -> bytes:
    offset, length = place
    file.seek(offset)
    return file.read(min(length, most))


def _names(table: bytes) -> dict[int, str]:
    """Return names by their id, in English if there are several languages."""
    _, count, strings = struct.unpack_from(">HHH", table, 0)
    found: dict[int, tuple[int, str]] = {}
    for n in range(count):
        platform, _, language, name, length, offset = struct.unpack_from(">6H", table, 6 + 12 * n)
        if name not in (1, 4, 6, 16):
            continue
        raw = table[strings + offset : strings + offset + length]
        text = raw.decode("mac_roman" if platform == 1 else "utf-16-be", "replace").strip("\0 ")
        english = (platform == 3 and language == 0x409) or platform == 0
        rank = 3 if english else 2 if platform == 1 and language == 0 else 1
        if text and rank > found.get(name, (0, ""))[0]:
            found[name] = (rank, text)
    return {name: text for name, (_, text) in found.items()}


def _weight_axis(table: bytes) -> tuple[float, float] | None:
    offset, _, count, size = struct.unpack_from(">4H", table, 4)
    for n in range(count):
        tag, low, _, high = struct.unpack_from(">4siii", table, offset + n * size)
        if tag == b"wght":
            return low / 65536, high / 65536
    return None
