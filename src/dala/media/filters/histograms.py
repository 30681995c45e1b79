"""Filters that depend on the whole picture: thresholds, equalization, contrast, white balance.

Statistics are computed on the device and stay there: a histogram or a sum is one step, small
kernels turn it into a table or a few numbers, and the last step reads them for every pixel.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Final

from dala.errors import ParameterError
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernels.scan import tile_size
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Steps, Values, recipe
from dala.media.kernels import kernel_from_text

#: The largest adaptive threshold's block: the blur's largest radius on both sides.
_MAX_BLOCK: Final = 401

#: The most that counts of pixels may sum to, each times its level, in 32 bits.
_MAX_COUNT: Final = (1 << 32) // 256

#: The level (u8) or value (f32) of a pixel's luma. Levels of colors are as ``tile_histogram``
#: counts them. Those of a gray picture are exact within 1/100.
_LUMA: Final = {
    ("u8", 1): "px.r * 255.0",
    ("u8", 3): (
        "floor((floor(px.r * 255.0 + 0.5) * 9798.0 + floor(px.g * 255.0 + 0.5) * 19235.0"
        " + floor(px.b * 255.0 + 0.5) * 3735.0 + 16384.0) / 32768.0)"
    ),
    ("f32", 1): "px.r",
    ("f32", 3): "dot(px.rgb, (0.299, 0.587, 0.114))",
}


def _luma(steps: Steps) -> str:
    return _LUMA[steps.dtype, 1 if len(steps.shape) == 2 else 3]


def _add_histogram(steps: Steps, of: str, tiles: tuple[int, int] = (1, 1)) -> int:
    planes = 3 if of == "channels" and len(steps.shape) == 3 else 1
    made = (*tiles, planes, 256)
    return steps.add("tile_histogram", shape=made, dtype="u32", tiles=tiles, of=of)


# thresholds -------------------------------------------------------------------------------------
#: Results by type, of the luma ``y``, the threshold ``t``, and whether y is ``above`` t.
_TYPES: Final = {
    "binary": "white if above else 0.0",
    "binary_inv": "0.0 if above else white",
    "trunc": "min(y, t)",
    "tozero": "y if above else 0.0",
    "tozero_inv": "0.0 if above else y",
}

# The counts are shifted so that count * level, summed, fits 32 bits. Integers are exact, so that
# levels without pixels have equal variances and the first of them is chosen on every engine. The
# first of almost equal ones is, too: GPUs round quotients differently.
_OTSU = kernel_from_text("""
def otsu(h: Array, *, shift: int, unit: float):
    total, weighted = u32(0), u32(0)
    for i in range(256):
        n = u32(h[0, 0, 0, i]) >> shift
        total += n
        weighted += n * u32(i)
    below, first = u32(0), u32(0)
    best, level = 0.0, 0
    for i in range(256):
        n = u32(h[0, 0, 0, i]) >> shift
        below += n
        first += n * u32(i)
        above = total - below
        if below > 0 and above > 0:
            q1 = float(below) / float(total)
            apart = float(first) / float(below) - float(weighted - first) / float(above)
            variance = q1 * (1.0 - q1) * apart * apart
            if variance > best * 1.00001:
                best = variance
                level = i
    return float(level) * unit / 255.0
""")


@cache
def _threshold_kernel(luma: str, kind: str, white: float, local: str) -> Kernel:
    """Return the kernel of a threshold: a parameter, an array of one number, or a mean."""
    inputs, t = {
        "": ("px: Pixel, *, value: float", "value"),
        "array": ("px: Pixel, level: Array", "level[0]"),
        "mean": ("px: Pixel, mean: Pixel, *, offset: float", f"mean.r * {white} - offset"),
    }[local]
    # Levels and thresholds are integers in u8, so that a margin makes the comparison exact.
    margin = 0.5 if white > 1.0 else 0.0
    return kernel_from_text(f"""
def threshold({inputs}):
    white = {white}
    y = {luma}
    t = {t}
    above = y > t + {margin}
    v = ({_TYPES[kind]}) / white
    return rgba(v, v, v, px.a)
""")


@cache
def _luma_kernel(luma: str, white: float) -> Kernel:
    return kernel_from_text(f"def luma(px: Pixel): return ({luma}) / {white}")


@recipe(
    "Color",
    options=(
        Parameter("value", "float", 0.5, -1e6, 1e6),
        Parameter(
            "method", "choice", "fixed", choices=("fixed", "otsu", "adaptive", "mean", "gaussian")
        ),
        Parameter("type", "choice", "binary", choices=tuple(_TYPES)),
        Parameter("block_size", "int", 11, 3, _MAX_BLOCK),
        Parameter("offset", "float", 0.02, -1.0, 1.0),
    ),
    example='method="otsu"',
)
def threshold(steps: Steps, values: Values) -> None:
    """Make a picture black and white by a threshold of luma: fixed, Otsu's or adaptive.

    The result is gray in all three channels; with BT.601 luma y, which for u8 is rounded to a
    level, and threshold t: "binary" is 1 where y > t, else 0; "binary_inv" the opposite; "trunc"
    is ``min(y, t)``; "tozero" is y where y > t, else 0; "tozero_inv" the opposite. t is ``value``;
    the level that separates dark and bright pixels best ("otsu"); or the mean of a square around
    the pixel, plain ("mean") or weighted by a Gaussian with
    ``sigma = max(0.15 * block_size + 0.35, 0.85)`` ("gaussian"), minus ``offset``. Otsu's method
    counts 256 levels in f32 pictures too. "adaptive" is the same as "mean". Reads beyond the border
    are clamped.

    In u8 pictures the mean of a square is rounded to a level too, before it is compared.

    Args:
        value: the threshold of "fixed", where 1.0 is white.
        method: how the threshold is chosen.
        type: what becomes of values above and below it, as in OpenCV.
        block_size (pixels): side of the square of "mean" and "gaussian"; odd.
        offset: subtracted from the mean; above 0 keeps flat areas white.

    >>> import numpy as np
    >>> from dala.media import gpu
    >>> picture = np.array([[10, 20, 180, 200]], np.uint8)
    >>> gpu.threshold(picture, method="otsu", device="cpu").tolist()
    [[0, 0, 255, 255]]
    """
    shape, u8, luma = steps.shape, steps.dtype == "u8", _luma(steps)
    method, white = values["method"], 255.0 if u8 else 1.0
    kernel = partial(_threshold_kernel, luma, values["type"], white)
    if method == "fixed":
        # Of bytes, v > t is v > floor(t). A product such as 0.2 * 255 may be just below an integer.
        value = values["value"] * white
        steps.add(kernel(""), value=float(math.floor(value + 1e-6)) if u8 else value)
        return
    if method == "otsu":
        shift = max(0, (shape[0] * shape[1] // _MAX_COUNT).bit_length())
        counts = _add_histogram(steps, "luma")
        level = steps.add(_OTSU, counts, shape=(1,), dtype="f32", shift=shift, unit=white)
        steps.add(kernel("array"), PICTURE, level)
        return
    size = values["block_size"]
    if size % 2 == 0:
        raise ParameterError.invalid("threshold", "block_size", "odd", size)
    radius = size // 2
    source = PICTURE
    if len(shape) == 3:
        source = steps.add(_luma_kernel(luma, white), shape=shape[:2])
    if method in ("adaptive", "mean"):
        mean = steps.add("box_blur", source, shape=shape[:2], radius=radius)
    else:
        # At least the sigma of OpenCV's weights for a block of 3, (1, 2, 1) / 4.
        sigma = max(0.3 * (radius - 1) + 0.8, 0.849322)
        mean = steps.add("blur", source, shape=shape[:2], radius=radius, sigma=sigma)
    offset = values["offset"] * white
    offset = float(math.ceil(offset - 1e-6)) if u8 else offset
    steps.add(kernel("mean"), PICTURE, mean, offset=offset)


# equalization -----------------------------------------------------------------------------------
_EQUALIZED = kernel_from_text("""
def equalized(h: Array, *, total: int):
    i, j, c, level = position()
    first, seen = 0, 0
    for k in range(256):
        n = int(h[0, 0, c, k])
        first = n if first == 0 else first
        seen += n if k <= level else 0
    made = round(float(max(seen - first, 0)) * (255.0 / float(total - first)))
    return min(made, 255.0) if total > first else float(level)
""")


@recipe(
    "Color",
    options=(Parameter("channels", "choice", "luma", choices=("luma", "each")),),
)
def equalize(steps: Steps, values: Values) -> None:
    """Equalize the histogram: spread the levels so that each range has equally many pixels.

    Level v becomes ``(n(v) - m) / (total - m)``, where n(v) pixels are not above v and m are at the
    darkest level, rounded to 256 levels as in OpenCV's ``equalizeHist``. In f32 pictures, values
    between two levels are interpolated. A picture of one level does not change.

    In u8 pictures luma is rounded to a level, whose change, a whole number, is added to each color.

    Args:
        channels: "luma" keeps the chroma; "each" equalizes red, green and blue separately.
    """
    of = "luma" if values["channels"] == "luma" else "channels"
    counts = _add_histogram(steps, of)
    total = steps.shape[0] * steps.shape[1]
    levels = steps.add(_EQUALIZED, counts, shape=steps[0].shape, dtype="f32", total=total)
    steps.add("map_levels", PICTURE, levels, of=of)


# The counts above the limit, and the counts with those spread over all levels: an equal share, and
# one more for levels at equal distances, as OpenCV does it.
_EXCESS = kernel_from_text("""
def excess(h, *, limit: int):
    return h - u32(limit) if h > u32(limit) else u32(0)
""")

# Quotients of small integers are at least 1/256 below the next integer, so 0.001 makes them exact.
_CLIPPED = kernel_from_text("""
def clipped(h, excess: Array, *, limit: int):
    i, j, c, level = position()
    more = int(excess[i, j, c])
    rest = float(more & 255)
    step = max(floor(256.0 / max(rest, 1.0) + 0.001), 1.0)
    place = floor(float(level) / step + 0.001)
    one = 1 if place * step == float(level) and place < rest else 0
    return min(h, u32(limit)) + u32((more >> 8) + one)
""")

_SCALED = kernel_from_text("""
def scaled(n: u32, *, scale: float):
    return min(round(float(n) * scale), 255.0)
""")


@recipe(
    "Color",
    options=(
        Parameter("clip_limit", "float", 2.0, 0.0, 1e6),
        Parameter("tiles", "ints", (8, 8), 1, 64, size=2, spread=True),
    ),
    example="clip_limit=3.0",
)
def clahe(steps: Steps, values: Values) -> None:
    """Equalize the histogram locally, with a limit on contrast (CLAHE).

    The picture is divided into tiles. Each tile's histogram of luma is clipped, what is cut off is
    spread over all levels, and it is equalized as in OpenCV's ``createCLAHE``. A pixel gets the
    bilinear interpolation of the results of the four nearest tiles. Chroma is kept. In f32
    pictures, values between two of 256 levels are interpolated. Of bytes, shares of tiles are
    rounded to 15 bits, and means of two tables to 7 bits of fraction: down, then across.

    Args:
        clip_limit: the largest count of a level, relative to the mean of all levels; 0 for no
            limit. 1 changes little.
        tiles: (rows, columns) of the grid, one number for both.
    """
    rows, columns = values["tiles"]
    tall, wide = tile_size((steps.shape[0], steps.shape[1]), (rows, columns))
    pixels = max(tall * wide, 1)
    last = counts = _add_histogram(steps, "luma", (rows, columns))
    shape = steps[counts].shape
    add = partial(steps.add, dtype="u32")
    if values["clip_limit"] > 0:
        limit = min(max(math.floor(pixels * values["clip_limit"] / 256), 1), pixels)
        excess = add(_EXCESS, counts, shape=shape, limit=limit)
        excess = add("reduce_sum", excess, shape=shape[:3], axis=(3,))
        last = add(_CLIPPED, counts, excess, shape=shape, limit=limit)
    last = add("cumsum", last, shape=shape)
    last = steps.add(_SCALED, last, shape=shape, dtype="f32", scale=1.0 / (pixels / 255.0))
    steps.add("map_levels", PICTURE, last, of="luma")


# contrast ---------------------------------------------------------------------------------------
# Factor and offset of each channel.
_STRETCH = kernel_from_text("""
def stretch(h: Array, *, low: int, high: int):
    c, n = position()
    first, last = 0, 255
    seen, after = 0, 0
    for i in range(256):
        seen += int(h[0, 0, c, i])
        first += 1 if seen <= low else 0
        after += int(h[0, 0, c, 255 - i])
        last -= 1 if after <= high else 0
    wide = first < last
    factor = 255.0 / float(last - first) if wide else 1.0
    offset = -float(first) / float(last - first) if wide else 0.0
    return factor if n == 0 else offset
""")

_STRETCHED = kernel_from_text("""
def stretched(px: Pixel, m: Array):
    r = px.r * m[0, 0] + m[0, 1]
    g = px.g * m[1, 0] + m[1, 1]
    b = px.b * m[2, 0] + m[2, 1]
    return rgba(clamp(r, 0.0, 1.0), clamp(g, 0.0, 1.0), clamp(b, 0.0, 1.0), px.a)
""")


@recipe(
    "Color",
    options=(
        Parameter("cutoff", "floats", (0.0, 0.0), 0.0, 100.0, size=2, spread=True),
        Parameter("preserve_tone", "bool", False),
    ),
    example="cutoff=1",
)
def auto_contrast(steps: Steps, values: Values) -> None:
    """Stretch the levels of a picture to the full range.

    As in Pillow's ``ImageOps.autocontrast``: the darkest and the brightest pixels of a channel are
    ignored, up to ``cutoff`` percent; the darkest level of the rest becomes black, the brightest
    becomes white, and values beyond are clamped. Results are rounded, where Pillow truncates. A
    channel of one level does not change. 256 levels are counted in f32 pictures too.

    In u8 pictures each of 256 levels is computed in f32 and rounded once, halves up.

    Args:
        cutoff (percent): ignored at both ends, or (dark, bright).
        preserve_tone: True to stretch all channels alike, by the levels of luma.
    """
    dark, bright = values["cutoff"]
    pixels = steps.shape[0] * steps.shape[1]
    counts = _add_histogram(steps, "luma" if values["preserve_tone"] else "channels")
    cut = {"low": math.floor(pixels * dark / 100), "high": math.floor(pixels * bright / 100)}
    lines = steps.add(_STRETCH, counts, shape=(steps[0].shape[2], 2), dtype="f32", **cut)
    steps.add(_STRETCHED, PICTURE, lines)


# white balance ----------------------------------------------------------------------------------
_GAINS = kernel_from_text("""
def gains(sums: Array):
    mean = (float(sums[0]) + float(sums[1]) + float(sums[2])) / 3.0
    own = float(sums[position(0)])
    return mean / own if own > 0.0 else 1.0
""")

_BALANCED = kernel_from_text("""
def balanced(px: Pixel, gains: Array):
    return rgba(px.r * gains[0], px.g * gains[1], px.b * gains[2], px.a)
""")

_GAINED = kernel_from_text(
    "def gained(px: Pixel, *, gains: vec3): return rgba(px.rgb * gains, px.a)"
)


@recipe(
    "Color",
    options=(
        Parameter("color", "floats", None, 0.001, 1.0, size=3),
        Parameter("temperature", "float", None, 2000.0, 25000.0),
    ),
    example="temperature=3200",
)
def white_balance(steps: Steps, values: Values) -> None:
    """Remove a color cast, by the mean color, a color that should be gray, or the light.

    Red, green and blue are multiplied by a gain each, on sRGB values. By default their means become
    equal ("gray world"). With ``color``, that color becomes the gray of its BT.601 luma. With
    ``temperature``, the gray of a surface in that light becomes neutral: blackbody light below
    4000 K, daylight from there on; 6504 K changes nothing. A gray picture does not change.

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.

    Args:
        color: a color by name, or r, g, b of 0.001 to 1, of something that should be gray.
        temperature (kelvins): of the light of the scene; 3200 is a lamp, 5500 daylight.

    >>> import numpy as np
    >>> from dala.media import gpu
    >>> warm = np.array([[[200, 150, 100]]], np.uint8)
    >>> gpu.white_balance(warm, device="cpu").tolist()
    [[[150, 150, 150]]]
    """
    color, temperature = values["color"], values["temperature"]
    if color is not None and temperature is not None:
        raise ParameterError(
            "white_balance: give color or temperature, got both.",
            argument="temperature",
        )
    if temperature is not None:
        color = light_color(temperature)
    if len(steps.shape) == 2:
        color = (1.0, 1.0, 1.0)
    if color is not None:
        luma = 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]
        steps.add(_GAINED, gains=tuple(luma / c for c in color))
        return
    sums = steps.add("reduce_sum", shape=steps.shape[2:], dtype="f32", axis=(0, 1))
    gains = steps.add(_GAINS, sums, shape=(3,), dtype="f32")
    steps.add(_BALANCED, PICTURE, gains)


def light_color(kelvins: float) -> tuple[float, float, float]:
    """Return the sRGB color of a white surface in blackbody light or daylight; green is 1.

    Chromaticities are Kang's approximation of the Planckian locus below 4000 K and the CIE's
    daylight locus from there on.

    >>> [round(c, 2) for c in light_color(6504)], [round(c, 2) for c in light_color(3000)]
    ([1.0, 1.0, 1.0], [1.38, 1.0, 0.6])
    """
    t = 1000.0 / kelvins
    if kelvins < 4000:
        x = ((-0.2661239 * t - 0.2343589) * t + 0.8776956) * t + 0.179910
        if kelvins < 2222:
            y = ((-1.1063814 * x - 1.34811020) * x + 2.18555832) * x - 0.20219683
        else:
            y = ((-0.9549476 * x - 1.37418593) * x + 2.09137015) * x - 0.16748867
    else:
        if kelvins < 7000:
            x = ((-4.6070 * t + 2.9678) * t + 0.09911) * t + 0.244063
        else:
            x = ((-2.0064 * t + 1.9018) * t + 0.24748) * t + 0.237040
        y = (-3.0 * x + 2.870) * x - 0.275
    big_x, big_z = x / y, (1.0 - x - y) / y
    linear = (
        3.2404542 * big_x - 1.5371385 - 0.4985314 * big_z,
        -0.9692660 * big_x + 1.8760108 + 0.0415560 * big_z,
        0.0556434 * big_x - 0.2040259 + 1.0572252 * big_z,
    )
    r, g, b = (_encoded(max(c / linear[1], 1e-4)) for c in linear)
    return r, g, b


def _encoded(c: float) -> float:
    return 12.92 * c if c <= 0.0031308 else 1.055 * math.pow(c, 1 / 2.4) - 0.055
