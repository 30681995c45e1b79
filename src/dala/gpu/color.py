"""Colors: CSS names, hexadecimal text and tuples, converted to four bytes of straight RGBA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from dala.arguments import items_of
from dala.errors import ColorError, did_you_mean

if TYPE_CHECKING:
    from dala.typing import ColorLike

#: Blend modes by number, those of ``engines.compositing``, which is not imported with colors.
BLENDS: Final = (
    "over", "add", "multiply", "screen", "overlay", "darken", "lighten", "color-dodge",
    "color-burn", "hard-light", "soft-light", "difference", "exclusion", "hue", "saturation",
    "color", "luminosity",
)  # fmt: skip

#: Porter and Duff's operators besides "over" and "add": the parts of the source and of what is
#: below that are kept. A part is 0, 1, the other's alpha (2), or what that leaves (3).
OPERATORS: Final = {
    "clear": (0, 0), "copy": (1, 0), "destination": (0, 1), "destination-over": (3, 1),
    "source-in": (2, 0), "destination-in": (0, 2), "source-out": (3, 0), "destination-out": (0, 3),
    "source-atop": (2, 3), "destination-atop": (3, 2), "xor": (3, 3),
}  # fmt: skip

#: How a layer of a surface is blended.
LAYER_BLENDS: Final = (*BLENDS, *OPERATORS)

#: The former name of the type of a color.
Color: TypeAlias = "ColorLike"

_NAMES: Final = str.split("""
aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc
bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a
burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 cornflowerblue
6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b darkgoldenrod
b8860b darkgray a9a9a9 darkgreen 006400 darkkhaki bdb76b darkmagenta 8b008b darkolivegreen 556b2f
darkorange ff8c00 darkorchid 9932cc darkred 8b0000 darksalmon e9967a darkseagreen 8fbc8f
darkslateblue 483d8b darkslategray 2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493
deepskyblue 00bfff dimgray 696969 dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0
forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520
gray 808080 green 008000 greenyellow adff2f honeydew f0fff0 hotpink ff69b4 indianred cd5c5c indigo
4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00
lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow
fafad2 lightgray d3d3d3 lightgreen 90ee90 lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa
lightskyblue 87cefa lightslategray 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00
limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 mediumaquamarine 66cdaa mediumblue
0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee
mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970
mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6
olive 808000 olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa
palegreen 98fb98 paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru
cd853f pink ffc0cb plum dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000
rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen
2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray
708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8
tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 yellow
ffff00 yellowgreen 9acd32
""")

_COLORS: Final = {
    name: bytes.fromhex(value) + b"\xff"
    for name, value in zip(_NAMES[::2], _NAMES[1::2], strict=True)
} | {"transparent": bytes(4)}

#: The CSS color names and "transparent", with their four bytes. CSS spells gray with an e, too.
NAMED: Final[dict[str, bytes]] = _COLORS | {
    name.replace("gray", "gr" + "ey"): rgba for name, rgba in _COLORS.items() if "gray" in name
}

#: Colors that were converted before. Encoders look colors up here before they convert them.
known: Final[dict[ColorLike, bytes]] = {}
_MAX_KNOWN: Final = 4096

_EXPECTED: Final = (
    'a CSS color name, "#rrggbb", "#rrggbbaa", (r, g, b) or (r, g, b, a) with ints from 0 to 255'
)


def color_to_rgba(color: ColorLike) -> bytes:
    """Return a color as four bytes: red, green, blue, alpha.

    >>> color_to_rgba("red"), color_to_rgba("#0080ff80"), color_to_rgba((1, 2, 3))
    (b'\\xff\\x00\\x00\\xff', b'\\x00\\x80\\xff\\x80', b'\\x01\\x02\\x03\\xff')

    Args:
        color: A CSS color name, ``"#rgb"``, ``"#rgba"``, ``"#rrggbb"``, ``"#rrggbbaa"``, or three
            or four ints from 0 to 255. Colors without alpha are opaque.

    Raises:
        ColorError: The color has none of these forms.
    """
    return rgba_of(color, "color_to_rgba", "color")


def unit_color(text: str, channels: int) -> tuple[float, ...] | None:
    """Return a color's r, g, b and, of four channels, alpha, of 0 to 1; None if it is no color.

    >>> unit_color("red", 4), unit_color("#08f8", 3), unit_color("rouge", 3)
    ((1.0, 0.0, 0.0, 1.0), (0.0, 0.5333333333333333, 1.0), None)
    """
    rgba = _parse(text) if channels in (3, 4) else None
    return None if rgba is None else tuple(part / 255 for part in rgba[:channels])


def color_advice(text: object) -> str:
    """Return the names of colors that a text may stand for, as advice; "" for none."""
    return did_you_mean(text.lower(), NAMED) if isinstance(text, str) else ""


def rgba_of(color: ColorLike, call: str, argument: str) -> bytes:
    """Return a color as four bytes; an error names the call and its argument."""
    try:
        return known[color]
    except (KeyError, TypeError, ValueError):  # a new color, or a list, which has no hash
        pass
    rgba = _parse(color)
    if rgba is None:
        raise ColorError.invalid(call, argument, _EXPECTED, color, color_advice(color))
    if isinstance(color, (str, tuple)) and len(known) < _MAX_KNOWN:
        known[color] = rgba
    return rgba


def _parse(color: ColorLike) -> bytes | None:
    if isinstance(color, str):
        text = color.strip()
        named = NAMED.get(text.lower().replace(" ", ""))
        if named is not None or not text.startswith("#"):
            return named
        digits = text[1:]
        if len(digits) in (3, 4):
            digits = "".join(2 * d for d in digits)
        if len(digits) not in (6, 8):
            return None
        try:
            return bytes.fromhex(digits).ljust(4, b"\xff")
        except ValueError:
            return None
    try:
        given = items_of(color) or []
        channels = [int(n) for n in given if int(n) == n and not isinstance(n, bool)]
        if len(channels) == len(given) and len(channels) in (3, 4):
            return bytes(channels).ljust(4, b"\xff")
    except (TypeError, ValueError, OverflowError):
        pass
    return None
