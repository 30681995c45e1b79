"""The loop of ``Surface.run``: one draw a frame, at a steady pace, until the surface is closed."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import iscoroutinefunction, signature
from typing import TYPE_CHECKING, Final, TypeAlias

from dala import forks
from dala.errors import CommandError, FreedError

if TYPE_CHECKING:
    from dala.gpu.surface import Surface

#: Draws a frame: a function of the surface, and of the seconds since the frame before.
Draw: TypeAlias = "Callable[[Surface, float], object]"

#: The last part of a wait is slept, which is exact on every system; before it ``stop`` wakes.
SLEPT: Final = 0.02
#: Frames a second at most.
MAX_FPS: Final = 1000.0

_log = logging.getLogger("dala")

#: The tasks of surfaces that run in notebooks: the event loop refers to them weakly.
_tasks: set[asyncio.Task[None]] = set()
forks.in_child(lambda: _tasks.clear())


class Pace:
    """When frames are due: frame n at ``start + n / fps``, so that errors never add up.

    A frame that is a little late is followed at once; those that were missed are left out.

    >>> pace = Pace(10.0, start=5.0)
    >>> [round(pace.due(now), 3) for now in (5.01, 5.12, 5.31, 5.95)]
    [5.1, 5.2, 5.3, 6.0]
    """

    def __init__(self, fps: float, start: float) -> None:
        self.period, self.start, self.frame = 1.0 / fps, start, 0

    def due(self, now: float) -> float:
        """Return when the next frame is due, after one that ended now."""
        passed = math.floor((now - self.start) / self.period)
        self.frame = passed + 1 if passed > self.frame + 1 else self.frame + 1
        return self.start + self.frame * self.period


def checked_pace(call: str, draw: object, fps: float) -> float:
    """Return the frames per second as a float, or raise."""
    if isinstance(draw, type) or not _takes_two(draw) or iscoroutinefunction(draw):
        expected = "a plain function draw(s, dt), of the surface and the seconds"
        raise CommandError.invalid(call, "draw", expected, draw)
    if isinstance(fps, (int, float)) and not isinstance(fps, bool) and 0 < fps <= MAX_FPS:
        return float(fps)
    raise CommandError.invalid(call, "fps", f"a number above 0, up to {MAX_FPS:g}", fps)


def _takes_two(draw: object) -> bool:
    """Return whether a function can be called with two arguments, as far as that is known."""
    try:
        signature(draw).bind(None, 0.0)  # type: ignore[arg-type]
    except TypeError:
        return False
    except ValueError:  # some functions of C have no signature
        return callable(draw)
    return True


def run(s: Surface, draw: Draw, fps: float) -> None:
    """Draw frames until the surface is closed or stopped."""
    inbox = s._inbox
    with _running(s):
        try:
            for due in _frames(s, draw, fps):
                while (left := due - time.monotonic()) > 0 and not inbox.stopping.is_set():
                    if s.presenter is not None and s.presenter.polled:
                        s.presenter.pause(min(left, SLEPT))
                    elif left > 2 * SLEPT:
                        inbox.stopping.wait(left - SLEPT)
                    else:
                        time.sleep(left)
        except KeyboardInterrupt:
            pass  # the usual way to stop


async def run_async(s: Surface, draw: Draw, fps: float) -> None:
    """Draw frames while other tasks of the event loop run."""
    with _running(s):
        for due in _frames(s, draw, fps):
            await asyncio.sleep(max(due - time.monotonic(), 0.0))


def run_in_notebook(s: Surface, draw: Draw, fps: float) -> bool:
    """Start a task that draws frames, where the thread runs a notebook's event loop."""
    if s.presenter is None or s.presenter.kind != "notebook":
        return False
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    task = loop.create_task(run_async(s, draw, fps))
    _tasks.add(task)
    task.add_done_callback(_report)
    return True


def _report(task: asyncio.Task[None]) -> None:
    _tasks.discard(task)
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("run ended with an exception", exc_info=error)


@contextmanager
def _running(s: Surface) -> Iterator[None]:
    """Note which thread runs the surface, as long as it does."""
    inbox = s._inbox
    if inbox.runner is not None:
        raise CommandError(
            "run: the surface is running already. Call s.stop(), or draw in its function."
        )
    inbox.runner = threading.get_ident()
    try:
        yield
        inbox.dispatch()  # the close event that ended it
    finally:
        inbox.runner = None
        inbox.stopping.clear()


def _frames(s: Surface, draw: Draw, fps: float) -> Iterator[float]:
    """Draw frames, and yield the time at which the next one is due."""
    inbox = s._inbox
    pace = Pace(fps, time.monotonic())
    before = pace.start - pace.period
    try:
        while not _ended(s):
            if s.presenter is not None:
                s.presenter.poll()
            inbox.dispatch()
            if _ended(s):
                return
            s.synchronize()  # the frame before is drawn: none queue up, and its errors are raised
            now = time.monotonic()
            draw(s, now - before)
            before = now
            if not s.closed:
                s.present()
            yield pace.due(time.monotonic())
    except FreedError:
        if not s.closed:  # closed by another thread meanwhile
            raise


def _ended(s: Surface) -> bool:
    presenter = s.presenter
    return s.closed or s._inbox.stopping.is_set() or (presenter is not None and presenter.closed)


def wanted_show() -> str | None:
    """Return where surfaces without a presenter are shown when they run: by ``dala view``."""
    return os.environ.get("DALA_SHOW") or None
