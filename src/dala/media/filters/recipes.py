"""Filters that are more than one kernel over one picture, each as a list of steps.

A recipe takes its name, the picture's shape and dtype, the parameters and the call (for errors).
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeAlias

import numpy as np

from dala.errors import DtypeError, ParameterError, ShapeMismatch, UnknownParameter, did_you_mean
from dala.gpu.compute import Buffer, Cube, load_cube
from dala.gpu.compute.kernel import get as find_kernel
from dala.media.filters.curves import table
from dala.media.filters.plans import PICTURE, Step
from dala.media.images import NDArray, Shape, dtype_of, other
from dala.media.language import written

Recipe: TypeAlias = Callable[[str, Shape, str, dict[str, Any], str], list[Step]]

RECIPES: dict[str, Recipe] = {}


def _recipe(*names: str) -> Callable[[Callable[..., list[Step]]], Recipe]:
    """Enters a recipe under its names; its keyword-only arguments are the parameters."""

    def enter(function: Callable[..., list[Step]]) -> Recipe:
        known = inspect.getfullargspec(function)
        needed = [k for k in known.kwonlyargs if k not in (known.kwonlydefaults or {})]

        @wraps(function)
        def checked(
            name: str, shape: Shape, dtype: str, params: dict[str, Any], call: str
        ) -> list[Step]:
            for given in params:
                if known.varkw is None and given not in known.kwonlyargs:
                    hint = did_you_mean(given, known.kwonlyargs)
                    listed = f"It takes: {', '.join(known.kwonlyargs)}."
                    raise UnknownParameter(
                        f"{call}: it has no parameter {given!r}. {hint or listed}"
                    )
            for missing in (k for k in needed if k not in params):
                raise ParameterError(f"{call}: it needs the parameter {missing!r}.")
            return function(name, shape, dtype, call, **params)

        for title in names:
            RECIPES[title] = checked
        return checked

    return enter


def _numbers(
    value: Any, count: int, name: str, call: str, *, spread: bool = False
) -> tuple[float, ...]:
    """So many numbers; one stands for all where it may be spread."""
    try:
        found = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.size == 1 and spread:
        found = np.repeat(found, count)
    if found.size != count or not np.isfinite(found).all():
        words = {1: "a number", 2: "two numbers", 3: "three numbers"}.get(count, f"{count} numbers")
        wanted = f"a number or {words}" if spread else words
        raise ParameterError(f"{call}: {name} is {wanted}, {value!r} came.")
    return tuple(found.tolist())


def _floats(value: Any, name: str, call: str) -> NDArray:
    try:
        return np.asarray(value, np.float32)
    except (TypeError, ValueError):
        raise DtypeError(f"{call}: {name} must be an array of numbers, {value!r} came.") from None


def _size(value: Any, call: str) -> tuple[int, int]:
    height, width = _numbers(value, 2, "size (height, width)", call)
    if height < 1 or width < 1 or height % 1 or width % 1:
        raise ParameterError(f"{call}: size is (height, width), whole numbers; {value!r} came.")
    return int(height), int(width)


def _same_size(value: Any, shape: Shape, name: str, call: str) -> NDArray | Buffer:
    found = other(value, shape, call)
    if found.shape[:2] != shape[:2]:
        raise ShapeMismatch(
            f"{call}: {name} must have the picture's size, {shape[1]} x {shape[0]}; "
            f"{found.shape[1]} x {found.shape[0]} came. Resize it first."
        )
    return found


# built-in kernels that make another shape, or take more than the picture -----------------------
@_recipe("resize", "bicubic_scale", "warp_affine", "warp_perspective")
def _shaped(name: str, shape: Shape, dtype: str, call: str, **params: Any) -> list[Step]:
    size: tuple[int, ...] = shape[:2]
    if "size" in params and name != "bicubic_scale":
        size = _size(params.pop("size"), call)
    elif name == "resize":
        raise ParameterError(f"{call}: it needs size=(height, width).")
    if name == "bicubic_scale":
        (scale,) = _numbers(params.pop("scale", None), 1, "scale", call)
        if not 0.0001 <= scale <= 10000:
            raise ParameterError(f"{call}: scale must be within 0.0001..10000, {scale!r} came.")
        size = tuple(max(1, math.floor(n * scale + 0.5)) for n in size)
    if "matrix" in params:
        count = 6 if name == "warp_affine" else 9
        params["matrix"] = _numbers(params["matrix"], count, "matrix", call)
    kernel = find_kernel(name)
    return [Step(kernel, (PICTURE,), (*size, *shape[2:]), dtype, params)]


@_recipe("remap")
def _remap(
    name: str, shape: Shape, dtype: str, call: str, *, map: Any, **params: Any
) -> list[Step]:
    if not isinstance(map, Buffer):
        map = _floats(map, "map", call)
    if len(map.shape) != 3 or map.shape[2] != 2:
        raise ShapeMismatch(f"{call}: map has shape (height, width, 2), {map.shape} came.")
    made = (*map.shape[:2], *shape[2:])
    return [Step(find_kernel(name), (PICTURE, map), made, dtype, params)]


@_recipe("chroma_key")
def _chroma_key(name: str, shape: Shape, dtype: str, call: str, **params: Any) -> list[Step]:
    if "key" in params:
        params["key"] = _numbers(params["key"], 3, "key", call)
    return [Step(find_kernel(name), (PICTURE,), (*shape[:2], 4), dtype, params)]


@_recipe("overlay_alpha")
def _overlay_alpha(
    name: str, shape: Shape, dtype: str, call: str, *, over: Any, **params: Any
) -> list[Step]:
    inputs = (PICTURE, _same_size(over, shape, "over", call))
    return [Step(find_kernel(name), inputs, shape, dtype, params)]


@_recipe("video_mix")
def _video_mix(
    name: str, shape: Shape, dtype: str, call: str, *, second: Any, **params: Any
) -> list[Step]:
    inputs = (PICTURE, _same_size(second, shape, "second", call))
    return [Step(find_kernel(name), inputs, shape, dtype, params)]


@lru_cache(8)
def _cube(path: str, changed: int) -> Cube:
    """A file that is named in every frame's list is read once, and again when it has changed."""
    return load_cube(path)


@_recipe("lut_apply")
def _lut_apply(
    name: str, shape: Shape, dtype: str, call: str, *, lut: Any, **params: Any
) -> list[Step]:
    if isinstance(lut, str | os.PathLike):
        try:
            lut = _cube(os.fspath(lut), os.stat(lut).st_mtime_ns)
        except FileNotFoundError:
            raise FileNotFoundError(f"{call}: there is no file {os.fspath(lut)!r}.") from None
    if isinstance(lut, Cube):
        params = {**lut.params, **params}
        lut = lut.table
    if not isinstance(lut, Buffer):
        lut = _floats(lut, "lut", call)
    return [Step(find_kernel(name), (PICTURE, lut), shape, dtype, params)]


# grading ---------------------------------------------------------------------------------------
_GRADE = written("""
def grade(px: Pixel, *, lift: Within[vec3, -1.0, 1.0], power: vec3, gain: Within[vec3, 0.0, inf],
          saturation: Within[float, -1.0, inf]):
    c = (px.rgb + lift * (1.0 - px.rgb)) * gain
    c = (pow(max(c.r, 0.0), power.r), pow(max(c.g, 0.0), power.g), pow(max(c.b, 0.0), power.b))
    luma = dot(c, (0.299, 0.587, 0.114))
    return rgba(c + (c - luma) * saturation, px.a)
""")

_TEMPERATURE = written("""
def temperature(px: Pixel, *, value: Within[float, -1.0, 1.0], tint: Within[float, -1.0, 1.0]):
    c = (px.r * (1.0 + 0.3 * value), px.g * (1.0 - 0.3 * tint), px.b * (1.0 - 0.3 * value))
    weights = (0.299, 0.587, 0.114)
    light = dot(c, weights)
    return rgba(c * (dot(px.rgb, weights) / light if light > 0.0 else 1.0), px.a)
""")

_CURVES = written("""
def curves(px: Pixel, table: Array):
    top = float(table.shape[0] - 1)
    r, g, b = clamp(px.r, 0.0, 1.0) * top, clamp(px.g, 0.0, 1.0) * top, clamp(px.b, 0.0, 1.0) * top
    i, j, k = int(r), int(g), int(b)
    red = mix(table[i, 0], table[i + 1, 0], r - float(i))
    green = mix(table[j, 1], table[j + 1, 1], g - float(j))
    blue = mix(table[k, 2], table[k + 1, 2], b - float(k))
    return rgba(red, green, blue, px.a)
""")


@_recipe("grade")
def _grade(
    name: str,
    shape: Shape,
    dtype: str,
    call: str,
    *,
    lift: Any = 0.0,
    gamma: Any = 1.0,
    gain: Any = 1.0,
    saturation: float = 0.0,
) -> list[Step]:
    powers = _numbers(gamma, 3, "gamma", call, spread=True)
    if min(powers) < 0.01:
        raise ParameterError(f"{call}: gamma must be at least 0.01, {gamma!r} came.")
    params = {
        "lift": _numbers(lift, 3, "lift", call, spread=True),
        "power": tuple(1.0 / p for p in powers),
        "gain": _numbers(gain, 3, "gain", call, spread=True),
        "saturation": saturation,
    }
    return [Step(_GRADE, (PICTURE,), shape, dtype, params)]


@_recipe("temperature")
def _temperature(
    name: str, shape: Shape, dtype: str, call: str, *, value: float = 0.0, tint: float = 0.0
) -> list[Step]:
    return [Step(_TEMPERATURE, (PICTURE,), shape, dtype, {"value": value, "tint": tint})]


@_recipe("curves")
def _curves(
    name: str,
    shape: Shape,
    dtype: str,
    call: str,
    *,
    master: Any = None,
    red: Any = None,
    green: Any = None,
    blue: Any = None,
) -> list[Step]:
    return [Step(_CURVES, (PICTURE, table(master, red, green, blue, call)), shape, dtype)]


# backgrounds -----------------------------------------------------------------------------------
_BEHIND = written("""
def behind(px: Pixel, back: Pixel, mask: Pixel, *, low: float, high: float):
    kept = smoothstep(low, high, mask.r)
    return rgba(mix(back.rgb, px.rgb, kept), mix(back.a, px.a, kept))
""")

_BEHIND_COLOR = written("""
def behind_color(px: Pixel, mask: Pixel, *, color: vec4, low: float, high: float):
    kept = smoothstep(low, high, mask.r)
    back = (color.r, color.g, color.b)
    return rgba(mix(back, px.rgb, kept), mix(color.a, px.a, kept))
""")


@_recipe("virtual_background")
def _virtual_background(
    name: str,
    shape: Shape,
    dtype: str,
    call: str,
    *,
    mask: Any,
    background: Any = None,
    radius: int = 16,
    feather: int = 2,
    edge: Any = (0.3, 0.7),
) -> list[Step]:
    low, high = _numbers(edge, 2, "edge (low, high)", call)
    if not low < high:
        raise ParameterError(f"{call}: edge is (low, high), low below high; {edge!r} came.")
    soft = {"low": low, "high": high}
    steps, held = _mask(mask, shape, feather, call)
    if isinstance(background, tuple | list):
        if len(background) not in (3, 4):
            raise ParameterError(
                f"{call}: a background colour is (r, g, b) or (r, g, b, a) of 0 to 1; "
                f"{background!r} came."
            )
        color = _numbers((*background, 1.0)[:4], 4, "background", call)
        params = {"color": color, **soft}
        return [*steps, Step(_BEHIND_COLOR, (PICTURE, held), shape, dtype, params)]
    back: Any
    if background is None:
        blur = Step(find_kernel("blur"), (PICTURE,), shape, dtype, {"radius": radius})
        back = len(steps)
        steps.append(blur)
    else:
        back = other(background, shape, call)
        if back.shape[:2] != shape[:2]:
            made = (*shape[:2], *back.shape[2:])
            steps.append(Step(find_kernel("resize"), (back,), made, _dtype(back)))
            back = len(steps) - 1
    return [*steps, Step(_BEHIND, (PICTURE, back, held), shape, dtype, soft)]


def _mask(
    mask: Any, shape: Shape, feather: Any, call: str
) -> tuple[list[Step], int | NDArray | Buffer]:
    """Steps that bring a mask to the picture's size and soften it, and where it is then."""
    held: Any = other(mask, shape[:2], call)
    dtype = _dtype(held)
    steps: list[Step] = []
    (soft,) = _numbers(feather, 1, "feather", call)
    if not 0 <= soft <= 200 or soft % 1:
        raise ParameterError(
            f"{call}: feather must be a whole number within 0..200, {feather!r} came."
        )
    channels = held.shape[2:]
    if held.shape[:2] != shape[:2]:
        steps.append(Step(find_kernel("resize"), (held,), (*shape[:2], *channels), dtype))
        held = 0
    if soft:
        made = (*shape[:2], *channels)
        steps.append(Step(find_kernel("blur"), (held,), made, dtype, {"radius": int(soft)}))
        held = len(steps) - 1
    return steps, held


def _dtype(pixels: NDArray | Buffer) -> str:
    if isinstance(pixels, Buffer):
        return pixels.dtype
    return dtype_of(pixels)


# overlays --------------------------------------------------------------------------------------
_MULTIPLIED = written("def multiplied(px: Pixel): return rgba(px.rgb * px.a, px.a)")

_LAID_OVER = written("""
def laid_over(base: Pixel, over: Pixel, *, opacity: Within[float, 0.0, 1.0]):
    s = over.a * opacity
    a = s + base.a * (1.0 - s)
    c = over.rgb * opacity + base.rgb * (base.a * (1.0 - s))
    return rgba(c / a if a > 0.0 else base.rgb, a)
""")


@_recipe("overlay")
def _overlay(
    name: str,
    shape: Shape,
    dtype: str,
    call: str,
    *,
    picture: Any,
    matrix: Any = None,
    position: Any = (0.0, 0.0),
    scale: Any = 1.0,
    angle: float = 0.0,
    anchor: Any = (0.0, 0.0),
    opacity: float = 1.0,
    method: str = "bilinear",
) -> list[Step]:
    over = other(picture, shape, call)
    held = _dtype(over)
    if matrix is None:
        placed = _placed(over.shape, position, scale, angle, anchor, call)
    else:
        placed = np.array(_numbers(matrix, 6, "matrix", call)).reshape(2, 3)
    params = {"matrix": _inverse(placed, call), "method": method}
    size = shape[:2]
    return [
        Step(_MULTIPLIED, (over,), (*over.shape[:2], 4), held),
        Step(find_kernel("warp_affine"), (0,), (*size, 4), held, params),
        Step(_LAID_OVER, (PICTURE, 1), shape, dtype, {"opacity": opacity}),
    ]


def _placed(shape: Shape, position: Any, scale: Any, angle: Any, anchor: Any, call: str) -> NDArray:
    """From the overlay's pixels to the picture's: its anchor comes to lie at the position."""
    x, y = _numbers(position, 2, "position (x, y)", call)
    across, down = _numbers(anchor, 2, "anchor (x, y)", call)
    (turn,) = _numbers(angle, 1, "angle", call)
    each = np.array(_numbers(scale, 2, "scale", call, spread=True))
    c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    linear = np.array([[c, -s], [s, c]]) * each
    # Edges, not centres of pixels, are scaled: pixel 0 covers 0 to 1, its centre is at 0.5.
    held = np.array([across * shape[1], down * shape[0]])
    moved = np.array([x, y]) - linear @ (held - 0.5) - 0.5
    return np.column_stack([linear, moved])


def _inverse(placed: NDArray, call: str) -> tuple[float, ...]:
    whole = np.vstack([placed, [0.0, 0.0, 1.0]])
    if not np.isfinite(whole).all() or abs(np.linalg.det(whole)) < 1e-12:
        raise ParameterError(
            f"{call}: the transform squeezes the overlay to nothing: {placed.tolist()}. Give a "
            "scale other than 0."
        )
    return tuple(np.linalg.inv(whole)[:2].reshape(-1).tolist())
