"""The commands of surfaces, one declaration each, and their encoders.

A declaration's name, arguments and docstring are those of the command, the annotations the kinds of
its fields (see ``dala.gpu.protocol``). From it are derived ``encode_<name>`` in this module, the
call in ``dala.gpu`` and the method of ``Surface``, decoding, checks in native code, the type stubs
and the table of the documentation.

Each ``encode_*`` function returns the bytes of one command. Commands can be joined, batched, stored
and sent; ``Surface.batch`` and ``Surface.submit`` execute them as they are.

>>> encode_fill_rect(1, 2, 3, 4, "red").hex(" ", 4)
'02 01000000 02000000 03000000 04000000 ff0000ff'
>>> decode(encode_fill_rect(1, 2, 3, 4, "red"))
[<fill_rect x=1 y=2 w=3 h=4 color=(255, 0, 0, 255) at 0>]
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dala.arguments import items_of
from dala.errors import CommandError
from dala.gpu.color import color_to_rgba
from dala.gpu.derive import encoders
from dala.gpu.protocol import (
    COMMANDS,
    BytesLike,
    DrawCommand,
    command,
    commands,
    data,
    decode,
    encode_commands,
    flag,
    i32,
    pixels,
    rgba,
    text,
    u32,
    u64,
)
from dala.gpu.protocol import (
    PathData as PathData,
)

if TYPE_CHECKING:
    from dala.typing import ColorLike as ColorLike

#: The former name of :class:`DrawCommand`.
Command = DrawCommand


@command(0x01, draws="clear")
def clear(color: rgba) -> None:
    """Fill the clip with a color that replaces alpha and does not blend.

    >>> encode_clear("red").hex()
    '01ff0000ff'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "#ff000080")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff000080 ff000080'
    """


@command(0x02, draws="rect")
def fill_rect(x: u32, y: u32, w: u32, h: u32, color: rgba) -> None:
    """Fill a rectangle. Its position may be negative.

    >>> encode_fill_rect(1, 2, 3, 4, "red").hex(" ", 4)
    '02 01000000 02000000 03000000 04000000 ff0000ff'

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.fill_rect(s, 1, 0, 2, 1, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00000000 ff0000ff ff0000ff'
    """


@command(0x03, draws="line")
def draw_line(x1: i32, y1: i32, x2: i32, y2: i32, color: rgba) -> None:
    """Draw a line, both ends included (Bresenham).

    >>> encode_draw_line(-1, 0, 9, 4, "red").hex(" ", 4)
    '03 ffffffff 00000000 09000000 04000000 ff0000ff'

    >>> from dala import gpu
    >>> with gpu.create_surface(4, 4) as s:
    ...     gpu.draw_line(s, 0, 0, 3, 3, "white")
    ...     int(s.to_array()[..., 3].sum()) // 255
    4
    """


@command(0x04)
def blit(id: u64, x: i32, y: i32) -> None:
    """Draw a sprite at its own size; see :func:`load_sprite`.

    >>> encode_blit(7, 10, 20).hex(" ", 4)
    '04 07000000 00000000 0a000000 14000000'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_sprite(s, 7, bytes([0, 255, 0, 255]), 1, 1)
    ...     gpu.blit(s, 7, 0, 0)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00ff00ff 00000000'
    """


@command(0x05)
def present() -> None:
    """Present the frame. Drawing continues from its pixels.

    >>> encode_present()
    b'\\x05'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.present(s)
    ...     s.synchronize()
    ...     s.stats["frames"]
    1
    """


@command(0x06)
def resize(w: u32, h: u32) -> None:
    """Resize the surface.

    >>> encode_resize(640, 480).hex(" ", 4)
    '06 80020000 e0010000'
    """


@command(0x07, call="load_sprite id rgba w h")
def load_sprite(id: u64, pixels: pixels, w: u32, h: u32) -> None:
    """Load w x h RGBA pixels as a sprite, to be drawn at their own size.

    >>> encode_load_sprite(7, b"RGBA", 1, 1).hex(" ", 4)
    '07 07000000 00000000 01000000 01000000 52474241'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_sprite(s, 7, bytes([0, 255, 0, 255]), 1, 1)
    ...     gpu.blit(s, 7, 1, 0)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00000000 00ff00ff'
    """


@command(0x08)
def remove_sprite(id: u64) -> None:
    """Remove a sprite. An unknown id is ignored.

    >>> encode_remove_sprite(7).hex(" ", 8)
    '08 0700000000000000'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_sprite(s, 7, bytes(4), 1, 1)
    ...     gpu.remove_sprite(s, 7)
    """


@command(0x09)
def dispatch_compute(shader: text, params: data, x: u32, y: u32, z: u32) -> None:
    """Run a shader, given by name or source, over the pixels."""


@command(0x0A)
def read_pixels(x: u32, y: u32, w: u32, h: u32) -> None:
    """Read a rectangle of pixels; see ``Surface.take_reads``.

    >>> decode(encode_read_pixels(0, 0, 8, 4))
    [<read_pixels x=0 y=0 w=8 h=4 at 0>]
    """


@command(0x0B)
def load_shader(name: text, source: text) -> None:
    """Load a shader, WGSL or kernel text, under a name.

    >>> decode(encode_load_shader("invert", "def invert(px: Pixel): ..."))
    [<load_shader name='invert' source='def invert(px: Pixel): ...' at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.clear(s, "white")
    ...     gpu.load_shader(s, "dim", "def dim(px: Pixel): return rgba(px.r, px.g, 0.0, px.a)")
    ...     gpu.dispatch_compute(s, "dim")
    ...     gpu.get_pixels(s).hex()
    'ffff00ff'
    """


@command(0x0C)
def set_uniform(name: text, data: data) -> None:
    """Set the bytes of a uniform, which shaders read by its name.

    >>> decode(encode_set_uniform("tint", b"1234"))
    [<set_uniform name='tint' data=<4 bytes> at 0>]

    >>> import struct
    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.set_uniform(s, "red", struct.pack("<f", 1.0))
    ...     text = "def fill(px: Pixel, *, red=0.0): return rgba(red, 0.0, 0.0, 1.0)"
    ...     gpu.dispatch_compute(s, text)
    ...     gpu.get_pixels(s).hex()
    'ff0000ff'
    """


@command(0x0D, draws="circle", call="draw_circle cx cy r color")
def draw_circle(cx: i32, cy: i32, radius: u32, color: rgba) -> None:
    """Draw the outline of a circle (midpoint).

    >>> encode_draw_circle(8, 9, 5, "red").hex(" ", 4)
    '0d 08000000 09000000 05000000 ff0000ff'

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.draw_circle(s, 4, 4, 3, "white")
    ...     gpu.read_pixels(s, 7, 4, 1, 1), gpu.read_pixels(s, 4, 4, 1, 1)
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x00\\x00')
    """


@command(0x0E, draws="circle", call="fill_circle cx cy r color")
def fill_circle(cx: i32, cy: i32, radius: u32, color: rgba) -> None:
    """Fill a circle: the outline of the same radius and everything inside it.

    >>> encode_fill_circle(8, 9, 5, "red").hex(" ", 4)
    '0e 08000000 09000000 05000000 ff0000ff'

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.fill_circle(s, 4, 4, 3, "white")
    ...     gpu.read_pixels(s, 4, 4, 1, 1)
    b'\\xff\\xff\\xff\\xff'
    """


@command(0x0F, draws="triangle")
def draw_triangle(x1: i32, y1: i32, x2: i32, y2: i32, x3: i32, y3: i32, color: rgba) -> None:
    """Draw the outline of a triangle.

    >>> decode(encode_draw_triangle(0, 0, 9, 0, 0, 9, "red"))
    [<draw_triangle x1=0 y1=0 x2=9 y2=0 x3=0 y3=9 color=(255, 0, 0, 255) at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(5, 5) as s:
    ...     gpu.draw_triangle(s, 0, 0, 4, 0, 0, 4, "white")
    ...     int(s.to_array()[..., 3].sum()) // 255
    12
    """


@command(0x10, draws="triangle")
def fill_triangle(x1: i32, y1: i32, x2: i32, y2: i32, x3: i32, y3: i32, color: rgba) -> None:
    """Fill a triangle. Triangles that share an edge neither overlap nor leave a gap.

    >>> decode(encode_fill_triangle(0, 0, 9, 0, 0, 9, "red"))
    [<fill_triangle x1=0 y1=0 x2=9 y2=0 x3=0 y3=9 color=(255, 0, 0, 255) at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(4, 4) as s:
    ...     gpu.fill_triangle(s, 0, 0, 4, 0, 0, 4, "white")
    ...     gpu.fill_triangle(s, 4, 0, 4, 4, 0, 4, "white")
    ...     int(s.to_array()[..., 3].sum()) // 255
    16
    """


@command(0x11, draws="round_rect")
def draw_round_rect(x: u32, y: u32, w: u32, h: u32, radius: u32, color: rgba) -> None:
    """Draw the outline of a rectangle with round corners. Its position may be negative.

    >>> decode(encode_draw_round_rect(0, 0, 20, 10, 3, "red"))
    [<draw_round_rect x=0 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.draw_round_rect(s, 0, 0, 8, 8, 3, "white")
    ...     gpu.read_pixels(s, 4, 0, 1, 1), gpu.read_pixels(s, 0, 0, 1, 1)
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x00\\x00')
    """


@command(0x12, draws="round_rect")
def fill_round_rect(x: u32, y: u32, w: u32, h: u32, radius: u32, color: rgba) -> None:
    """Fill a rectangle with round corners. Its position may be negative.

    >>> decode(encode_fill_round_rect(0, 0, 20, 10, 3, "red"))
    [<fill_round_rect x=0 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.fill_round_rect(s, 0, 0, 8, 8, 3, "white")
    ...     gpu.read_pixels(s, 4, 4, 1, 1), gpu.read_pixels(s, 0, 0, 1, 1)
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x00\\x00')
    """


@command(0x13)
def set_clip(x: u32, y: u32, w: u32, h: u32, enabled: flag = True) -> None:
    """Limit the following drawing to a rectangle; ``enabled=False`` removes the clip.

    >>> decode(encode_set_clip(4, 4, 8, 8))
    [<set_clip x=4 y=4 w=8 h=8 enabled=True at 0>]

    The position may be negative; the clip is the part of the rectangle on the surface.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.set_clip(s, 0, 0, 1, 1)
    ...     gpu.clear(s, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff 00000000 00000000'
    """


@command(0x14)
def reset_clip() -> None:
    """Remove the clip.

    >>> encode_reset_clip()
    b'\\x14'

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.set_clip(s, 0, 0, 1, 1)
    ...     gpu.reset_clip(s)
    ...     gpu.clear(s, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff ff0000ff'
    """


@command(0x15)
def batch(commands: commands) -> None:
    """Execute commands together: no reader sees only some of them."""


@command(0x16, call="draw_image id x y dest_w dest_h")
def image_blit(id: u64, x: i32, y: i32, w: u32, h: u32) -> None:
    """Draw a loaded image, scaled to dest_w x dest_h; see :func:`load_image`.

    >>> decode(encode_image_blit(7, 10, 20, 64, 48))
    [<image_blit id=7 x=10 y=20 w=64 h=48 at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_image(s, 1, bytes([255, 0, 0, 255]), 1, 1)
    ...     gpu.draw_image(s, 1, 1, 0, 5, 5)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00000000 ff0000ff'
    """


@command(0x17, call="load_image id rgba w h")
def load_image(id: u64, pixels: pixels, w: u32, h: u32) -> None:
    """Load w x h RGBA pixels as an image, to be drawn at any size.

    >>> decode(encode_load_image(7, b"RGBA", 1, 1))
    [<load_image id=7 w=1 h=1 pixels=<4 bytes> at 0>]

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_image(s, 1, bytes([255, 0, 0, 255]), 1, 1)
    ...     gpu.draw_image(s, 1, 0, 0, 2, 1)
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff'
    """


@command(0x18)
def remove_image(id: u64) -> None:
    """Remove a loaded image. An unknown id is ignored.

    >>> encode_remove_image(7).hex(" ", 8)
    '18 0700000000000000'

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_image(s, 1, bytes(4), 1, 1)
    ...     gpu.remove_image(s, 1)
    """


# Opcodes up to 0x18 are fixed. The next two are the round rectangles with signed positions.
@command(0x19, draws="round_rect")
def draw_round_rect_signed(x: i32, y: i32, w: u32, h: u32, radius: u32, color: rgba) -> None:
    """Outline a round rectangle whose position may be negative.

    >>> decode(encode_draw_round_rect_signed(-4, 0, 20, 10, 3, "red"))
    [<draw_round_rect_signed x=-4 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]
    """


@command(0x1A, draws="round_rect")
def fill_round_rect_signed(x: i32, y: i32, w: u32, h: u32, radius: u32, color: rgba) -> None:
    """Fill a round rectangle whose position may be negative.

    >>> decode(encode_fill_round_rect_signed(-4, 0, 20, 10, 3, "red"))
    [<fill_round_rect_signed x=-4 y=0 w=20 h=10 radius=3 color=(255, 0, 0, 255) at 0>]
    """


import dala.gpu.vector.rows  # noqa: E402, F401  # opcodes from 0x1B on


# encoders with arguments of their own -----------------------------------------------------------
def encode_dispatch_compute(
    shader: str, params: "BytesLike" = b"", workgroups: tuple[int, int, int] = (1, 1, 1)
) -> bytes:
    """Return the command to run a shader, given by name or source, over the pixels.

    >>> decode(encode_dispatch_compute("blur", b"1234", (8, 8, 1)))
    [<dispatch_compute shader='blur' params=<4 bytes> x=8 y=8 z=1 at 0>]
    """
    sizes = items_of(workgroups)
    if sizes is None or len(sizes) != 3:
        raise CommandError.invalid(
            "dispatch_compute", "workgroups", "three ints (x, y, z)", workgroups
        )
    return dispatch_compute.encode((shader, params, *sizes))


def encode_batch(commands: Iterable[bytes]) -> bytes:
    """Return the command to execute commands together: no reader sees only some of them.

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


encoders(COMMANDS, globals())
__all__ = [
    "Command",
    "DrawCommand",
    "color_to_rgba",
    "decode",
    *(f"encode_{row.name}" for row in COMMANDS),
]
