"""Layers: pixels that are drawn apart, go through filters, and are blended as a whole."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from dala import extensions
from dala.errors import CommandError
from dala.gpu.color import BLENDS, OPERATORS
from dala.gpu.compute.engines.cpu.compose.blend_modes import OVER, blend_row
from dala.gpu.compute.engines.cpu.memory import ArraySpan, span_of
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import cover
from dala.typing import NDArray

#: Layers in layers, characters of the filters of one, and filters.
MAX_LAYERS: Final = 16
MAX_TEXT: Final = 1 << 14
MAX_FILTERS: Final = 32
#: Pixels that are blended together, and rows of one tile.
_BLOCK: Final = 1024
_ROWS: Final = 32
#: The largest distance of a shadow.
_FAR: Final = 1e6
#: The parts of each operator.
_PARTS: Final = tuple(part for parts in OPERATORS.values() for part in parts)
#: Text in the parameters of filters: no name of a file.
_WORD: Final = re.compile(r"#?[A-Za-z0-9 _-]{1,40}")

#: Blurs of larger radii depend on where a pixel is in the picture.
_EXACT: Final = 60
#: What is done to the alpha of a layer too. Other filters keep it.
_WITH_ALPHA: Final = frozenset(
    ["shadow", "blur", "gaussian_blur", "box_blur", "motion_blur", "pixelate", "erode", "dilate"]
)

#: A filter of a layer: its name, or that and its parameters.
Filter: TypeAlias = "str | tuple[str, Mapping[str, bool | float | str | Sequence[float] | None]]"
Filters: TypeAlias = "list[tuple[str, dict[str, Any]]]"


class Layer(NamedTuple):
    """An open layer."""

    pixels: NDArray
    #: The damage of what is below, and its clip: coverage and bounds.
    damage: NDArray
    clip: NDArray
    bounds: tuple[int, ...]
    opacity: float
    mode: int
    filters: Filters


def filters_of(text: str) -> Filters:
    """Return the filters of a layer from their JSON text: pairs of a name and parameters.

    Parameters are numbers, lists of them, and words; nothing that names a file.

    >>> filters_of('[["blur", {"radius": 3}]]')
    [('blur', {'radius': 3})]
    """
    if not text:
        return []
    try:
        found = json.loads(text) if len(text) <= MAX_TEXT else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) > MAX_FILTERS:
        expected = f"at most {MAX_FILTERS} pairs (name, parameters) as JSON"
        raise CommandError.invalid("layer", "filters", expected, text[:80])
    made: Filters = []
    for each in found:
        match each:
            case ["shadow", dict(given)] if not _is_shadow(given):
                expected = "a shadow with x, y and blur as numbers and color as four bytes"
                raise CommandError.invalid("layer", "filters", expected, given)
            case [str(name), dict(given)] if all(map(_plain, given.values())):
                made.append((name, given))
            case _:
                expected = "pairs of a name and parameters: numbers, lists of them, and words"
                raise CommandError.invalid("layer", "filters", expected, each)
    return made


def _is_shadow(given: dict[str, Any]) -> bool:
    match given:
        case {"x": x, "y": y, "blur": blur, "color": [_, _, _, _] as color} if len(given) == 4:
            near = all(isinstance(n, int | float) and abs(n) <= _FAR for n in (x, y, blur))
            return near and all(isinstance(n, int) and 0 <= n <= 255 for n in color)
    return False


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= 16 and all(isinstance(n, bool | int | float) for n in value)
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    return value is None or isinstance(value, bool | int | float)


def finished(layer: Layer) -> NDArray:
    """Return the pixels of a layer after its filters."""
    pixels = layer.pixels
    for alone, group in itertools.groupby(layer.filters, lambda each: each[0] in _WITH_ALPHA):
        if not alone:
            pixels = _filtered(pixels, [*group])
            continue
        for name, given in group:
            box = _touched(pixels, name, given)
            part = np.ascontiguousarray(pixels[box])
            if name == "shadow":
                pixels[box] = _with_shadow(part, **given)
            else:
                pixels[box] = _blurred(part, (name, given))
    return pixels


def _touched(pixels: NDArray, name: str, given: dict[str, Any]) -> tuple[slice, slice]:
    """Return the part of a layer that a filter can change: around what is drawn."""
    radius = math.ceil(2 * given["blur"]) if name == "shadow" else given.get("radius")
    if name not in ("blur", "shadow") or not isinstance(radius, int) or radius > _EXACT:
        return slice(None), slice(None)
    far = radius + max(abs(round(given.get("x", 0))), abs(round(given.get("y", 0))))
    shown = pixels[..., 3] != 0
    found = []
    for axis in (1, 0):
        at = np.flatnonzero(shown.any(axis=axis))
        first, last = (int(at[0]), int(at[-1])) if len(at) else (0, 0)
        found.append(slice(max(first - far, 0), last + far + 1))
    return found[0], found[1]


def _blurred(pixels: NDArray, blur: tuple[str, dict[str, Any]]) -> NDArray:
    """Return pixels after a filter that also changes alpha; colors are weighted by alpha."""
    alpha = pixels[..., 3:].astype(np.uint32)
    weighted = ((pixels[..., :3] * alpha + 127) // 255).astype(np.uint8)
    apply = extensions.drawing.filtered
    colors = apply(weighted, [blur]).astype(np.uint32)
    share = _blurred_share(pixels, blur).astype(np.uint32)
    straight = (colors * 255 + share // 2) // np.maximum(share, 1)
    made: NDArray = np.concatenate([np.minimum(straight, 255), share], axis=2).astype(np.uint8)
    return made


def _blurred_share(pixels: NDArray, blur: tuple[str, dict[str, Any]]) -> NDArray:
    """Return the alpha of pixels after a filter, (height, width, 1)."""
    share: NDArray = extensions.drawing.filtered(np.repeat(pixels[..., 3:], 3, axis=2), [blur])
    return share[..., :1]


def _filtered(pixels: NDArray, filters: Filters) -> NDArray:
    if not filters:
        return pixels
    made = np.ascontiguousarray(extensions.drawing.filtered(pixels, filters))
    if made.shape != pixels.shape or made.dtype != np.uint8:
        expected = "filters that keep the size and RGBA"
        raise CommandError.invalid("layer", "filters", expected, made.shape)
    return made


def _with_shadow(pixels: NDArray, x: float, y: float, blur: float, color: list[int]) -> NDArray:
    """Return pixels over their own shadow."""
    dx, dy = round(x), round(y)
    height, width = pixels.shape[:2]
    made = np.empty_like(pixels)
    made[..., :3] = color[:3]
    made[..., 3] = 0
    if abs(dx) < width and abs(dy) < height:
        alpha = pixels[..., 3].astype(np.uint32) * color[3]
        share = ((alpha + 127) // 255).astype(np.uint8)
        made[max(dy, 0) : height + min(dy, 0), max(dx, 0) : width + min(dx, 0), 3] = share[
            max(-dy, 0) : height - max(dy, 0), max(-dx, 0) : width - max(dx, 0)
        ]
    if blur > 0:
        soft = ("blur", {"radius": math.ceil(2 * blur), "sigma": blur})
        made[..., 3] = _blurred_share(made, soft)[..., 0]
    blend(span_of(made), pixels, (0, 0), width, (0, 0, width, height), 1.0, OVER, checked=False)
    return made


def blend(
    target: ArraySpan,
    source: NDArray,
    clip: ArraySpan,
    width: int,
    bounds: tuple[int, int, int, int],
    opacity: float,
    mode: int,
    *,
    checked: bool,
) -> None:
    """Blend the pixels of a layer inside bounds with those below, within a clip."""
    x0, y0, x1, y1 = bounds
    if x0 < x1 and y0 < y1:
        share = math.floor(min(max(opacity, 0.0), 1.0) * 65536 + 0.5)
        run: Callable[..., None] = compile_native(blend_rows, checked=checked).parallel(
            y1 - y0, _ROWS
        )
        run(target, span_of(source), clip, width, x0, x1, y0, share, mode)


@native
def part_of(code: i32, alpha: Vector) -> Vector:
    """Return a part of an operator: 0, 1, the other's alpha, or one minus that."""
    part = splat(f32(code), 16)
    if code == 2:
        part = alpha
    elif code == 3:
        part = 1 - alpha
    return part


@native(inline=False)
def operated(d: Vector, s: Vector, opacity: i64, covers: Vector, mode: i64) -> Vector:
    """Combine sixteen pixels by an operator, and mix them with those below by a coverage."""
    codes = table(i32, _PARTS)
    number = 2 * (mode - static(len(BLENDS)))
    below, above = f32(i32(d >> 24)) / 255, f32(i32(s >> 24)) * (f32(opacity) / (255 * 65536))
    share = f32(i32(covers)) / 255
    over = above * part_of(codes[number], below) * share
    under = below * (part_of(codes[number + 1], above) * share + (1 - share))
    alpha = over + under
    out = u32(in_range(i32, min(alpha, 1) * 255 + 0.5))
    out = out << 24
    for shift in static((0, 8, 16)):
        color = f32(i32((s >> shift) & 255)) * over + f32(i32((d >> shift) & 255)) * under
        out |= u32(in_range(i32, color / max(alpha, 1e-9) + 0.5)) << shift
    return select(alpha > 0, out, u32(0))


@native
def blend_rows(
    pixels: Array[u32], source: Array[u32], clip: Array[u8], width: i64, x0: i64, x1: i64, top: i64,
    opacity: i64, mode: i64, start: i64, end: i64,
) -> None:  # fmt: skip
    """Blend the rows [start, end) below ``top``; opacity is a share of 65536."""
    shares = local(u32, _BLOCK)
    for y in serial(top + start, top + end):
        for x in serial(x0, x1, _BLOCK):
            count, at = min(x1 - x, _BLOCK), y * width + x
            for k in serial(count):
                c = 255
                if len(clip) > 0:
                    c = i64(clip[at + k])
                shares[k] = u32((opacity * c + 127) // 255)
            if mode >= static(len(BLENDS)):
                for k in serial(0, count, 16):
                    n = min(count - k, 16)
                    d, s = load(pixels, at + k, 16, n), load(source, at + k, 16, n)
                    covers = splat(u32(255), 16)
                    if len(clip) > 0:
                        covers = u32(load(clip, at + k, 16, n))
                    store(pixels, at + k, operated(d, s, opacity, covers, mode), n)
            elif mode == OVER:
                for k in serial(0, count, 16):
                    n = min(count - k, 16)
                    d, s = load(pixels, at + k, 16, n), load(source, at + k, 16, n)
                    store(pixels, at + k, cover(d, s, load(shares, k, 16)), n)
            else:
                blend_row(pixels, at, source, at, shares, count, i32(mode), linear=False)
