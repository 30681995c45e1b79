"""Frames in a notebook, below the cell that made the surface.

With jupyter_rfb installed they are streamed into rendercanvas's widget, by the notebook's own event
loop: they appear whenever no cell runs, or one awaits. Without it they are PNG pictures that
replace each other, sent by a thread: slower, and seen while a cell runs too. In the end the last
frame stays, as a picture.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import CommandError, DeviceUnavailable
from dala.gpu.presenters.base import LOOK, Presenter, ThreadPresenter, over_black
from dala.png import encode_png

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer

#: Pictures a second with vsync; each is a message that the notebook has to keep up with.
PACE: Final = 30.0


def make_notebook(renderer: Renderer, title: str, vsync: bool) -> Presenter:
    """The better presenter of the two that this notebook has."""
    loop = _event_loop()
    try:
        import jupyter_rfb  # noqa: F401
    except ImportError:
        return PicturePresenter(renderer, vsync)
    return WidgetPresenter(renderer, title, vsync, loop)


class _InNotebook(Presenter):
    """What both have in common."""

    kind = "notebook"
    _display: Any

    def wait(self, timeout: float | None) -> bool:
        """Waits so many seconds; for ever would stop the notebook."""
        if timeout is None and not self.closed:
            raise CommandError(
                "wait_closed: waiting for ever would stop the notebook, whose picture nobody can "
                "close while a cell runs. Leave it out, or give a timeout."
            )
        return super().wait(timeout)

    def _picture(self, frame: np.ndarray[Any, Any]) -> Any:
        from IPython.display import Image

        height, width = frame.shape[:2]
        return Image(encode_png(over_black(frame)), format="png", width=width, height=height)


class PicturePresenter(_InNotebook, ThreadPresenter):
    """PNG pictures, each in the place of the one before."""

    def __init__(self, renderer: Renderer, vsync: bool) -> None:
        super().__init__(renderer, 1.0 / PACE if vsync else 0.0)
        from IPython.display import display

        self._display = display(self._picture(renderer.front), display_id=True)
        self.listen()

    def show(self, frame: np.ndarray[Any, Any]) -> None:
        """Replaces the picture."""
        self._display.update(self._picture(frame))


class WidgetPresenter(_InNotebook):
    """rendercanvas's widget. All of it happens in the notebook's event loop, on its thread."""

    def __init__(
        self, renderer: Renderer, title: str, vsync: bool, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(renderer)
        from IPython.display import display
        from rendercanvas.jupyter import RenderCanvas

        self._loop = loop
        self._frame = renderer.front.copy()
        height, width = self._frame.shape[:2]
        self._canvas = RenderCanvas(
            size=(width, height), title=None, vsync=vsync, max_fps=60 if vsync else 1000
        )
        self._canvas._rc_set_title(title)  # as it is; set_title() would put facts for "$fps"
        self._canvas.resizable = False  # the widget stretches frames; so it has their shape
        self._canvas.add_event_handler(lambda event: self.leave(), "close")
        self._context = self._canvas.get_context("bitmap")
        self._canvas.request_draw(self._draw)
        self._display = display(self._canvas, display_id=True)
        self._loop.call_later(LOOK, self._look)
        self.listen()

    def wake(self) -> None:
        """Asks for a draw, from whatever thread."""
        self._soon(self._request)

    def _soon(self, work: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work)

    def _request(self) -> None:
        if not self._gone.is_set():
            self._canvas.request_draw()

    def _draw(self) -> None:
        """Called by rendercanvas when the page is ready for a frame."""
        if self.waits:
            before = self._frame.shape
            self._frame = self.take()
            self.shown += 1
            if self._frame.shape != before:
                self._canvas.set_logical_size(self._frame.shape[1], self._frame.shape[0])
        opaque = np.full_like(self._frame, 255)
        opaque[..., :3] = over_black(self._frame)
        self._context.set_bitmap(opaque)

    def _look(self) -> None:
        """Ends the widget of a surface that was let go of."""
        if self._gone.is_set():
            return
        if self.renderer.closed:
            self.close()
        else:
            self._loop.call_later(LOOK, self._look)

    def close(self) -> None:
        """Puts a picture of the last frame in the widget's place."""
        if self._gone.is_set():
            return
        self.settle()
        if self.waits:
            self._frame = self.take()
            self.shown += 1
        self.leave()
        self._display.update(self._picture(self._frame))
        self._soon(self._canvas.close)


def _event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of the notebook that this runs in."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        raise DeviceUnavailable(
            "create_surface: show='notebook' works in a notebook, and this is none. Run it in "
            "Jupyter (pip install jupyterlab jupyter_rfb), or use show='window' or show='browser'."
        )
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # on another thread than the cell's
        loop: asyncio.AbstractEventLoop = shell.kernel.io_loop.asyncio_loop
        return loop
