"""The drawing calls. Each is a function that takes a surface first, and a method of ``Surface``.

A call encodes one command of ``dala.gpu.protocol`` and appends it to the surface's queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from dala.errors import CommandError
from dala.gpu import command as encode
from dala.gpu.checks import (
    checked_size,
    clipped_rect,
    not_a_surface,
    renderer_of,
    signed_position,
)
from dala.gpu.protocol import OPCODES, BytesLike, as_bytes, encode_commands
from dala.typing import ColorLike

if TYPE_CHECKING:
    from dala.gpu.surface import Surface

#: Bytes of a command above which it counts against the limit on queued bytes.
LARGE: Final = 1 << 12
_RESIZE: Final = OPCODES["resize"]


def _put(s: Surface, call: str, data: bytes) -> None:
    """Queue a small command."""
    try:
        put = s._put
    except AttributeError:
        raise not_a_surface(call, s) from None
    put(data)


def put_any(s: Surface, call: str, data: bytes) -> None:
    """Queue a command that may be large."""
    renderer = renderer_of(s, call)
    if len(data) > LARGE:
        renderer.put_large(data)
    else:
        renderer.put(data)


def _again(
    error: CommandError,
    encoder: Callable[..., bytes],
    place: tuple[int, ...] | None,
    *rest: int | ColorLike,
) -> bytes:
    """Encode once more with another place; without one, raise the error of the first attempt."""
    if place is None:
        raise error
    try:
        return encoder(*place, *rest)
    except CommandError as later:
        raise later from None


def _signed(call: str, x: int, y: int) -> tuple[int, int] | None:
    """Return a position with a negative coordinate in the range of i32, and None for any other."""
    place = signed_position(call, x, y)  # beyond i32, nothing is on any surface
    return None if place is None else (min(place[0], 2**31 - 1), min(place[1], 2**31 - 1))


# primitives -----------------------------------------------------------------------------------
def clear(s: Surface, color: ColorLike) -> None:
    """Fill the surface, within the clip, with a color; replaces alpha and does not blend.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "#ff000080")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff000080 ff000080'
    """
    _put(s, "clear", encode.encode_clear(color))


def fill_rect(s: Surface, x: int, y: int, w: int, h: int, color: ColorLike) -> None:
    """Fill a rectangle. Its position may be negative.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.fill_rect(s, 1, 0, 2, 1, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00000000 ff0000ff ff0000ff'
    """
    try:
        _put(s, "fill_rect", encode.encode_fill_rect(x, y, w, h, color))
    except CommandError as error:
        rect = clipped_rect("fill_rect", x, y, w, h)
        _put(s, "fill_rect", _again(error, encode.encode_fill_rect, rect, color))


def draw_line(s: Surface, x1: int, y1: int, x2: int, y2: int, color: ColorLike) -> None:
    """Draw a line, both ends included (Bresenham).

    >>> from dala import gpu
    >>> with gpu.create_surface(4, 4) as s:
    ...     gpu.draw_line(s, 0, 0, 3, 3, "white")
    ...     int(s.to_array()[..., 3].sum()) // 255
    4
    """
    _put(s, "draw_line", encode.encode_draw_line(x1, y1, x2, y2, color))


def draw_circle(s: Surface, cx: int, cy: int, r: int, color: ColorLike) -> None:
    """Draw the outline of a circle (midpoint).

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.draw_circle(s, 4, 4, 3, "white")
    ...     gpu.read_pixels(s, 7, 4, 1, 1), gpu.read_pixels(s, 4, 4, 1, 1)
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x00\\x00')
    """
    _put(s, "draw_circle", encode.encode_draw_circle(cx, cy, r, color))


def fill_circle(s: Surface, cx: int, cy: int, r: int, color: ColorLike) -> None:
    """Fill a circle: the outline of the same radius and everything inside it.

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.fill_circle(s, 4, 4, 3, "white")
    ...     gpu.read_pixels(s, 4, 4, 1, 1)
    b'\\xff\\xff\\xff\\xff'
    """
    _put(s, "fill_circle", encode.encode_fill_circle(cx, cy, r, color))


def draw_triangle(
    s: Surface, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: ColorLike
) -> None:
    """Draw the outline of a triangle.

    >>> from dala import gpu
    >>> with gpu.create_surface(5, 5) as s:
    ...     gpu.draw_triangle(s, 0, 0, 4, 0, 0, 4, "white")
    ...     int(s.to_array()[..., 3].sum()) // 255
    12
    """
    _put(s, "draw_triangle", encode.encode_draw_triangle(x1, y1, x2, y2, x3, y3, color))


def fill_triangle(
    s: Surface, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: ColorLike
) -> None:
    """Fill a triangle. Triangles that share an edge neither overlap nor leave a gap.

    >>> from dala import gpu
    >>> with gpu.create_surface(4, 4) as s:
    ...     gpu.fill_triangle(s, 0, 0, 4, 0, 0, 4, "white")
    ...     gpu.fill_triangle(s, 4, 0, 4, 4, 0, 4, "white")
    ...     int(s.to_array()[..., 3].sum()) // 255
    16
    """
    _put(s, "fill_triangle", encode.encode_fill_triangle(x1, y1, x2, y2, x3, y3, color))


def draw_round_rect(
    s: Surface, x: int, y: int, w: int, h: int, radius: int, color: ColorLike
) -> None:
    """Draw the outline of a rectangle with round corners. Its position may be negative.

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.draw_round_rect(s, 0, 0, 8, 8, 3, "white")
    ...     gpu.read_pixels(s, 4, 0, 1, 1), gpu.read_pixels(s, 0, 0, 1, 1)
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x00\\x00')
    """
    try:
        _put(s, "draw_round_rect", encode.encode_draw_round_rect(x, y, w, h, radius, color))
    except CommandError as error:
        place = _signed("draw_round_rect", x, y)
        _put(
            s,
            "draw_round_rect",
            _again(error, encode.encode_draw_round_rect_signed, place, w, h, radius, color),
        )


def fill_round_rect(
    s: Surface, x: int, y: int, w: int, h: int, radius: int, color: ColorLike
) -> None:
    """Fill a rectangle with round corners. Its position may be negative.

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.fill_round_rect(s, 0, 0, 8, 8, 3, "white")
    ...     gpu.read_pixels(s, 4, 4, 1, 1), gpu.read_pixels(s, 0, 0, 1, 1)
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x00\\x00')
    """
    try:
        _put(s, "fill_round_rect", encode.encode_fill_round_rect(x, y, w, h, radius, color))
    except CommandError as error:
        place = _signed("fill_round_rect", x, y)
        _put(
            s,
            "fill_round_rect",
            _again(error, encode.encode_fill_round_rect_signed, place, w, h, radius, color),
        )


def set_clip(s: Surface, x: int, y: int, w: int, h: int, enabled: bool = True) -> None:
    """Limit the following drawing to a rectangle; ``enabled=False`` removes the clip.

    The position may be negative; the clip is the part of the rectangle on the surface.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.set_clip(s, 0, 0, 1, 1)
    ...     gpu.clear(s, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff 00000000 00000000'
    """
    try:
        _put(s, "set_clip", encode.encode_set_clip(x, y, w, h, enabled))
    except CommandError as error:
        rect = clipped_rect("set_clip", x, y, w, h)
        _put(s, "set_clip", _again(error, encode.encode_set_clip, rect, enabled))


def reset_clip(s: Surface) -> None:
    """Remove the clip.

    >>> from dala import gpu
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.set_clip(s, 0, 0, 1, 1)
    ...     gpu.reset_clip(s)
    ...     gpu.clear(s, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff ff0000ff'
    """
    _put(s, "reset_clip", encode.encode_reset_clip())


# images and sprites ---------------------------------------------------------------------------
def load_image(s: Surface, id: int, rgba: BytesLike, w: int, h: int) -> None:
    """Load w x h RGBA pixels as an image, to be drawn at any size.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_image(s, 1, bytes([255, 0, 0, 255]), 1, 1)
    ...     gpu.draw_image(s, 1, 0, 0, 2, 1)
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff'
    """
    put_any(s, "load_image", encode.encode_load_image(id, rgba, w, h))


def draw_image(s: Surface, id: int, x: int, y: int, dest_w: int, dest_h: int) -> None:
    """Draw a loaded image, scaled to dest_w x dest_h; see :func:`load_image`.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_image(s, 1, bytes([255, 0, 0, 255]), 1, 1)
    ...     gpu.draw_image(s, 1, 1, 0, 5, 5)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00000000 ff0000ff'
    """
    _put(s, "draw_image", encode.encode_image_blit(id, x, y, dest_w, dest_h))


def remove_image(s: Surface, id: int) -> None:
    """Remove a loaded image. An unknown id is ignored.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_image(s, 1, bytes(4), 1, 1)
    ...     gpu.remove_image(s, 1)
    """
    _put(s, "remove_image", encode.encode_remove_image(id))


def load_sprite(s: Surface, id: int, rgba: BytesLike, w: int, h: int) -> None:
    """Load w x h RGBA pixels into the sprite atlas, to be drawn at their own size.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_sprite(s, 7, bytes([0, 255, 0, 255]), 1, 1)
    ...     gpu.blit(s, 7, 1, 0)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00000000 00ff00ff'
    """
    put_any(s, "load_sprite", encode.encode_load_sprite(id, rgba, w, h))


def blit(s: Surface, id: int, x: int, y: int) -> None:
    """Draw a sprite at its own size; see :func:`load_sprite`.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_sprite(s, 7, bytes([0, 255, 0, 255]), 1, 1)
    ...     gpu.blit(s, 7, 0, 0)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '00ff00ff 00000000'
    """
    _put(s, "blit", encode.encode_blit(id, x, y))


def remove_sprite(s: Surface, id: int) -> None:
    """Remove a sprite. An unknown id is ignored.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.load_sprite(s, 7, bytes(4), 1, 1)
    ...     gpu.remove_sprite(s, 7)
    """
    _put(s, "remove_sprite", encode.encode_remove_sprite(id))


# streams --------------------------------------------------------------------------------------
def batch(s: Surface, commands: Iterable[bytes]) -> None:
    """Execute encoded commands together; the fast way to draw many primitives.

    >>> from dala import gpu
    >>> from dala.gpu.command import encode_fill_rect
    >>> commands = [encode_fill_rect(x, 0, 1, 1, "red") for x in (0, 2)]
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.batch(s, commands)
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff 00000000 ff0000ff'

    Args:
        s: The surface.
        commands: Commands made by ``dala.gpu.command.encode_*``.

    Raises:
        ProtocolError: The bytes are malformed; none of them was applied.
    """
    renderer_of(s, "batch")
    items = commands if type(commands) is list else encode.command_list(commands)
    try:
        _submit(s, "batch", encode_commands(items))
    except (TypeError, ValueError):  # ProtocolError too: an item without bytes, for example
        encode.encode_batch(items)  # names the item
        raise


def submit(s: Surface, data: BytesLike) -> None:
    """Execute a stream of command bytes, from a file or the network for example.

    >>> from dala import gpu
    >>> from dala.gpu.command import encode_clear, encode_present
    >>> with gpu.create_surface(2, 1) as s:
    ...     s.submit(encode_clear("red") + encode_present())
    ...     s.get_pixels().hex(" ", 4)
    'ff0000ff ff0000ff'

    Raises:
        ProtocolError: The bytes are malformed; none of them was applied.
    """
    renderer_of(s, "submit")
    _submit(s, "submit", as_bytes("submit", "data", data))


def _submit(s: Surface, call: str, data: bytes) -> None:
    renderer_of(s, call).canvas.check(data)
    if data:
        put_any(s, call, data)
        if _RESIZE in data:
            s._note_resize()


# frames and the end ---------------------------------------------------------------------------
def read_pixels(s: Surface, x: int, y: int, w: int, h: int) -> bytes:
    """Return the pixels of a rectangle as RGBA bytes; waits for the queued commands.

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.read_pixels(s, 4, 4, 1, 1)
    b'\\xff\\x00\\x00\\xff'

    Raises:
        CommandError: The rectangle is not inside the surface.
    """
    renderer = renderer_of(s, "read_pixels")
    encode.encode_read_pixels(x, y, w, h)  # checks the numbers
    return renderer.sync(lambda: renderer.read(int(x), int(y), int(w), int(h)))


def resize(s: Surface, w: int, h: int) -> None:
    """Change the size. Pixels that fit are kept, new ones are transparent, the clip is removed.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.resize(s, 3, 1)
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff 00000000'
    """
    w, h = checked_size("resize", "w", w), checked_size("resize", "h", h)
    _put(s, "resize", encode.encode_resize(w, h))
    s._note_resize()


def present(s: Surface) -> None:
    """Present the frame. Drawing continues from its pixels.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.present(s)
    ...     s.synchronize()
    ...     s.stats["frames"]
    1
    """
    _put(s, "present", encode.encode_present())


def wait_closed(s: Surface, timeout: float | None = None) -> bool:
    """Wait until the viewer closes the window or page of a surface. Return True once it is closed.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     pass
    >>> gpu.wait_closed(s)
    True

    Args:
        s: The surface.
        timeout: Seconds to wait at most; None waits without a limit.
    """
    from dala.gpu.presenters import wait_until_closed

    if not hasattr(s, "_renderer"):
        raise not_a_surface("wait_closed", s)
    return wait_until_closed(s, timeout)


def destroy_surface(s: Surface) -> None:
    """Close a surface and end its thread. Calling it again does nothing.

    >>> from dala import gpu
    >>> s = gpu.create_surface(2, 1)
    >>> gpu.destroy_surface(s)
    >>> s.closed
    True
    """
    if not hasattr(s, "_renderer"):
        raise not_a_surface("destroy_surface", s)
    s.close()
