"""The notebook presenter: frames below the cell that created the surface.

With jupyter_rfb installed, the notebook's event loop streams frames to a rendercanvas widget: they
appear while no cell runs, or while one awaits. Without it a thread sends PNG pictures that replace
each other: slower, but also visible while a cell runs. The last frame stays as a picture.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from dala.errors import CommandError, DalaError, DeviceUnavailable
from dala.gpu.input.events import InputEvent, checked_event
from dala.gpu.presenters.base import POLL_SECONDS, Presenter, ThreadPresenter, over_black
from dala.png import encode_png
from dala.typing import NDArray

if TYPE_CHECKING:
    from IPython.display import DisplayHandle, Image

    from dala.gpu.render.thread import Renderer

#: Pictures per second with vsync; each is a message that the notebook has to process.
MAX_FPS: Final = 30.0

#: Names of jupyter_rfb that are others here.
_NAMES: Final = {"focus_in": "focus", "focus_out": "blur"}


def make_notebook(renderer: Renderer, title: str, vsync: bool) -> Presenter:
    """Return the best presenter that this notebook supports."""
    loop = _event_loop()
    try:
        import jupyter_rfb  # noqa: F401
    except ImportError:
        return PicturePresenter(renderer, vsync)
    return WidgetPresenter(renderer, title, vsync, loop)


class _NotebookPresenter(Presenter):
    """The base of the notebook presenters."""

    kind = "notebook"
    _display: DisplayHandle

    def wait(self, timeout: float | None) -> bool:
        """Wait until closed, with a timeout."""
        if timeout is None and not self.closed:
            raise CommandError(
                "wait_closed: timeout must be given in a notebook, whose picture cannot be closed "
                "while a cell runs. Pass a timeout, or leave the call out."
            )
        return super().wait(timeout)

    def _picture(self, frame: NDArray) -> Image:
        from IPython.display import Image

        height, width = frame.shape[:2]
        return Image(encode_png(over_black(frame)), format="png", width=width, height=height)


class PicturePresenter(_NotebookPresenter, ThreadPresenter):
    """Shows PNG pictures, each of which replaces the previous one."""

    def __init__(self, renderer: Renderer, vsync: bool) -> None:
        super().__init__(renderer, 1.0 / MAX_FPS if vsync else 0.0)
        from IPython.display import display

        self._display = display(self._picture(renderer.front), display_id=True)
        self.listen()

    def show(self, frame: NDArray) -> None:
        """Replace the picture."""
        self._display.update(self._picture(frame))


class WidgetPresenter(_NotebookPresenter):
    """Shows frames in a rendercanvas widget, on the thread of the notebook's event loop."""

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
        self._canvas.title = title  # set_title() would replace "$fps" and the like
        self._canvas.has_titlebar = bool(title)
        self._canvas.resizable = False  # the widget stretches frames, so it keeps their shape
        self._canvas.add_event_handler(lambda event: self.detach(), "close")
        self._shown_size = float(width), float(height)
        self._handle = self._canvas.handle_event
        self._canvas.handle_event = self._on_event  # rendercanvas leaves out the focus
        self._context = self._canvas.get_context("bitmap")
        self._canvas.request_draw(self._draw)
        self._display = display(self._canvas, display_id=True)
        self._loop.call_later(POLL_SECONDS, self._check_surface)
        self.listen()

    def _on_event(self, event: dict[str, object]) -> None:
        """Take an event of the page; called on the event loop."""
        self._handle(dict(event))
        event["event_type"] = _NAMES.get(str(event["event_type"]), event["event_type"])
        event.pop("time_stamp", None)  # of the page's clock
        try:
            made = checked_event("show='notebook'", event, strict=True)
        except DalaError:
            return  # of a type that is ours alone, or from a page that is not jupyter_rfb's
        if made["event_type"] == "close":
            return
        if made["event_type"] == "resize":
            self._shown_size = made["width"], made["height"]
            self.pixel_ratio = made.get("pixel_ratio", 1.0)
        for place in cast("list[dict[str, float]]", [made, *made.get("touches", {}).values()]):
            if "x" in place:
                at = self.surface_position((0, 0, *self._shown_size), place["x"], place["y"])
                place["x"], place["y"] = at
        self.put_event(made)
        held = set(made.get("modifiers", ())) & {"Control", "Meta"}
        if made["event_type"] == "key_down" and len(made["key"]) == 1 and not held:
            self.put_event(InputEvent(event_type="char", data=made["key"]))
        inbox = self.renderer.inbox()
        if inbox is not None and inbox.runner in (None, threading.get_ident()):
            inbox.dispatch()

    def set_property(self, name: str, value: object) -> bool:
        """Change the title of the widget, or its cursor."""
        if name in ("title", "cursor"):
            self._call_soon(lambda: setattr(self._canvas, name, value))
        return name in ("title", "cursor")

    def wake(self) -> None:
        """Request a draw. Safe on any thread."""
        self._call_soon(self._request_draw)

    def _call_soon(self, work: Callable[[], object]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work)

    def _request_draw(self) -> None:
        if not self._ended.is_set():
            self._canvas.request_draw()

    def _draw(self) -> None:
        """Draw a frame; rendercanvas calls this when the page is ready for one."""
        if self.frame_waiting:
            before = self._frame.shape
            self._frame = self.take_frame()
            self.count_frame()
            if self._frame.shape != before:
                self._canvas.set_logical_size(self._frame.shape[1], self._frame.shape[0])
        opaque = np.full_like(self._frame, 255)
        opaque[..., :3] = over_black(self._frame)
        self._context.set_bitmap(opaque)

    def _check_surface(self) -> None:
        """Close the widget of a surface that was closed or collected."""
        if self._ended.is_set():
            return
        if self.renderer.closed:
            self.close()
        else:
            self._loop.call_later(POLL_SECONDS, self._check_surface)

    def close(self) -> None:
        """Replace the widget with a picture of the last frame."""
        if self._ended.is_set():
            return
        self.wait_for_queue()
        if self.frame_waiting:
            self._frame = self.take_frame()
            self.count_frame()
        self.detach()
        self._display.update(self._picture(self._frame))
        self._call_soon(self._canvas.close)


def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of the running notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        raise DeviceUnavailable(
            "create_surface: show='notebook' works in a notebook only. Run it in Jupyter "
            "(pip install jupyterlab jupyter_rfb), or use show='window' or show='browser'."
        )
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # not on the cell's thread
        loop: asyncio.AbstractEventLoop = shell.kernel.io_loop.asyncio_loop
        return loop
