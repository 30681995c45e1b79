"""Effects: filters of several steps, or with a kernel of their own that is not registered.

A recipe is declared as kernels are, with :func:`picture_filter`. It takes the picture's shape and
dtype and the checked values of its parameters, and returns steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dala import memory
from dala.errors import ParameterError
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Steps, Values, effect
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


@effect(
    options=(
        Parameter("lift", "floats", (0.0,) * 3, -1.0, 1.0, size=3, spread=True),
        Parameter("gamma", "floats", (1.0,) * 3, 0.01, 1e6, size=3, spread=True),
        Parameter("gain", "floats", (1.0,) * 3, 0.0, 1e6, size=3, spread=True),
        Parameter("saturation", "float", 0.0, -1.0, 1e6),
    ),
    example="lift=(0, 0, 0.08), gain=(1.1, 1, 0.9)",
)
def grade(steps: Steps, values: Values) -> None:
    """Grade shadows, midtones and highlights, then saturation.

    ``max((c + lift * (1 - c)) * gain, 0) ** (1 / gamma)``, then as ``saturation``. Lift, gamma and
    gain are one number, or one each for red, green and blue.

    Sums of u8 colors with fixed weights are integers (as in ``contrast``), the rest is f32 on
    values of 0 to 255, in the order of the formula, none fused, and rounded once, halves up.

    Args:
        lift: shadows: black becomes lift, white does not change.
        gamma: midtones: above 1 brightens.
        gain: highlights: white becomes gain, black does not change.
        saturation: -1 gives gray, 0 changes nothing.
    """
    gamma = values.pop("gamma")
    steps.add(_GRADE, **values, power=tuple(1.0 / p for p in gamma))


@effect(
    options=(
        Parameter("value", "float", 0.0, -1.0, 1.0),
        Parameter("tint", "float", 0.0, -1.0, 1.0),
    ),
    example="value=0.7",
)
def temperature(steps: Steps, values: Values) -> None:
    """Make the light warmer or cooler, and tint it green or magenta.

    Red is multiplied by 1 + 0.3 value, green by 1 - 0.3 tint, blue by 1 - 0.3 value; then the pixel
    is scaled to its original BT.601 luma.

    Luma of u8 colors is an integer of 16 fraction bits, the rest is f32 on values of 0 to 255, in
    the order of the formula, none fused, and rounded once, halves up.

    Args:
        value: above 0 is warmer, below cooler.
        tint: above 0 is toward magenta, below toward green.
    """
    steps.add(_TEMPERATURE, **values)


@effect(
    inputs={"master": "points", "red": "points", "green": "points", "blue": "points"},
    example="master=[(0, 0), (0.3, 0.2), (1, 1)]",
)
def curves(steps: Steps, values: Values) -> None:
    """Map each channel through a tone curve, then all through the master curve.

    A curve is given by points (x, y) of 0 to 1 with increasing x. It is smooth, passes through
    every point, stays between neighboring ones, and is constant beyond the first and the last.

    In u8 pictures each of 256 levels is computed in f32 and rounded once, halves up.

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
    steps.add(_CURVES, PICTURE, table(values))


# overlays ---------------------------------------------------------------------------------------
_MULTIPLIED = kernel_from_text("def multiplied(px: Pixel): return rgba(px.rgb * px.a, px.a)")

_LAID_OVER = kernel_from_text("""
def laid_over(base: Pixel, over: Pixel, *, opacity: float):
    s = over.a * opacity
    a = s + base.a * (1.0 - s)
    c = over.rgb * opacity + base.rgb * (base.a * (1.0 - s))
    return rgba(c / a if a > 0.0 else base.rgb, a)
""")


@effect(
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
def overlay(steps: Steps, values: Values) -> None:
    """Draw a second picture over the first, moved, scaled and rotated.

    The overlay is warped with premultiplied alpha, so its edges have no dark fringes.

    u8 pictures pass three stages, each of bytes: the overlay is multiplied by its alpha, warped by
    ``warp_affine``, and drawn. So nearly transparent colors are coarser.

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
    over = second(values["picture"], steps.shape, "overlay")
    held = dtype_of(over)
    if values["matrix"] is None:
        placed = _placement(over.shape, values)
    else:
        placed = np.array(values["matrix"]).reshape(2, 3)
    size, matrix = (*steps.shape[:2], 4), _inverse(placed)
    made = steps.add(_MULTIPLIED, over, shape=(*over.shape[:2], 4), dtype=held)
    made = steps.add(
        "warp_affine", made, shape=size, dtype=held, matrix=matrix, method=values["method"]
    )
    steps.add(_LAID_OVER, PICTURE, made, opacity=values["opacity"])


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


# curves -------------------------------------------------------------------------------------------
#: Points (x, y) of a curve, from left to right.
Points: TypeAlias = Sequence[tuple[float, float]]

#: Entries of a table; lookups between them are linear.
SIZE = 1024


def table(curves: Mapping[str, Points | None]) -> npt.NDArray[np.float32]:
    """Return a table of (SIZE, 3): each channel's own curve, then the master curve.

    Args:
        curves: points by "red", "green", "blue" and "master"; curves that are left out change
            nothing.

    >>> t = table({"master": [(0, 0), (1, 0.5)], "blue": [(0, 1), (1, 0)]})
    >>> t[-1].tolist(), t[0].tolist()
    ([0.5, 0.5, 0.0], [0.0, 0.0, 0.5])
    """
    at = np.linspace(0.0, 1.0, SIZE)
    master = curves.get("master")
    columns = []
    for name in ("red", "green", "blue"):
        points = curves.get(name)
        own = at if points is None else curve(points, at, name)
        columns.append(own if master is None else curve(master, own, "master"))
    return np.stack(columns, axis=-1).astype(np.float32)


def curve(points: Points, at: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
    """Evaluate a monotone cubic through points (x, y), constant beyond the first and the last.

    Slopes are harmonic means of the neighboring chords' slopes (Fritsch and Butland), and 0 where
    the chords change direction: between two points the curve stays between them.

    Args:
        points: two or more, with increasing x.
        at: where to evaluate.
        name: the curve's parameter, for errors.
    """
    if isinstance(points, np.ndarray):
        memory.check_copy(8 * points.size, "curves")
    try:
        x, y = np.array(points, np.float64).T
    except (TypeError, ValueError):
        x = y = np.zeros(0)
    fits = x.ndim == 1 and x.size >= 2 and np.isfinite(x).all() and np.isfinite(y).all()
    if not fits or (np.diff(x) <= 0).any() or x[0] < 0 or x[-1] > 1:
        raise ParameterError.invalid(
            "curves",
            name,
            "two or more points (x, y) with x increasing from 0 to 1",
            points,
            "Write [(0, 0), (0.5, 0.6), (1, 1)].",
        )
    run, chord = np.diff(x), np.diff(y) / np.diff(x)
    slope = np.zeros_like(x)
    slope[0], slope[-1] = chord[0], chord[-1]
    if x.size > 2:
        before, after = chord[:-1], chord[1:]
        w1, w2 = 2 * run[1:] + run[:-1], run[1:] + 2 * run[:-1]
        same = before * after > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (w1 + w2) / (w1 / before + w2 / after)
        slope[1:-1] = np.where(same, mean, 0.0)
    t = np.clip(np.asarray(at, np.float64), x[0], x[-1])
    i = np.clip(np.searchsorted(x, t, side="right") - 1, 0, x.size - 2)
    h = run[i]
    u = (t - x[i]) / h
    left = (1 + 2 * u) * (1 - u) ** 2 * y[i] + u * (1 - u) ** 2 * h * slope[i]
    right = u**2 * (3 - 2 * u) * y[i + 1] + u**2 * (u - 1) * h * slope[i + 1]
    return np.asarray(left + right)
