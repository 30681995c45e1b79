"""Scratch memory, counted against the limits while an operation runs, and ranges of one buffer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

from dala import memory, resources
from dala.budget import accounts
from dala.gpu.compute.engines.base import Engine, Storage


@contextmanager
def scratch_memory(engine: Engine, call: str, *sizes: int) -> Iterator[list[Storage]]:
    """Allocate memory for the time of a block, with undefined content.

    The bytes are reserved before they are allocated. Small ones are counted only where a limit is
    near, or in a block with a limit, as those of buffers are.

    Args:
        engine: where to allocate.
        call: the operation that needs the memory, for the error.
        sizes: the bytes of each storage.

    Raises:
        MemoryLimitExceeded: a limit would be exceeded; nothing was allocated.

    >>> from dala.gpu.compute.engines import auto
    >>> with scratch_memory(auto.get("cpu"), "example", 100, 200) as (first, second):
    ...     first.nbytes, second.nbytes
    (100, 200)
    """
    storages: list[Storage] = []
    with reserved_scratch(engine, call, int(sum(sizes))):
        try:
            for nbytes in sizes:
                storages.append(engine.allocate(nbytes, zero=False))
            yield storages
        finally:
            for storage in storages:
                engine.release(storage)


@contextmanager
def reserved_scratch(engine: Engine, call: str, total: int) -> Iterator[None]:
    """Count bytes against the memory limits for the time of a block, without allocating them.

    Args:
        engine: where they will be allocated.
        call: the operation that needs the memory, for the error.
        total: the bytes.

    Raises:
        MemoryLimitExceeded: a limit would be exceeded.

    >>> from dala.gpu.compute.engines import auto
    >>> with reserved_scratch(auto.get("cpu"), "example", 100):
    ...     pass
    """
    counted = total > 0 and (total >= memory.EXACT_FROM or resources.too_many or bool(accounts()))
    held = memory.reserve("scratch", engine.id, total, call) if counted else ()
    try:
        yield
    finally:
        if counted:
            memory.release("scratch", engine.id, total, held)


def aligned(words: int, to: int = 4) -> int:
    """Round a length up to a multiple of some words, by default of a vec4."""
    return -(-words // to) * to


class Arena:
    """The free ranges of one buffer, in 32-bit words.

    The first ``taken`` words are in use from the start. Ranges start and end at multiples of
    ``align`` words.

    >>> arena = Arena(64)
    >>> arena.take(10), arena.take(4)
    (0, 12)
    >>> arena.give(0, 10)
    >>> arena.used, arena.take(20), arena.take(8)
    (4, 16, 0)
    """

    def __init__(self, words: int, taken: int = 0, align: int = 4) -> None:
        self.words = words
        self._align = align
        self.used = taken
        #: Starts and lengths of the free ranges, in order; none is empty and none are adjacent.
        self._starts = [taken] if taken < words else []
        self._lengths = [words - taken] if taken < words else []

    def fits(self, words: int) -> bool:
        """Return whether a free range is long enough."""
        return any(length >= words for length in self._lengths)

    def grow(self, words: int) -> None:
        """Make the buffer larger."""
        start, self.words = self.words, words
        self.used += words - start
        self.give(start, words - start)

    def take(self, words: int) -> int | None:
        """Return the start of a new range, or None if no free range is long enough."""
        need = aligned(words, self._align)
        fitting = [(length, i) for i, length in enumerate(self._lengths) if length >= need]
        if not fitting:
            return None
        length, i = min(fitting)
        start = self._starts[i]
        if length == need:
            del self._starts[i], self._lengths[i]
        else:
            self._starts[i] += need
            self._lengths[i] -= need
        self.used += need
        return start

    def give(self, start: int, words: int) -> None:
        """Free a range, and merge it with adjacent free ranges."""
        length = aligned(words, self._align)
        self.used -= length
        i = bisect_left(self._starts, start)
        if i < len(self._starts) and start + length == self._starts[i]:
            length += self._lengths[i]
            del self._starts[i], self._lengths[i]
        if i and self._starts[i - 1] + self._lengths[i - 1] == start:
            self._lengths[i - 1] += length
        else:
            self._starts.insert(i, start)
            self._lengths.insert(i, length)
