"""Futures: results that become available later."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from dala.resources import refuse_pickle

if TYPE_CHECKING:
    from concurrent.futures import Future as ConcurrentFuture

T = TypeVar("T")


class Future(Generic[T]):
    """A result that becomes available later. Call ``result(timeout)``, or ``await`` the future.

    >>> from dala.gpu.compute import buffer, read_async
    >>> future = read_async(buffer([1, 2], dtype="u8", device="cpu"))
    >>> bytes(future.result(timeout=60))
    b'\\x01\\x02'
    """

    def __init__(
        self, source: ConcurrentFuture[memoryview], convert: Callable[[memoryview], T]
    ) -> None:
        self._source = source
        self._convert = convert

    def __reduce__(self) -> NoReturn:
        refuse_pickle(self, "Pass its result().")

    def done(self) -> bool:
        """Return True if the result is available."""
        return self._source.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait and return the value, or raise the error; TimeoutError after ``timeout`` seconds."""
        return self._convert(self._source.result(timeout))

    def add_done_callback(self, function: Callable[[Future[T]], None]) -> None:
        """Call ``function(self)`` when the result is available, possibly on another thread."""
        self._source.add_done_callback(lambda _: function(self))

    def __await__(self) -> Generator[object, None, T]:
        import asyncio  # slow to import

        value = yield from asyncio.wrap_future(self._source).__await__()
        return self._convert(value)
