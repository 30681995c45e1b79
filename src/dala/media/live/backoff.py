"""Delays before a lost connection or device is tried again."""

from __future__ import annotations

from typing import Final

#: Seconds before the first attempt, and the most between two.
FIRST_WAIT: Final = 0.25
LONGEST_WAIT: Final = 8.0


class Backoff:
    """Waits that double, until the time for all attempts is over.

    Args:
        patience: seconds after which ``wait`` returns None.

    >>> backoff = Backoff(1.0)
    >>> [backoff.wait(elapsed) for elapsed in (0.0, 0.25, 0.75, 1.0)]
    [0.25, 0.5, 0.25, None]
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._next = FIRST_WAIT

    def wait(self, elapsed: float) -> float | None:
        """Return the seconds to wait after so many in all; None if the patience is over."""
        left = self._patience - elapsed
        if left <= 0:
            return None
        wait = min(self._next, left)
        self._next = min(2 * self._next, LONGEST_WAIT)
        return wait
