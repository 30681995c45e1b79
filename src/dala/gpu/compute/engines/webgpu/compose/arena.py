"""An allocator for ranges of one large buffer."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

#: Ranges start and end at multiples of this, in 32-bit words (a vec4).
ALIGN: Final = 4


def aligned(words: int) -> int:
    """Round a length up to a multiple of ``ALIGN``."""
    return -(-words // ALIGN) * ALIGN


class Arena:
    """The free ranges of one buffer, in 32-bit words.

    The first ``taken`` words are in use from the start.

    >>> arena = Arena(64)
    >>> arena.take(10), arena.take(4)
    (0, 12)
    >>> arena.give(0, 10)
    >>> arena.used, arena.take(20), arena.take(8)
    (4, 16, 0)
    """

    def __init__(self, words: int, taken: int = 0) -> None:
        self.words = words
        self.used = taken
        #: Starts and lengths of the free ranges, in order; none is empty and none are adjacent.
        self._starts = [taken] if taken < words else []
        self._lengths = [words - taken] if taken < words else []

    def take(self, words: int) -> int | None:
        """Return the start of a new range, or None if no free range is long enough."""
        need = aligned(words)
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
        length = aligned(words)
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
