"""Termination signals as exceptions, so that unfinished files are removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A signal requested the end of the process."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number


@contextmanager
def stopping() -> Iterator[None]:
    """Raise :class:`Stopped` within the block on SIGTERM, and on SIGHUP where it exists."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    numbers = [getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]
    # An ignored signal stays ignored, as `nohup` requires.
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) == signal.SIG_DFL}

    def stop(number: int, frame: FrameType | None) -> None:
        for n in before:
            signal.signal(n, signal.SIG_IGN)  # a second signal must not interrupt the cleanup
        raise Stopped(number)

    for n in before:
        signal.signal(n, stop)
    try:
        yield
    finally:
        for n, old in before.items():
            signal.signal(n, old)
