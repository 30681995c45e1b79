"""Surfaces: 2D pictures that are drawn by commands, each on a thread of its own.

>>> with create_surface(4, 2) as s:
...     s.clear("black")
...     s.fill_rect(1, 0, 2, 1, "red")
...     s.read_pixels(1, 0, 1, 1)
b'\\xff\\x00\\x00\\xff'
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import CommandError, DalaError, FreedError
from dala.gpu import command as encode
from dala.gpu.color import Color
from dala.gpu.render.thread import KEPT_ERRORS, Renderer, check_pixels
from dala.resources import Closing

if TYPE_CHECKING:
    from pathlib import Path

#: The largest width and height.
MAX_SIZE: Final = 16384
#: Bytes of a command above which those that wait are bounded too.
LARGE: Final = 1 << 12
_RESIZE: Final = encode.OPCODES["resize"]


class Surface(Closing):
    """A picture of straight-alpha RGBA pixels, drawn by commands. Make one with create_surface.

    Drawing calls return at once; a thread of the surface's own draws in their order. Calls that
    give pixels wait for all that was drawn before them. Any thread may draw. A command that fails
    stops nothing: its error is raised by the next call that waits, and listed in ``errors``.
    """

    def __init__(
        self,
        width: int,
        height: int,
        *,
        show: str | None = None,
        title: str = "dala",
        nearest: bool = False,
        vsync: bool = True,
    ) -> None:
        self._renderer: Renderer | None = None
        width, height = _checked_size("create_surface", width, height)
        self._errors: deque[DalaError] = deque(maxlen=KEPT_ERRORS)
        self._renderer = Renderer(width, height, self._errors)
        self._renderer.canvas.nearest = bool(nearest)
        self._put = self._renderer.put
        self._resizes = count(1)
        self._resized = self._settled = 0  # differ while a resize may be queued
        self.presenter: Any = None
        if show is not None:
            from dala.gpu.presenters import make_presenter

            try:
                self.presenter = make_presenter(self, show, title=title, vsync=vsync)
            except BaseException:
                self.close()
                raise

    # facts ------------------------------------------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; waits only while a resize is queued."""
        renderer = self._own("size")
        resized = self._resized
        if resized != self._settled and not renderer.holds_canvas:
            renderer.call(lambda: None)
            self._settled = resized
        height, width = renderer.front.shape[:2]
        return width, height

    @property
    def width(self) -> int:
        """The width in pixels."""
        return self.size[0]

    @property
    def height(self) -> int:
        """The height in pixels."""
        return self.size[1]

    @property
    def closed(self) -> bool:
        """True once it was destroyed."""
        return self._renderer is None or self._renderer.closed

    @property
    def errors(self) -> list[DalaError]:
        """What went wrong in commands, oldest first; the last 64 are kept."""
        return list(self._errors)

    @property
    def stats(self) -> dict[str, float]:
        """``frames`` presented, ``fps`` over the last of them, ``dropped``, ``queue`` depth.

        Dropped are those that nobody saw since the next one came first; ``queue`` is how many
        commands wait.
        """
        renderer = self._own("stats")
        return {
            "frames": renderer.frames,
            "fps": renderer.fps,
            "dropped": renderer.dropped,
            "queue": renderer.pending,
        }

    def __repr__(self) -> str:
        renderer = self._renderer
        if renderer is None or renderer.closed:
            return "<Surface destroyed>"
        height, width = renderer.front.shape[:2]
        return f"<Surface {width} x {height}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise CommandError(
            "a surface can neither be copied nor pickled, having a thread: take its get_pixels()."
        )

    def _own(self, call: str) -> Renderer:
        renderer = self._renderer
        if renderer is None:
            raise _destroyed(call)
        if renderer.closed:
            renderer.raise_closed(call)
        return renderer

    def _send(self, call: str, data: bytes) -> None:
        """Queues bytes that may be many."""
        renderer = self._own(call)
        if len(data) > LARGE:
            renderer.put_large(data)
        else:
            renderer.put(data)

    # drawing ----------------------------------------------------------------------------------
    def clear(self, color: Color) -> None:
        """Fills the surface (within the clip) with a colour, alpha too; blends nothing."""
        self._put(encode.encode_clear(color))

    def fill_rect(self, x: int, y: int, w: int, h: int, color: Color) -> None:
        """A filled rectangle."""
        self._put(encode.encode_fill_rect(x, y, w, h, color))

    def draw_line(self, x1: int, y1: int, x2: int, y2: int, color: Color) -> None:
        """A line, both ends included (Bresenham)."""
        self._put(encode.encode_draw_line(x1, y1, x2, y2, color))

    def draw_circle(self, cx: int, cy: int, r: int, color: Color) -> None:
        """A circle's outline (midpoint)."""
        self._put(encode.encode_draw_circle(cx, cy, r, color))

    def fill_circle(self, cx: int, cy: int, r: int, color: Color) -> None:
        """A disc: the outline of the same radius and all within."""
        self._put(encode.encode_fill_circle(cx, cy, r, color))

    def draw_triangle(
        self, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Color
    ) -> None:
        """A triangle's outline."""
        self._put(encode.encode_draw_triangle(x1, y1, x2, y2, x3, y3, color))

    def fill_triangle(
        self, x1: int, y1: int, x2: int, y2: int, x3: int, y3: int, color: Color
    ) -> None:
        """A filled triangle; two that share an edge neither overlap nor leave a gap."""
        self._put(encode.encode_fill_triangle(x1, y1, x2, y2, x3, y3, color))

    def draw_round_rect(self, x: int, y: int, w: int, h: int, radius: int, color: Color) -> None:
        """The outline of a rectangle with round corners."""
        self._put(encode.encode_draw_round_rect(x, y, w, h, radius, color))

    def fill_round_rect(self, x: int, y: int, w: int, h: int, radius: int, color: Color) -> None:
        """A filled rectangle with round corners."""
        self._put(encode.encode_fill_round_rect(x, y, w, h, radius, color))

    def set_clip(self, x: int, y: int, w: int, h: int, enabled: bool = True) -> None:
        """Nothing is drawn outside the rectangle from now on; ``enabled=False`` lifts it."""
        self._put(encode.encode_set_clip(x, y, w, h, enabled))

    def reset_clip(self) -> None:
        """Drawing everywhere again."""
        self._put(encode.encode_reset_clip())

    def load_image(self, id: int, rgba: Any, w: int, h: int) -> None:
        """Keeps RGBA pixels under a number, to be drawn at any size."""
        self._send("load_image", encode.encode_load_image(id, rgba, w, h))

    def draw_image(self, id: int, x: int, y: int, dest_w: int, dest_h: int) -> None:
        """A loaded image, scaled."""
        self._put(encode.encode_image_blit(id, x, y, dest_w, dest_h))

    def remove_image(self, id: int) -> None:
        """Forgets an image."""
        self._put(encode.encode_remove_image(id))

    def load_sprite(self, id: int, rgba: Any, w: int, h: int) -> None:
        """Puts RGBA pixels into the atlas under a number."""
        self._send("load_sprite", encode.encode_load_sprite(id, rgba, w, h))

    def blit(self, id: int, x: int, y: int) -> None:
        """A sprite at its own size."""
        self._put(encode.encode_blit(id, x, y))

    def remove_sprite(self, id: int) -> None:
        """Forgets a sprite."""
        self._put(encode.encode_remove_sprite(id))

    def batch(self, commands: Iterable[bytes]) -> None:
        """Commands made by ``dala.gpu.command.encode_*``, applied together.

        Raises:
            ProtocolError: the bytes are malformed; none of them was applied.
        """
        self._stream("batch", encode.encode_batch(commands))

    def submit(self, data: Any) -> None:
        """Command bytes as they are, from a file or the network; checked whole, then applied.

        Raises:
            ProtocolError: they are malformed; none of them was applied.
        """
        self._stream("submit", encode._bytes("submit: data", data))

    def _stream(self, call: str, data: bytes) -> None:
        self._own(call).canvas.check(data)
        if data:
            self._send(call, data)
            if _RESIZE in data:
                self._resized = next(self._resizes)

    def take_reads(self) -> list[bytes]:
        """What ``read_pixels`` commands in streams gave, oldest first; the last 16 are kept."""
        renderer = self._own("take_reads")

        def take() -> list[bytes]:
            found = list(renderer.reads)
            renderer.reads.clear()
            return found

        return renderer.sync(take)

    # compute ----------------------------------------------------------------------------------
    def dispatch_compute(
        self, shader: str, params: Any = b"", workgroups: tuple[int, int, int] = (1, 1, 1)
    ) -> None:
        """Runs a shader over the pixels: its source, or the name of one that was loaded."""
        data = encode.encode_dispatch_compute(shader, params, workgroups)
        self._send("dispatch_compute", data)

    def load_shader(self, name: str, source: str) -> None:
        """Keeps a shader under a name."""
        self._send("load_shader", encode.encode_load_shader(name, source))

    def set_uniform(self, name: str, data: Any) -> None:
        """Sets a uniform that shaders see by its name."""
        self._send("set_uniform", encode.encode_set_uniform(name, data))

    def supports_compute(self) -> bool:
        """True where WGSL shaders run; kernel text runs everywhere."""
        from dala.gpu.shaders.dispatch import wgsl_available

        self._own("supports_compute")
        return wgsl_available()

    # pixels -----------------------------------------------------------------------------------
    def get_pixels(self) -> bytes:
        """All pixels, RGBA, row by row."""
        return self._own("get_pixels").copy_pixels(np.ndarray.tobytes)

    def read_pixels(self, x: int, y: int, w: int, h: int) -> bytes:
        """The pixels of a rectangle, which must lie inside."""
        encode.encode_read_pixels(x, y, w, h)  # refuses what is no rectangle
        renderer = self._own("read_pixels")
        return renderer.sync(lambda: renderer.read(int(x), int(y), int(w), int(h)))

    def set_pixels(self, rgba: Any) -> None:
        """All pixels at once, in turn with what is drawn: bytes or an array of uint8."""
        renderer = self._own("set_pixels")
        pixels = _as_array("set_pixels", rgba)
        check_pixels("set_pixels", pixels, *self.size)
        if not isinstance(rgba, bytes):
            pixels = pixels.copy()
        renderer.post(lambda: renderer.write("set_pixels", pixels), pixels.nbytes)

    def with_pixels(self, fn: Callable[[np.ndarray[Any, Any]], Any]) -> None:
        """Calls ``fn`` with the pixels, an array (height, width, 4), while nothing else is drawn.

        It may change them in place, or return others (an array or bytes of that size). If it
        raises, the pixels stay as they were.
        """
        renderer = self._own("with_pixels")
        if not callable(fn):
            raise CommandError(
                f"with_pixels: fn must be a function of an array, {type(fn).__name__} came."
            )
        with renderer.exclusive() as canvas:
            lent = canvas.pixels.copy()
            made = fn(lent)
            pixels = lent if made is None else _as_array("with_pixels", made)
            self._own("with_pixels")
            renderer.write("with_pixels", pixels)

    def resize(self, w: int, h: int) -> None:
        """Another size; what fits is kept, what is new is transparent, the clip is lifted."""
        w, h = _checked_size("resize", w, h)
        self._put(encode.encode_resize(w, h))
        self._resized = next(self._resizes)

    def present(self) -> None:
        """Shows what was drawn; the next frame starts from it."""
        self._put(encode.encode_present())

    def synchronize(self) -> None:
        """Waits for everything drawn so far; raises what went wrong in it."""
        self._own("synchronize").sync(lambda: None)

    def to_array(self) -> np.ndarray[Any, Any]:
        """A copy of the pixels as an array (height, width, 4)."""
        return self._own("to_array").copy_pixels(np.copy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise CommandError("numpy.asarray: a surface cannot be had without a copy.")
        array = self.to_array()
        return array if dtype is None else array.astype(dtype, copy=False)

    def save(self, path: str | os.PathLike[str] | Path) -> None:
        """Writes the pixels to a PNG file."""
        from dala.png import write_png

        write_png(path, self.to_array())

    def wait_closed(self, timeout: float | None = None) -> bool:
        """Waits until the window (or page) of the surface is closed; True once it is."""
        from dala.gpu.presenters import wait_until_closed

        return wait_until_closed(self, timeout)

    # end --------------------------------------------------------------------------------------
    def close(self) -> None:
        """Ends the surface and its thread; what is still queued is dropped. Twice is fine."""
        presenter, self.presenter = self.presenter, None
        if presenter is not None:
            presenter.close()
        renderer, self._renderer = self._renderer, None
        if renderer is not None:
            self._put = _refuse
            renderer.uncount()
            renderer.close()

    destroy = destroy_surface = close

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at exit modules may be gone
            if self._renderer is not None:
                self._renderer.close_soon()
                self._renderer.uncount()


def create_surface(
    width: int,
    height: int,
    *,
    show: str | None = None,
    title: str = "dala",
    nearest: bool = False,
    vsync: bool = True,
) -> Surface:
    """A new surface, transparent all over.

    Args:
        width: in pixels, up to 16384.
        height: likewise.
        show: where presented frames appear: "window", "browser", "notebook", "terminal", or None.
        title: of the window.
        nearest: scale images by the nearest pixel instead of bilinear.
        vsync: show no more frames than the screen does.
    """
    return Surface(width, height, show=show, title=title, nearest=nearest, vsync=vsync)


def _checked_size(call: str, width: Any, height: Any) -> tuple[int, int]:
    for name, value in (("width", width), ("height", height)):
        whole = encode._whole(value)
        if whole is None or not 1 <= whole <= MAX_SIZE:
            raise CommandError(
                f"{call}: {name} must be a whole number within 1..{MAX_SIZE}, {value!r} came."
            )
    return int(width), int(height)


def _as_array(call: str, rgba: Any) -> np.ndarray[Any, Any]:
    """Bytes as they are, arrays of uint8 with their shape; contiguous."""
    if isinstance(rgba, np.ndarray):
        if rgba.dtype != np.uint8:
            raise CommandError(f"{call}: an array of uint8 is wanted, one of {rgba.dtype} came.")
        return np.ascontiguousarray(rgba)
    try:
        return np.frombuffer(rgba, np.uint8)
    except (TypeError, ValueError, BufferError):
        if isinstance(rgba, (bytes, bytearray, memoryview)) and not len(rgba):
            return np.zeros(0, np.uint8)
        raise CommandError(
            f"{call}: bytes or an array of uint8 are wanted, {type(rgba).__name__} came."
        ) from None


def _destroyed(call: str) -> FreedError:
    return FreedError(
        f"{call}: the surface was destroyed. Make a new one with create_surface(...)."
    )


def _refuse(data: bytes) -> None:
    """Takes the place of a surface's queue when it is destroyed."""
    name = encode.LAYOUTS[data[0]].name
    raise _destroyed({"image_blit": "draw_image"}.get(name, name))
