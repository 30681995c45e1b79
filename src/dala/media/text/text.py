"""Render text: any TrueType or OpenType font, any script, wrapped, outlined, with shadows.

>>> from dala.media.text import TextStyle, set_text
>>> picture = set_text("Hello", TextStyle(size=40, color="yellow"))
>>> picture.pixels.shape[2], picture.lines
(4, ('Hello',))

A picture is straight RGBA. Glyphs are cached in an atlas (:func:`atlas_report`), so text that
changes every frame, such as a clock, is cheap.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from dala import memory
from dala.budget import checked
from dala.errors import DtypeError, ParameterError, counted
from dala.gpu.color import color_to_rgba
from dala.gpu.path import Path
from dala.media.text import painting
from dala.media.text.fonts import faces as fonts
from dala.media.text.glyphs import STEPS, AtlasReport, GlyphStyle, atlas
from dala.media.text.layout import LineBreaker, TextLine
from dala.media.text.outlines import outline_of
from dala.media.text.painting import ColorLayer, PlacedMask
from dala.media.text.shaping import ShapedRun, ShapingOptions, warn_unshaped
from dala.media.text.style import TextStyle
from dala.notices import notify
from dala.typing import NDArray

__all__ = ["TextPicture", "TextStyle", "atlas_report", "clear_atlas", "set_text"]

#: Largest number of characters, of pixels per side, and of pixels in total.
MAX_CHARACTERS: Final = 100_000
MAX_SIDE: Final = 16384
MAX_PIXELS: Final = 1 << 26

_BREAKS: Final = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_DROPPED: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_LONE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class TextPicture:
    """A rendered text.

    >>> set_text("Hi", TextStyle(size=20)).lines
    ('Hi',)
    """

    #: (height, width, 4) u8, straight alpha.
    pixels: NDArray
    #: Row of the first line's baseline.
    baseline: int
    #: The text of each line.
    lines: tuple[str, ...]
    #: Offset of the picture from the text box; outline and shadow may extend beyond the box.
    offset: tuple[int, int]
    #: Width and height of the text box, including padding.
    box: tuple[int, int]

    @property
    def width(self) -> int:
        """Width in pixels."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Height in pixels."""
        return int(self.pixels.shape[0])

    def _repr_png_(self) -> bytes | None:
        from dala.notebook import picture_png

        return picture_png(self.pixels) if self.pixels.size else None


class _Plan:
    """Everything that depends on the style alone."""

    def __init__(self, style: TextStyle) -> None:
        self.style = style
        self.size = float(style.size)
        weight = style.weight_number()
        self.font = fonts.font_set(style.font, weight, style.italic)  # type: ignore[arg-type]
        bold = self._emboldened(self.font.first)
        self.options = ShapingOptions(self.size, float(style.letter_spacing), bold)
        self.breaker = LineBreaker(self.font, self.options, style.direction)
        self.padding = style.padding_box()
        left, top, right, bottom = self.padding
        self.inner_width = None if style.width is None else style.width - left - right
        self.inner_height = None if style.height is None else style.height - top - bottom
        first = self.font.first
        self.pitch = self.size * style.line_height
        self.rise = (self.pitch + self.size * (first.ascent - first.descent)) / 2
        self.color = color_to_rgba(style.color)
        self.outline_color = color_to_rgba(style.outline_color)
        self.background = None if style.background is None else color_to_rgba(style.background)
        self.shadow = style.shadow_parts()

    def glyph_style(self, face: fonts.FontFace, outline: float) -> GlyphStyle:
        """Return the style of a face's glyphs; bold and italic are synthesized if missing."""
        italic = self.style.italic and not face.file.italic
        return GlyphStyle(face, self.size, self._emboldened(face), italic, outline)

    def _emboldened(self, face: fonts.FontFace) -> bool:
        """Return True if the letters of a face are made bold, as it has no bold ones."""
        heaviest = face.file.axis[1] if face.file.axis else face.file.weight
        return self.font.weight >= 600 and heaviest < 550


@lru_cache(maxsize=256)
def _plan(style: TextStyle, generation: int) -> _Plan:
    return _Plan(style)


def set_text(text: str, style: TextStyle | None = None) -> TextPicture:
    """Render a text to a picture.

    Newlines start lines, tabs are four spaces, other control characters are removed, and lone
    surrogates become U+FFFD. Letters that no font has are shown as the font's replacement box.

    Raises:
        DtypeError: the text is not a str, or the style not a TextStyle.
        ParameterError: the font does not exist or is damaged, or the picture would be too large.
        MissingPackage: FreeType is not installed.

    >>> set_text("Hello\\nworld", TextStyle(size=16)).lines
    ('Hello', 'world')
    """
    if not isinstance(text, str):
        raise DtypeError.invalid("set_text", "text", "a str", text, "Use str(value).")
    if style is None:
        style = TextStyle()
    elif not isinstance(style, TextStyle):
        raise DtypeError.invalid("set_text", "style", "a TextStyle", style)
    if len(text) > MAX_CHARACTERS:
        raise ParameterError(
            f"set_text: text must have at most {MAX_CHARACTERS} characters, got {len(text)}. "
            "Split it.",
        )
    text = clean(text)
    warn_unshaped(text)
    return _paint(*_planned(text, style))


def _planned(text: str, style: TextStyle) -> tuple[_Plan, list[TextLine]]:
    """Return the lines of a text that is clean."""
    plan = _plan(style, fonts.generation)
    return plan, _lines(plan, text)


def measure_text(text: str, style: TextStyle) -> tuple[float, float]:
    """Return width and height of a text's box, without drawing it.

    >>> width, height = measure_text("Hello", TextStyle(size=40))
    >>> measure_text("Hello", TextStyle(size=80))[0] / width, height
    (2.0, 48.0)
    """
    plan, lines = _planned(clean(text), style)
    left, top, right, bottom = plan.padding
    widest = max(line.width for line in lines)
    return (
        float(style.width or widest + left + right),
        float(style.height or len(lines) * plan.pitch + top + bottom),
    )


def has_color(text: str, style: TextStyle) -> bool:
    """Return True if a font has some of the letters in color only.

    >>> has_color("Hi", TextStyle())
    False
    """
    _, lines = _planned(clean(text), style)
    faces = {id(run.shaped.face): run.shaped.face for line in lines for run in line.runs}
    return any(face.has_images or face.file.color for face in faces.values())


def text_outline(text: str, style: TextStyle) -> Path:
    """Return the outlines of a text's letters, with (0, 0) at the corner of its box.

    Letters that a font has in color only have no outline.

    >>> text_outline("i", TextStyle(size=100)).verbs.count(0)
    2
    """
    plan, lines = _planned(clean(text), style)
    box = math.ceil(measure_text(text, style)[0] - 1e-6)
    verbs: list[bytes] = []
    points: list[NDArray] = []
    for shaped, pen, base in _pens(plan, lines, box):
        look = plan.glyph_style(shaped.face, 0.0)
        for glyph, x, y in zip(shaped.glyphs, shaped.xs, shaped.ys, strict=True):
            found = outline_of(shaped.face, glyph, look.bold, look.italic)
            verbs.append(found.verbs)
            points.append(found.points * plan.size + (pen + x, base + y))
    return Path(b"".join(verbs), np.concatenate(points) if points else ())


def clean(text: str) -> str:
    r"""Return a text normalized to NFC, with "\n" between lines and no control characters.

    >>> clean("a\tb\r\nc\x00")
    'a    b\nc'
    """
    if not text.isprintable() or not text.isascii():
        text = _LONE.sub("\ufffd", _DROPPED.sub("", _BREAKS.sub("\n", text))).replace("\t", "    ")
        text = unicodedata.normalize("NFC", text)
    return text


def _lines(plan: _Plan, text: str) -> list[TextLine]:
    most = int(MAX_SIDE // plan.pitch)
    if plan.inner_height is not None:
        most = max(int((plan.inner_height + 1e-6) // plan.pitch), 1)
    lines = plan.breaker.lines(text, plan.inner_width if plan.style.wrap else None, most)
    if plan.inner_height is not None:
        if len(lines) > most and plan.style.overflow == "ellipsis":
            lines = [*lines[: most - 1], plan.breaker.shorten(lines[most - 1], plan.inner_width)]
        elif len(lines) > most:
            notify(
                f"set_text: the text {text[:40]!r} is cut: its box, {plan.style.height:g} pixels "
                f"high, has room for {counted(most, 'lines')}. Give it more height or a smaller "
                "size, or set overflow='ellipsis'."
            )
    elif len(lines) * plan.pitch > MAX_SIDE:
        _too_large(max(line.width for line in lines), len(lines) * plan.pitch)
    return lines


def _too_large(width: float, height: float) -> None:
    raise ParameterError(
        f"set_text: the picture must have at most {MAX_SIDE} pixels per side and "
        f"{MAX_PIXELS >> 20} million in total, got {math.ceil(width)} x {math.ceil(height)}. Set "
        "width and height of the style, or a smaller size."
    )


def _pens(plan: _Plan, lines: list[TextLine], box: int) -> Iterator[tuple[ShapedRun, float, int]]:
    """Yield each run of glyphs, the position of its pen in the text box and its baseline."""
    left, top, right, _ = plan.padding
    space = box - left - right
    align = plan.style.align
    for number, line in checked(enumerate(lines), "set_text"):
        base = round(top + number * plan.pitch + plan.rise)
        free = space - line.width
        stretch = 0.0
        side = align
        if align == "justify":
            if line.wrapped and line.gaps and free > 0:
                stretch = free / line.gaps
            side = "start"
        if side in ("start", "end"):
            side = "right" if (side == "start") == line.rtl else "left"
        pen = left + (0.0 if stretch else free * {"left": 0, "center": 0.5, "right": 1}[side])
        for shaped, _, spaces in line.runs:
            if not spaces:
                yield shaped, pen, base
            pen += shaped.width + spaces * stretch


def _place(plan: _Plan, lines: list[TextLine], box: int, outline: float) -> list[PlacedMask]:
    """Return the mask of every glyph with its position in the text box."""
    placed: list[PlacedMask] = []
    for shaped, pen, base in _pens(plan, lines, box):
        if plan.style.subpixel:
            spots = [math.floor((pen + x) * STEPS + 0.5) for x in shaped.xs]
        else:
            spots = [math.floor(pen + x + 0.5) * STEPS for x in shaped.xs]
        wanted = [(g, spot % STEPS) for g, spot in zip(shaped.glyphs, spots, strict=True)]
        masks = atlas.gather(plan.glyph_style(shaped.face, outline), wanted)
        for mask, spot, y in zip(masks, spots, shaped.ys, strict=True):
            if mask[3]:
                placed.append(PlacedMask(mask, spot // STEPS + mask[1], base + y + mask[2]))
    return placed


def _bounds(placed: list[PlacedMask]) -> tuple[int, int, int, int]:
    return (
        min([x for _, x, _ in placed]),
        min([y for _, _, y in placed]),
        max([x + mask[3] for mask, x, _ in placed]),
        max([y + mask[4] for mask, _, y in placed]),
    )


def _paint(plan: _Plan, lines: list[TextLine]) -> TextPicture:
    style = plan.style
    left, top, right, bottom = plan.padding
    widest = max(line.width for line in lines)
    box_width = math.ceil(style.width or max(widest + left + right, 1) - 1e-6)
    box_height = math.ceil(style.height or max(len(lines) * plan.pitch + top + bottom, 1) - 1e-6)
    if max(box_width, box_height) > MAX_SIDE or box_width * box_height > MAX_PIXELS:
        _too_large(box_width, box_height)
    letters = _place(plan, lines, box_width, 0.0)
    outlines = (
        _place(plan, lines, box_width, float(style.outline_width)) if style.outline_width else []
    )
    everything, colored = letters, [one for one in letters if one.mask.pixels.ndim == 3]
    if colored:
        letters, outlines = (
            [one for one in some if one.mask.pixels.ndim == 2] for some in (letters, outlines)
        )
    x0, y0, x1, y1 = 0, 0, box_width, box_height
    overflows = style.height is not None and len(lines) * plan.pitch + top + bottom > box_height
    if everything and not overflows:
        il, it, ir, ib = _bounds([*everything, *outlines])
        x0, y0, x1, y1 = min(x0, il), min(y0, it), max(x1, ir), max(y1, ib)
        if plan.shadow is not None:
            dx, dy, soft, _ = plan.shadow
            reach = math.ceil(1.5 * soft)
            x0, y0 = min(x0, il + math.floor(dx) - reach), min(y0, it + math.floor(dy) - reach)
            x1, y1 = max(x1, ir + math.ceil(dx) + reach), max(y1, ib + math.ceil(dy) + reach)
    width, height = x1 - x0, y1 - y0
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        _too_large(width, height)
    memory.check(4 * width * height, "set_text")
    if x0 or y0:
        letters, outlines, colored = (
            [PlacedMask(mask, x - x0, y - y0) for mask, x, y in some]
            for some in (letters, outlines, colored)
        )
    fill = painting.combine_masks(letters, height, width, add=True)
    stroke = painting.combine_masks(outlines, height, width, add=False) if outlines else None
    box = (-x0, -y0, box_width, box_height)
    if style.blend == "srgb":
        pixels = _paint_with_tables(plan, fill, stroke, box)
    else:
        pixels = painting.merge(_layers(plan, fill, stroke, box), style.blend)
    if colored:
        painting.draw_color_glyphs(pixels, colored, plan.color[3] / 255)
    baseline = round(top + plan.rise) - y0
    texts = tuple(line.text for line in lines)
    return TextPicture(pixels, baseline, texts, (x0, y0), (box_width, box_height))


Box: TypeAlias = tuple[int, int, int, int]


def _paint_with_tables(plan: _Plan, fill: NDArray, stroke: NDArray | None, box: Box) -> NDArray:
    """Return the picture, from tables of the pixel for each coverage."""
    color, background = plan.color, plan.background
    if stroke is not None:
        table = painting.two_layer_table(color, plan.outline_color, "outline", background)
        found = _look_up(table, fill, stroke << 8)
    elif background is not None and plan.shadow is None:
        table = painting.two_layer_table(color, background, "box")
        found = _look_up(table, fill, _box_cover(plan, fill.shape, box))
    else:
        found = painting.letter_table(color, background).take(fill, mode="clip")
    if plan.shadow is not None or (stroke is not None and background is not None):
        cover = _box_cover(plan, fill.shape, box)
        shadow = bytes(4)
        if plan.shadow is not None:
            shadow = plan.shadow[3]
            cover |= _shadow_cover(plan, fill if stroke is None else stroke)
        found = painting.over(
            found,
            painting.two_layer_table(shadow, background or bytes(4), "shadow").take(
                cover, mode="clip"
            ),
        )
    return found.view(np.uint8).reshape(*fill.shape, 4)


def _look_up(table: NDArray, upper: NDArray, lower: NDArray) -> NDArray:
    """Return pixels as u32 from a table by the upper coverage and the lower one times 256."""
    lower |= np.minimum(upper, 255)
    return table.take(lower, mode="clip")


def _layers(plan: _Plan, fill: NDArray, stroke: NDArray | None, box: Box) -> list[ColorLayer]:
    """Return letters, outline, shadow and background, the topmost first."""
    blend = plan.style.blend
    under = plan.outline_color if stroke is not None else plan.background
    found = [
        ColorLayer(
            painting.coverage_to_alpha(plan.color, under, blend).take(fill, mode="clip"), plan.color
        )
    ]
    if stroke is not None:
        table = painting.coverage_to_alpha(plan.outline_color, plan.background, blend)
        found.append(ColorLayer(table.take(stroke, mode="clip"), plan.outline_color))
    if plan.shadow is not None:
        color = plan.shadow[3]
        cover = _shadow_cover(plan, fill if stroke is None else stroke)
        found.append(ColorLayer(cover * np.float32(color[3] / 255**2), color))
    if plan.background is not None:
        cover = _box_cover(plan, fill.shape, box) >> 8
        found.append(ColorLayer(cover * np.float32(plan.background[3] / 255**2), plan.background))
    return found


def _shadow_cover(plan: _Plan, shape: NDArray) -> NDArray:
    """Return the coverage of the shadow of letters or their outline, 0 to 255."""
    assert plan.shadow is not None
    dx, dy, soft, _ = plan.shadow
    # Shifted before it is blurred: the picture has room for the blur only around the shadow.
    return painting.blur(
        painting.shift_mask(np.minimum(shape, 255).astype(np.uint8), dx, dy), soft / 2
    )


def _box_cover(plan: _Plan, shape: tuple[int, ...], box: Box) -> NDArray:
    """Return the coverage of the background times 256, u16."""
    cover = np.zeros(shape, np.uint16)
    if plan.background is not None:
        x, y, width, height = box
        cover[y : y + height, x : x + width] = painting.rounded_box(
            width, height, float(plan.style.radius)
        )
        cover <<= 8
    return cover


def atlas_report() -> AtlasReport:
    """Return hits, misses, evictions and bytes of the glyph atlas.

    >>> atlas_report().bytes <= atlas_report().budget
    True
    """
    return atlas.report()


def clear_atlas() -> None:
    """Drop all cached glyphs.

    >>> clear_atlas()
    >>> atlas_report().masks
    0
    """
    atlas.clear()
