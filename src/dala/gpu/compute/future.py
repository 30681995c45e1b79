"""A result that is not there yet: wait for it, or await it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future as ConcurrentFuture

T = TypeVar("T")


class Future(Generic[T]):
    """A value on its way. ``result(timeout)`` waits, ``await future`` waits in asyncio."""

    def __init__(self, source: ConcurrentFuture[Any], convert: Callable[[Any], T]) -> None:
        self._source = source
        self._convert = convert

    def done(self) -> bool:
        """True when ``result`` will not wait."""
        return self._source.done()

    def result(self, timeout: float | None = None) -> T:
        """The value; raises TimeoutError after ``timeout`` seconds, or what went wrong."""
        return self._convert(self._source.result(timeout))

    def add_done_callback(self, function: Callable[[Future[T]], object]) -> None:
        """Calls ``function(self)`` when done, perhaps on another thread."""
        self._source.add_done_callback(lambda _: function(self))

    def __await__(self) -> Generator[Any, None, T]:
        import asyncio  # here, because it takes longer to import than all of this package

        value = yield from asyncio.wrap_future(self._source).__await__()
        return self._convert(value)
