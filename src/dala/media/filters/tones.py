"""Filters of tone and color that need more than a kernel: checks across parameters, or variants."""

from __future__ import annotations

from functools import cache

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Steps, Values, recipe
from dala.media.kernels import kernel_from_text
from dala.typing import NDArray

#: Bounds that only exclude infinity.
_FAR = 1e6

# levels -----------------------------------------------------------------------------------------
_LEVELS = kernel_from_text("""
def levels(px: Pixel, *, black: vec3, scale: vec3, low: vec3, span: vec3):
    return rgba(clamp((px.rgb - black) * scale, 0.0, 1.0) * span + low, px.a)
""")

_LEVELS_GAMMA = kernel_from_text("""
def levels(px: Pixel, *, black: vec3, scale: vec3, power: vec3, low: vec3, span: vec3):
    c = clamp((px.rgb - black) * scale, 0.0, 1.0)
    c = (pow(c.r, power.r), pow(c.g, power.g), pow(c.b, power.b))
    return rgba(c * span + low, px.a)
""")

# One parameter for all channels, so that the CPU engine looks bytes up in one table.
_LEVELS_ALIKE = kernel_from_text("""
def levels(px: Pixel, *, black: float, scale: float, power: float, low: float, span: float):
    return rgba(pow(clamp((px.rgb - black) * scale, 0.0, 1.0), power) * span + low, px.a)
""")


@recipe(
    "Color",
    options=(
        Parameter("in_black", "floats", (0.0,) * 3, -_FAR, _FAR, size=3, spread=True),
        Parameter("in_white", "floats", (1.0,) * 3, -_FAR, _FAR, size=3, spread=True),
        Parameter("gamma", "floats", (1.0,) * 3, 0.01, 100.0, size=3, spread=True),
        Parameter("out_black", "floats", (0.0,) * 3, -_FAR, _FAR, size=3, spread=True),
        Parameter("out_white", "floats", (1.0,) * 3, -_FAR, _FAR, size=3, spread=True),
    ),
    example="in_black=0.1, in_white=0.9, gamma=1.2",
)
def levels(steps: Steps, values: Values) -> None:
    """Map a range of input values to a range of output values, with a gamma between.

    ``clamp((c - in_black) / (in_white - in_black), 0, 1) ** (1 / gamma)`` is scaled to
    ``out_black``..``out_white``. Each parameter is one number, or one each for red, green and blue.

    In u8 pictures each of 256 levels is computed in f32 and rounded once, halves up.

    Args:
        in_black: the value that becomes ``out_black``; below ``in_white``.
        in_white: the value that becomes ``out_white``.
        gamma: above 1 brightens the midtones, below 1 darkens them.
        out_black: the darkest value of the result.
        out_white: the brightest value; below ``out_black`` inverts.

    >>> import numpy as np
    >>> from dala.media import gpu
    >>> ramp = np.array([[0, 64, 128, 255]], np.uint8)
    >>> gpu.levels(ramp, in_black=0.25, in_white=0.75, device="cpu").tolist()
    [[0, 1, 129, 255]]
    """
    black, white = values["in_black"], values["in_white"]
    for b, w in zip(black, white, strict=True):
        if not b < w:
            raise ParameterError.invalid("levels", "in_black", f"below in_white, {w:g}", b)
    low = values["out_black"]
    params: Values = {
        "black": black,
        "scale": tuple(1.0 / (w - b) for b, w in zip(black, white, strict=True)),
        "low": low,
        "span": tuple(h - v for v, h in zip(low, values["out_white"], strict=True)),
    }
    if set(values["gamma"]) == {1.0}:
        steps.add(_LEVELS, **params)
        return
    params["power"] = tuple(1.0 / g for g in values["gamma"])
    if all(len(set(v)) == 1 for v in params.values()):
        steps.add(_LEVELS_ALIKE, **{name: v[0] for name, v in params.items()})
    elif steps.dtype == "u8":  # a table is much faster than powers of every pixel
        steps.add("map_levels", PICTURE, _level_table(**params))
    else:
        steps.add(_LEVELS_GAMMA, **params)


def _level_table(**params: tuple[float, ...]) -> NDArray:
    """Return the results of all bytes, for ``map_levels``."""
    columns = {name: np.array(value)[:, None] for name, value in params.items()}
    made = np.clip((np.arange(256) / 255 - columns["black"]) * columns["scale"], 0, 1)
    made = made ** columns["power"] * columns["span"] + columns["low"]
    table: NDArray = np.floor(np.clip(made, 0, 1) * 255 + 0.5).astype(np.float32)
    return table[None, None]


# color matrices ---------------------------------------------------------------------------------
_MATRIX = kernel_from_text("""
def color_matrix(px: Pixel, *, r: vec3, g: vec3, b: vec3, offset: vec3):
    c = (dot(px.rgb, r) + offset.r, dot(px.rgb, g) + offset.g, dot(px.rgb, b) + offset.b)
    return rgba(c, px.a)
""")

_MATRIX_ALPHA = kernel_from_text("""
def color_matrix(px: Pixel, *, r: vec4, g: vec4, b: vec4, a: vec4, offset: vec4):
    c = (px.r, px.g, px.b, px.a)
    return rgba(
        dot(c, r) + offset.r, dot(c, g) + offset.g, dot(c, b) + offset.b,
        clamp(dot(c, a) + offset.a, 0.0, 1.0),
    )
""")


@recipe(
    "Color",
    options=(Parameter("matrix", "floats", None, -_FAR, _FAR, required=True),),
    keeps_alpha=False,
    example="matrix=[[0, 0, 1], [0, 1, 0], [1, 0, 0]]",
)
def color_matrix(steps: Steps, values: Values) -> None:
    """Multiply every color by a matrix.

    A 3x3 matrix maps (r, g, b). A 3x4 matrix has a constant for each row, where 1.0 is the full
    range. Both copy alpha. A 4x5 matrix maps (r, g, b, a, 1) to (r, g, b, a), as SVG's
    ``feColorMatrix`` does, on straight colors. A gray picture counts as r = g = b, and keeps the
    first row's result.

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.

    Args:
        matrix: the rows, nested or one after the other: 9, 12 or 20 numbers.

    >>> import numpy as np
    >>> from dala.media import gpu
    >>> red = np.array([[[250, 20, 0]]], np.uint8)
    >>> gpu.color_matrix(red, matrix=[[0, 1, 0], [1, 0, 0], [0, 0, 1]], device="cpu").tolist()
    [[[20, 250, 0]]]
    """
    m = values["matrix"]
    if len(m) not in (9, 12, 20):
        raise ParameterError.invalid(
            "color_matrix", "matrix", "a 3x3, 3x4 or 4x5 matrix", f"{len(m)} numbers"
        )
    columns = {9: 3, 12: 4, 20: 5}[len(m)]
    rows = [m[i : i + columns] for i in range(0, len(m), columns)]
    names, size = ("rgba", 4) if columns == 5 else ("rgb", 3)
    params = {name: row[:size] for name, row in zip(names, rows, strict=True)}
    offset = tuple(row[size] if columns > size else 0.0 for row in rows)
    steps.add(_MATRIX_ALPHA if size == 4 else _MATRIX, **params, offset=offset)


# grain ------------------------------------------------------------------------------------------
# Integers wrap alike on all engines, so the noise is the same everywhere. The sum of a hash's four
# bytes is nearly Gaussian, with mean 510 and standard deviation 147.8.
_GRAIN = """
def grain(px: Pixel, *, amount: float, size: float, seed: int):
    def noise(x, y, channel, seed):
        h = u32(x) * u32(668265263) + u32(y) * u32(374761393) + u32(seed) * u32(974634193)
        h = h + u32(channel) * u32(1103515245)
        h = (h ^ (h >> 15)) * u32(739982445)
        h = (h ^ (h >> 12)) * u32(695872825)
        h = h ^ (h >> 15)
        total = (h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)
        return (float(int(total)) - 510.0) * 0.0067658234
{coarse}
    y, x = position()
    {values}
    return rgba(px.rgb + (r, g, b) * amount, px.a)
"""

# Noise of points that are ``size`` pixels apart, interpolated; the weights' squares sum to 1, which
# keeps the standard deviation.
_COARSE = """
    def coarse(x, y, channel, seed, size):
        u, v = float(x) / size, float(y) / size
        i, j = int(u), int(v)
        s, t = u - float(i), v - float(j)
        wide = sqrt(s * s + (1.0 - s) * (1.0 - s)) * sqrt(t * t + (1.0 - t) * (1.0 - t))
        top = mix(noise(i, j, channel, seed), noise(i + 1, j, channel, seed), s)
        low = mix(noise(i, j + 1, channel, seed), noise(i + 1, j + 1, channel, seed), s)
        return mix(top, low, t) / wide
"""


@cache
def _grain_kernel(coarse: bool, colored: bool) -> Kernel:
    noise = "coarse(x, y, {}, seed, size)" if coarse else "noise(x, y, {}, seed)"
    values = f"r = {noise.format(0)}\n    g, b = r, r"
    if colored:
        values = "r, g, b = " + ", ".join(noise.format(c) for c in range(3))
    text = _GRAIN.format(coarse=_COARSE if coarse else "", values=values)
    return kernel_from_text("\n".join(line for line in text.split("\n") if line.strip()))


@recipe(
    "Color",
    options=(
        Parameter("amount", "float", 0.05, 0.0, 1.0),
        Parameter("size", "float", 1.0, 1.0, 64.0),
        Parameter("colored", "bool", False),
        Parameter("seed", "int", 0, 0, (1 << 31) - 1),
    ),
    example="amount=0.1, size=1.5",
)
def grain(steps: Steps, values: Values) -> None:
    """Add film grain: nearly Gaussian noise from a seed.

    ``c + amount * noise``, where the noise has mean 0 and standard deviation 1. It is computed from
    the seed and the pixel's position with integers, so it is the same on every device and on every
    run. For a video, use the frame's number as the seed.

    u8 pictures are computed in f32 on values of 0 to 255, in the order of the formula, none fused,
    and rounded once, halves up.

    Args:
        amount: the standard deviation, where 1.0 is the full range; 0 changes nothing.
        size (pixels): of the grains; from 1 up they are interpolated.
        colored: True for noise of its own in each channel.
        seed: other seeds give other noise.
    """
    kernel = _grain_kernel(values["size"] > 1.0, values.pop("colored"))
    steps.add(kernel, **values)


# lenses -----------------------------------------------------------------------------------------
_FRINGES = kernel_from_text("""
def fringes(px: Pixel, red: Pixel, blue: Pixel):
    return rgba(red.r, px.g, blue.b, px.a)
""")

_RED = kernel_from_text("def red(px: Pixel): return px.r")
_BLUE = kernel_from_text("def blue(px: Pixel): return px.b")


@recipe(
    "Color",
    options=(Parameter("amount", "float", 2.0, -200.0, 200.0),),
    example="amount=6",
)
def chromatic_aberration(steps: Steps, values: Values) -> None:
    """Shift red outward and blue inward, as a simple lens does.

    Red is scaled around the center by ``1 + amount / d`` and blue by ``1 - amount / d``, where d is
    the distance from the center to a corner, with bilinear interpolation. Reads beyond the border
    are clamped. Green and alpha are kept, and a gray picture does not change.

    u8 pictures are sampled in integers as by ``warp_affine``.

    Args:
        amount (pixels): the shift in the corners; below 0 shifts red inward and blue outward.
    """
    height, width = plane = steps.shape[:2]
    if len(steps.shape) == 2 or not height or not width or not values["amount"]:
        steps.add(_FRINGES, PICTURE, PICTURE, PICTURE)
        return
    share = values["amount"] / max((width * width + height * height) ** 0.5 / 2, 1.0)
    warped = []
    for channel, factor in ((_RED, 1.0 + share), (_BLUE, 1.0 - share)):
        near = 1.0 / max(factor, 0.01)
        x, y = (width - 1) / 2 * (1.0 - near), (height - 1) / 2 * (1.0 - near)
        matrix = (near, 0.0, x, 0.0, near, y)
        # One channel by itself is warped in a third of the time.
        alone = steps.add(channel, shape=plane)
        warped.append(steps.add("warp_affine", alone, shape=plane, matrix=matrix, border="clamp"))
    steps.add(_FRINGES, PICTURE, *warped)
