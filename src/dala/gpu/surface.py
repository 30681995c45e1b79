"""Surfaces: pictures that are drawn by commands, each on a thread of its own.

>>> with create_surface(4, 2) as s:
...     s.clear("black")
...     s.fill_rect(1, 0, 2, 1, "red")
...     s.read_pixels(1, 0, 1, 1)
b'\\xff\\x00\\x00\\xff'
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

import numpy as np

from dala import extensions
from dala.errors import CommandError, DalaError
from dala.gpu.checks import checked_size, destroyed, renderer_of
from dala.gpu.draw import DrawingCalls
from dala.gpu.input.calls import InputCalls
from dala.gpu.path.numbers import IDENTITY, Matrix
from dala.gpu.protocol import BY_OPCODE, decode
from dala.gpu.render.thread import KEPT_ERRORS, Renderer
from dala.gpu.vector.calls import put
from dala.gpu.vector.shapes import MOVED, moved
from dala.resources import Closing
from dala.typing import NDArray, PathLike

if TYPE_CHECKING:
    import numpy.typing as npt

    from dala.extensions import SentStream
    from dala.gpu.presenters.base import Presenter, Steer


class Surface(DrawingCalls, InputCalls, Closing):
    """A picture of straight-alpha RGBA pixels that is drawn by commands.

    Drawing calls return at once; the surface's own thread executes them in order. Calls that return
    pixels wait for everything drawn before them. Any thread may draw. A command that fails does not
    stop the others: its error is raised by the next call that waits, and is listed in ``errors``.

    Create surfaces with :func:`create_surface`.

    >>> from dala.gpu import create_surface
    >>> with create_surface(64, 48) as s:
    ...     s.clear("navy")
    ...     s.fill_circle(32, 24, 10, "orange")
    ...     s.read_pixels(32, 24, 1, 1)
    b'\\xff\\xa5\\x00\\xff'
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
        memory: int | str | None = None,
        steer: Steer = "first",
    ) -> None:
        self._renderer: Renderer | None = None
        width = checked_size("create_surface", "width", width)
        height = checked_size("create_surface", "height", height)
        if not isinstance(title, str):
            raise CommandError.invalid("create_surface", "title", "a str", title)
        self._errors: deque[DalaError] = deque(maxlen=KEPT_ERRORS)
        self._renderer = Renderer(width, height, self._errors, memory)
        self._renderer.canvas.nearest = bool(nearest)
        self._put = self._renderer.put
        #: The transforms that calls have pushed, the current one last.
        self._matrices: list[Matrix] = [IDENTITY]
        self._resizes = count(1)
        #: Numbers of the last resize that was queued, and of the last known to be done.
        self._resize_queued = self._resize_done = 0
        #: The presenter that shows frames, or None.
        self.presenter: Presenter | None = None
        self._init_input(self._errors, title)
        self._renderer.inbox = weakref.ref(self._inbox)
        self._show_options = bool(vsync), steer
        if show is not None:
            try:
                self._show(show)
            except BaseException:
                self.close()
                raise

    def _show(self, show: str) -> None:
        """Create the presenter."""
        from dala.gpu.presenters import make_presenter

        vsync, steer = self._show_options
        self.presenter = make_presenter(self, show, title=self.title, vsync=vsync, steer=steer)

    # state ------------------------------------------------------------------------------------
    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; waits only while a resize is queued."""
        renderer = renderer_of(self, "size")
        queued = self._resize_queued
        if queued != self._resize_done and not renderer.holds_canvas:
            renderer.call(lambda: None)
            self._resize_done = queued
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
        """True once the surface was destroyed."""
        return self._renderer is None or self._renderer.closed

    @property
    def errors(self) -> list[DalaError]:
        """Errors of commands, oldest first; the last 64 are kept."""
        return list(self._errors)

    @property
    def stats(self) -> dict[str, float]:
        """Counts: ``frames`` presented, ``fps``, ``dropped`` frames, and the ``queue`` length.

        A frame is dropped when the next one is presented before a presenter took it.
        """
        renderer = renderer_of(self, "stats")
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

    def _repr_png_(self) -> bytes | None:
        from dala.notebook import picture_png

        renderer = self._renderer
        if renderer is None or renderer.closed:
            return None
        try:  # not to_array, which would raise and forget the error of a command
            return renderer.call(lambda: picture_png(renderer.canvas.pixels))
        except DalaError:
            return None

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise CommandError(
            "Surface: a surface has a thread, and cannot be copied or pickled. Use get_pixels()."
        )

    def _note_resize(self) -> None:
        """Remember that a resize is queued."""
        self._resize_queued = next(self._resizes)

    # waiting and reading ----------------------------------------------------------------------
    def synchronize(self) -> None:
        """Wait for everything drawn so far, and raise the error of a command that failed.

        >>> from dala.gpu import create_surface
        >>> with create_surface(4, 4) as s:
        ...     s.clear("red")
        ...     s.synchronize()
        """
        renderer_of(self, "synchronize").sync(lambda: None)

    def take_reads(self) -> list[bytes]:
        """Return and forget the results of ``read_pixels`` commands in streams.

        The last 16 are kept, of at most 256 MiB together, or of one frame if that is more.

        >>> from dala.gpu import command, create_surface
        >>> with create_surface(4, 4) as s:
        ...     s.submit(command.encode_clear("red") + command.encode_read_pixels(0, 0, 1, 1))
        ...     s.take_reads()
        [b'\\xff\\x00\\x00\\xff']
        """
        renderer = renderer_of(self, "take_reads")
        return renderer.sync(renderer.take_reads)

    def to_array(self) -> NDArray:
        """Return a copy of the pixels as an array of shape (height, width, 4).

        >>> from dala.gpu import create_surface
        >>> with create_surface(4, 2) as s:
        ...     s.to_array().shape
        (2, 4, 4)
        """
        return renderer_of(self, "to_array").copy_pixels(np.copy)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise CommandError("numpy.asarray: a surface can only be copied, got copy=False.")
        array = self.to_array()
        return array if dtype is None else array.astype(dtype, copy=False)

    def save(self, path: PathLike) -> None:
        """Write the pixels to a PNG file.

        >>> import os, tempfile
        >>> from dala.gpu import create_surface
        >>> with create_surface(4, 2) as s, tempfile.TemporaryDirectory() as folder:
        ...     s.save(os.path.join(folder, "picture.png"))
        """
        from dala.png import write_png

        write_png(path, self.to_array())

    def live(
        self,
        url: str | PathLike,
        seconds: float | None = None,
        *,
        fps: float = 30,
        bit_rate: int | str | None = None,
        key_frames: float = 2.0,
        encoder: str | None = None,
        reconnect: float = 300.0,
    ) -> SentStream:
        """Send presented frames at a constant rate; see ``Scene.live``.

        With ``seconds`` the call returns when they have passed; without, it returns at once, and
        the stream runs on a thread until it or the surface is closed::

            with surface.live("rtmp://127.0.0.1/live/test") as run:
                ...                     # draw and present
                print(run.stats)
        """
        return extensions.live.live_surface(
            renderer_of(self, "live"), url, seconds, fps=fps, bit_rate=bit_rate,
            key_frames=key_frames, encoder=encoder, reconnect=reconnect,
        )  # fmt: skip

    def _note_push(self) -> None:
        """Note that calls have pushed or popped: in between, all shapes follow the transform."""
        if self._renderer is not None:
            self._put = self._renderer.put if self._matrices == [IDENTITY] else self._put_moved

    def _put_moved(self, data: bytes) -> None:
        """Queue a command, as one that follows the transform where there is one."""
        if data[0] in MOVED:
            data = moved(decode(data)[0])
        put(self, "draw", data)

    # closing ----------------------------------------------------------------------------------
    def close(self) -> None:
        """End the surface and its thread. Queued commands are dropped. Safe to call twice."""
        if self._renderer is not None:
            self._inbox.close()
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
        with contextlib.suppress(Exception):  # at interpreter exit, modules may be gone
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
    memory: int | str | None = None,
    steer: Steer = "first",
) -> Surface:
    """Create a surface. All its pixels are transparent.

    >>> from dala.gpu import create_surface
    >>> with create_surface(4, 2) as s:
    ...     s.size
    (4, 2)

    Args:
        width: The width in pixels, up to 16384.
        height: The height in pixels, up to 16384.
        show: Where presented frames appear: "window", "browser", "notebook", "terminal", or None.
        title: The title of the window.
        nearest: Scale images to the nearest pixel instead of bilinearly.
        vsync: Show no more frames than the screen can.
        memory: The memory that the surface may use for pixels, images and sprites: bytes, or text
            such as "2 GiB"; by default a quarter of the machine's, or 1 GiB. What would exceed it
            is refused with MemoryLimitExceeded.
        steer: Which pages of "browser" send input: the "first" that is open, "all", or "none".
    """
    return Surface(
        width, height, show=show, title=title, nearest=nearest, vsync=vsync, memory=memory,
        steer=steer,
    )  # fmt: skip


def _refuse(data: bytes) -> None:
    """Replaces the queue of a destroyed surface."""
    raise destroyed(BY_OPCODE[data[0]].function)
