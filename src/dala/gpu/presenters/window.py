"""Frames in a window: glfw's, through rendercanvas."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from dala.errors import DalaError, DeviceError, DeviceUnavailable
from dala.gpu.presenters.base import LOOK, Presenter
from dala.gpu.presenters.quad import Quad, place
from dala.gpu.presenters.window_loop import MAIN_ONLY, RETRY, import_glfw, loop

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer


class WindowPresenter(Presenter):
    """A window of a surface's size, or as much of it as the screen has room for."""

    kind = "window"

    def __init__(self, renderer: Renderer, title: str, vsync: bool) -> None:
        super().__init__(renderer)
        self._canvas: Any = None
        self._quad: Any = None
        if MAIN_ONLY and not loop.mine():
            raise DeviceUnavailable(
                "create_surface: show='window' works only on the main thread of macOS. Call it "
                "there, or use show='browser'."
            )
        loop.call(lambda: self._open(title, vsync))
        self.listen()

    def wake(self) -> None:
        """Has the window's thread look for a frame."""
        loop.wake()

    def wait(self, timeout: float | None) -> bool:
        """Waits until the window is closed; on macOS this runs the windows."""
        if not (MAIN_ONLY and loop.mine()):
            return super().wait(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        while not self.closed:
            left = LOOK if end is None else end - time.monotonic()
            loop.step(min(max(left, 0.0), LOOK))
            if end is not None and time.monotonic() >= end:
                break
        return self.closed

    def close(self) -> None:
        """Closes the window and waits until it is gone."""
        self.leave()
        if self in loop.windows:
            loop.call(self._remove)

    @property
    def window_size(self) -> tuple[int, int]:
        """Width and height of the window, in pixels of the screen."""
        canvas = self._canvas
        return (0, 0) if canvas is None else canvas.get_physical_size()

    # on the thread of windows -------------------------------------------------------------------
    def _open(self, title: str, vsync: bool) -> None:
        loop.start()
        try:
            canvas_class = _canvas_class()
            height, width = self.renderer.front.shape[:2]
            self._canvas = canvas_class(size=_fitting(width, height), title=title, vsync=vsync)
            self._quad = Quad(self._canvas, self.renderer.canvas.nearest)
            self._canvas.request_draw(self._draw)
        except DalaError:
            self.shut()
            loop.stop_if_idle()
            raise
        except Exception as error:
            self.shut()
            said = loop.heard()
            loop.stop_if_idle()
            raise DeviceUnavailable(
                f"create_surface: show='window' could not open a window: {error} ({said}). "
                "Use show='browser' instead."
            ) from error
        loop.windows.append(self)

    def _remove(self) -> None:
        if self in loop.windows:
            loop.windows.remove(self)
        self.shut()
        loop.stop_if_idle()

    def wants(self) -> bool:
        """True if a frame or a repaint is due and the window can take it."""
        canvas = self._canvas
        if self.closed or canvas is None:
            return False
        if canvas.minimized or 0 in canvas.get_physical_size():
            return False
        return bool(self.waits or canvas.dirty)

    def tick(self) -> bool:
        """Draws if wanted; False once the window is closed."""
        if self.closed or self._canvas.asked_to_close:
            return False
        if self.wants():
            try:
                self._canvas.dirty = False
                self._canvas.force_draw()
            except Exception as error:  # rendercanvas keeps most to itself; see _draw
                self.fail(_broken(error))
        return not self.closed

    def _draw(self) -> None:
        """Called by rendercanvas, which shows what was drawn when this returns."""
        renderer, quad = self.renderer, self._quad
        try:
            target = quad.target()
            fresh = self.waits
            if fresh:
                quad.prepare(renderer.front.shape)
                with renderer.front_lock:
                    self.claim()
                    quad.upload(renderer.front)
            quad.draw(target)
            self.shown += fresh
        except Exception as error:
            if type(error).__name__ == "DrawCancelled":  # hidden, or being resized: again soon
                self._canvas.dirty = True
                self._gone.wait(RETRY)
                raise
            self.fail(_broken(error))

    def shut(self) -> None:
        """Lets go of the GPU first, then of the window."""
        self.leave()
        quad, self._quad = self._quad, None
        canvas, self._canvas = self._canvas, None
        if quad is not None:
            with contextlib.suppress(Exception):  # a lost device has nothing to give back
                quad.close()
            del quad
        if canvas is not None:
            with contextlib.suppress(Exception):  # nor has a display that is gone
                canvas.close()


def _broken(error: Exception) -> DeviceError:
    return DeviceError(f"the window was closed, for its frames cannot be drawn any more: {error}")


def _fitting(width: int, height: int) -> tuple[int, int]:
    """The size of a window: the surface's, or less of the same shape on a smaller screen."""
    glfw = import_glfw()
    monitor = glfw.get_primary_monitor()
    if not monitor:
        return width, height
    _, _, room_w, room_h = glfw.get_monitor_workarea(monitor)
    scale = glfw.get_monitor_content_scale(monitor)
    room = int(room_w / scale[0]), int(room_h / scale[1])
    if MAIN_ONLY:
        room = room_w, room_h
    if min(room) < 10 or (width <= room[0] and height <= room[1]):
        return width, height
    return place((width, height), (room[0] * 9 // 10, room[1] * 9 // 10))[2:]  # and its frame


_made: list[Any] = []


def _canvas_class() -> Any:
    """rendercanvas's glfw window, driven by our loop instead of an asyncio one."""
    if _made:
        return _made[0]
    from rendercanvas.base import BaseCanvasGroup
    from rendercanvas.glfw import GlfwRenderCanvas

    class Canvas(GlfwRenderCanvas):  # type: ignore[misc]
        _rc_canvas_group = BaseCanvasGroup(None)
        dirty = True

        def __init__(self, title: str, **how: Any) -> None:
            super().__init__(title=None, **how)
            if self._window is None:
                raise RuntimeError("glfw made no window")
            self._rc_set_title(title)  # as it is; set_title() would put facts for "$fps"

        @property
        def minimized(self) -> bool:
            return bool(self._is_minimized)

        @property
        def asked_to_close(self) -> bool:
            return self._window is None or bool(import_glfw().window_should_close(self._window))

        def _on_window_dirty(self, *args: Any) -> None:
            self.dirty = True

        def _on_iconify(self, window: Any, iconified: Any) -> None:
            super()._on_iconify(window, iconified)
            self.dirty = True

        def _on_size_change(self, *args: Any) -> None:
            super()._on_size_change(*args)
            self.dirty = True

    _made.append(Canvas)
    return Canvas
