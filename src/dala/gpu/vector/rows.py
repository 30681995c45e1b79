# mypy: disable-error-code="valid-type"
"""The commands of vector drawing, one declaration each, as those in ``dala.gpu.command``."""

from dala.gpu.protocol import *


@command(0x1B)
def load_path(id: u64, path: path) -> None:
    """Store a path, to be drawn by its id.

    >>> encode_load_path(1, PathData(bytes([0, 1, 1]), bytes(48))).hex()[:26]
    '1b010000000000000003000000'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_path(s, 1, gpu.Path.rect(0, 0, 1, 1))
    """


@command(0x1C)
def remove_path(id: u64) -> None:
    """Remove a stored path. An unknown id is ignored.

    >>> encode_remove_path(7).hex(" ", 8)
    '1c 0700000000000000'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_path(s, 7, gpu.Path.circle(1, 1, 1))
    ...     gpu.remove_path(s, 7)
    """


@command(0x1D, call="fill", vector=True)
def fill_path(id: u64, rule: rule, paint: u64, color: rgba) -> None:
    """Fill a stored path with a paint, or a color where ``paint`` is 0.

    >>> decode(encode_fill_path(7, "evenodd", 0, "red"))
    [<fill_path id=7 rule='evenodd' paint=0 color=(255, 0, 0, 255) at 0>]
    """


@command(0x1E, call="stroke", vector=True)
def stroke_path(
    id: u64,
    width: f64,
    cap: cap,
    join: join,
    miter: f64,
    offset: f64,
    paint: u64,
    color: rgba,
    dash: numbers,
) -> None:
    """Stroke a stored path: draw its outline with a pen. A width of 0 is one pixel everywhere.

    >>> decode(encode_stroke_path(7, 2, "round", "miter", 10, 0, 0, "red", [4, 2]))[0].dash
    (4.0, 2.0)
    """


@command(0x1F, call="fill", vector=True)
def fill_shape(rule: rule, paint: u64, color: rgba, path: path) -> None:
    """Fill a path that is part of the command.

    >>> encode_fill_shape("evenodd", 0, "red", PathData(bytes([0, 1, 1]), bytes(48)))[:2].hex()
    '1f01'
    """


@command(0x20, call="stroke", vector=True)
def stroke_shape(
    width: f64,
    cap: cap,
    join: join,
    miter: f64,
    offset: f64,
    paint: u64,
    color: rgba,
    dash: numbers,
    path: path,
) -> None:
    """Stroke a path that is part of the command.

    >>> encode_stroke_shape(
    ...     2, "butt", "miter", 10, 0, 0, "red", (), PathData(bytes([0, 1]), bytes(32))
    ... )[:9].hex()
    '200000000000000040'
    """


@command(0x21, vector=True)
def push() -> None:
    """Save the transform and the clips, until :func:`pop`.

    >>> encode_push()
    b'!'
    """


@command(0x22, vector=True)
def pop() -> None:
    """Restore the transform and the clips of the last :func:`push`.

    >>> encode_pop()
    b'"'
    """


@command(0x23, vector=True)
def transform(a: f64, b: f64, c: f64, d: f64, e: f64, f: f64) -> None:
    """Change the coordinates of later drawing: x, y become a*x + c*y + e, b*x + d*y + f.

    >>> decode(encode_transform(1, 0, 0, 1, 10, 20))
    [<transform a=1.0 b=0.0 c=0.0 d=1.0 e=10.0 f=20.0 at 0>]
    """


@command(0x24, call="clip", vector=True)
def clip_shape(rule: rule, path: path) -> None:
    """Limit drawing to the inside of a path until :func:`pop`.

    >>> encode_clip_shape("nonzero", PathData(bytes([0, 1, 1]), bytes(48)))[:2].hex()
    '2400'
    """


@command(0x25)
def load_gradient(
    id: u64,
    kind: gradient,
    spread: spread,
    space: space,
    dither: flag,
    a: f64,
    b: f64,
    c: f64,
    d: f64,
    e: f64,
    f: f64,
    stops: numbers,
) -> None:
    """Store a gradient as a paint. Its matrix maps x, y to a*x + c*y + e, b*x + d*y + f.

    A linear gradient goes from 0 to 1 along the first of them, a radial one with their distance
    from 0, a conic one with their angle in turns. ``stops`` are five numbers each: a place from 0
    to 1, and red, green, blue and alpha up to 255.

    >>> encode_load_gradient(
    ...     1, "radial", "pad", "oklab", True, 1, 0, 0, 1, 0, 0, [0, 255, 0, 0, 255]
    ... )[9:13].hex()
    '01000201'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     stops = [0, 255, 0, 0, 255, 1, 0, 0, 255, 255]
    ...     gpu.load_gradient(s, 1, "linear", "pad", "srgb", False, 0.5, 0, 0, 0, 0, 0, stops)
    """


@command(0x26)
def load_pattern(
    id: u64,
    image: u64,
    spread: spread,
    sampling: sampling,
    a: f64,
    b: f64,
    c: f64,
    d: f64,
    e: f64,
    f: f64,
) -> None:
    """Store a loaded image as a paint. Its matrix maps x, y to the pixels of the image.

    >>> decode(encode_load_pattern(2, 1, "repeat", "nearest", 1, 0, 0, 1, 0, 0))[0].sampling
    'nearest'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_image(s, 1, bytes(4), 1, 1)
    ...     gpu.load_pattern(s, 2, 1, "repeat", "linear", 1, 0, 0, 1, 0, 0)
    """


@command(0x27)
def remove_paint(id: u64) -> None:
    """Remove a stored paint. An unknown id is ignored.

    >>> encode_remove_paint(7).hex(" ", 8)
    '27 0700000000000000'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     stops = [0, 255, 0, 0, 255, 1, 0, 0, 255, 255]
    ...     gpu.load_gradient(s, 7, "linear", "pad", "srgb", False, 0.5, 0, 0, 0, 0, 0, stops)
    ...     gpu.remove_paint(s, 7)
    """


@command(0x28, call="layer")
def begin_layer(opacity: f64, blend: blend, filters: text) -> None:
    """Begin a layer, which ``end_layer`` blends. ``filters`` are JSON.

    >>> decode(encode_begin_layer(0.5, "multiply", '[["blur", {"radius": 3}]]'))[0].blend
    'multiply'
    """


@command(0x29, call="layer")
def end_layer() -> None:
    """Blend a layer with the pixels below it.

    >>> encode_end_layer()
    b')'
    """


@command(0x2A)
def load_mask(id: u64, w: u32, h: u32, coverage: data) -> None:
    """Store a mask, one byte of coverage a pixel, row by row.

    >>> encode_load_mask(1, 2, 1, bytes([255, 128])).hex()[-12:]
    '02000000ff80'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_mask(s, 1, 2, 1, bytes([255, 128]))
    """


@command(0x2B)
def remove_mask(id: u64) -> None:
    """Remove a stored mask. An unknown id is ignored.

    >>> encode_remove_mask(7).hex(" ", 8)
    '2b 0700000000000000'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_mask(s, 7, 1, 1, bytes([255]))
    ...     gpu.remove_mask(s, 7)
    """


@command(0x2C, vector=True)
def draw_masks(paint: u64, color: rgba, places: places) -> None:
    """Draw a color or paint through masks.

    Each is at a place of the surface in whole pixels, which no transform changes.

    >>> decode(encode_draw_masks(0, "red", [(1, 20, 30)]))
    [<draw_masks paint=0 color=(255, 0, 0, 255) places=((1, 20, 30),) at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.load_mask(s, 1, 2, 1, bytes([255, 128]))
    ...     gpu.draw_masks(s, 0, "red", [(1, 1, 0)])
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00000000 ff0000ff ff000080'
    """
