"""The window presenter: a glfw window that wgpu draws into."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING

from dala.errors import DalaError, DeviceError, DeviceUnavailable
from dala.gpu.input.events import InputEvent
from dala.gpu.input.windows import WindowInput, WindowProperties
from dala.gpu.presenters.base import Presenter
from dala.gpu.presenters.quad import Quad, fit_rect
from dala.gpu.presenters.window_loop import MAIN_ONLY, RETRY, import_glfw, loop

if TYPE_CHECKING:
    import wgpu

    from dala.gpu.render.thread import Renderer


class GlfwWindow:
    """A glfw window without a graphics API; used on the window thread."""

    def __init__(self, size: tuple[int, int], title: str, presenter: WindowPresenter) -> None:
        self._glfw = glfw = import_glfw()
        glfw.default_window_hints()
        glfw.window_hint(glfw.CLIENT_API, glfw.NO_API)
        glfw.window_hint(glfw.SCALE_TO_MONITOR, True)  # sizes are in logical pixels
        self._handle = glfw.create_window(*size, title, None, None)
        if not self._handle:
            raise RuntimeError("glfw created no window")
        #: The width and height in physical pixels; may be read on any thread.
        self.size: tuple[int, int] = glfw.get_framebuffer_size(self._handle)
        #: True while the window is an icon.
        self.minimized = False
        #: True if the window has to be drawn again.
        self.dirty = True
        glfw.set_framebuffer_size_callback(self._handle, self._on_size)
        glfw.set_window_iconify_callback(self._handle, self._on_iconify)
        glfw.set_window_refresh_callback(self._handle, self._on_change)
        glfw.set_window_focus_callback(self._handle, self._on_focus)
        glfw.set_window_maximize_callback(self._handle, self._on_change)
        self._presenter: WindowPresenter = weakref.proxy(presenter)
        self._input = WindowInput(glfw, self._handle, self._put, self._place)
        self.properties = WindowProperties(glfw, self._handle)
        self._on_size(self._handle, *self.size)

    def _on_size(self, handle: object, width: int, height: int) -> None:
        self.size, self.dirty = (width, height), True
        if 0 in self.size:  # an icon
            return
        ratio = self._presenter.pixel_ratio = self._glfw.get_window_content_scale(self._handle)[0]
        shown = InputEvent(event_type="resize", width=width / ratio, height=height / ratio)
        shown["pixel_ratio"] = ratio
        self._put(shown)

    def _put(self, event: InputEvent) -> None:
        self._presenter.put_event(event)

    def _place(self, x: float, y: float) -> tuple[float, float]:
        """Return a position in the window, in its units, in pixels of the surface."""
        units, frame = self._glfw.get_window_size(self._handle), self._presenter.renderer.front
        (width, height), (across, down) = self.size, units
        place = fit_rect((frame.shape[1], frame.shape[0]), self.size)
        at = x * width / max(across, 1), y * height / max(down, 1)
        return self._presenter.surface_position(place, *at)

    def _on_focus(self, handle: object, focused: int) -> None:
        self.dirty = True
        self._input.focus(bool(focused))

    def _on_iconify(self, handle: object, minimized: int) -> None:
        self.minimized, self.dirty = bool(minimized), True

    def _on_change(self, *details: object) -> None:
        self.dirty = True

    def context(self, vsync: bool) -> wgpu.GPUCanvasContext:
        """Return a context to draw into the window. Release it before the window is closed."""
        import wgpu
        from rendercanvas.glfw import get_glfw_present_info

        return wgpu.gpu.get_canvas_context({**get_glfw_present_info(self._handle), "vsync": vsync})

    @property
    def asked_to_close(self) -> bool:
        """True once the user has closed the window."""
        return bool(self._glfw.window_should_close(self._handle))

    def close(self) -> None:
        """Destroy the window."""
        handle, self._handle = self._handle, None
        self._glfw.destroy_window(handle)
        self._glfw.poll_events()  # some systems remove the window only then


class WindowPresenter(Presenter):
    """A window of the surface's size, or smaller where the screen is."""

    kind = "window"

    def __init__(self, renderer: Renderer, title: str, vsync: bool) -> None:
        super().__init__(renderer)
        self._window: GlfwWindow | None = None
        self._quad: Quad | None = None
        if MAIN_ONLY and not loop.on_owner_thread():
            raise DeviceUnavailable(
                "create_surface: show='window' works only on the main thread on macOS. Call it "
                "there, or use show='browser'."
            )
        loop.call(lambda: self._open(title, vsync))
        self.listen()

    @property
    def polled(self) -> bool:  # type: ignore[override]
        """True on macOS, where the main thread has to run the window loop."""
        return MAIN_ONLY and loop.on_owner_thread()

    def poll(self) -> None:
        """Run the window loop once, where the calling thread has to."""
        if self.polled:
            loop.step(0.0)

    def wake(self) -> None:
        """Wake the window thread."""
        loop.wake()

    def set_property(self, name: str, value: object) -> bool:
        """Change a property of the window."""
        window = self._window
        return window is None or loop.call(lambda: window.properties.set(name, value)) is not False

    def clipboard_text(self) -> str | None:
        """Return the text of the clipboard."""
        window = self._window
        return None if window is None else loop.call(window.properties.clipboard)

    def wait(self, timeout: float | None) -> bool:
        """Wait until the window is closed. On macOS this runs the window loop, once at least."""
        self.pause(0.0)
        return super().wait(timeout)

    def pause(self, seconds: float) -> None:
        """Wait, and on macOS run the window loop meanwhile."""
        if self.polled:
            loop.step(seconds)
        else:
            super().pause(seconds)

    def close(self) -> None:
        """Close the window and wait until it is gone."""
        self.detach()
        if self in loop.windows:
            loop.call(self._remove)

    # on the window thread -----------------------------------------------------------------------
    def _open(self, title: str, vsync: bool) -> None:
        loop.start()
        try:
            height, width = self.renderer.front.shape[:2]
            self._window = GlfwWindow(_window_size(width, height), title, self)
            context = self._window.context(vsync)
            self._quad = Quad(context, self.renderer.canvas.nearest)
        except DalaError:
            self.destroy()
            raise
        except Exception as error:
            self.destroy()
            raise DeviceUnavailable(
                "create_surface: show='window' cannot open a window: "
                f"{error} ({loop.last_error()}). "
                "Use show='browser' instead."
            ) from error
        loop.windows.append(self)

    def _remove(self) -> None:
        if self in loop.windows:
            loop.windows.remove(self)
        self.destroy()

    def needs_draw(self) -> bool:
        """Return True if a frame or a repaint is due and the window is visible."""
        window = self._window
        if self.closed or window is None or window.minimized or 0 in window.size:
            return False
        return self.frame_waiting or window.dirty

    def update(self) -> bool:
        """Draw if needed. Return False once the window is closed."""
        window = self._window
        if self.closed or window is None or window.asked_to_close:
            return False
        if self.needs_draw():
            try:
                self._draw(window)
            except Exception as error:
                problem = f"show='window': the window was closed, since drawing failed: {error}"
                self.renderer.record_error(DeviceError(problem))
                self.detach()
        return not self.closed

    def _draw(self, window: GlfwWindow) -> None:
        renderer, quad = self.renderer, self._quad
        if quad is None:
            return
        from wgpu import DrawCancelled

        window.dirty = False
        try:
            target = quad.target(window.size)
        except DrawCancelled:  # hidden or being resized: try again soon
            window.dirty = True
            self._ended.wait(RETRY)
            return
        fresh = self.frame_waiting
        if fresh:
            quad.prepare(renderer.front.shape)
            with renderer.front_lock:
                self.claim_frame()
                quad.upload(renderer.front)
        quad.draw(target)
        if fresh:
            self.count_frame()

    def destroy(self) -> None:
        """Release the GPU objects first, then the window."""
        self.detach()
        quad, self._quad = self._quad, None
        window, self._window = self._window, None
        if quad is not None:
            with contextlib.suppress(Exception):  # the device is lost
                quad.close()
            del quad
        if window is not None:
            with contextlib.suppress(Exception):  # the display is gone
                window.close()


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
