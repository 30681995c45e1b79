"""Blend modes: two pictures combined as the W3C's "Compositing and Blending Level 1" defines it."""

from __future__ import annotations

from functools import cache
from typing import Final

from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Steps, Values, recipe, same_size
from dala.media.images import second
from dala.media.kernels import kernel_from_text

#: B(b, s) of the standard for one channel, with b of the backdrop (``base``) and s of the source.
_SEPARABLE: Final = {
    "normal": "s",
    "multiply": "b * s",
    "screen": "b + s - b * s",
    "overlay": "2.0 * b * s if b <= 0.5 else b * 2.0 - 1.0 + s - (b * 2.0 - 1.0) * s",
    "darken": "min(b, s)",
    "lighten": "max(b, s)",
    "color-dodge": "0.0 if b <= 0.0 else (1.0 if s >= 1.0 else min(1.0, b / (1.0 - s)))",
    "color-burn": "1.0 if b >= 1.0 else (0.0 if s <= 0.0 else 1.0 - min(1.0, (1.0 - b) / s))",
    "hard-light": "2.0 * b * s if s <= 0.5 else b + s * 2.0 - 1.0 - b * (s * 2.0 - 1.0)",
    "soft-light": (
        "b - (1.0 - 2.0 * s) * b * (1.0 - b) if s <= 0.5 else b + (2.0 * s - 1.0) * "
        "((((16.0 * b - 12.0) * b + 4.0) * b if b <= 0.25 else sqrt(max(b, 0.0))) - b)"
    ),
    "difference": "abs(b - s)",
    "exclusion": "b + s - 2.0 * b * s",
}

#: B(b, s) for whole colors.
_WHOLE: Final = {
    "hue": "set_lum(set_sat(s, sat(b)), lum(b))",
    "saturation": "set_lum(set_sat(b, sat(s)), lum(b))",
    "color": "set_lum(s, lum(b))",
    "luminosity": "set_lum(b, lum(s))",
}

#: The blend modes, in the order of the standard.
MODES: Final = (*_SEPARABLE, *_WHOLE)

_ONE_CHANNEL: Final = """
    def one(b, s):
        return {formula}

    r, g, b = one(base.r, over.r), one(base.g, over.g), one(base.b, over.b)
"""

# The standard's ClipColor, SetLum and SetSat. A color whose channels are all equal has no
# saturation to scale: it becomes black.
_WHOLE_COLORS: Final = """
    def lum(c: vec3):
        return dot(c, (0.3, 0.59, 0.11))

    def sat(c: vec3):
        return max(c.r, c.g, c.b) - min(c.r, c.g, c.b)

    def set_lum(c: vec3, l):
        moved = c + (l - lum(c))
        level = lum(moved)
        least = min(moved.r, moved.g, moved.b)
        most = max(moved.r, moved.g, moved.b)
        low = level / (level - least) if least < 0.0 and level > least else 1.0
        lifted = (moved - level) * low + level
        high = (1.0 - level) / (most - level) if most > 1.0 and most > level else 1.0
        return (lifted - level) * high + level

    def set_sat(c: vec3, s):
        least = min(c.r, c.g, c.b)
        width = max(c.r, c.g, c.b) - least
        return (c - least) * (s / width if width > 0.0 else 0.0)

    def whole(b: vec3, s: vec3):
        return {formula}

    made = whole(vec3(base.r, base.g, base.b), vec3(over.r, over.g, over.b))
    r, g, b = made.r, made.g, made.b
"""

# With the blended color c = mix(over, B, base.a), source-over gives alpha a = s + base.a (1 - s)
# and the straight color mix(base, c, s / a).
_COMPOSITE: Final = """
    s = over.a * opacity
    a = s + base.a * (1.0 - s)
    share = s / a if a > 0.0 else 0.0
    c = mix(over.rgb, (r, g, b), base.a)
    return rgba(mix(base.rgb, c, share), a)
"""


@cache
def _kernel(mode: str) -> Kernel:
    """Return the kernel of a blend mode."""
    body = _ONE_CHANNEL if mode in _SEPARABLE else _WHOLE_COLORS
    body = body.format(formula={**_SEPARABLE, **_WHOLE}[mode])
    name = f"blend_{mode.replace('-', '_')}"
    head = f"def {name}(base: Pixel, over: Pixel, *, opacity: float):"
    return kernel_from_text(f"{head}\n{body.strip(chr(10))}\n{_COMPOSITE.strip(chr(10))}")


@recipe(
    "Two pictures",
    inputs={"over": "picture"},
    options=(
        Parameter("mode", "choice", "normal", choices=MODES),
        Parameter("opacity", "float", 1.0, 0.0, 1.0),
    ),
    needs=("over",),
    keeps_alpha=False,
    example='mode="multiply", opacity=0.8',
)
def blend(steps: Steps, values: Values) -> None:
    """Blend a second picture of the same size over the first, with one of sixteen modes.

    The modes and the compositing are those of the W3C's "Compositing and Blending Level 1", on sRGB
    values: with ``s = over.a * opacity``, the color ``c = mix(over, B(base, over), base.a)`` is
    drawn over the first picture by source-over. A picture without alpha is opaque. Where the result
    is fully transparent, it has the first picture's color.

    Luma of u8 colors is an integer of 16 fraction bits, the rest is f32 on values of 0 to 255, in
    the order of the formula, none fused, and rounded once, halves up.

    Args:
        over: the second picture.
        mode: the blend mode, B(base, over).
        opacity: multiplies the alpha of ``over``; 0 changes nothing.

    >>> import numpy as np
    >>> from dala.media import gpu
    >>> gray, light = np.full((1, 1), 100, np.uint8), np.full((1, 1), 200, np.uint8)
    >>> gpu.blend(gray, light, mode="multiply", device="cpu").tolist()
    [[78]]
    """
    shape = steps.shape
    over = same_size("over", second(values["over"], shape, "blend"), shape, "blend")
    steps.add(_kernel(values["mode"]), PICTURE, over, opacity=values["opacity"])
