"""The drawing calls: each takes a surface first, and is a method of it too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dala.errors import CommandError
from dala.gpu import command as encode
from dala.gpu.color import Color
from dala.gpu.surface import Surface, create_surface

__all__ = [
    "Surface",
    "batch",
    "blit",
    "clear",
    "create_surface",
    "destroy_surface",
    "dispatch_compute",
    "draw_circle",
    "draw_image",
    "draw_line",
    "draw_round_rect",
    "draw_triangle",
    "fill_circle",
    "fill_rect",
    "fill_round_rect",
    "fill_triangle",
    "get_pixels",
    "load_image",
    "load_shader",
    "load_sprite",
    "present",
    "read_pixels",
    "remove_image",
    "remove_sprite",
    "reset_clip",
    "resize",
    "set_clip",
    "set_pixels",
    "set_uniform",
    "supports_compute",
    "wait_closed",
    "with_pixels",
]


def _no_surface(call: str, given: object) -> CommandError:
    return CommandError(
        f"{call}: the first argument is a Surface, {type(given).__name__} came. "
        "create_surface(width, height) makes one."
    )


def _checked(call: str, s: Surface) -> Surface:
    if not isinstance(s, Surface):
        raise _no_surface(call, s)
    return s


# Called once for each primitive: each does what the method does without calling it.
def clear(s: Surface, color: Color) -> None:
    """Fills the surface (within the clip) with a colour, alpha too; blends nothing."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("clear", s) from None
    put(encode.encode_clear(color))


def fill_rect(s: Surface, x: int, y: int, w: int, h: int, color: Color) -> None:
    """A filled rectangle."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("fill_rect", s) from None
    put(encode.encode_fill_rect(x, y, w, h, color))


def draw_line(s: Surface, x1: int, y1: int, x2: int, y2: int, color: Color) -> None:
    """A line, both ends included (Bresenham)."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("draw_line", s) from None
    put(encode.encode_draw_line(x1, y1, x2, y2, color))


def draw_circle(s: Surface, cx: int, cy: int, r: int, color: Color) -> None:
    """A circle's outline (midpoint)."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("draw_circle", s) from None
    put(encode.encode_draw_circle(cx, cy, r, color))


def fill_circle(s: Surface, cx: int, cy: int, r: int, color: Color) -> None:
    """A disc: the outline of the same radius and all within."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("fill_circle", s) from None
    put(encode.encode_fill_circle(cx, cy, r, color))


def draw_triangle(
    s: Surface, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Color
) -> None:
    """A triangle's outline."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("draw_triangle", s) from None
    put(encode.encode_draw_triangle(x1, y1, x2, y2, x3, y3, color))


def fill_triangle(
    s: Surface, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Color
) -> None:
    """A filled triangle; two that share an edge neither overlap nor leave a gap."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("fill_triangle", s) from None
    put(encode.encode_fill_triangle(x1, y1, x2, y2, x3, y3, color))


def draw_round_rect(s: Surface, x: int, y: int, w: int, h: int, radius: int, color: Color) -> None:
    """The outline of a rectangle with round corners."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("draw_round_rect", s) from None
    put(encode.encode_draw_round_rect(x, y, w, h, radius, color))


def fill_round_rect(s: Surface, x: int, y: int, w: int, h: int, radius: int, color: Color) -> None:
    """A filled rectangle with round corners."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("fill_round_rect", s) from None
    put(encode.encode_fill_round_rect(x, y, w, h, radius, color))


def set_clip(s: Surface, x: int, y: int, w: int, h: int, enabled: bool = True) -> None:
    """Nothing is drawn outside the rectangle from now on; ``enabled=False`` lifts it."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("set_clip", s) from None
    put(encode.encode_set_clip(x, y, w, h, enabled))


def reset_clip(s: Surface) -> None:
    """Drawing everywhere again."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("reset_clip", s) from None
    put(encode.encode_reset_clip())


def draw_image(s: Surface, id: int, x: int, y: int, dest_w: int, dest_h: int) -> None:
    """A loaded image, scaled."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("draw_image", s) from None
    put(encode.encode_image_blit(id, x, y, dest_w, dest_h))


def remove_image(s: Surface, id: int) -> None:
    """Forgets an image."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("remove_image", s) from None
    put(encode.encode_remove_image(id))


def blit(s: Surface, id: int, x: int, y: int) -> None:
    """A sprite at its own size."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("blit", s) from None
    put(encode.encode_blit(id, x, y))


def remove_sprite(s: Surface, id: int) -> None:
    """Forgets a sprite."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("remove_sprite", s) from None
    put(encode.encode_remove_sprite(id))


def present(s: Surface) -> None:
    """Shows what was drawn; the next frame starts from it."""
    try:
        put = s._put
    except AttributeError:
        raise _no_surface("present", s) from None
    put(encode.encode_present())


# The rest wait, or carry pictures.
def destroy_surface(s: Surface) -> None:
    """Ends a surface and its thread. Twice is fine."""
    _checked("destroy_surface", s).close()


def load_image(s: Surface, id: int, rgba: Any, w: int, h: int) -> None:
    """Keeps RGBA pixels under a number, to be drawn at any size."""
    _checked("load_image", s).load_image(id, rgba, w, h)


def load_sprite(s: Surface, id: int, rgba: Any, w: int, h: int) -> None:
    """Puts RGBA pixels into the atlas under a number."""
    _checked("load_sprite", s).load_sprite(id, rgba, w, h)


def batch(s: Surface, commands: Iterable[bytes]) -> None:
    """Commands made by ``dala.gpu.command.encode_*``, applied together."""
    _checked("batch", s).batch(commands)


def dispatch_compute(
    s: Surface, shader: str, params: Any = b"", workgroups: tuple[int, int, int] = (1, 1, 1)
) -> None:
    """Runs a shader over the pixels: its source, or the name of one that was loaded."""
    _checked("dispatch_compute", s).dispatch_compute(shader, params, workgroups)


def load_shader(s: Surface, name: str, source: str) -> None:
    """Keeps a shader under a name."""
    _checked("load_shader", s).load_shader(name, source)


def set_uniform(s: Surface, name: str, data: Any) -> None:
    """Sets a uniform that shaders see by its name."""
    _checked("set_uniform", s).set_uniform(name, data)


def supports_compute(s: Surface) -> bool:
    """True where WGSL shaders run; kernel text runs everywhere."""
    return _checked("supports_compute", s).supports_compute()


def get_pixels(s: Surface) -> bytes:
    """All pixels, RGBA, row by row."""
    return _checked("get_pixels", s).get_pixels()


def set_pixels(s: Surface, rgba: Any) -> None:
    """All pixels at once: bytes or a u8 array, width x height x 4."""
    _checked("set_pixels", s).set_pixels(rgba)


def with_pixels(s: Surface, fn: Callable[[Any], Any]) -> None:
    """Calls ``fn`` with the pixels, an array (height, width, 4), while nothing else is drawn."""
    _checked("with_pixels", s).with_pixels(fn)


def read_pixels(s: Surface, x: int, y: int, w: int, h: int) -> bytes:
    """The pixels of a rectangle, which must lie inside."""
    return _checked("read_pixels", s).read_pixels(x, y, w, h)


def resize(s: Surface, w: int, h: int) -> None:
    """Another size; what fits is kept."""
    _checked("resize", s).resize(w, h)


def wait_closed(s: Surface, timeout: float | None = None) -> bool:
    """Waits until the window (or page) of a surface is closed; True once it is."""
    return _checked("wait_closed", s).wait_closed(timeout)
