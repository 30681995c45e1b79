"""Compiled filters, which take long to build, kept by a worker from task to task."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

from dala.resources import Closing

T = TypeVar("T", bound=Closing)

#: The one thing that is kept, by its key. Tasks of a worker run one after the other.
_kept: dict[str, Closing] = {}


@contextmanager
def kept(key: str, make: Callable[[], T]) -> Iterator[T]:
    """Yield the object that an earlier task kept under a key, else a new one.

    It stays for the next task. After an exception, and where the next task has another key, it is
    closed.

    Args:
        key: everything that it depends on, its kind included.
        make: makes one.

    >>> from dala.media.filters.pipeline import FramePipeline
    >>> def make() -> FramePipeline:
    ...     return FramePipeline(64, 64, device="cpu")
    >>> with kept("a", make) as first:
    ...     pass
    >>> with kept("a", make) as second:
    ...     second is first
    True
    >>> close_kept()
    """
    found = _kept.pop(key, None)  # out of reach while it is used
    if found is None:
        close_kept()
        found = make()
    try:
        yield cast("T", found)
    except BaseException:
        found.close()
        raise
    close_kept()
    _kept[key] = found


def close_kept() -> None:
    """Close all kept objects.

    >>> close_kept()
    """
    while _kept:
        _kept.popitem()[1].close()


atexit.register(close_kept)
