"""Text styles: everything about the appearance of text."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias

from dala.arguments import ArgumentKind, Flag, Quantity, Selection
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


def _checked(kind: ArgumentKind[Any], default: Any) -> Any:
    """Declare a field with its kind; None is accepted too, if it is the default."""
    return field(default=default, metadata={"kind": kind})


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
        wrap: whether lines are wrapped to the width; if not, the width only aligns them.
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
    size: float = _checked(Quantity(*SIZES), 32)
    weight: str | int = "regular"
    italic: bool = _checked(Flag(), False)
    color: Color = "white"
    align: str = _checked(Selection(*ALIGNMENTS), "left")
    width: float | None = _checked(Quantity(1, 16384), None)
    height: float | None = _checked(Quantity(1, 16384), None)
    line_height: float = _checked(Quantity(0.1, 20), 1.2)
    outline_width: float = _checked(Quantity(0, 200), 0)
    outline_color: Color = "black"
    shadow: Shadow | None = None
    background: Color | None = None
    padding: Padding = 0
    radius: float = _checked(Quantity(0, 16384), 0)
    letter_spacing: float = _checked(Quantity(-1000, 1000), 0)
    direction: str = _checked(Selection(*DIRECTIONS), "auto")
    overflow: str = _checked(Selection(*OVERFLOWS), "clip")
    wrap: bool = _checked(Flag(), True)
    subpixel: bool = _checked(Flag(), True)
    blend: str = _checked(Selection(*BLENDS), "srgb")

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, list):  # lists are accepted, but cannot be hashed
                value = tuple(tuple(v) if isinstance(v, list) else v for v in value)
                object.__setattr__(self, item.name, value)
            if "kind" in item.metadata and (value is not None or item.default is not None):
                item.metadata["kind"].check("TextStyle", item.name, value)
        _check_font(self.font)
        self.weight_number()
        for name in ("color", "outline_color", "background"):
            value = getattr(self, name)
            if value is not None or name != "background":
                rgba_of(value, "TextStyle", name)
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
        return int(Quantity(1, 1000).check("TextStyle", "weight", weight))

    def padding_box(self) -> tuple[float, float, float, float]:
        """Return the padding on the left, top, right and bottom."""
        given = self.padding
        parts = given if isinstance(given, tuple) else (given,)
        if len(parts) not in (1, 2, 4):
            expected = "a number, (horizontal, vertical) or (left, top, right, bottom)"
            raise _refuse("padding", expected, given)
        for part in parts:
            Quantity(0, 4096).check("TextStyle", "padding", part)
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
        for name, value in (("dx", dx), ("dy", dy)):
            Quantity(-1000, 1000).check("TextStyle", f"{name} of shadow", value)
        Quantity(0, 100).check("TextStyle", "blur of shadow", blur)
        return dx, dy, blur, rgba_of(color, "TextStyle", "color of shadow")


def _check_font(font: FontName) -> None:
    names = font if isinstance(font, tuple) else () if font is None else (font,)
    if not all(isinstance(name, str | os.PathLike) and os.fspath(name) for name in names):
        raise _refuse("font", "a family name, a path, a tuple of them or None", font)
    if font == ():
        raise _refuse("font", "at least one name in the tuple", font)


def _refuse(name: str, expected: str, value: object) -> ParameterError:
    return ParameterError.invalid("TextStyle", name, expected, value)
