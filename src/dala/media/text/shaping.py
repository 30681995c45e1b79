"""Shaping: choose a font face for each character and position the glyphs.

With the ``text`` extra HarfBuzz shapes the text: kerning, ligatures, marks, joined and reordered
letters. Without it glyphs are placed one after another, with the kerning of the font's ``kern``
table.
"""

from __future__ import annotations

import bisect
import unicodedata
import warnings
from collections.abc import Iterator
from typing import Final, NamedTuple

from dala.extras import pip_install
from dala.media.text.bidi import MIRRORED
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts.faces import FontFace, FontSet
from dala.media.text.glyphs import BOLD

#: First code points of scripts that must be shaped separately; "" stands for all others.
_SCRIPTS: Final = (
    (0x0, ""), (0x530, "Armn"), (0x590, "Hebr"), (0x600, "Arab"), (0x700, "Syrc"), (0x750, "Arab"),
    (0x780, "Thaa"), (0x7C0, "Nkoo"), (0x800, "Samr"), (0x840, "Mand"), (0x860, "Syrc"),
    (0x870, "Arab"), (0x900, "Deva"), (0x980, "Beng"), (0xA00, "Guru"), (0xA80, "Gujr"),
    (0xB00, "Orya"), (0xB80, "Taml"), (0xC00, "Telu"), (0xC80, "Knda"), (0xD00, "Mlym"),
    (0xD80, "Sinh"), (0xE00, "Thai"), (0xE80, "Laoo"), (0xF00, "Tibt"), (0x1000, "Mymr"),
    (0x10A0, "Geor"), (0x1100, "Hang"), (0x1200, "Ethi"), (0x13A0, ""), (0x1780, "Khmr"),
    (0x1800, "Mong"), (0x18B0, ""), (0x1A20, "Lana"), (0x1AB0, ""), (0x1B00, "Bali"),
    (0x1B80, "Sund"), (0x1C00, ""), (0x3130, "Hang"), (0x3190, ""), (0xA8E0, "Deva"),
    (0xA900, ""), (0xAC00, "Hang"), (0xD800, ""), (0xFB1D, "Hebr"), (0xFB50, "Arab"),
    (0xFE00, ""), (0xFE70, "Arab"), (0xFEFF, ""),
)  # fmt: skip
_STARTS: Final = [start for start, _ in _SCRIPTS]
#: Scripts that are readable only when shaped.
_COMPLEX: Final = frozenset(name for _, name in _SCRIPTS) - {
    "",
    "Armn",
    "Hebr",
    "Geor",
    "Hang",
    "Ethi",
}


class Segment(NamedTuple):
    """A part of a word in one face and one script."""

    start: int
    end: int
    face: FontFace
    script: str


class ShapedRun(NamedTuple):
    """Glyphs from left to right, and their positions relative to the pen, in pixels."""

    face: FontFace
    glyphs: list[int]
    xs: list[float]
    ys: list[int]
    width: float


class ShapingOptions(NamedTuple):
    """Options that shaping depends on."""

    size: float
    spacing: float
    bold: bool


def ignorable(character: str) -> bool:
    """Return True for invisible characters: joiners, direction marks, variation selectors."""
    code = ord(character)
    return (
        unicodedata.category(character) == "Cf"
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0100 <= code <= 0xE01EF
    )


def joins_previous(character: str) -> bool:
    """Return True for marks and similar characters, which stay with the letter before them."""
    if character < "\u0300":
        return character == "\u00ad"
    code = ord(character)
    return (
        unicodedata.category(character)[0] == "M"
        or ignorable(character)
        or 0x1F3FB <= code <= 0x1F3FF
    ) and code != 0x200B


def clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each letter with its marks; emoji sequences and flags stay whole."""
    start, flags = 0, 0
    for index in range(1, len(text) + 1):
        if index < len(text):
            flag = 0x1F1E6 <= ord(text[index]) <= 0x1F1FF
            flags = flags + 1 if 0x1F1E6 <= ord(text[index - 1]) <= 0x1F1FF else 0
            if joins_previous(text[index]) or (flag and flags & 1):
                continue
            if text[index - 1] == "\u200d" and ord(text[index]) >= 0x2190:
                continue
        yield start, index
        start = index


def script(character: str) -> str:
    """Return the script of a letter, as far as shaping distinguishes scripts."""
    return _SCRIPTS[bisect.bisect_right(_STARTS, ord(character)) - 1][1]


def segments(font: FontSet, word: str) -> tuple[Segment, ...]:
    """Split a word by face and script; a letter and its marks stay together if a face has both."""
    if word.isascii() and all(map(font.first.glyph, word)):
        return (Segment(0, len(word), font.first, ""),)
    found: list[Segment] = []
    for start, end in clusters(word):
        letter = word[start:end]
        visible = "".join(one for one in letter if not ignorable(one))
        if visible:
            emoji = "\ufe0f" in letter or 0x1F000 <= ord(letter[0]) <= 0x1FAFF
            face = font.face(visible, emoji)
        else:
            face = found[-1].face if found else font.first
        kind = script(letter[0])
        last = found[-1] if found else None
        if (
            last is not None
            and last.face is face
            and (last.script in ("", kind) or (kind == "" and not letter[0].isalpha()))
        ):
            found[-1] = Segment(last.start, end, face, last.script or kind)
        else:
            found.append(Segment(start, end, face, kind))
    return tuple(found)


def shape(face: FontFace, text: str, rtl: bool, kind: str, options: ShapingOptions) -> ShapedRun:
    """Return the glyphs of a text of one face, script and direction."""
    if fonts.harfbuzz() is None:
        return _simple(face, text, rtl, options)
    hb = fonts.harfbuzz()
    buffer = hb.Buffer()
    buffer.add_str(text)
    buffer.guess_segment_properties()
    if kind:
        buffer.script = kind
    buffer.direction = "rtl" if rtl else "ltr"
    features = {"liga": False, "clig": False} if options.spacing else {}
    hb.shape(face.hb, buffer, features)
    scale = options.size / face.upem
    bold = BOLD * options.size if options.bold else 0.0
    pen, xs, ys, glyphs, cluster = 0.0, [], [], [], -1
    infos, positions = buffer.glyph_infos, buffer.glyph_positions
    for info, place in zip(infos, positions, strict=True):
        if options.spacing and cluster not in (-1, info.cluster):
            pen += options.spacing
        cluster = info.cluster
        glyphs.append(info.codepoint)
        xs.append(pen + place.x_offset * scale)
        ys.append(-round(place.y_offset * scale))
        if place.x_advance:
            pen += place.x_advance * scale + bold
    return ShapedRun(face, glyphs, xs, ys, pen + options.spacing)


def _simple(face: FontFace, text: str, rtl: bool, options: ShapingOptions) -> ShapedRun:
    """Return one glyph per character from left to right, without shaping."""
    bold = BOLD if options.bold else 0.0
    scale = options.size / face.upem
    pen, previous = 0.0, 0
    xs: list[float] = []
    glyphs: list[int] = []
    visible = [one for one in text if not ignorable(one)]
    if rtl:
        groups = [visible[a:b] for a, b in clusters("".join(visible))]
        visible = [MIRRORED.get(one, one) for group in reversed(groups) for one in group]
    for one in visible:
        glyph = face.glyph(one)
        advance = face.advance(glyph) * scale
        if unicodedata.combining(one) and glyphs:
            wide = pen - xs[-1] - options.spacing
            xs.append(xs[-1] + (wide - advance) / 2 if advance else pen)
            glyphs.append(glyph)
            continue
        pen += face.kerning(previous, glyph) * scale if previous else 0.0
        glyphs.append(glyph)
        xs.append(pen)
        pen += advance + bold * options.size + options.spacing
        previous = glyph
    return ShapedRun(face, glyphs, xs, [0] * len(glyphs), pen)


_warned = False


def warn_unshaped(text: str) -> None:
    """Warn once if a text needs HarfBuzz and it is not installed."""
    global _warned
    if _warned or text.isascii() or fonts.harfbuzz() is not None:
        return
    for one in text:
        if one > "\u02ff" and (script(one) in _COMPLEX or unicodedata.combining(one)):
            _warned = True
            name = unicodedata.name(one, f"U+{ord(one):04X}")
            warnings.warn(
                f"set_text: {name} needs shaping, and HarfBuzz is not installed, so letters are "
                f"not joined. Run: {pip_install('media')}",
                UserWarning,
                stacklevel=3,
            )
            return
