"""A small TrueType font, written by hand: two glyphs, names, and tables that our scan reads."""

from __future__ import annotations

import struct
from collections.abc import Iterator


def small_font(*, variable: bool) -> bytes:
    """Return a font with a box for "A" and for every character that it lacks.

    A variable one claims an axis of weights, and has no outlines for it.
    """
    box = struct.pack(">5h", 1, 50, 0, 450, 700)  # one contour, and its bounds
    box += struct.pack(">2H", 3, 0)  # the last point; no instructions
    box += bytes([1, 1, 1, 1])  # four points on the curve, with offsets of two bytes
    box += struct.pack(">4h", 50, 0, 400, 0) + struct.pack(">4h", 0, 700, 0, -700)
    box += bytes(-len(box) % 4)
    names = [(1, "Fuzz"), (4, "Fuzz Regular"), (6, "Fuzz-Regular"), (16, "Fuzz")]
    texts = [text.encode("utf-16-be") for _, text in names]
    records, at = b"", 0
    for (number, _), text in zip(names, texts, strict=True):
        records += struct.pack(">6H", 3, 1, 0x409, number, len(text), at)
        at += len(text)
    segments = struct.pack(">7H", 4, 32, 0, 4, 4, 1, 0)  # format 4: "A", then the end
    segments += struct.pack(">5H2h2H", 65, 0xFFFF, 0, 65, 0xFFFF, -64, 1, 0, 0)
    wide = struct.pack(">2H3I", 12, 0, 28, 0, 1) + struct.pack(">3I", 65, 65, 1)
    cmap = struct.pack(">2H", 0, 2)
    cmap += struct.pack(">2HI", 3, 1, 20) + struct.pack(">2HI", 3, 10, 20 + len(segments))
    cmap += segments + wide
    tables = {
        b"OS/2": struct.pack(">Hh4H", 4, 500, 400, 5, 0, 0) + bytes(84),
        b"cmap": cmap,
        b"fvar": struct.pack(">8H", 1, 0, 16, 2, 1, 20, 0, 8)
        + struct.pack(">4s3i2H", b"wght", 100 << 16, 400 << 16, 900 << 16, 0, 256),
        b"glyf": box * 2,
        b"head": struct.pack(">2I2I2H2q4h2H3h", 0x10000, 0x10000, 0, 0x5F0F3CF5, 3, 1000, 0, 0,
                             50, 0, 450, 700, 0, 8, 2, 1, 0),
        b"hhea": struct.pack(">I3h", 0x10000, 800, -200, 0) + bytes(22) + struct.pack(">H", 2),
        b"hmtx": struct.pack(">4H", 500, 50, 500, 50),
        b"loca": struct.pack(">3I", 0, len(box), 2 * len(box)),
        b"maxp": struct.pack(">I14H", 0x10000, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        b"name": struct.pack(">3H", 0, len(names), 6 + len(records)) + records + b"".join(texts),
        b"post": struct.pack(">2I2h5I", 0x30000, 0, -100, 50, 0, 0, 0, 0, 0),
    }  # fmt: skip
    if not variable:
        del tables[b"fvar"]
    return _font(tables)


def _font(tables: dict[bytes, bytes]) -> bytes:
    place = 12 + 16 * len(tables)
    head = struct.pack(">I4H", 0x10000, len(tables), 128, 3, 16 * len(tables) - 128)
    body = b""
    for tag, data in tables.items():
        head += tag + struct.pack(">3I", 0, place + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    return head + body


def composed(levels: int, parts: int) -> bytes:
    """Return a font whose letter "A" is composed of glyphs that are composed of others, and so on.

    Each of them has so many parts, all the same one; the last glyph is empty.
    """
    count, font = levels + 2, small_font(variable=False)
    tables = dict(_tables(font))
    glyphs = [tables[b"glyf"][: len(tables[b"glyf"]) // 2]]
    for level in range(levels):
        made = struct.pack(">5h", -1, 0, 0, 9, 9)
        for part in range(parts):
            more = 0x20 * (part < parts - 1)
            made += struct.pack(">2H2b", 2 | more, level + 2, 0, 0)
        glyphs.append(made + bytes(-len(made) % 4))
    ends = [0]
    for glyph in (*glyphs, b""):
        ends.append(ends[-1] + len(glyph))
    tables[b"glyf"], tables[b"loca"] = b"".join(glyphs), struct.pack(f">{len(ends)}I", *ends)
    tables[b"hmtx"] = struct.pack(">2H", 500, 50) * count
    tables[b"hhea"] = tables[b"hhea"][:-2] + struct.pack(">H", count)
    tables[b"maxp"] = struct.pack(
        ">I14H", 0x10000, count, 4, 1, 4, 1, 1, 0, 0, 0, 0, 0, 0, parts, 0xFFFF
    )
    return _font(tables)


def layered(layers: int) -> bytes:
    """Return a font whose letter "A" is so many layers of a box, in one color."""
    tables = dict(_tables(small_font(variable=False)))
    tables[b"COLR"] = struct.pack(">2H2IH", 0, 1, 14, 20, layers)
    tables[b"COLR"] += struct.pack(">3H", 1, 0, layers) + struct.pack(">2H", 1, 0) * layers
    tables[b"CPAL"] = struct.pack(">4HIH", 0, 1, 1, 1, 14, 0) + b"\x10\x20\x30\x80"
    return _font(tables)


def _tables(font: bytes) -> Iterator[tuple[bytes, bytes]]:
    for n in range(struct.unpack_from(">H", font, 4)[0]):
        tag, _, start, size = struct.unpack_from(">4s3I", font, 12 + 16 * n)
        yield tag, font[start : start + size]


def collection(font: bytes) -> bytes:
    """Return a collection of one font, whose tables lie further back."""
    start = 16
    count = struct.unpack_from(">H", font, 4)[0]
    moved = bytearray(font)
    for n in range(count):
        at = 12 + 16 * n + 8
        struct.pack_into(">I", moved, at, struct.unpack_from(">I", font, at)[0] + start)
    return b"ttcf" + struct.pack(">2I", 0x10000, 1) + struct.pack(">I", start) + bytes(moved)
