"""The loop that makes all glfw calls, on one thread.

glfw requires one thread. It is a thread of its own that lives while there are windows, and on
Windows until the interpreter exits. On macOS windows belong to the main thread: there the loop
runs while the main thread is in ``wait_closed``.

glfw is never terminated here: other packages may have windows in this process, and Mesa, which
identifies display connections by address, would take a new connection for the old one.
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
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar

from dala import forks
from dala.errors import DeviceUnavailable
from dala.extras import pip_install
from dala.gpu.presenters.base import POLL_SECONDS, join

if TYPE_CHECKING:
    from dala.gpu.presenters.window import WindowPresenter

T = TypeVar("T")

#: True where windows belong to the main thread.
MAIN_ONLY: Final = sys.platform == "darwin"

#: True where glfw works only on the thread that initialized it, which therefore stays.
KEEPS_THREAD = sys.platform == "win32"

#: Seconds between attempts to draw into a window that accepts no frame.
RETRY: Final = 0.05

NO_DISPLAY: Final = (
    "create_surface: show='window' found no display{why}. Set DISPLAY, or use show='browser'."
)


class WindowLoop:
    """Runs function calls and windows on the thread that owns glfw."""

    def __init__(self) -> None:
        self.windows: list[WindowPresenter] = []
        self._calls: deque[Callable[[], None]] = deque()
        self._lock = forks.lock()
        self._arrived = forks.condition(self._lock)
        self._ending = False
        self._thread: threading.Thread | None = None
        self._alive = False
        self._errors: list[str] = []
        #: True in a forked process, where glfw and its display connection belong to the parent.
        self.inherited = False

    # on any thread ----------------------------------------------------------------------------
    def call(self, work: Callable[[], T]) -> T | None:
        """Call a function on the owner thread and wait for its result."""
        if self.on_owner_thread():
            return work()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            self._calls.append(run)
            self._arrived.notify()
            if not MAIN_ONLY and self._thread is None:
                self._thread = forks.thread(self._work, name="dala-window")
                self._thread.start()
        self.wake()
        if MAIN_ONLY:  # the main thread runs it later; it may be waiting for this thread
            return None
        return future.result()

    def on_owner_thread(self) -> bool:
        """Return True on the thread that owns the windows."""
        here = threading.current_thread()
        return here is (threading.main_thread() if MAIN_ONLY else self._thread)

    def wake(self) -> None:
        """Wake the loop."""
        with self._lock:
            if self._alive:
                import glfw

                glfw.post_empty_event()

    # the thread -------------------------------------------------------------------------------
    def start(self) -> None:
        """Initialize glfw, or raise."""
        glfw = import_glfw()
        if self._alive:
            return
        if self.inherited:
            raise DeviceUnavailable(
                "create_surface: show='window' does not work in a process that was forked while "
                "its parent had windows. Use multiprocessing's 'spawn' start method."
            )
        if not has_display():
            raise DeviceUnavailable(NO_DISPLAY.format(why=""))
        self._errors.clear()
        previous = glfw.set_error_callback(self._record_error)
        if not glfw.init():
            glfw.set_error_callback(previous)
            raise DeviceUnavailable(NO_DISPLAY.format(why=f" ({self.last_error()})"))
        self._alive = True

    def _record_error(self, code: int, text: bytes | str) -> None:
        self._errors.append(text.decode(errors="replace") if isinstance(text, bytes) else str(text))
        del self._errors[:-4]

    def last_error(self) -> str:
        """Return the last error message of glfw."""
        return self._errors[-1] if self._errors else "glfw reports no reason"

    def step(self, timeout: float) -> None:
        """Run queued calls and draw windows; sleep up to ``timeout`` seconds if idle."""
        while self._calls:
            self._calls.popleft()()
        if not self._alive or not self.windows:
            return
        import glfw

        if any(window.needs_draw() for window in self.windows):
            glfw.poll_events()
        else:
            glfw.wait_events_timeout(max(timeout, 1e-3))
        for window in list(self.windows):
            if not window.update():
                self.windows.remove(window)
                window.destroy()

    def _work(self) -> None:
        while True:
            self.step(POLL_SECONDS)
            with self._lock:
                if self.windows or self._calls:
                    continue
                if KEEPS_THREAD:
                    self._arrived.wait_for(lambda: self._calls or self._ending)
                if not self._calls:
                    self._thread = None
                    return

    def close(self) -> None:
        """Close all windows and wait for the thread to end; called at exit."""
        thread = self._thread
        if thread is None and not (MAIN_ONLY and self.windows):
            return

        def destroy() -> None:
            for window in self.windows:
                with contextlib.suppress(Exception):
                    window.destroy()
            self.windows.clear()
            self._ending = True

        self.call(destroy)
        join(5.0, thread)


def import_glfw() -> ModuleType:
    """Return the glfw module, or raise an error that names the extra."""
    try:
        import glfw
    except ImportError as error:
        raise DeviceUnavailable(
            f"create_surface: show='window' needs glfw ({error}). "
            f"Run: {pip_install('view')}, or use show='browser'."
        ) from None
    return glfw


def has_display() -> bool:
    """Return True if there is a display; always on macOS and Windows."""
    if not sys.platform.startswith("linux"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


loop = WindowLoop()
atexit.register(loop.close)


def _after_fork() -> None:
    """Reset the loop in a child, which has neither the thread nor the display connection."""
    inherited = loop._alive or loop.inherited
    loop.__init__()  # type: ignore[misc]
    loop.inherited = inherited


forks.in_child(_after_fork)
