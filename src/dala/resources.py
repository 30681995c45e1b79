"""Counts of live objects and their bytes, by kind and engine.

Every object that holds native memory calls :func:`track` and :func:`untrack`, the latter often from
a finalizer. The garbage collector may run a finalizer in the middle of *any* Python code on the
same thread, so neither may wait for a lock: a plain lock would deadlock, and a re-entrant one would
let the inner call change a number between the outer call's read and write. Both only append to a
deque, which is atomic. The sums are computed later, by a thread that gets the lock without waiting.

>>> track("doc-example", "cpu", 64)
>>> snapshot()["doc-example"]
{'count': 1, 'bytes': 64, 'by_engine': {'cpu': {'count': 1, 'bytes': 64}}}
>>> untrack("doc-example", "cpu", 64)
>>> snapshot()["doc-example"]["count"]
0
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import deque
from types import TracebackType
from typing import Final, Self, TypedDict

from dala import forks

#: Kinds that a snapshot always lists.
KINDS: Final = ("buffer",)

#: Changes that are queued before they are summed.
_BACKLOG: Final = 512


class Count(TypedDict):
    """A number of objects, and their bytes."""

    count: int
    bytes: int


class Kind(Count):
    """The objects of one kind, in total and by engine."""

    by_engine: dict[str, Count]


class Diagnostics(TypedDict):
    """The result of :func:`diagnostics`."""

    engines: dict[str, dict[str, int]]
    objects: dict[str, Kind]


_changes: deque[tuple[str, str, int, int]] = deque()
_totals: dict[tuple[str, str], list[int]] = {}
_lock = forks.lock()


def track(kind: str, engine: str, nbytes: int) -> None:
    """Count one more object of a kind on an engine. Never waits."""
    _changes.append((kind, engine, 1, nbytes))
    if len(_changes) > _BACKLOG:
        _try_to_sum()


def untrack(kind: str, engine: str, nbytes: int) -> None:
    """Undo one :func:`track` with the same arguments. Never waits; safe in finalizers."""
    _changes.append((kind, engine, -1, -nbytes))
    if len(_changes) > _BACKLOG:
        _try_to_sum()


def snapshot() -> dict[str, Kind]:
    """Return the live objects by kind. Waits for a lock: do not call it in a finalizer."""
    with _lock:
        _sum_changes()
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


def diagnostics() -> Diagnostics:
    """Return the live objects and bytes, by kind and by engine in use.

    Returns:
        ``engines``: for each engine in use, its counters (``live_buffers``, ``live_bytes``, ...).
        ``objects``: for each kind (``"buffer"``, ...) ``count``, ``bytes`` and ``by_engine``.

    >>> import dala
    >>> sorted(dala.diagnostics())
    ['engines', 'objects']
    """
    # Looked up, not imported: this must not load an engine.
    instances = sys.modules.get("dala.gpu.compute.engines.instances")
    return {
        "engines": {e.id: dict(e.stats()) for e in instances.engines_in_use()} if instances else {},
        "objects": snapshot(),
    }


class Closing:
    """A base class whose ``with`` block calls ``close()`` at its end."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Release all resources. Closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _try_to_sum() -> None:
    if _lock.acquire(blocking=False):
        try:
            _sum_changes()
        finally:
            _lock.release()


def _sum_changes() -> None:
    # Runs under the lock, and never twice on one thread: finalizers do not wait.
    while _changes:
        kind, engine, count, nbytes = _changes.popleft()
        total = _totals.setdefault((kind, engine), [0, 0])
        total[0] += count
        total[1] += nbytes
