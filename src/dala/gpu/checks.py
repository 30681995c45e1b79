"""Checks of the arguments that calls on surfaces share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dala import memory
from dala.errors import CommandError, FreedError
from dala.gpu.protocol import BytesLike, as_bytes, as_int
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer
    from dala.gpu.surface import Surface

#: The largest width and height of a surface.
MAX_SIZE: Final = 16384


def renderer_of(s: Surface, call: str) -> Renderer:
    """Return the renderer of an open surface.

    Raises:
        CommandError: The argument is not a surface.
        FreedError: The surface was destroyed.
    """
    try:
        renderer = s._renderer
    except AttributeError:
        raise not_a_surface(call, s) from None
    if renderer is None:
        raise destroyed(call)
    if renderer.closed:
        renderer.raise_closed(call)
    return renderer


def destroyed(call: str) -> FreedError:
    """Return the error for a use of a destroyed surface."""
    return FreedError(
        f"{call}: the surface was destroyed. Make a new one with create_surface(...).", call=call
    )


def not_a_surface(call: str, value: object, argument: str = "s") -> CommandError:
    """Return the error for a first argument that is not a surface."""
    return CommandError.invalid(
        call, argument, "a Surface", type(value), "create_surface(width, height) makes one."
    )


def checked_size(call: str, argument: str, value: int) -> int:
    """Return a width or height as an int, or raise."""
    number = as_int(value)
    if number is None or not 1 <= number <= MAX_SIZE:
        raise CommandError.invalid(call, argument, f"an int from 1 to {MAX_SIZE}", value)
    return number


def signed_position(call: str, x: int, y: int) -> tuple[int, int] | None:
    """Return a position with a negative coordinate as ints, and None for any other.

    Raises:
        CommandError: A coordinate is no int, or fits neither an i32 nor a u32 field.
    """
    found = []
    for name, value in (("x", x), ("y", y)):
        number = as_int(value)
        if number is None or not -(2**31) <= number < 2**32:
            expected = f"an int from {-(2**31)} to {2**32 - 1}"
            raise CommandError.invalid(call, name, expected, value)
        found.append(number)
    return (found[0], found[1]) if min(found) < 0 else None


def clipped_rect(call: str, x: int, y: int, w: int, h: int) -> tuple[int, int, int, int] | None:
    """Return the part of a rectangle at positions of 0 and above; None if that is all of it.

    Sizes that are no ints of a u32 field are kept, so that the encoder refuses them.
    """
    place = signed_position(call, x, y)
    if place is None:
        return None
    sizes = []
    for start, value in zip(place, (w, h), strict=True):
        size = as_int(value)
        valid = size is not None and 0 <= size < 2**32
        sizes.append(max(size + min(start, 0), 0) if valid and size is not None else value)
    return max(place[0], 0), max(place[1], 0), sizes[0], sizes[1]


def pixel_array(call: str, argument: str, rgba: BytesLike) -> NDArray:
    """Return bytes, or an array of uint8, as a contiguous array."""
    if isinstance(rgba, np.ndarray):
        if rgba.dtype != np.uint8:
            raise CommandError.invalid(call, argument, "bytes or an array of uint8", rgba)
        if not rgba.flags.c_contiguous:
            memory.check_copy(rgba.size, call)
        return np.ascontiguousarray(rgba)
    return np.frombuffer(as_bytes(call, argument, rgba), np.uint8)
