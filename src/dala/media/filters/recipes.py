"""Effects: filters of several steps, or with a kernel of their own that is not registered.

A recipe is declared as kernels are, with :func:`picture_filter`. It takes the picture's shape and
dtype and the checked values of its parameters, and returns steps.
"""

from __future__ import annotations

import math

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.params import Parameter
from dala.media.filters.curves import table
from dala.media.filters.plans import PICTURE, Step, Values
from dala.media.images import Shape, dtype_of, second
from dala.media.kernels import kernel_from_text
from dala.typing import NDArray

#: The widest blur of masks and backgrounds, in pixels.
_MAX_RADIUS = 200

# grading ----------------------------------------------------------------------------------------
_GRADE = kernel_from_text("""
def grade(px: Pixel, *, lift: vec3, power: vec3, gain: vec3, saturation: float):
    c = (px.rgb + lift * (1.0 - px.rgb)) * gain
    c = (pow(max(c.r, 0.0), power.r), pow(max(c.g, 0.0), power.g), pow(max(c.b, 0.0), power.b))
    luma = dot(c, (0.299, 0.587, 0.114))
    return rgba(c + (c - luma) * saturation, px.a)
""")

_TEMPERATURE = kernel_from_text("""
def temperature(px: Pixel, *, value: float, tint: float):
    c = (px.r * (1.0 + 0.3 * value), px.g * (1.0 - 0.3 * tint), px.b * (1.0 - 0.3 * value))
    weights = (0.299, 0.587, 0.114)
    light = dot(c, weights)
    return rgba(c * (dot(px.rgb, weights) / light if light > 0.0 else 1.0), px.a)
""")

_CURVES = kernel_from_text("""
def curves(px: Pixel, table: Array):
    top = float(table.shape[0] - 1)
    r, g, b = clamp(px.r, 0.0, 1.0) * top, clamp(px.g, 0.0, 1.0) * top, clamp(px.b, 0.0, 1.0) * top
    i, j, k = int(r), int(g), int(b)
    red = mix(table[i, 0], table[i + 1, 0], r - float(i))
    green = mix(table[j, 1], table[j + 1, 1], g - float(j))
    blue = mix(table[k, 2], table[k + 1, 2], b - float(k))
    return rgba(red, green, blue, px.a)
""")


@picture_filter(
    "Effects",
    kind="effect",
    is_recipe=True,
    options=(
        Parameter("lift", "floats", (0.0,) * 3, -1.0, 1.0, size=3, spread=True),
        Parameter("gamma", "floats", (1.0,) * 3, 0.01, 1e6, size=3, spread=True),
        Parameter("gain", "floats", (1.0,) * 3, 0.0, 1e6, size=3, spread=True),
        Parameter("saturation", "float", 0.0, -1.0, 1e6),
    ),
    example="lift=(0, 0, 0.08), gain=(1.1, 1, 0.9)",
)
def grade(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Grade shadows, midtones and highlights, then saturation.

    ``max((c + lift * (1 - c)) * gain, 0) ** (1 / gamma)``, then as ``saturation``. Lift, gamma and
    gain are one number, or one each for red, green and blue.

    Args:
        lift: shadows: black becomes lift, white does not change.
        gamma: midtones: above 1 brightens.
        gain: highlights: white becomes gain, black does not change.
        saturation: -1 gives gray, 0 changes nothing.
    """
    params = {
        "lift": values["lift"],
        "power": tuple(1.0 / p for p in values["gamma"]),
        "gain": values["gain"],
        "saturation": values["saturation"],
    }
    return [Step(_GRADE, (PICTURE,), shape, dtype, params)]


@picture_filter(
    "Effects",
    kind="effect",
    is_recipe=True,
    options=(
        Parameter("value", "float", 0.0, -1.0, 1.0),
        Parameter("tint", "float", 0.0, -1.0, 1.0),
    ),
    example="value=0.7",
)
def temperature(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Make the light warmer or cooler, and tint it green or magenta.

    Red is multiplied by 1 + 0.3 value, green by 1 - 0.3 tint, blue by 1 - 0.3 value; then the pixel
    is scaled to its original BT.601 luma.

    Args:
        value: above 0 is warmer, below cooler.
        tint: above 0 is toward magenta, below toward green.
    """
    return [Step(_TEMPERATURE, (PICTURE,), shape, dtype, values)]


@picture_filter(
    "Effects",
    kind="effect",
    is_recipe=True,
    inputs={"master": "points", "red": "points", "green": "points", "blue": "points"},
    example="master=[(0, 0), (0.3, 0.2), (1, 1)]",
)
def curves(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Map each channel through a tone curve, then all through the master curve.

    A curve is given by points (x, y) of 0 to 1 with increasing x. It is smooth, passes through
    every point, stays between neighboring ones, and is constant beyond the first and the last.

    Args:
        master: points of the curve for all channels; none by default.
        red: points of the red curve.
        green: points of the green curve.
        blue: points of the blue curve.

    >>> import numpy as np
    >>> from dala.media import effects
    >>> picture = np.array([[0, 128, 255]], np.uint8)
    >>> effects.curves(picture, master=[(0, 0.2), (1, 0.8)], device="cpu").tolist()
    [[51, 128, 204]]
    """
    return [Step(_CURVES, (PICTURE, table(values)), shape, dtype)]


def _dtype(pixels: NDArray | Buffer) -> str:
    return pixels.dtype if isinstance(pixels, Buffer) else dtype_of(pixels)


# overlays ---------------------------------------------------------------------------------------
_MULTIPLIED = kernel_from_text("def multiplied(px: Pixel): return rgba(px.rgb * px.a, px.a)")

_LAID_OVER = kernel_from_text("""
def laid_over(base: Pixel, over: Pixel, *, opacity: float):
    s = over.a * opacity
    a = s + base.a * (1.0 - s)
    c = over.rgb * opacity + base.rgb * (base.a * (1.0 - s))
    return rgba(c / a if a > 0.0 else base.rgb, a)
""")


@picture_filter(
    "Effects",
    kind="effect",
    is_recipe=True,
    inputs={"picture": "picture"},
    options=(
        Parameter("matrix", "floats", size=6),
        Parameter("position", "floats", (0.0, 0.0), size=2),
        Parameter("scale", "floats", (1.0, 1.0), size=2, spread=True),
        Parameter("angle", "float", 0.0, low=-1e6, high=1e6),
        Parameter("anchor", "floats", (0.0, 0.0), size=2),
        Parameter("opacity", "float", 1.0, 0.0, 1.0),
        Parameter("method", "choice", "bilinear", choices=("nearest", "bilinear", "bicubic")),
    ),
    needs=("picture",),
    keeps_alpha=False,
    example="position=(20, 10), angle=15",
)
def overlay(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Draw a second picture over the first, moved, scaled and rotated.

    The overlay is warped with premultiplied alpha, so its edges have no dark fringes.

    Args:
        picture: the overlay, of any size.
        matrix: (a, b, c, d, e, f): pixel (x, y) of the overlay is drawn at
            (a x + b y + c, d x + e y + f); replaces position, scale, angle and anchor.
        position (pixels): (x, y) of the anchor in the picture, from the top left.
        scale: one factor, or one across and one down.
        angle (degrees): clockwise, around the anchor.
        anchor: (x, y) in the overlay, relative to its size: (0.5, 0.5) is its center.
        opacity: multiplies the alpha of the overlay.
        method: interpolation; resize an overlay first that is shown at less than half its size.
    """
    over = second(values["picture"], shape, "overlay")
    held = _dtype(over)
    if values["matrix"] is None:
        placed = _placement(over.shape, values)
    else:
        placed = np.array(values["matrix"]).reshape(2, 3)
    params = {"matrix": _inverse(placed), "method": values["method"]}
    size = shape[:2]
    return [
        Step(_MULTIPLIED, (over,), (*over.shape[:2], 4), held),
        Step(find_kernel("warp_affine"), (0,), (*size, 4), held, params),
        Step(_LAID_OVER, (PICTURE, 1), shape, dtype, {"opacity": values["opacity"]}),
    ]


def _placement(shape: Shape, values: Values) -> NDArray:
    """Return the 2x3 matrix from the overlay's pixels to the picture's."""
    turn = math.radians(values["angle"])
    c, s = math.cos(turn), math.sin(turn)
    linear = np.array([[c, -s], [s, c]]) * np.array(values["scale"])
    # Edges, not pixel centers, are scaled: pixel 0 covers 0 to 1, its center is at 0.5.
    anchor = np.array(values["anchor"]) * (shape[1], shape[0])
    moved = np.array(values["position"]) - linear @ (anchor - 0.5) - 0.5
    return np.column_stack([linear, moved])


def _inverse(placed: NDArray) -> tuple[float, ...]:
    whole = np.vstack([placed, [0.0, 0.0, 1.0]])
    if not np.isfinite(whole).all() or abs(np.linalg.det(whole)) < 1e-12:
        raise ParameterError(
            f"overlay: the transform {placed.tolist()} shrinks the overlay to nothing. Give a "
            "scale other than 0."
        )
    return tuple(np.linalg.inv(whole)[:2].reshape(-1).tolist())
