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
        if mark is not None and mark == self._mark and self._past:
            self._future.clear()
            return
        self._past.append(before)
        del self._past[: -self._length]
        self._future.clear()
        self._mark = mark

    def undo(self, now: T) -> T | None:
        """Return the value before, and keep the present one for redo; None if there is none."""
        self._mark = None
        if not self._past:
            return None
        self._future.append(now)
        return self._past.pop()

    def redo(self, now: T) -> T | None:
        """Return the value after, and keep the present one for undo; None if there is none."""
        self._mark = None
        if not self._future:
            return None
        self._past.append(now)
        return self._future.pop()

    @property
    def can_undo(self) -> bool:
        """Whether there is a value before."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is a value after."""
        return bool(self._future)
