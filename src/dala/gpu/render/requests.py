"""What lies in the queue of a worker besides plain bytes: requests, and bytes in hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Request:
    """Something to be done by the thread in turn."""

    __slots__ = ("done", "error", "refused", "result", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work: Callable[[], Any] | None = work
        self.done = threading.Lock()
        self.done.acquire()
        self.result: Any = None
        self.error: BaseException | None = None
        self.refused = False

    def run(self) -> None:
        """Does it, unless it was given up, and lets go of whoever waits."""
        work, self.work = self.work, None
        try:
            if work is not None:
                self.result = work()
        except BaseException as error:  # told to the one who waits
            self.error = error
        self.done.release()

    def refuse(self) -> None:
        """Lets go of whoever waits, without having done it."""
        self.work, self.refused = None, True
        self.done.release()


class Hand:
    """Bytes in hand, some of which may be done, or so many that they are counted."""

    __slots__ = ("data", "upto")

    def __init__(self, data: bytes, upto: int = 0) -> None:
        self.data = data
        #: All bytes that were counted before them and with them; 0 if they were not.
        self.upto = upto
