"""The one thread that touches glfw and the windows made with it.

glfw wants all its calls from one thread. That is a thread of our own, alive while there are
windows; except on macOS, where windows belong to the main thread: there the loop runs while the
main thread waits in ``wait_closed``.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Protocol

from dala.errors import DeviceUnavailable
from dala.gpu.presenters.base import LOOK

#: Windows are the main thread's business.
MAIN_ONLY: Final = sys.platform == "darwin"

#: Seconds between attempts to draw into a window that takes no frames just now.
RETRY: Final = 0.05

NO_DISPLAY: Final = (
    "create_surface: show='window' found no display: set DISPLAY or use show='browser'{why}."
)


class Window(Protocol):
    """What the loop asks of a window."""

    def wants(self) -> bool:
        """True if there is something to draw and somewhere to draw it."""
        ...

    def tick(self) -> bool:
        """Draws if wanted; False once the window is closed."""
        ...

    def shut(self) -> None:
        """Closes the window."""
        ...


class WindowLoop:
    """Runs calls and windows on the thread that owns glfw."""

    def __init__(self) -> None:
        self.windows: list[Window] = []
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._alive = False
        self._said: list[str] = []
        #: Who heard glfw's errors before we did.
        self._listener: Any = None
        #: In a forked process: glfw and its connection to the display are the parent's.
        self.inherited = False

    # for everybody ----------------------------------------------------------------------------
    def call(self, work: Callable[[], Any]) -> Any:
        """Has something done by the thread, and waits for it."""
        if self.mine():
            return work()
        future: Future[Any] = Future()
        with self._lock:
            self._calls.append((work, future))
            if not MAIN_ONLY and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="dala-window", daemon=True)
                self._thread.start()
        self.wake()
        if MAIN_ONLY:  # the main thread does it when it next waits; it may itself wait for us
            return None
        return future.result()

    def mine(self) -> bool:
        """True on the thread that owns the windows."""
        here = threading.current_thread()
        return here is (threading.main_thread() if MAIN_ONLY else self._thread)

    def wake(self) -> None:
        """Ends the loop's sleep."""
        with self._lock:
            if self._alive:
                import glfw

                glfw.post_empty_event()

    # the thread -------------------------------------------------------------------------------
    def start(self) -> None:
        """Brings glfw up, or says why not."""
        glfw = import_glfw()
        if self._alive:
            return
        if self.inherited:
            raise DeviceUnavailable(
                "create_surface: show='window' does not work in a process forked while its parent "
                "had windows open. Start it with multiprocessing's 'spawn' instead."
            )
        if not has_display():
            raise DeviceUnavailable(NO_DISPLAY.format(why=""))
        self._said.clear()
        self._listener = glfw.set_error_callback(self._hear)
        if not glfw.init():
            glfw.set_error_callback(self._listener)
            raise DeviceUnavailable(NO_DISPLAY.format(why=f" ({self.heard()})"))
        self._alive = True

    def _hear(self, code: int, text: Any) -> None:
        self._said.append(text.decode(errors="replace") if isinstance(text, bytes) else str(text))
        del self._said[:-4]

    def heard(self) -> str:
        """What glfw said last went wrong."""
        return self._said[-1] if self._said else "glfw does not say why"

    def step(self, timeout: float) -> None:
        """Does what waits to be done; sleeps no longer than so many seconds if there is nothing."""
        while self._calls:
            work, future = self._calls.popleft()
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        if not self._alive or not self.windows:
            return
        import glfw

        if any(window.wants() for window in self.windows):
            glfw.poll_events()
        else:
            glfw.wait_events_timeout(max(timeout, 1e-3))
        for window in list(self.windows):
            if not window.tick():
                self.windows.remove(window)
                window.shut()
        self.stop_if_idle()

    def stop_if_idle(self) -> None:
        """Takes glfw down with the last window, where it belongs to the thread that ends.

        That is on Windows. Elsewhere the connection to the display stays for the next window:
        Mesa remembers connections by their address, and takes a new one for the old one.
        """
        if self.windows or not self._alive or self._calls or sys.platform != "win32":
            return
        import glfw
        from rendercanvas.glfw import GlfwRenderCanvas

        with self._lock:
            self._alive = False
            glfw.set_error_callback(self._listener)
            # Somebody else's windows in this process would end with glfw.
            if not GlfwRenderCanvas._rc_canvas_group.get_canvases():
                glfw.terminate()

    def _work(self) -> None:
        while True:
            self.step(LOOK)
            self.stop_if_idle()
            with self._lock:
                if not self.windows and not self._calls:
                    self._thread = None
                    return

    def close(self) -> None:
        """Closes all windows and waits for the thread to end."""
        thread = self._thread
        if thread is None and not (MAIN_ONLY and self.windows):
            return

        def shut() -> None:
            for window in self.windows:
                with contextlib.suppress(Exception):
                    window.shut()
            self.windows.clear()
            self.stop_if_idle()

        self.call(shut)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5.0)


def import_glfw() -> Any:
    """The glfw module, or an error that names the extra."""
    try:
        import glfw
    except ImportError as error:
        raise DeviceUnavailable(
            f"create_surface: show='window' needs glfw ({error}). "
            "Install it with: pip install \"dala[view]\"; or use show='browser'."
        ) from None
    return glfw


def has_display() -> bool:
    """True where a display server is named; on macOS and Windows there always is one."""
    if not sys.platform.startswith("linux"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


loop = WindowLoop()
atexit.register(loop.close)


def _after_fork() -> None:
    """The child has neither the thread nor a right to the parent's connection to the display."""
    inherited = loop._alive or loop.inherited
    loop.__init__()  # type: ignore[misc]
    loop.inherited = inherited


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
