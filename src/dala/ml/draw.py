"""Results drawn onto pictures and surfaces: boxes, points, labels, masks, all as commands."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import numpy as np

from dala.errors import MissingPackage, ParameterError, ShapeMismatch, UnknownParameter
from dala.gpu import command as encode
from dala.gpu.color import Color
from dala.gpu.command import color_to_rgba
from dala.gpu.compute.lang.suggest import nearest
from dala.gpu.surface import Surface, create_surface
from dala.media.frame import Frame
from dala.media.images import read
from dala.ml.models.posenet import EDGES
from dala.ml.results import (
    Classification,
    Detection,
    Face,
    Keypoint,
    Matte,
    Pose,
    Scores,
    Segmentation,
)

#: Sprites of labels and masks get numbers from here on, far from those people choose.
_ids = count(1 << 62)
_OPTIONS: Final = {"color": None, "width": None, "labels": True, "opacity": 0.5, "least": 0.3}


def palette(index: int) -> tuple[int, int, int]:
    """A colour for a class; neighbours differ as much as can be.

    >>> palette(0) != palette(1)
    True
    """
    hue = (index * 0.618033988749895 + 0.33) % 1.0
    r, g, b = colorsys.hsv_to_rgb(hue, 0.75, 1.0)
    return round(r * 255), round(g * 255), round(b * 255)


def draw(result: Any, target: Any, **options: Any) -> Any:
    """A result on a picture (a new one comes back) or a surface (which is drawn on)."""
    for name in options:
        if name not in _OPTIONS:
            hint = nearest(name, list(_OPTIONS))
            raise UnknownParameter(
                f"draw: there is no option {name!r}; there are {', '.join(_OPTIONS)}. {hint}"
            )
    chosen = {**_OPTIONS, **options}
    opacity = chosen["opacity"]
    if isinstance(opacity, bool) or not isinstance(opacity, int | float) or not 0 <= opacity <= 1:
        raise ParameterError(f"draw: opacity is 0..1, {opacity!r} came.")
    if chosen["color"] is not None:
        color_to_rgba(chosen["color"])
    if isinstance(target, Surface):
        target.batch(list(_commands(result, target.size, chosen)))
        return target
    if isinstance(target, Frame) and target.format in ("nv12", "i420"):
        target = target.to("rgb")
    picture = read(target, None, None, "draw")
    pixels: Any = (
        picture.pixels if isinstance(picture.pixels, np.ndarray) else picture.pixels.numpy()
    )
    made = _drawn(result, pixels, chosen)
    return picture.give(made)


def _drawn(result: Any, pixels: Any, chosen: dict[str, Any]) -> Any:
    """Pixels of any kind with a result on them, of the same kind."""
    height, width = pixels.shape[:2]
    floats = pixels.dtype != np.uint8
    if floats:
        pixels = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    rgba = np.empty((height, width, 4), np.uint8)
    rgba[..., 3] = 255
    rgba[..., : min(channels, 4) if channels > 1 else 3] = (
        pixels if channels > 1 else pixels.reshape(height, width, 1)
    )
    with create_surface(width, height) as surface:
        surface.set_pixels(rgba)
        surface.batch(list(_commands(result, (width, height), chosen)))
        made = surface.to_array()
    if channels == 1:
        weights = np.array([0.299, 0.587, 0.114])
        made = np.rint(made[..., :3] @ weights).astype(np.uint8).reshape(pixels.shape)
    else:
        made = np.ascontiguousarray(made[..., :channels])
    return made.astype(np.float32) / np.float32(255) if floats else made


def _commands(result: Any, size: tuple[int, int], chosen: dict[str, Any]) -> Iterator[bytes]:
    line = chosen["width"] or max(2, round(min(size) / 240))
    if isinstance(result, Segmentation):
        yield from _segments(result, size, chosen)
    elif isinstance(result, Matte):
        color = color_to_rgba(chosen["color"] or palette(2))
        yield from _mask([(result.alpha, color)], size, chosen["opacity"])
    elif isinstance(result, Scores):
        rows = [str(Classification(*row)) for row in result.top(5)]
        yield from _label("\n".join(rows), 8, 8, size, chosen, (0, 0, 0, 180))
    else:
        for k, found in enumerate(result if isinstance(result, list) else [result]):
            if isinstance(found, Pose):
                yield from _pose(found, chosen["color"] or palette(k), line, size, chosen)
            elif isinstance(found, Detection):
                yield from _detection(found, line, size, chosen)


def _detection(
    found: Detection, line: int, size: tuple[int, int], chosen: dict[str, Any]
) -> Iterator[bytes]:
    color = chosen["color"] or palette(found.index)
    x1, y1, x2, y2 = (round(n) for n in found.box)
    w, h = max(1, x2 - x1), max(1, y2 - y1)
    for x, y, wide, high in (
        (x1, y1, w, line),
        (x1, y2 - line, w, line),
        (x1, y1, line, h),
        (x2 - line, y1, line, h),
    ):
        yield encode.encode_fill_rect(x, y, wide, high, color)
    if isinstance(found, Face):
        for point in found.keypoints:
            yield _dot(point, line * 1.5, color)
    text = f"{found.label} {found.score:.2f}"
    yield from _label(text, x1, y1, size, chosen, (*color_to_rgba(color)[:3], 220), above=True)


def _pose(
    found: Pose, color: Color, line: int, size: tuple[int, int], chosen: dict[str, Any]
) -> Iterator[bytes]:
    points, least = found.keypoints, chosen["least"]
    for a, b in EDGES:
        if points[a].score >= least and points[b].score >= least:
            yield from _thick(points[a], points[b], line, color)
    for point in points:
        if point.score >= least:
            yield _dot(point, line * 2, color)
            yield _dot(point, line, "white")


def _dot(point: Keypoint, radius: float, color: Color) -> bytes:
    return encode.encode_fill_circle(round(point.x), round(point.y), max(1, round(radius)), color)


def _thick(a: Keypoint, b: Keypoint, line: int, color: Color) -> Iterator[bytes]:
    """A line so many pixels wide: two triangles."""
    dx, dy = b.x - a.x, b.y - a.y
    length = max((dx * dx + dy * dy) ** 0.5, 1e-6)
    nx, ny = -dy / length * line / 2, dx / length * line / 2
    p = [
        (round(a.x + nx), round(a.y + ny)), (round(b.x + nx), round(b.y + ny)),
        (round(b.x - nx), round(b.y - ny)), (round(a.x - nx), round(a.y - ny)),
    ]  # fmt: skip
    yield encode.encode_fill_triangle(*p[0], *p[1], *p[2], color)
    yield encode.encode_fill_triangle(*p[0], *p[2], *p[3], color)


def _segments(
    found: Segmentation, size: tuple[int, int], chosen: dict[str, Any]
) -> Iterator[bytes]:
    layers = []
    for index, plane in found.planes.items():
        if index != 0:
            color = chosen["color"] or palette(index)
            layers.append((np.where(found.classes == index, plane, 0), color_to_rgba(color)))
    yield from _mask(layers, size, chosen["opacity"])
    if chosen["labels"]:
        for index in found.planes:
            spots = np.argwhere(found.classes == index)
            if index and len(spots) * 200 >= found.classes.size:
                y, x = np.median(spots, axis=0)
                name = found.labels[index] if index < len(found.labels) else str(index)
                color = (*color_to_rgba(chosen["color"] or palette(index))[:3], 220)
                yield from _label(name, int(x), int(y), size, chosen, color)


def _mask(
    layers: list[tuple[Any, bytes]], size: tuple[int, int], opacity: float
) -> Iterator[bytes]:
    if not layers:
        return
    height, width = layers[0][0].shape
    if (width, height) != tuple(size):
        raise ShapeMismatch(
            f"draw: the result is of a picture of {width} x {height}, the target is "
            f"{size[0]} x {size[1]}. Draw on the picture that was looked at."
        )
    sprite = np.zeros((height, width, 4), np.uint8)
    for plane, color in layers:
        part = plane > 0.02
        sprite[part, :3] = tuple(color[:3])
        sprite[part, 3] = np.rint(np.minimum(plane[part], 1) * opacity * color[3])
    yield from _sprite(sprite, 0, 0)


def _label(
    text: str,
    x: int,
    y: int,
    size: tuple[int, int],
    chosen: dict[str, Any],
    background: tuple[int, ...],
    *,
    above: bool = False,
) -> Iterator[bytes]:
    if not chosen["labels"]:
        return
    try:
        from dala.media.text import TextStyle, set_text
    except MissingPackage:  # no text without a rasteriser: boxes are drawn all the same
        return
    light = sum(w * c for w, c in zip((0.3, 0.59, 0.11), background, strict=False)) > 128
    style = TextStyle(
        size=max(12, round(min(size) / 32)),
        color="black" if light else "white",
        background=background,
        padding=(6, 2),
    )
    made = set_text(text, style)
    top = y - made.height if above and y >= made.height else y
    left = max(0, min(x, size[0] - made.width))
    yield from _sprite(made.pixels, left, top)


def _sprite(pixels: Any, x: int, y: int) -> Iterator[bytes]:
    id, (h, w) = next(_ids), pixels.shape[:2]
    yield encode.encode_load_sprite(id, np.ascontiguousarray(pixels).tobytes(), w, h)
    yield encode.encode_blit(id, x, y)
    yield encode.encode_remove_sprite(id)
