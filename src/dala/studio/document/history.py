"""Undo and redo over values that never change."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class History(Generic[T]):
    """Past and future values; changes with the same mark are one step.

    >>> history = History(10)
    >>> history.add("a", mark=None); history.add("b", mark=None)
    >>> history.undo("c"), history.undo("b"), history.redo("a")
    ('b', 'a', 'b')
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._past: list[T] = []
        self._future: list[T] = []
        self._mark: object = None

    def add(self, before: T, mark: object) -> None:
        """Record a change from a value; one with the mark of the change before joins it."""
        self._future.clear()
        if mark is None or mark != self._mark or not self._past:
            self._past.append(before)
            del self._past[: -self._length]
            self._mark = mark

    def undo(self, now: T) -> T | None:
        """Return the value before, and keep the present one for redo; None if there is none."""
        return self._step(self._past, self._future, now)

    def redo(self, now: T) -> T | None:
        """Return the value after, and keep the present one for undo; None if there is none."""
        return self._step(self._future, self._past, now)

    def _step(self, found: list[T], left: list[T], now: T) -> T | None:
        self._mark = None
        if not found:
            return None
        left.append(now)
        return found.pop()

    @property
    def can_undo(self) -> bool:
        """Whether there is a value before."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is a value after."""
        return bool(self._future)
