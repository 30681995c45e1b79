"""Being told to stop by the system, as if by Ctrl-C: what was begun is cleaned up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number


@contextmanager
def stopping() -> Iterator[None]:
    """SIGTERM, and SIGHUP where a terminal closes, raise :class:`Stopped` within the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may listen
        return
    numbers = [getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]
    # One that is ignored stays so: `nohup` asks for that.
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) == signal.SIG_DFL}

    def stop(number: int, frame: Any) -> None:
        for n in before:
            signal.signal(n, signal.SIG_IGN)  # once is enough; cleaning up takes a moment
        raise Stopped(number)

    for n in before:
        signal.signal(n, stop)
    try:
        yield
    finally:
        for n, old in before.items():
            signal.signal(n, old)
