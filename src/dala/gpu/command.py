"""Encoders for the command protocol of surfaces.

Each ``encode_*`` function returns the bytes of one command. Commands can be joined, batched, stored
and sent; ``Surface.batch`` and ``Surface.submit`` execute them as they are. The protocol itself is
the table in ``dala.gpu.protocol``.

>>> encode_fill_rect(1, 2, 3, 4, "red").hex(" ", 4)
'02 01000000 02000000 03000000 04000000 ff0000ff'
>>> decode(encode_fill_rect(1, 2, 3, 4, "red"))
[<fill_rect x=1 y=2 w=3 h=4 color=(255, 0, 0, 255) at 0>]
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dala.arguments import items_of
from dala.errors import CommandError
from dala.gpu.color import color_to_rgba, known
from dala.gpu.protocol import (
    BY_NAME,
    COMMANDS,
    BytesLike,
    DrawCommand,
    as_pixels,
    decode,
    encode_commands,
    packer,
)

if TYPE_CHECKING:
    from dala.typing import ColorLike

__all__ = [
    "Command",
    "DrawCommand",
    "color_to_rgba",
    "decode",
    *(f"encode_{row.name}" for row in COMMANDS),
]

#: The former name of :class:`DrawCommand`.
Command = DrawCommand

# Encoders of commands of fixed size first pack their values as they are, with a color that was
# converted before. Values that this fails for are checked and converted one by one.
_UNUSUAL: Final = (struct.error, TypeError, KeyError, OverflowError, ValueError)
_clear = packer("clear")
_fill_rect = packer("fill_rect")
_draw_line = packer("draw_line")
_blit = packer("blit")
_draw_circle = packer("draw_circle")
_fill_circle = packer("fill_circle")
_draw_triangle = packer("draw_triangle")
_fill_triangle = packer("fill_triangle")
_draw_round_rect = packer("draw_round_rect")
_fill_round_rect = packer("fill_round_rect")
_draw_round_rect_signed = packer("draw_round_rect_signed")
_fill_round_rect_signed = packer("fill_round_rect_signed")
_image_blit = packer("image_blit")


def _encode(name: str, *values: object) -> bytes:
    return BY_NAME[name].encode(values)


def encode_clear(color: ColorLike) -> bytes:
    """Return a command that fills the clip with a color, alpha included, without blending.

    >>> encode_clear("red").hex()
    '01ff0000ff'
    """
    try:
        return _clear(known[color])
    except _UNUSUAL:
        return _encode("clear", color)


def encode_fill_rect(x: int, y: int, w: int, h: int, color: ColorLike) -> bytes:
    """Return a command that fills a rectangle.

    >>> encode_fill_rect(1, 2, 3, 4, "red").hex(" ", 4)
    '02 01000000 02000000 03000000 04000000 ff0000ff'
    """
    try:
        return _fill_rect(x, y, w, h, known[color])
    except _UNUSUAL:
        return _encode("fill_rect", x, y, w, h, color)


def encode_draw_line(x1: int, y1: int, x2: int, y2: int, color: ColorLike) -> bytes:
    """Return a command that draws a line, both ends included (Bresenham).

    >>> encode_draw_line(-1, 0, 9, 4, "red").hex(" ", 4)
    '03 ffffffff 00000000 09000000 04000000 ff0000ff'
    """
    try:
        return _draw_line(x1, y1, x2, y2, known[color])
    except _UNUSUAL:
        return _encode("draw_line", x1, y1, x2, y2, color)


def encode_blit(id: int, x: int, y: int) -> bytes:
    """Return a command that draws a loaded sprite at its own size.

    >>> encode_blit(7, 10, 20).hex(" ", 4)
    '04 07000000 00000000 0a000000 14000000'
    """
    try:
        return _blit(id, x, y)
    except _UNUSUAL:
        return _encode("blit", id, x, y)


def encode_present() -> bytes:
    """Return a command that presents the frame.

    >>> encode_present()
    b'\\x05'
    """
    return b"\x05"


def encode_resize(w: int, h: int) -> bytes:
    """Return a command that resizes the surface.

    >>> encode_resize(640, 480).hex(" ", 4)
    '06 80020000 e0010000'
    """
    return _encode("resize", w, h)


def encode_load_sprite(id: int, pixels: BytesLike, w: int, h: int) -> bytes:
    """Return a command that loads w x h RGBA pixels as a sprite.

    >>> encode_load_sprite(7, b"RGBA", 1, 1).hex(" ", 4)
    '07 07000000 00000000 01000000 01000000 52474241'
    """
    return _encode("load_sprite", id, w, h, as_pixels("load_sprite", pixels, w, h))


def encode_remove_sprite(id: int) -> bytes:
    """Return a command that removes a sprite.

    >>> encode_remove_sprite(7).hex(" ", 8)
    '08 0700000000000000'
    """
    return _encode("remove_sprite", id)


def encode_dispatch_compute(
    shader: str, params: BytesLike = b"", workgroups: tuple[int, int, int] = (1, 1, 1)
) -> bytes:
    """Return a command that runs a shader, given by name or source, over the pixels.

    >>> decode(encode_dispatch_compute("blur", b"1234", (8, 8, 1)))
    [<dispatch_compute shader='blur' params=<4 bytes> x=8 y=8 z=1 at 0>]
    """
    sizes = items_of(workgroups)
    if sizes is None or len(sizes) != 3:
        raise CommandError.invalid(
            "dispatch_compute", "workgroups", "three ints (x, y, z)", workgroups
        )
    return _encode("dispatch_compute", shader, params, *sizes)


def encode_read_pixels(x: int, y: int, w: int, h: int) -> bytes:
    """Return a command that reads a rectangle of pixels; see ``Surface.take_reads``.

    >>> decode(encode_read_pixels(0, 0, 8, 4))
    [<read_pixels x=0 y=0 w=8 h=4 at 0>]
    """
    return _encode("read_pixels", x, y, w, h)


def encode_load_shader(name: str, source: str) -> bytes:
    """Return a command that loads a shader under a name.

    >>> decode(encode_load_shader("invert", "def invert(px: Pixel): ..."))
    [<load_shader name='invert' source='def invert(px: Pixel): ...' at 0>]
    """
    return _encode("load_shader", name, source)


def encode_set_uniform(name: str, data: BytesLike) -> bytes:
    """Return a command that sets the bytes of a uniform.

    >>> decode(encode_set_uniform("tint", b"1234"))
    [<set_uniform name='tint' data=<4 bytes> at 0>]
    """
    return _encode("set_uniform", name, data)


def encode_draw_circle(cx: int, cy: int, radius: int, color: ColorLike) -> bytes:
    """Return a command that draws the outline of a circle (midpoint).

    >>> encode_draw_circle(8, 9, 5, "red").hex(" ", 4)
    '0d 08000000 09000000 05000000 ff0000ff'
    """
    try:
        return _draw_circle(cx, cy, radius, known[color])
    except _UNUSUAL:
        return _encode("draw_circle", cx, cy, radius, color)


def encode_fill_circle(cx: int, cy: int, radius: int, color: ColorLike) -> bytes:
    """Return a command that fills a circle.

    >>> encode_fill_circle(8, 9, 5, "red").hex(" ", 4)
    '0e 08000000 09000000 05000000 ff0000ff'
    """
    try:
        return _fill_circle(cx, cy, radius, known[color])
    except _UNUSUAL:
        return _encode("fill_circle", cx, cy, radius, color)


def encode_draw_triangle(
    x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: ColorLike
) -> bytes:
    """Return a command that draws the outline of a triangle.

    >>> decode(encode_draw_triangle(0, 0, 9, 0, 0, 9, "red"))
    [<draw_triangle x1=0 y1=0 x2=9 y2=0 x3=0 y3=9 color=(255, 0, 0, 255) at 0>]
    """
    try:
        return _draw_triangle(x1, y1, x2, y2, x3, y3, known[color])
    except _UNUSUAL:
        return _encode("draw_triangle", x1, y1, x2, y2, x3, y3, color)


def encode_fill_triangle(
    x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: ColorLike
) -> bytes:
    """Return a command that fills a triangle.

    >>> decode(encode_fill_triangle(0, 0, 9, 0, 0, 9, "red"))
    [<fill_triangle x1=0 y1=0 x2=9 y2=0 x3=0 y3=9 color=(255, 0, 0, 255) at 0>]
    """
    try:
        return _fill_triangle(x1, y1, x2, y2, x3, y3, known[color])
    except _UNUSUAL:
        return _encode("fill_triangle", x1, y1, x2, y2, x3, y3, color)


def encode_draw_round_rect(x: int, y: int, w: int, h: int, radius: int, color: ColorLike) -> bytes:
    """Return a command that draws the outline of a rectangle with round corners.

    >>> decode(encode_draw_round_rect(0, 0, 20, 10, 3, "red"))
    [<draw_round_rect x=0 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]
    """
    try:
        return _draw_round_rect(x, y, w, h, radius, known[color])
    except _UNUSUAL:
        return _encode("draw_round_rect", x, y, w, h, radius, color)


def encode_fill_round_rect(x: int, y: int, w: int, h: int, radius: int, color: ColorLike) -> bytes:
    """Return a command that fills a rectangle with round corners.

    >>> decode(encode_fill_round_rect(0, 0, 20, 10, 3, "red"))
    [<fill_round_rect x=0 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]
    """
    try:
        return _fill_round_rect(x, y, w, h, radius, known[color])
    except _UNUSUAL:
        return _encode("fill_round_rect", x, y, w, h, radius, color)


def encode_set_clip(x: int, y: int, w: int, h: int, enabled: bool = True) -> bytes:
    """Return a command that limits drawing to a rectangle; ``enabled=False`` removes the clip.

    >>> decode(encode_set_clip(4, 4, 8, 8))
    [<set_clip x=4 y=4 w=8 h=8 enabled=True at 0>]
    """
    if not isinstance(enabled, bool | int):
        raise CommandError.invalid("set_clip", "enabled", "True or False", enabled)
    return _encode("set_clip", x, y, w, h, bool(enabled))


def encode_reset_clip() -> bytes:
    """Return a command that removes the clip.

    >>> encode_reset_clip()
    b'\\x14'
    """
    return b"\x14"


def encode_batch(commands: Iterable[bytes]) -> bytes:
    """Return a command that executes commands together: no reader sees only some of them.

    >>> encode_batch([encode_reset_clip(), encode_present()]).hex(" ")
    '15 02 00 00 00 14 05'
    """
    items = command_list(commands)
    try:
        if all(items):
            return encode_commands(items)
    except (TypeError, ValueError):  # not bytes; the loop below finds out which
        pass
    for n, item in enumerate(items):
        if not isinstance(item, (bytes, bytearray, memoryview)) or not len(item):
            raise CommandError.invalid("batch", f"commands[{n}]", "bytes made by encode_*", item)
    return encode_commands(items)


def command_list(commands: Iterable[bytes]) -> list[bytes]:
    """Return the commands of a batch as a list.

    >>> command_list(iter([encode_present()]))
    [b'\\x05']
    """
    found = items_of(commands)
    if found is None:
        raise CommandError.invalid(
            "batch", "commands", "a list of commands made by encode_*", commands
        )
    return found


def encode_image_blit(id: int, x: int, y: int, w: int, h: int) -> bytes:
    """Return a command that draws a loaded image, scaled to w x h.

    >>> decode(encode_image_blit(7, 10, 20, 64, 48))
    [<image_blit id=7 x=10 y=20 w=64 h=48 at 0>]
    """
    try:
        return _image_blit(id, x, y, w, h)
    except _UNUSUAL:
        return _encode("image_blit", id, x, y, w, h)


def encode_load_image(id: int, pixels: BytesLike, w: int, h: int) -> bytes:
    """Return a command that loads w x h RGBA pixels as an image.

    >>> decode(encode_load_image(7, b"RGBA", 1, 1))
    [<load_image id=7 w=1 h=1 pixels=<4 bytes> at 0>]
    """
    return _encode("load_image", id, w, h, as_pixels("load_image", pixels, w, h))


def encode_remove_image(id: int) -> bytes:
    """Return a command that removes an image.

    >>> encode_remove_image(7).hex(" ", 8)
    '18 0700000000000000'
    """
    return _encode("remove_image", id)


def encode_draw_round_rect_signed(
    x: int, y: int, w: int, h: int, radius: int, color: ColorLike
) -> bytes:
    """Return a command that outlines a round rectangle whose position may be negative.

    >>> decode(encode_draw_round_rect_signed(-4, 0, 20, 10, 3, "red"))
    [<draw_round_rect_signed x=-4 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]
    """
    try:
        return _draw_round_rect_signed(x, y, w, h, radius, known[color])
    except _UNUSUAL:
        return _encode("draw_round_rect_signed", x, y, w, h, radius, color)


def encode_fill_round_rect_signed(
    x: int, y: int, w: int, h: int, radius: int, color: ColorLike
) -> bytes:
    """Return a command that fills a round rectangle whose position may be negative.

    >>> decode(encode_fill_round_rect_signed(-4, 0, 20, 10, 3, "red"))
    [<fill_round_rect_signed x=-4 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]
    """
    try:
        return _fill_round_rect_signed(x, y, w, h, radius, known[color])
    except _UNUSUAL:
        return _encode("fill_round_rect_signed", x, y, w, h, radius, color)
