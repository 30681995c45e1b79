"""Counts of what is alive: objects and bytes by kind and engine.

:func:`track` and :func:`untrack` are called by whatever holds native memory, the latter often
from a finalizer. The garbage collector may run a finalizer in the middle of *any* Python code, on
the same thread, so neither may wait for a lock: with a plain lock that thread would wait for
itself, and with a re-entrant one the inner call would change a number between the outer call's
reading and writing of it. So they only append to a deque, which is atomic, and the sums are made
later by whoever gets the lock without waiting.

>>> track("doc-example", "cpu", 64)
>>> snapshot()["doc-example"]
{'count': 1, 'bytes': 64, 'by_engine': {'cpu': {'count': 1, 'bytes': 64}}}
>>> untrack("doc-example", "cpu", 64)
>>> snapshot()["doc-example"]["count"]
0
"""

from __future__ import annotations

import os
import sys
import threading
from abc import abstractmethod
from collections import deque
from types import TracebackType
from typing import Any, Final, Self, TypedDict

#: Kinds that a snapshot always names, alive or not.
KINDS: Final = ("buffer",)

#: How many changes may wait before they are added up.
_BACKLOG: Final = 512


class Count(TypedDict):
    """How many objects, and their bytes."""

    count: int
    bytes: int


class Kind(Count):
    """The objects of one kind, and where they live."""

    by_engine: dict[str, Count]


_changes: deque[tuple[str, str, int, int]] = deque()
_totals: dict[tuple[str, str], list[int]] = {}
_lock = threading.Lock()


def track(kind: str, engine: str, nbytes: int) -> None:
    """Counts one more object of ``kind`` on the engine with this id. Never waits."""
    _changes.append((kind, engine, 1, nbytes))
    if len(_changes) > _BACKLOG:
        _try_to_add_up()


def untrack(kind: str, engine: str, nbytes: int) -> None:
    """Takes back one :func:`track` with the same arguments. Never waits; safe in finalizers."""
    _changes.append((kind, engine, -1, -nbytes))
    if len(_changes) > _BACKLOG:
        _try_to_add_up()


def snapshot() -> dict[str, Kind]:
    """Objects alive now, by kind. Waits for the lock, so not for use in finalizers."""
    with _lock:
        _add_up()
        totals = {key: tuple(value) for key, value in _totals.items()}
    found: dict[str, Kind] = {
        kind: {"count": 0, "bytes": 0, "by_engine": {}}
        for kind in sorted({*KINDS, *(kind for kind, _ in totals)})
    }
    for (kind, engine), (count, nbytes) in sorted(totals.items()):
        if count or nbytes:
            found[kind]["count"] += count
            found[kind]["bytes"] += nbytes
            found[kind]["by_engine"][engine] = {"count": count, "bytes": nbytes}
    return found


def diagnostics() -> dict[str, Any]:
    """Live objects and bytes, by kind and by engine; only engines in use are asked.

    Returns:
        ``engines``: for each engine in use, its counters (``live_buffers``, ``live_bytes``, ...).
        ``objects``: for each kind (``"buffer"``, ...) ``count``, ``bytes`` and ``by_engine``.

    >>> import dala
    >>> sorted(dala.diagnostics())
    ['engines', 'objects']
    """
    # Looked up, not imported: asking must neither load an engine nor make one.
    instances = sys.modules.get("dala.gpu.compute.engines.instances")
    return {
        "engines": {e.id: dict(e.stats()) for e in instances.engines_in_use()} if instances else {},
        "objects": snapshot(),
    }


class Closing:
    """Leaving a ``with`` block calls ``close()``."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Gives back what is held. Closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _try_to_add_up() -> None:
    if _lock.acquire(blocking=False):
        try:
            _add_up()
        finally:
            _lock.release()


def _add_up() -> None:
    # Only the holder of the lock gets here, and never twice on one thread: finalizers don't wait.
    while _changes:
        kind, engine, count, nbytes = _changes.popleft()
        total = _totals.setdefault((kind, engine), [0, 0])
        total[0] += count
        total[1] += nbytes


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
