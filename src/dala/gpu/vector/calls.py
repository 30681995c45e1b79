"""The calls of vector drawing, functions that take a surface first; methods of ``Surface`` too.

Coordinates are numbers, and the corner of a surface is (0, 0): the center of its first pixel is
(0.5, 0.5). The current transform applies to all of them.
"""

from __future__ import annotations

import contextlib
import json
import math
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, cast

from dala.errors import CommandError
from dala.gpu import command as encode
from dala.gpu.checks import renderer_of
from dala.gpu.color import known, rgba_of
from dala.gpu.paint import Gradient, Paint, Pattern
from dala.gpu.path import Path
from dala.gpu.path.numbers import IDENTITY, Matrix, matrix_of, multiplied, numbers
from dala.gpu.protocol import OPCODES
from dala.gpu.protocol import cap as caps
from dala.gpu.protocol import join as joins
from dala.gpu.protocol import rule as rules
from dala.gpu.vector import shapes
from dala.gpu.vector.fields import MAX_VERBS
from dala.gpu.vector.layers import Filter, filters_of
from dala.gpu.vector.pictures import Picture, gradient_id, picture_id, pixels_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dala.gpu.surface import Surface
    from dala.typing import ColorLike

#: Bytes of a command above which it counts against the limit on queued bytes.
LARGE: Final = 1 << 12
_HEAD, _OPAQUE = struct.Struct("<II"), b"\0\0\0\xff"


def put(s: Surface, call: str, data: bytes) -> None:
    """Queue a command that may be large."""
    renderer = renderer_of(s, call)
    (renderer.put_large if len(data) > LARGE else renderer.put)(data)


def paint_of(s: Surface, call: str, paint: Paint) -> tuple[int, bytes]:
    """Return the id of a paint, which is loaded if it is new, or 0; and a color."""
    try:
        return 0, known[paint]  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        if isinstance(paint, Gradient):
            return gradient_id(s, call, paint), _OPAQUE
        if isinstance(paint, Pattern):
            return picture_id(s, call, pixels_of(call, paint.image), paint), _OPAQUE
        return 0, rgba_of(paint, call, "paint")


def _path(call: str, path: Path | int, *, stored: bool = False) -> bytes | int:
    """Return the bytes of a path, or the id of a stored one."""
    if stored and type(path) is int:
        return path
    if not isinstance(path, Path):
        raise CommandError.invalid(call, "path", "a Path" + " or an id" * stored, path)
    verbs, points = path.verbs, path.points
    if len(verbs) > MAX_VERBS:
        raise CommandError.invalid(call, "path", f"at most {MAX_VERBS} segments", len(verbs))
    return _HEAD.pack(len(verbs), len(points)) + verbs + points.astype("<f8").tobytes()


def _fill(s: Surface, call: str, path: bytes | int, paint: Paint, rule: int = 0) -> None:
    id, color = paint_of(s, call, paint)
    if isinstance(path, int):
        put(s, call, encode.encode_fill_path(path, rules.names[rule], id, color))
    else:
        put(s, call, shapes.fill_bytes(path, id, color, rule))


def _stroke(
    s: Surface,
    call: str,
    path: bytes | int,
    paint: Paint,
    width: float,
    style: tuple[int, int, float, float] = (0, 0, 10.0, 0.0),
    dash: Sequence[float] = (),
) -> None:
    (width,) = numbers(call, "width", (width,))
    if width < 0:
        raise CommandError.invalid(call, "width", "a number of at least 0", width)
    id, color = paint_of(s, call, paint)
    if isinstance(path, int):
        pen = caps.names[style[0]], joins.names[style[1]], *style[2:]
        put(s, call, encode.encode_stroke_path(path, width, *pen, id, color, dash))
    else:
        put(s, call, shapes.stroke_bytes(path, id, color, width, style, dash))


def _draw(s: Surface, call: str, path: bytes, paint: Paint, width: float | None) -> None:
    if width is None:
        _fill(s, call, path, paint)
    else:
        _stroke(s, call, path, paint, width)


# paths ----------------------------------------------------------------------------------------
def fill(s: Surface, path: Path | int, paint: Paint, rule: str = "nonzero") -> None:
    """Fill a path. A pixel is covered by the share of its area that is inside.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     s.fill(gpu.Path.rect(0.5, 0, 2, 1), "red")
    ...     s.get_pixels().hex(" ", 4)
    'ff000080 ff0000ff ff000080'

    Args:
        s: The surface.
        path: The path, or the id of one that ``load_path`` stored; open contours are closed.
        paint: A color, gradient or pattern.
        rule: "nonzero" or "evenodd": what is inside where contours overlap.
    """
    place = rules.place("fill", "rule", rule)
    _fill(s, "fill", _path("fill", path, stored=True), paint, place)


def stroke(
    s: Surface,
    path: Path | int,
    paint: Paint,
    width: float = 1.0,
    cap: str = "butt",
    join: str = "miter",
    miter: float = 10.0,
    dash: Sequence[float] = (),
    offset: float = 0.0,
) -> None:
    """Draw the line of a path with a pen.

    >>> from dala import gpu
    >>> with gpu.create_surface(6, 1) as s:
    ...     s.stroke(gpu.Path.polyline([(0, 0.5), (6, 0.5)]), "red", dash=[2, 1])
    ...     s.to_array()[0, :, 3].tolist()
    [255, 255, 0, 255, 255, 0]

    Args:
        s: The surface.
        path: The path, or the id of one that ``load_path`` stored.
        paint: A color, gradient or pattern.
        width: The width of the line; 0 is one pixel, whatever the transform.
        cap: The ends of lines and dashes: "butt", "round" or "square".
        join: The corners: "miter", "round" or "bevel".
        miter: Corners that are longer than so many widths are beveled.
        dash: The lengths of dashes and gaps in turn.
        offset: Where in the dashes a line begins.
    """
    style = shapes.pen("stroke", cap, join, dash, miter, offset)
    _stroke(s, "stroke", _path("stroke", path, stored=True), paint, width, *style)


# shapes ---------------------------------------------------------------------------------------
def circle(
    s: Surface, cx: float, cy: float, r: float, paint: Paint, width: float | None = None
) -> None:
    """Fill a circle, or draw its outline where a width is given.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 3) as s:
    ...     s.circle(1.5, 1.5, 1, "white")
    ...     s.to_array()[..., 3].tolist()
    [[20, 116, 20], [116, 255, 116], [20, 116, 20]]
    """
    cx, cy, r = numbers("circle", "cx cy r", (cx, cy, r))
    _draw(s, "circle", shapes.ellipse("circle", cx, cy, r, r), paint, width)


def ellipse(
    s: Surface,
    cx: float,
    cy: float,
    rx: float,
    ry: float,
    paint: Paint,
    width: float | None = None,
) -> None:
    """Fill an ellipse, or draw its outline where a width is given.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 3) as s:
    ...     s.ellipse(1.5, 1.5, 1.5, 0.5, "white")
    ...     int(s.to_array()[0].max())
    0
    """
    cx, cy, rx, ry = numbers("ellipse", "cx cy rx ry", (cx, cy, rx, ry))
    _draw(s, "ellipse", shapes.ellipse("ellipse", cx, cy, rx, ry), paint, width)


def rect(
    s: Surface,
    x: float,
    y: float,
    w: float,
    h: float,
    paint: Paint,
    width: float | None = None,
    radius: float = 0.0,
) -> None:
    """Fill a rectangle, or draw its outline where a width is given.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     s.rect(0.5, 0, 2, 1, "white")
    ...     s.to_array()[0, :, 3].tolist()
    [128, 255, 128]

    Args:
        s: The surface.
        x: The left edge.
        y: The top edge.
        w: The width.
        h: The height.
        paint: A color, gradient or pattern.
        width: The width of the outline; None fills.
        radius: The radius of the corners.
    """
    x, y, w, h, radius = numbers("rect", "x y w h radius", (x, y, w, h, radius))
    _draw(s, "rect", shapes.rect("rect", x, y, w, h, radius), paint, width)


def polygon(
    s: Surface,
    points: Sequence[tuple[float, float]],
    paint: Paint,
    width: float | None = None,
) -> None:
    """Fill a polygon, or draw its outline where a width is given.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 2) as s:
    ...     s.polygon([(0, 0), (2, 0), (0, 2)], "white")
    ...     s.to_array()[..., 3].tolist()
    [[255, 128], [128, 0]]
    """
    _draw(s, "polygon", shapes.lines("polygon", points, True), paint, width)


def line(
    s: Surface,
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    paint: Paint,
    width: float = 1.0,
    cap: str = "butt",
    dash: Sequence[float] = (),
) -> None:
    """Draw a line, with the ends and dashes of ``stroke``.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 2) as s:
    ...     s.line(0, 1, 3, 1, "white")
    ...     s.to_array()[..., 3].tolist()
    [[128, 128, 128], [128, 128, 128]]
    """
    points = numbers("line", "x1 y1 x2 y2", (x1, y1, x2, y2))
    style = shapes.pen("line", cap, dash=dash)
    _stroke(s, "line", shapes.path_bytes("line", b"\0\1", points), paint, width, *style)


def polyline(
    s: Surface,
    points: Sequence[tuple[float, float]],
    paint: Paint,
    width: float = 1.0,
    cap: str = "butt",
    join: str = "miter",
    dash: Sequence[float] = (),
) -> None:
    """Draw lines through points, with the ends, corners and dashes of ``stroke``.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 2) as s:
    ...     s.polyline([(0, 0.5), (1.5, 0.5), (1.5, 2)], "white")
    ...     s.to_array()[..., 3].tolist()
    [[255, 255], [0, 255]]
    """
    style = shapes.pen("polyline", cap, join, dash)
    _stroke(s, "polyline", shapes.lines("polyline", points, False), paint, width, *style)


def arc(
    s: Surface,
    cx: float,
    cy: float,
    r: float,
    start: float,
    end: float,
    paint: Paint,
    width: float = 1.0,
    cap: str = "butt",
    dash: Sequence[float] = (),
) -> None:
    """Draw a part of a circle from an angle to another: degrees, clockwise from the x axis.

    >>> from dala import gpu
    >>> with gpu.create_surface(4, 4) as s:
    ...     s.arc(2, 2, 1.5, 0, 90, "white")
    ...     s.to_array()[2:, 2:, 3].tolist()
    [[55, 232], [232, 80]]
    """
    given = numbers("arc", "cx cy r start end", (cx, cy, r, start, end))
    style = shapes.pen("arc", cap, dash=dash)
    _stroke(s, "arc", shapes.arc("arc", *given), paint, width, *style)


# pictures -------------------------------------------------------------------------------------
def image(
    s: Surface,
    picture: Picture,
    x: float,
    y: float,
    w: float | None = None,
    h: float | None = None,
    filter: str = "linear",
) -> None:
    """Draw a picture, at any size and under any transform, with antialiased edges.

    The same pixels are loaded once, and found by their content.

    >>> import numpy as np
    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     s.image(np.full((1, 1, 4), 255, np.uint8), 0.5, 0, 2, 1)
    ...     s.to_array()[0, :, 3].tolist()
    [128, 255, 128]

    Args:
        s: The surface.
        picture: A file's name, an array (h, w, 3) or (h, w, 4) of uint8, a Frame, or a Pillow
            image.
        x: The left edge.
        y: The top edge.
        w: The width; without it, that of the picture, or what keeps its shape.
        h: The height.
        filter: "linear", with smaller levels where the picture shrinks, or "nearest".
    """
    pixels = pixels_of("image", picture)
    tall, wide = pixels.shape[:2]
    if not wide or not tall:
        return
    w, h = (v if v is None else numbers("image", n, (v,))[0] for n, v in (("w", w), ("h", h)))
    w = w if w is not None else wide if h is None else h * wide / tall
    h = h if h is not None else w * tall / wide
    x, y = numbers("image", "x y", (x, y))
    look = Pattern(pixels, repeat="pad", filter=filter)
    id = picture_id(s, "image", pixels, look)
    path = shapes.rect("image", 0.0, 0.0, float(wide), float(tall), 0.0)
    place = encode.encode_transform(w / wide, 0, 0, h / tall, x, y)
    fill = shapes.fill_bytes(path, id, _OPAQUE)
    put(s, "image", b"".join((encode.encode_push(), place, fill, encode.encode_pop())))


# state ----------------------------------------------------------------------------------------
@contextlib.contextmanager
def saved(s: Surface, call: str, data: bytes, matrix: Matrix = IDENTITY) -> Iterator[None]:
    """Push, queue commands that change the state, and pop after the block.

    Args:
        s: The surface.
        call: The name of the call in errors.
        data: The commands.
        matrix: The transform that they set; the surface remembers it for text.
    """
    put(s, call, encode.encode_push() + data)
    s._matrices.append(multiplied(s._matrices[-1], matrix))
    s._note_push()
    try:
        yield
    finally:
        if len(s._matrices) > 1:
            s._matrices.pop()
        if not s.closed:
            s._note_push()
            put(s, call, encode.encode_pop())


@contextlib.contextmanager
def transformed(
    s: Surface,
    translate: Sequence[float] = (0.0, 0.0),
    rotate: float = 0.0,
    scale: float | Sequence[float] = 1.0,
    matrix: ArrayLike | None = None,
) -> Iterator[None]:
    """Transform the drawing in the block.

    ``matrix`` is applied first, then ``scale``, ``rotate`` and ``translate``.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     with s.transformed(translate=(2, 0)):
    ...         s.rect(0, 0, 1, 1, "red")
    ...     s.get_pixels().hex(" ", 4)
    '00000000 00000000 ff0000ff'

    Args:
        s: The surface.
        translate: The distances along x and y.
        rotate: Degrees, clockwise on the screen, about the origin.
        scale: One factor, or one for x and one for y.
        matrix: Six numbers (a, b, c, d, e, f), as on an HTML canvas and in SVG: x becomes
            a*x + c*y + e, and y becomes b*x + d*y + f. Or an array of 2 x 3 or 3 x 3.
    """
    found = matrix_of("transformed", translate, rotate, scale, matrix)
    with saved(s, "transformed", encode.encode_transform(*found), found):
        yield


@contextlib.contextmanager
def clip(s: Surface, path: Path, rule: str = "nonzero") -> Iterator[None]:
    """Limit the drawing in the block to the inside of a path, antialiased.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     with s.clip(gpu.Path.rect(0.5, 0, 2, 1)):
    ...         s.rect(0, 0, 3, 1, "red")
    ...     s.to_array()[0, :, 3].tolist()
    [128, 255, 128]

    Args:
        s: The surface.
        path: The path. A clip in a clip is the inside of both.
        rule: "nonzero" or "evenodd": what is inside where contours overlap.
    """
    place = rules.place("clip", "rule", rule)
    shape = cast("bytes", _path("clip", path))
    with saved(s, "clip", bytes((OPCODES["clip_shape"], place)) + shape):
        yield


@contextlib.contextmanager
def layer(
    s: Surface,
    opacity: float = 1.0,
    blend: str = "over",
    shadow: tuple[float, float, float, ColorLike] | None = None,
    blur: float = 0.0,
    filters: Sequence[Filter] = (),
) -> Iterator[None]:
    """Draw the block apart, and blend it as a whole when it ends.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     with s.layer(opacity=0.5):
    ...         s.rect(0, 0, 2, 1, "red")
    ...         s.rect(1, 0, 1, 1, "blue")
    ...     s.get_pixels().hex(" ", 4)
    'ff000080 0000ff80'

    Args:
        s: The surface.
        opacity: From 0 to 1.
        blend: How it is blended: "over", "multiply", "screen" and the other modes of scenes; or
            an operator of Porter and Duff such as "source-in", "destination-out" or "xor".
        shadow: A shadow below it: its distances along x and y, its blur and its color.
        blur: The standard deviation of a blur of the layer, in pixels.
        filters: Filters that the layer goes through first: names, or pairs of a name and its
            parameters, which are numbers, lists of them and words. Blurs soften its alpha too.
    """
    given: list[object] = []
    for each in filters:
        name, settings = (each, {}) if isinstance(each, str) else cast("tuple[str, object]", each)
        given.append((name, settings))
    (blur,) = numbers("layer", "blur", (blur,))
    if blur > 0:
        given.append(("blur", {"radius": math.ceil(2 * blur), "sigma": blur}))
    if shadow is not None:
        x, y, soft = numbers("layer", "shadow shadow shadow", tuple(shadow[:3]))
        color = [*rgba_of(shadow[3], "layer", "shadow")]
        given.append(("shadow", {"x": x, "y": y, "blur": soft, "color": color}))
    try:
        text = json.dumps(given) if given else ""
    except (TypeError, ValueError):
        expected = "names, or pairs of a name and parameters that are numbers or words"
        raise CommandError.invalid("layer", "filters", expected, filters) from None
    filters_of(text)
    put(s, "layer", encode.encode_begin_layer(opacity, blend, text))
    try:
        yield
    finally:
        if not s.closed:
            put(s, "layer", encode.encode_end_layer())


__all__ = [
    "arc", "circle", "clip", "ellipse", "fill", "image", "layer", "line", "polygon", "polyline",
    "rect", "stroke", "transformed",
]  # fmt: skip
