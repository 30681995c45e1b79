"""What all presenters share: which frame waits, what counts as dropped, and how they end.

A presenter holds the renderer and never the surface, so that a surface that is let go of closes
what shows it. It ends once, by its window or page being closed, by ``close()``, or with the
renderer; the surface goes on without it.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import DalaError, DeviceError
from dala.resources import Closing

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer

#: Seconds after which whoever waits looks whether the surface is still there.
LOOK: Final = 0.2

#: Seconds that a presenter whose last frame stays waits for it when it is closed.
SETTLE: Final = 1.0


class Presenter(Closing):
    """Shows the frames of one renderer."""

    #: What ``show=`` calls it.
    kind = ""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        #: Frames that were shown.
        self.shown = 0
        self._waits = False
        self._guard = threading.Lock()
        self._gone = threading.Event()

    # frames -----------------------------------------------------------------------------------
    def listen(self) -> None:
        """Takes frames from now on; one that was presented before is shown too."""
        self.renderer.on_present = self._presented
        if self.renderer.frames:
            self._presented(None)

    def _presented(self, renderer: Renderer | None) -> None:
        """Called on the render thread after each present."""
        with self._guard:
            if self._waits and renderer is not None:
                renderer.dropped += 1  # it takes the place of one that nobody saw
            self._waits = True
        self.wake()

    @abstractmethod
    def wake(self) -> None:
        """Has the thread that shows frames look for one; called by any thread."""

    @property
    def waits(self) -> bool:
        """True while a frame was presented that is not shown yet."""
        return self._waits

    def claim(self) -> None:
        """Marks the waiting frame as being shown; what is presented next waits anew."""
        with self._guard:
            self._waits = False

    def take(self) -> np.ndarray[Any, Any]:
        """A copy of the frame to show, (height, width, 4), straight alpha."""
        with self.renderer.front_lock:
            self.claim()
            return self.renderer.front.copy()

    # end --------------------------------------------------------------------------------------
    @property
    def closed(self) -> bool:
        """True once nothing is shown any more."""
        return self._gone.is_set() or self.renderer.closed

    def close(self) -> None:
        """Ends the presenter; the surface stays. Twice is fine."""
        self.leave()

    def leave(self) -> None:
        """Takes no more frames, and tells those who wait for the end."""
        if self.renderer.on_present == self._presented:
            self.renderer.on_present = None
        self._gone.set()

    def settle(self) -> None:
        """Waits, not long, for what is queued: what was presented before the end is seen."""
        renderer, end = self.renderer, time.monotonic() + SETTLE
        while (renderer.pending or not renderer.idle) and not renderer.closed:
            if time.monotonic() > end:
                break
            time.sleep(0.002)

    def fail(self, error: DalaError) -> None:
        """Ends the presenter for an error, which the surface lists and raises."""
        self.renderer.record_error(error)
        self.leave()

    def wait(self, timeout: float | None) -> bool:
        """Waits until it is closed; False if that took longer than so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.closed:
            left = LOOK if end is None else min(LOOK, end - time.monotonic())
            if left <= 0:
                return False
            self._gone.wait(left)  # in pieces, so that Ctrl-C works everywhere
        return True


class ThreadPresenter(Presenter):
    """A presenter whose frames are shown by a thread of its own, one after the other."""

    def __init__(self, renderer: Renderer, pace: float = 0.0) -> None:
        super().__init__(renderer)
        self._pace = pace
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"dala-{self.kind}", daemon=True)

    def listen(self) -> None:
        """Starts the thread and takes frames."""
        self._thread.start()
        super().listen()

    def wake(self) -> None:
        """Has the thread look for a frame."""
        self._wake.set()

    @abstractmethod
    def show(self, frame: np.ndarray[Any, Any]) -> None:
        """Shows one frame; called on the thread."""

    def end(self) -> None:
        """Called on the thread when nothing more is shown."""

    def _work(self) -> None:
        try:
            while not self.closed:
                if not self._wake.wait(LOOK):
                    continue
                self._wake.clear()
                if self.waits and not self.closed:
                    self.show(self.take())
                    self.shown += 1
                    if self._pace:
                        self._gone.wait(self._pace)
            if self.waits:  # the last frame is seen, however soon the end came
                self.show(self.take())
                self.shown += 1
        except Exception as error:
            self.fail(DeviceError(f"show={self.kind!r} ended: {type(error).__name__}: {error}"))
        finally:
            try:
                self.end()
            finally:
                self.leave()

    def close(self) -> None:
        """Ends the presenter and its thread, the last frame being shown."""
        if not self.closed:
            self.settle()
        self.leave()
        self.wake()
        thread = self._thread
        if thread.ident is not None and thread is not threading.current_thread():
            thread.join(timeout=10.0)


def over_black(frame: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The three colour channels of a frame, transparent pixels over black."""
    alpha = frame[..., 3:]
    rgb: np.ndarray[Any, Any] = frame[..., :3]
    if alpha.size and alpha.min() == 255:
        return rgb
    scaled: np.ndarray[Any, Any] = (rgb.astype(np.uint16) * alpha + 127) // 255
    return scaled.astype(np.uint8)
