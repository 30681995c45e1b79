"""Base classes of the presenters: waiting and dropped frames, and how a presenter ends.

A presenter references the renderer and never the surface, so that an unreferenced surface is
collected and closes its window. It ends once: when its window or page is closed, with ``close()``,
or with the renderer. The surface continues without it.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from dala import forks
from dala.errors import DeviceError
from dala.resources import Closing
from dala.trace.recorder import OFF, Here, traced, tracer
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.input.events import InputEvent
    from dala.gpu.render.thread import Renderer

#: Which of several pages send input.
Steer: TypeAlias = Literal["first", "all", "none"]

#: Seconds between the checks of a waiting thread whether the surface still exists.
POLL_SECONDS: Final = 0.2

#: Seconds that closing waits for queued frames, where the last frame stays visible.
SETTLE_SECONDS: Final = 1.0


class Presenter(Closing):
    """Shows the frames of one renderer."""

    #: The value of ``show=``.
    kind = ""
    #: The address of the page; empty for presenters without one.
    address = ""
    #: True where the thread that takes events has to run the window.
    polled = False
    #: Physical pixels of the screen for one logical pixel.
    pixel_ratio = 1.0

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        #: The number of frames shown.
        self.shown = 0
        self._frame_waiting = False
        self._traced: int | None = None
        self._waker: Here | None = None
        self._guard = forks.lock()
        self._ended = forks.event()

    # frames -----------------------------------------------------------------------------------
    def listen(self) -> None:
        """Start to show frames, including one that was already presented."""
        self.renderer.on_present = self._presented
        if self.renderer.frames:
            self._presented(None)

    def _presented(self, renderer: Renderer | None) -> None:
        """Called on the render thread after each present."""
        with self._guard:
            if self._frame_waiting and renderer is not None:
                renderer.dropped += 1  # the previous frame was not shown
            self._frame_waiting = True
        if tracer.on:
            self._traced, self._waker = tracer.frame, tracer.here()
            tracer.dropped(self.kind, 0 if renderer is None else renderer.dropped)
        self.wake()

    @abstractmethod
    def wake(self) -> None:
        """Wake the thread that shows frames. Safe on any thread."""

    @property
    def frame_waiting(self) -> bool:
        """True while a presented frame is not shown yet."""
        return self._frame_waiting

    def claim_frame(self) -> None:
        """Take the waiting frame, which this thread will show."""
        with self._guard:
            self._frame_waiting = False
        if tracer.on:
            tracer.frame = self._traced

    def count_frame(self) -> None:
        """Count the frame that this thread has shown."""
        with self._guard:
            self.shown += 1
        if tracer.on:
            tracer.done(self.kind)

    def take_frame(self) -> NDArray:
        """Return a copy of the frame to show, (height, width, 4) with straight alpha."""
        with self.renderer.front_lock:
            self.claim_frame()
            return self.renderer.front.copy()

    # input ------------------------------------------------------------------------------------
    def put_event(self, event: InputEvent) -> None:
        """Add an event of the viewer. Safe on any thread."""
        inbox = self.renderer.inbox()
        if inbox is not None:
            inbox.put(event)

    def poll(self) -> None:
        """Handle the window's events, where the calling thread has to."""

    def set_property(self, name: str, value: object) -> bool:
        """Change the title, cursor, fullscreen or clipboard. Return False if it cannot."""
        return False

    def clipboard_text(self) -> str | None:
        """Return the text of the clipboard, or None where it cannot be read."""
        return None

    def surface_position(
        self, place: tuple[float, float, float, float], x: float, y: float
    ) -> tuple[float, float]:
        """Return a position in pixels of the surface, for where the frame is shown.

        ``place`` is the left, top, width and height of the shown frame, in the units of x and y.
        """
        (height, width), (left, top, w, h) = self.renderer.front.shape[:2], place
        return (x - left) * width / w, (y - top) * height / h

    # closing ----------------------------------------------------------------------------------
    @property
    def closed(self) -> bool:
        """True once the presenter or the surface has ended."""
        return self._ended.is_set() or self.renderer.closed

    def close(self) -> None:
        """End the presenter; the surface stays open. Safe to call twice."""
        self.detach()

    def detach(self) -> None:
        """Stop showing frames, and wake threads that wait for the end."""
        if self.renderer.on_present == self._presented:
            self.renderer.on_present = None
        if not self._ended.is_set():
            self._ended.set()
            self.put_event({"event_type": "close"})

    def wait_for_queue(self) -> None:
        """Wait a short time for queued commands, so that the last frame is shown."""
        renderer, end = self.renderer, time.monotonic() + SETTLE_SECONDS
        while (renderer.pending or not renderer.idle) and not renderer.closed:
            if time.monotonic() > end:
                break
            time.sleep(0.002)

    def record(self, error: Exception) -> None:
        """Record an error, which the surface lists and raises."""
        self.renderer.record_error(
            DeviceError(f"show={self.kind!r} failed: {type(error).__name__}: {error}")
        )

    def wait(self, timeout: float | None) -> bool:
        """Wait until the presenter is closed. Return False after ``timeout`` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.closed:
            self._dispatch()
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - time.monotonic())
            if left <= 0:
                return False
            self.pause(left)  # in short waits, so that Ctrl-C works on every system
        self._dispatch()
        return True

    def _dispatch(self) -> None:
        inbox = self.renderer.inbox()
        if inbox is not None:
            inbox.dispatch()

    def pause(self, seconds: float) -> None:
        """Wait for an event, or so many seconds."""
        inbox = self.renderer.inbox()
        if inbox is None:
            self._ended.wait(seconds)
        else:
            inbox.wait(seconds)


class ThreadPresenter(Presenter):
    """A presenter whose own thread shows the frames."""

    def __init__(self, renderer: Renderer, interval: float = 0.0) -> None:
        super().__init__(renderer)
        #: Seconds between frames at least.
        self._interval = interval
        self._wake = forks.event()
        self._thread = forks.thread(self._work, name=f"dala-{self.kind}")

    def listen(self) -> None:
        """Start the thread, and to show frames."""
        self._thread.start()
        super().listen()

    def wake(self) -> None:
        """Wake the thread."""
        self._wake.set()

    @abstractmethod
    def show(self, frame: NDArray) -> None:
        """Show one frame; called on the thread."""

    def end(self) -> None:
        """Clean up; the last call on the thread."""

    @traced("present")
    def _show_newest(self) -> None:
        self.show(self.take_frame())
        self.count_frame()

    def _work(self) -> None:
        try:
            while not self.closed:
                with tracer.wait("", "a new frame") if tracer.on else OFF as waited:
                    if not self._wake.wait(POLL_SECONDS):
                        continue
                    waited.woken(self._waker)
                self._wake.clear()
                if self.frame_waiting and not self.closed:
                    self._show_newest()
                    if self._interval:
                        self._ended.wait(self._interval)
            if self.frame_waiting:  # show the last frame in any case
                self._show_newest()
        except Exception as error:
            self.record(error)
        finally:
            try:
                self.end()
            finally:
                self.detach()

    def close(self) -> None:
        """Show the last frame, then end the presenter and its thread."""
        if not self.closed:
            self.wait_for_queue()
        self.detach()
        self.wake()
        join(10.0, self._thread)


def join(seconds: float, *threads: threading.Thread | None) -> None:
    """Wait for threads to end, except the calling one and threads that never began."""
    for thread in threads:
        if thread is not None and thread.ident not in (None, threading.get_ident()):
            thread.join(timeout=seconds)


def over_black(frame: NDArray) -> NDArray:
    """Return the RGB channels of a frame, blended over black."""
    alpha = frame[..., 3:]
    rgb: NDArray = frame[..., :3]
    if alpha.size and alpha.min() == 255:
        return rgb
    scaled: NDArray = (rgb.astype(np.uint16) * alpha + 127) // 255
    return scaled.astype(np.uint8)
