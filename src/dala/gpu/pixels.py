"""Calls on the whole picture of a surface: get, replace or edit all pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dala.errors import CommandError
from dala.gpu.checks import pixel_array, renderer_of
from dala.gpu.protocol import BytesLike
from dala.gpu.render.thread import check_pixels
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.surface import Surface


def get_pixels(s: Surface) -> bytes:
    """Return all pixels as RGBA bytes, row by row; waits for the queued commands.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff'
    """
    return renderer_of(s, "get_pixels").copy_pixels(np.ndarray.tobytes)


def set_pixels(s: Surface, rgba: BytesLike) -> None:
    """Replace all pixels, in order with the drawing calls.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.set_pixels(s, bytes([1, 2, 3, 255, 4, 5, 6, 255]))
    ...     gpu.get_pixels(s).hex(" ", 4)
    '010203ff 040506ff'

    Args:
        s: The surface.
        rgba: Bytes, or a uint8 array of shape (height, width, 4).
    """
    renderer = renderer_of(s, "set_pixels")
    pixels = pixel_array("set_pixels", "rgba", rgba)
    check_pixels("set_pixels", pixels, *s.size)
    if not isinstance(rgba, bytes):
        pixels = pixels.copy()
    renderer.post(lambda: renderer.write("set_pixels", pixels), pixels.nbytes)


def with_pixels(s: Surface, fn: Callable[[NDArray], BytesLike | None]) -> None:
    """Call a function with the pixels; nothing else is drawn while it runs.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "white")
    ...     gpu.with_pixels(s, lambda pixels: pixels // 2)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '7f7f7f7f 7f7f7f7f'

    Args:
        s: The surface.
        fn: A function of a uint8 array of shape (height, width, 4). It changes the array in place,
            or returns other pixels of the same size. If it raises, the pixels stay unchanged.
    """
    renderer = renderer_of(s, "with_pixels")
    if not callable(fn):
        raise CommandError.invalid("with_pixels", "fn", "a function of an array", fn)
    with renderer.exclusive() as canvas:
        copy = canvas.pixels.copy()
        returned = fn(copy)
        pixels = copy
        if returned is not None:
            pixels = pixel_array("with_pixels", "the result of fn", returned)
        renderer_of(s, "with_pixels")
        renderer.write("with_pixels", pixels)
