"""Blocking work for asyncio, on threads of its own, so that the event loop never waits.

>>> import asyncio
>>> async def main():
...     return await LoopWorker("example").run(lambda: 6 * 7)
>>> asyncio.run(main())
42
"""

from __future__ import annotations

import sys
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeAlias, TypeVar

from dala import forks
from dala.resources import Closing

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from asyncio import Future as LoopFuture

T = TypeVar("T")
C = TypeVar("C", bound="Closable")


class Closable(Protocol):
    """An object that is closed after use."""

    def close(self) -> None:
        """Close it."""


_Calls: TypeAlias = "SimpleQueue[Callable[[], None] | None]"


def in_event_loop() -> bool:
    """Return whether the calling thread runs an event loop, which must not be blocked.

    The loop of a notebook does not count: its cells are written to wait.

    >>> in_event_loop()
    False
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is None


class LoopWorker:
    """One thread that runs calls in order. It starts with the first call.

    The thread ends with :meth:`stop` or when the worker is garbage collected, and never delays the
    end of the program.

    >>> LoopWorker("example").submit(lambda: "done").result(timeout=60)
    'done'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._calls: _Calls = forks.simple_queue()
        self._thread: threading.Thread | None = None
        self._starting = forks.lock()
        weakref.finalize(self, self._calls.put, None).atexit = False
        forks.in_child(self._reset)

    def _reset(self) -> None:
        """Forget the thread and its calls, which a forked child does not have."""
        self._calls, self._thread = forks.simple_queue(), None
        weakref.finalize(self, self._calls.put, None).atexit = False

    @property
    def started(self) -> bool:
        """True from the first call on."""
        return self._thread is not None

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Queue a call, to run in a copy of this context; return the future of its result."""
        future: Future[T] = Future()
        self._calls.put(_call(future, copy_context(), function))
        if self._thread is None:  # a finalizer submits to a started worker only: no lock for it
            with self._starting:
                if self._thread is None:
                    self._thread = forks.thread(_work, args=(self._calls,), name=self.name)
                    self._thread.start()
        return future

    def stop(self) -> None:
        """End the thread after the calls it was given. A later call starts another."""
        if self._thread is not None:
            self._thread = None  # first, so that a call put behind the end starts a thread
            self._calls.put(None)

    async def run(self, function: Callable[[], T]) -> T:
        """Run a call and await its result. Cancelling ends the wait, not the call."""
        return await arrival(self.submit(function))

    async def opened(self, function: Callable[[], C]) -> C:
        """Return an object opened on the thread; it is closed if the caller is cancelled."""
        opening = self.submit(function)
        try:
            return await arrival(opening)
        except BaseException:
            opening.add_done_callback(_close_late)
            raise


def _close_late(opening: Future[C]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _call(future: Future[T], context: Context, function: Callable[[], T]) -> Callable[[], None]:
    def call() -> None:
        try:
            result = context.run(function)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    return call


def _work(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # it may hold the last reference to the worker's owner


async def arrival(future: Future[T]) -> T:
    """Await a future of another thread. Cancelling ends the wait and leaves the future alone.

    >>> import asyncio
    >>> future = LoopWorker("example").submit(lambda: 3)
    >>> asyncio.run(arrival(future))
    3
    """
    import asyncio  # slow to import

    loop = asyncio.get_running_loop()
    waiter: LoopFuture[None] = loop.create_future()
    future.add_done_callback(lambda _: _wake(loop, waiter))
    await waiter
    return future.result()


def _wake(loop: AbstractEventLoop, waiter: LoopFuture[None]) -> None:
    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    try:
        loop.call_soon_threadsafe(wake)
    except RuntimeError:
        if not loop.is_closed():  # nothing waits in a closed loop
            raise


class AsyncClosing(Closing):
    """A base class for ``async with``: the block's start and end run on a thread.

    A subclass sets ``_worker``.
    """

    _worker: LoopWorker

    async def aclose(self) -> None:
        """Close on a thread, and await the end of it. Closing twice is allowed."""
        await self._close_with(self.close)

    async def __aenter__(self) -> Self:
        return await self._worker.run(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close_with(lambda: self.__exit__(kind, error, trace))

    async def _close_with(self, close: Callable[[], None]) -> None:
        self._interrupt()
        try:
            await self._worker.run(close)
        finally:
            self._worker.stop()

    def _interrupt(self) -> None:
        """Interrupt the blocking call of the thread, if that is possible. Must not wait."""


class AsyncIterating(AsyncClosing, Generic[T]):
    """A base class for ``async for`` over an iterator whose ``next`` may block.

    An item that arrives after its task was cancelled, or timed out, is the next task's item.
    """

    #: Items that were asked for by tasks that no longer wait, by the order of asking.
    _unclaimed: dict[int, Future[tuple[T] | None]]
    _asked = 0
    _rewind = False

    @abstractmethod
    def __iter__(self) -> Self:
        """Return the iterator itself, at the start if it had ended."""

    @abstractmethod
    def __next__(self) -> T:
        """Return the next item; it may block."""

    def __aiter__(self) -> Self:
        self._rewind = True
        return self

    async def __anext__(self) -> T:
        unclaimed: dict[int, Future[tuple[T] | None]]
        unclaimed = self.__dict__.setdefault("_unclaimed", {})
        number = min(unclaimed, default=0)
        future = unclaimed.pop(number, None)
        if future is None or (self._rewind and _ended(future)):
            self._asked += 1
            number, future = self._asked, self._worker.submit(self._pull)
        claimed = False
        try:
            item = await arrival(future)
            claimed = True
        finally:
            if not claimed and not _failed(future):
                unclaimed[number] = future
        if item is None:
            raise StopAsyncIteration
        return item[0]

    def _forget(self) -> None:
        """Drop the items that no task has claimed, as the iterator was moved."""
        self.__dict__.pop("_unclaimed", None)

    def _pull(self) -> tuple[T] | None:
        if self._rewind:
            self._rewind = False
            iter(self)
        try:
            return (next(self),)
        except StopIteration:
            return None


def _failed(future: Future[tuple[T] | None]) -> bool:
    """Return whether a future has raised its error, which is not raised twice."""
    return future.done() and future.exception() is not None


def _ended(future: Future[tuple[T] | None]) -> bool:
    return future.done() and future.exception() is None and future.result() is None
