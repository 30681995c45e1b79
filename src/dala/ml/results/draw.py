"""Drawing of results on pictures and surfaces: boxes, points, labels and masks as commands."""

from __future__ import annotations

import colorsys
import warnings
from collections.abc import Iterator, Sequence
from itertools import count, pairwise

import numpy as np

from dala.errors import MissingPackage, ShapeMismatch
from dala.gpu import command as encode
from dala.gpu.command import color_to_rgba
from dala.gpu.compute import from_dlpack
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.surface import Surface, create_surface
from dala.media.pictures.pixels import rgba
from dala.ml.options import DrawOptions
from dala.ml.prepare import host_pixels, read_rgb
from dala.ml.results import (
    Classification,
    Detection,
    Face,
    FaceMesh,
    Hand,
    Keypoint,
    Matte,
    Pose,
    Scores,
    Segmentation,
    TrackedObject,
)
from dala.ml.results.base import name_of
from dala.ml.results.names import FACE_PATHS, HAND_BONES, IRIS_PATHS, POSE_BONES
from dala.typing import ColorLike, ImageLike, NDArray

#: Ids for sprites of labels and masks, far from those that users choose.
_ids = count(1 << 62)


def palette(index: int) -> tuple[int, int, int]:
    """Return a color for a class; consecutive classes have distinct colors.

    >>> palette(0) != palette(1)
    True
    """
    hue = (index * 0.618033988749895 + 0.33) % 1.0
    r, g, b = colorsys.hsv_to_rgb(hue, 0.75, 1.0)
    return round(r * 255), round(g * 255), round(b * 255)


def draw(result: object, target: Surface | ImageLike, chosen: DrawOptions) -> Surface | ImageLike:
    """Draw a result on a picture, and return a new one; or on a surface, and return it."""
    if chosen.color is not None:
        color_to_rgba(chosen.color)
    if isinstance(target, Surface):
        target.batch(list(_commands(result, target.size, chosen)))
        return target
    picture = read_rgb(target, "draw")
    return picture.give(_drawn(result, host_pixels(picture), chosen))


def _drawn(result: object, pixels: NDArray, chosen: DrawOptions) -> NDArray:
    """Return pixels with a result drawn on them, of the same dtype and channels."""
    height, width = pixels.shape[:2]
    floats = pixels.dtype != np.uint8
    if floats:
        pixels = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    below = pixels if channels == 4 else rgba(pixels, None)
    size = width, height
    layer = _layer(result, size, chosen)
    if layer is not None:  # blended by a kernel, which is faster than a sprite of the whole size
        both = (from_dlpack(np.ascontiguousarray(p), device="cpu") for p in (below, layer))
        below = get_kernel("overlay_alpha")(*both).numpy()
    commands = list(_commands(result, size, chosen, masked=layer is not None))
    made = below
    if commands or made is pixels:
        with create_surface(width, height) as surface:
            surface.set_pixels(below)
            surface.batch(commands)
            made = surface.to_array()
    if channels == 1:
        weights = np.array([0.299, 0.587, 0.114])
        made = np.rint(made[..., :3] @ weights).astype(np.uint8).reshape(pixels.shape)
    elif channels == 3:
        drawn, made = made, np.empty((height, width, 3), np.uint8)
        for k in range(3):
            made[..., k] = drawn[..., k]
    return made.astype(np.float32) / np.float32(255) if floats else made


def _commands(
    result: object, size: tuple[int, int], chosen: DrawOptions, masked: bool = False
) -> Iterator[bytes]:
    """Yield the commands that draw a result, without its mask if ``masked``."""
    line = chosen.width or max(2, round(min(size) / 240))
    if not masked and (layer := _layer(result, size, chosen)) is not None:
        yield from _sprite(layer, 0, 0)
    if isinstance(result, Segmentation):
        yield from _names(result, size, chosen)
    elif isinstance(result, Matte):
        pass
    elif isinstance(result, Scores):
        rows = [str(Classification(*row)) for row in result.top(5)]
        yield from _label("\n".join(rows), 8, 8, size, chosen, (0, 0, 0, 180))
    else:
        for k, found in enumerate(result if isinstance(result, list) else [result]):
            if isinstance(found, Pose):
                color = chosen.color or palette(found.id or k)
                yield from _skeleton(found.keypoints, POSE_BONES, color, line, chosen.least)
            elif isinstance(found, Detection):
                yield from _detection(found, line, size, chosen)


def _detection(
    found: Detection, line: int, size: tuple[int, int], chosen: DrawOptions
) -> Iterator[bytes]:
    id = found.id if isinstance(found, TrackedObject | Face | Hand) else 0
    color = chosen.color or palette(id or found.index)
    x1, y1, x2, y2 = (round(n) for n in found.box)
    if isinstance(found, FaceMesh):
        yield from _mesh(found, line, color)
    elif isinstance(found, Hand):
        yield from _skeleton(found.keypoints, HAND_BONES, color, line, chosen.least)
    else:
        w, h = max(1, x2 - x1), max(1, y2 - y1)
        edges = [(x1, y, w, line) for y in (y1, y2 - line)]
        edges += [(x, y1, line, h) for x in (x1, x2 - line)]
        for edge in edges:
            yield encode.encode_fill_rect(*edge, color)
    if isinstance(found, Face) and not isinstance(found, FaceMesh):
        for point in found.keypoints:
            yield _dot(point, line * 1.5, color)
    name = f"{found.side} {found.label}".lstrip() if isinstance(found, Hand) else found.label
    text = f"{f'#{id} {name}' if id else name} {found.score:.2f}"
    yield from _label(text, x1, y1, size, chosen, (*color_to_rgba(color)[:3], 220), above=True)


def _mesh(found: FaceMesh, line: int, color: ColorLike) -> Iterator[bytes]:
    """Yield the points of a mesh, and the lines of face, lips, eyes, eyebrows and irises."""
    points = [Keypoint("", x, y) for x, y in found.mesh[:, :2].tolist()]
    for point in points:
        yield _dot(point, line / 3, color)
    for path in (*FACE_PATHS, *IRIS_PATHS):
        if max(path) >= len(points):  # a mesh without irises
            continue
        for a, b in pairwise(path):
            yield from _wide_line(points[a], points[b], max(2, line // 2), "white")


def _skeleton(
    points: Sequence[Keypoint],
    bones: Sequence[tuple[str, str]],
    color: ColorLike,
    line: int,
    least: float,
) -> Iterator[bytes]:
    """Yield the lines between points, and the points, of a score of at least ``least``."""
    sure = {p.name: p for p in points if p.score >= least}
    for a, b in bones:
        if a in sure and b in sure:
            yield from _wide_line(sure[a], sure[b], line, color)
    for point in sure.values():
        yield _dot(point, line * 2, color)
        yield _dot(point, line, "white")


def _dot(point: Keypoint, radius: float, color: ColorLike) -> bytes:
    return encode.encode_fill_circle(round(point.x), round(point.y), max(1, round(radius)), color)


def _wide_line(a: Keypoint, b: Keypoint, line: int, color: ColorLike) -> Iterator[bytes]:
    """Yield a wide line as two triangles."""
    dx, dy = b.x - a.x, b.y - a.y
    length = max((dx * dx + dy * dy) ** 0.5, 1e-6)
    nx, ny = -dy / length * line / 2, dx / length * line / 2
    p = [
        (round(a.x + nx), round(a.y + ny)), (round(b.x + nx), round(b.y + ny)),
        (round(b.x - nx), round(b.y - ny)), (round(a.x - nx), round(a.y - ny)),
    ]  # fmt: skip
    yield encode.encode_fill_triangle(*p[0], *p[1], *p[2], color)
    yield encode.encode_fill_triangle(*p[0], *p[2], *p[3], color)


def _layer(result: object, size: tuple[int, int], chosen: DrawOptions) -> NDArray | None:
    """Return the mask of a result as an RGBA layer, or None if it has no mask."""
    if isinstance(result, Matte):
        _check_size(result.alpha, size)
        color = color_to_rgba(chosen.color or palette(2))
        filled = np.full(result.alpha.shape, _packed(color), np.uint32)
        return _rgba(filled, _byte(result.alpha * np.float32(chosen.opacity * color[3])))
    if not isinstance(result, Segmentation):
        return None
    classes = result.classes
    _check_size(classes, size)
    colors = np.zeros(classes.shape, np.uint32)
    alpha = np.zeros(classes.shape, np.uint8)
    for k in (k for k in result.planes or np.unique(classes).tolist() if k):
        part = classes == k
        if part.any():
            color = color_to_rgba(chosen.color or palette(k))
            share = result.planes.get(k, np.ones(1, np.float32))
            np.copyto(colors, _packed(color), where=part)
            np.copyto(alpha, _byte(share * np.float32(chosen.opacity * color[3])), where=part)
    return _rgba(colors, alpha)


def _rgba(colors: NDArray, alpha: NDArray) -> NDArray:
    made = colors.view(np.uint8).reshape(*colors.shape, 4)
    made[..., 3] = alpha
    return made


def _byte(alpha: NDArray) -> NDArray:
    """Round to u8."""
    return (np.minimum(alpha, 255) + np.float32(0.5)).astype(np.uint8)


def _names(found: Segmentation, size: tuple[int, int], chosen: DrawOptions) -> Iterator[bytes]:
    """Yield the label of each class that covers part of the picture, at its center."""
    if not chosen.labels:
        return
    step = max(1, min(size) // 256)  # the position need not be exact
    coarse = found.classes[::step, ::step]
    for k in np.unique(coarse).tolist():
        spots = np.argwhere(coarse == k) if k else ()
        if len(spots) and len(spots) * 200 >= coarse.size:
            y, x = np.median(spots, axis=0) * step
            behind = (*color_to_rgba(chosen.color or palette(k))[:3], 220)
            yield from _label(name_of(found.labels, k), int(x), int(y), size, chosen, behind)


def _check_size(plane: NDArray, size: tuple[int, int]) -> None:
    height, width = plane.shape
    if (width, height) != tuple(size):
        raise ShapeMismatch(
            f"draw: target must be {width} x {height} as the picture of the result, got "
            f"{size[0]} x {size[1]}."
        )


def _packed(color: bytes) -> np.uint32:
    """Return a color as an integer with the bytes of an RGBA pixel, with alpha 0."""
    found: np.uint32 = np.frombuffer(bytes([*color[:3], 0]), np.uint32)[0]
    return found


def _label(
    text: str,
    x: int,
    y: int,
    size: tuple[int, int],
    chosen: DrawOptions,
    background: tuple[int, ...],
    *,
    above: bool = False,
) -> Iterator[bytes]:
    if not chosen.labels:
        return
    from dala.media.text.text import TextStyle, set_text

    light = sum(w * c for w, c in zip((0.3, 0.59, 0.11), background, strict=False)) > 128
    style = TextStyle(
        size=max(12, round(min(size) / 32)),
        color="black" if light else "white",
        background=background,
        padding=(6, 2),
    )
    try:
        made = set_text(text, style)
    except MissingPackage as error:
        warnings.warn(f"draw: labels are not drawn. {error}", stacklevel=2)
        return
    top = y - made.height if above and y >= made.height else y
    left = max(0, min(x, size[0] - made.width))
    yield from _sprite(made.pixels, left, top)


def _sprite(pixels: NDArray, x: int, y: int) -> Iterator[bytes]:
    id, (h, w) = next(_ids), pixels.shape[:2]
    yield encode.encode_load_sprite(id, np.ascontiguousarray(pixels).tobytes(), w, h)
    yield encode.encode_blit(id, x, y)
    yield encode.encode_remove_sprite(id)
