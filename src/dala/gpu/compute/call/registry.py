"""Names of things that are small to describe and large to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from dala import forks

T = TypeVar("T")


class Registry(Generic[T]):
    """Things by name, of which the last ones are held; others are made again when asked for.

    A thing that someone else holds stays the same object. A passing one, which no one holds, is
    forgotten with its name once there are many younger ones.

    Args:
        most: how many are held.
        passing: how many passing ones are known that no one holds.

    >>> registry = Registry[set[int]](most=1)
    >>> first = {1}
    >>> registry.put("a", first, lambda: {1}), registry.put("b", {2}, lambda: {2})
    (None, None)
    >>> registry.find("a") is first, registry.find("b"), registry.find("c")
    (True, {2}, None)
    >>> sorted(registry)
    ['a', 'b']
    """

    def __init__(self, most: int, passing: int = 0) -> None:
        self._most = most
        self._most_passing = passing
        #: The things that are held, oldest first. Calls read it without the lock.
        self.held: dict[str, T] = {}
        self._alive: WeakValueDictionary[str, T] = WeakValueDictionary()
        self._makers: dict[str, Callable[[], T]] = {}
        #: The names of passing things, oldest first.
        self._passing: dict[str, None] = {}
        self._lock = forks.lock()

    def put(self, name: str, thing: T, make: Callable[[], T], *, passing: bool = False) -> None:
        """Give a thing a name, in place of another of that name; ``make`` returns it again."""
        with self._lock:
            self._makers[name] = make
            self._hold(name, thing)
            self._passing.pop(name, None)
            if passing:
                self._passing[name] = None
                self._forget()

    def _forget(self) -> None:
        """Forget the oldest passing things; two for each that is new, so that none is missed."""
        for name in list(islice(self._passing, 2)):
            if len(self._passing) <= self._most_passing:
                return
            del self._passing[name]
            if name in self._alive:
                self._passing[name] = None
            else:
                del self._makers[name]

    def find(self, name: str) -> T | None:
        """Return the thing of a name, or None."""
        found = self.held.get(name)
        if found is None and name in self._makers:
            with self._lock:
                make = self._makers.get(name)
                if make is not None:
                    found = self._alive.get(name)
                    found = make() if found is None else found
                    self._hold(name, found)
        return found

    def knows(self, name: str, thing: T) -> bool:
        """Return whether a thing has this name."""
        return self._alive.get(name) is thing

    def remove(self, name: str) -> bool:
        """Forget a name; return whether there was one."""
        with self._lock:
            self.held.pop(name, None)
            self._alive.pop(name, None)
            self._passing.pop(name, None)
            return self._makers.pop(name, None) is not None

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._makers))

    def _hold(self, name: str, thing: T) -> None:
        self.held.pop(name, None)  # to the end
        self.held[name] = self._alive[name] = thing
        while len(self.held) > self._most:
            del self.held[next(iter(self.held))]
