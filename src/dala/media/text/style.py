"""Text styles: everything about the appearance of text."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from typing import Final, TypeAlias

from dala.errors import ParameterError
from dala.gpu.color import Color, rgba_of
from dala.media.text.fonts.faces import FontName

WEIGHTS: Final = {
    "thin": 100,
    "extralight": 200,
    "light": 300,
    "regular": 400,
    "normal": 400,
    "medium": 500,
    "semibold": 600,
    "bold": 700,
    "extrabold": 800,
    "black": 900,
}
ALIGNMENTS: Final = ("left", "center", "right", "justify", "start", "end")
DIRECTIONS: Final = ("auto", "ltr", "rtl")
OVERFLOWS: Final = ("clip", "ellipsis")
BLENDS: Final = ("srgb", "linear")

#: Smallest and largest font size.
SIZES: Final = (1, 1000)

Shadow: TypeAlias = "tuple[float, float, float, Color]"
Padding: TypeAlias = "float | tuple[float, ...]"


@dataclass(frozen=True)
class TextStyle:
    """The appearance of a text. All lengths are in pixels.

    Args:
        font: a family name, the path of a .ttf or .otf file, or a tuple of them: the first that
            has a letter is used for it. None is the bundled font.
        size: size of the font.
        weight: "regular", "bold", ... or 1 to 1000.
        italic: whether letters are slanted.
        color: color of the letters.
        align: "left", "center", "right", "justify", or "start" and "end", which depend on the
            direction of the paragraph.
        width: width to wrap lines to, including padding; None for no wrapping.
        height: height of the box. Lines that do not fit are cut, or end in "…" with
            ``overflow="ellipsis"``.
        line_height: distance of baselines, as a factor of the size.
        outline_width: width of the outline around the letters.
        outline_color: color of the outline.
        shadow: (dx, dy, blur, color) of the shadow of letters and outline.
        background: color behind the text.
        padding: one number, (horizontal, vertical), or (left, top, right, bottom).
        radius: radius of the background's corners.
        letter_spacing: extra space between letters.
        direction: "ltr", "rtl", or "auto".
        overflow: "clip" or "ellipsis".
        subpixel: whether letters are positioned at quarter pixels.
        blend: the space that the picture will be blended in. For "srgb" the edges are corrected so
            that they look as if blended in linear light; "linear" leaves them as they are.

    Raises:
        ParameterError: the value of a field is invalid.
        ColorError: a color is invalid.

    >>> TextStyle(size=24, weight="bold").weight_number()
    700
    """

    font: FontName = None
    size: float = 32
    weight: str | int = "regular"
    italic: bool = False
    color: Color = "white"
    align: str = "left"
    width: float | None = None
    height: float | None = None
    line_height: float = 1.2
    outline_width: float = 0
    outline_color: Color = "black"
    shadow: Shadow | None = None
    background: Color | None = None
    padding: Padding = 0
    radius: float = 0
    letter_spacing: float = 0
    direction: str = "auto"
    overflow: str = "clip"
    subpixel: bool = True
    blend: str = "srgb"

    def __post_init__(self) -> None:
        for field in fields(self):  # lists are accepted, but cannot be hashed
            value = getattr(self, field.name)
            if isinstance(value, list):
                value = tuple(tuple(v) if isinstance(v, list) else v for v in value)
                object.__setattr__(self, field.name, value)
        _check_font(self.font)
        _number("size", self.size, *SIZES)
        self.weight_number()
        for name in ("italic", "subpixel"):
            if not isinstance(getattr(self, name), bool):
                raise _refuse(name, "True or False", getattr(self, name))
        for name in ("width", "height"):
            if getattr(self, name) is not None:
                _number(name, getattr(self, name), 1, 16384)
        _number("line_height", self.line_height, 0.1, 20)
        _number("outline_width", self.outline_width, 0, 200)
        _number("radius", self.radius, 0, 16384)
        _number("letter_spacing", self.letter_spacing, -1000, 1000)
        _choice("align", self.align, ALIGNMENTS)
        _choice("direction", self.direction, DIRECTIONS)
        _choice("overflow", self.overflow, OVERFLOWS)
        _choice("blend", self.blend, BLENDS)
        _color("color", self.color)
        _color("outline_color", self.outline_color)
        if self.background is not None:
            _color("background", self.background)
        self.padding_box()
        self.shadow_parts()
        left, top, right, bottom = self.padding_box()
        if self.width is not None and left + right >= self.width:
            raise _refuse("padding", f"narrower than the width {self.width}", self.padding)
        if self.height is not None and top + bottom >= self.height:
            raise _refuse("padding", f"lower than the height {self.height}", self.padding)

    def weight_number(self) -> int:
        """Return the weight as a number: 400 is regular, 700 bold."""
        weight = self.weight
        if isinstance(weight, str):
            key = weight.lower().replace("-", "").replace(" ", "")
            if key not in WEIGHTS:
                raise _refuse("weight", f"one of {', '.join(WEIGHTS)}, or 1 to 1000", weight)
            return WEIGHTS[key]
        _number("weight", weight, 1, 1000)
        return int(weight)

    def padding_box(self) -> tuple[float, float, float, float]:
        """Return the padding on the left, top, right and bottom."""
        given = self.padding
        parts = given if isinstance(given, tuple) else (given,)
        if len(parts) not in (1, 2, 4):
            expected = "a number, (horizontal, vertical) or (left, top, right, bottom)"
            raise _refuse("padding", expected, given)
        for part in parts:
            _number("padding", part, 0, 4096)
        if len(parts) == 4:
            return parts[0], parts[1], parts[2], parts[3]
        return parts[0], parts[-1], parts[0], parts[-1]

    def shadow_parts(self) -> tuple[float, float, float, bytes] | None:
        """Return the shadow's offset, blur and color, as four bytes; None for no shadow."""
        shadow: object = self.shadow
        if shadow is None:
            return None
        if not isinstance(shadow, tuple) or len(shadow) != 4:
            raise _refuse("shadow", "(dx, dy, blur, color) or None", shadow)
        dx, dy, blur, color = shadow
        _number("dx of shadow", dx, -1000, 1000)
        _number("dy of shadow", dy, -1000, 1000)
        _number("blur of shadow", blur, 0, 100)
        return dx, dy, blur, _color("color of shadow", color)


def _check_font(font: FontName) -> None:
    names = font if isinstance(font, tuple) else (font,)
    for name in names:
        if name is None and not isinstance(font, tuple):
            continue
        if not isinstance(name, str | os.PathLike) or not os.fspath(name):
            raise _refuse("font", "a family name, a path, a tuple of them or None", font)
    if not names:
        raise _refuse("font", "at least one name in the tuple", font)


def _number(name: str, value: float, low: float, high: float) -> None:
    try:
        number = math.nan if isinstance(value, bool | str | bytes | bytearray) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:  # NaN as well
        raise _refuse(name, f"a number from {low} to {high}", value)


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise _refuse(name, f"one of {', '.join(map(repr, choices))}", value)


def _color(name: str, value: Color) -> bytes:
    return rgba_of(value, "TextStyle", name)


def _refuse(name: str, expected: str, value: object) -> ParameterError:
    return ParameterError.invalid("TextStyle", name, expected, value)
