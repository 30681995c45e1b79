"""The window presenter, on glfw through rendercanvas."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from dala.errors import DalaError, DeviceError, DeviceUnavailable
from dala.gpu.presenters.base import POLL_SECONDS, Presenter
from dala.gpu.presenters.quad import Quad, fit_rect
from dala.gpu.presenters.window_loop import MAIN_ONLY, RETRY, import_glfw, loop

if TYPE_CHECKING:
    from rendercanvas.glfw import GlfwRenderCanvas

    from dala.gpu.render.thread import Renderer


class WindowPresenter(Presenter):
    """A window of the surface's size, or smaller where the screen is."""

    kind = "window"

    def __init__(self, renderer: Renderer, title: str, vsync: bool) -> None:
        super().__init__(renderer)
        self._canvas: GlfwRenderCanvas | None = None
        self._quad: Quad | None = None
        if MAIN_ONLY and not loop.on_owner_thread():
            raise DeviceUnavailable(
                "create_surface: show='window' works only on the main thread on macOS. Call it "
                "there, or use show='browser'."
            )
        loop.call(lambda: self._open(title, vsync))
        self.listen()

    def wake(self) -> None:
        """Wake the window thread."""
        loop.wake()

    def wait(self, timeout: float | None) -> bool:
        """Wait until the window is closed. On macOS this runs the window loop."""
        if not (MAIN_ONLY and loop.on_owner_thread()):
            return super().wait(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        while not self.closed:
            left = POLL_SECONDS if end is None else end - time.monotonic()
            loop.step(min(max(left, 0.0), POLL_SECONDS))
            if end is not None and time.monotonic() >= end:
                break
        return self.closed

    def close(self) -> None:
        """Close the window and wait until it is gone."""
        self.detach()
        if self in loop.windows:
            loop.call(self._remove)

    @property
    def window_size(self) -> tuple[int, int]:
        """The width and height of the window in physical pixels."""
        canvas = self._canvas
        return (0, 0) if canvas is None else canvas.get_physical_size()

    # on the window thread -----------------------------------------------------------------------
    def _open(self, title: str, vsync: bool) -> None:
        loop.start()
        try:
            canvas_class = _glfw_canvas_class()
            height, width = self.renderer.front.shape[:2]
            canvas = canvas_class(size=_window_size(width, height), title=title, vsync=vsync)
            self._canvas = canvas
            self._quad = Quad(canvas, self.renderer.canvas.nearest)
            canvas.request_draw(self._draw)
        except DalaError:
            self.destroy()
            loop.stop_if_idle()
            raise
        except Exception as error:
            self.destroy()
            detail = loop.last_error()
            loop.stop_if_idle()
            raise DeviceUnavailable(
                f"create_surface: show='window' cannot open a window: {error} ({detail}). "
                "Use show='browser' instead."
            ) from error
        loop.windows.append(self)

    def _remove(self) -> None:
        if self in loop.windows:
            loop.windows.remove(self)
        self.destroy()
        loop.stop_if_idle()

    def needs_draw(self) -> bool:
        """Return True if a frame or a repaint is due and the window is visible."""
        canvas = self._canvas
        if self.closed or canvas is None:
            return False
        if canvas.minimized or 0 in canvas.get_physical_size():
            return False
        return bool(self.frame_waiting or canvas.dirty)

    def update(self) -> bool:
        """Draw if needed. Return False once the window is closed."""
        canvas = self._canvas
        if self.closed or canvas is None or canvas.asked_to_close:
            return False
        if self.needs_draw():
            try:
                canvas.dirty = False
                canvas.force_draw()
            except Exception as error:  # rendercanvas handles most errors itself; see _draw
                self.fail(_broken(error))
        return not self.closed

    def _draw(self) -> None:
        """Draw; rendercanvas calls this, and shows the result when it returns."""
        renderer, canvas, quad = self.renderer, self._canvas, self._quad
        if canvas is None or quad is None:
            return
        try:
            target = quad.target()
            fresh = self.frame_waiting
            if fresh:
                quad.prepare(renderer.front.shape)
                with renderer.front_lock:
                    self.claim_frame()
                    quad.upload(renderer.front)
            quad.draw(target)
            self.shown += fresh
        except Exception as error:
            if type(error).__name__ == "DrawCancelled":  # hidden or being resized: try again soon
                canvas.dirty = True
                self._ended.wait(RETRY)
                raise
            self.fail(_broken(error))

    def destroy(self) -> None:
        """Release the GPU objects first, then the window."""
        self.detach()
        quad, self._quad = self._quad, None
        canvas, self._canvas = self._canvas, None
        if quad is not None:
            with contextlib.suppress(Exception):  # the device is lost
                quad.close()
            del quad
        if canvas is not None:
            with contextlib.suppress(Exception):  # the display is gone
                canvas.close()


def _broken(error: Exception) -> DeviceError:
    return DeviceError(f"show='window': the window was closed, since drawing failed: {error}")


def _window_size(width: int, height: int) -> tuple[int, int]:
    """Return the size of the window: the surface's, or scaled down to fit the screen."""
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
    decorated = room[0] * 9 // 10, room[1] * 9 // 10  # leaves room for decorations
    return fit_rect((width, height), decorated)[2:]


_classes: list[type[GlfwRenderCanvas]] = []


def _glfw_canvas_class() -> type[GlfwRenderCanvas]:
    """Return rendercanvas's glfw window class, driven by the window loop instead of asyncio."""
    if _classes:
        return _classes[0]
    from rendercanvas.base import BaseCanvasGroup
    from rendercanvas.glfw import GlfwRenderCanvas

    class GlfwCanvas(GlfwRenderCanvas):  # type: ignore[misc]
        _rc_canvas_group = BaseCanvasGroup(None)
        dirty = True

        def __init__(self, title: str, **options: object) -> None:
            super().__init__(title=None, **options)
            if self._window is None:
                raise RuntimeError("glfw created no window")
            self._rc_set_title(title)  # set_title() would replace "$fps" and the like

        @property
        def minimized(self) -> bool:
            return bool(self._is_minimized)

        @property
        def asked_to_close(self) -> bool:
            return self._window is None or bool(import_glfw().window_should_close(self._window))

        def _on_window_dirty(self, *args: object) -> None:
            self.dirty = True

        def _on_iconify(self, window: object, iconified: object) -> None:
            super()._on_iconify(window, iconified)
            self.dirty = True

        def _on_size_change(self, *args: object) -> None:
            super()._on_size_change(*args)
            self.dirty = True

    _classes.append(GlfwCanvas)
    return GlfwCanvas
