"""Items of a worker's queue other than plain command bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dala import forks

T_co = TypeVar("T_co", covariant=True)


class Request(Generic[T_co]):
    """A function to be called on the worker's thread, in order with the queued commands."""

    __slots__ = ("_result", "done", "error", "refused", "work")

    def __init__(self, work: Callable[[], T_co]) -> None:
        #: The function; None once it ran, or once its caller stopped waiting.
        self.work: Callable[[], T_co] | None = work
        #: Released when the request was run or refused.
        self.done = forks.latch()
        self._result: list[T_co] = []
        self.error: BaseException | None = None
        self.refused = False

    @property
    def result(self) -> T_co:
        """The return value of the function."""
        return self._result[0]

    def run(self) -> None:
        """Call the function, unless it was canceled, and wake the caller."""
        work, self.work = self.work, None
        try:
            if work is not None:
                self._result.append(work())
        except BaseException as error:  # raised on the thread that waits
            self.error = error
        self.done.release()

    def refuse(self) -> None:
        """Wake the caller without calling the function."""
        self.work, self.refused = None, True
        self.done.release()


class LargeCommand:
    """Command bytes that count against the limit on queued bytes."""

    __slots__ = ("data", "reserved")

    def __init__(self, data: bytes, reserved: int) -> None:
        self.data = data
        #: Total bytes reserved when this command was queued, itself included; 0 if not counted.
        self.reserved = reserved
