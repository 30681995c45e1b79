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

import signal
import sys
import threading
import time
from abc import abstractmethod
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypedDict

from dala import forks
from dala.errors import UnpicklableError
from dala.errors.describing import KnownAttributes

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
#: Re-entrant, since a finalizer may allocate in the middle of a sum; ``_summing`` shows that.
_lock = forks.rlock()
_summing = False
#: Bytes of host memory; the part of the sums that is compared with the machine's memory.
_host_bytes = 0
#: More bytes of host memory than this are too many; see :mod:`dala.memory`.
_alarm = -1
#: Whether the last sum found too many; True before the first.
too_many = True
#: Objects whose memory is that of other objects: on these engines pictures are not copies.
_ALIASES: Final = frozenset(("picture", engine) for engine in ("cpu", "reference", "null"))
#: Engines whose buffers are not in host memory.
_elsewhere: set[str] = {"null"}


def track(kind: str, engine: str, nbytes: int, count: int = 1) -> None:
    """Count one more object of a kind on an engine. Never waits."""
    _changes.append((kind, engine, count, nbytes))
    if len(_changes) > _BACKLOG:
        _try_to_sum()


def untrack(kind: str, engine: str, nbytes: int) -> None:
    """Undo one :func:`track` with the same arguments. Never waits; safe in finalizers."""
    track(kind, engine, -nbytes, -1)


def host_bytes() -> int:
    """Return the bytes of host memory that live objects hold.

    >>> before = host_bytes()
    >>> track("doc-example", "cpu", 64)
    >>> host_bytes() - before
    64
    >>> untrack("doc-example", "cpu", 64)
    """
    with _lock:
        _sum_changes()
        return _host_bytes


def set_alarm(nbytes: int) -> None:
    """Set how many bytes of host memory are too many.

    >>> from dala import resources
    >>> resources.set_alarm(1 << 60)
    >>> resources.too_many
    False
    """
    global _alarm
    with _lock:
        _alarm = nbytes
        _sum_changes()


def has_own_memory(engine: str) -> None:
    """Exclude an engine from :func:`host_bytes`: its memory is that of a graphics card.

    >>> has_own_memory("null")
    """
    _elsewhere.add(engine)


def in_host_memory(kind: str, engine: str) -> bool:
    """Return whether the memory of such objects on an engine is counted by :func:`host_bytes`.

    >>> in_host_memory("buffer", "cpu"), in_host_memory("buffer", "null")
    (True, False)
    """
    return engine not in _elsewhere and (kind, engine) not in _ALIASES


class Account:
    """A number of bytes in use, and their limit. Charges and credits never wait.

    Args:
        owner: whose it is, such as "the surface", for messages.
        limit: bytes at most.
        advice: how the limit is changed.

    >>> account = Account("the example", 100, "Use less.")
    >>> account.charge(60)
    >>> account.used
    60
    >>> account.charge(-60)
    """

    __slots__ = ("_changes", "_used", "advice", "limit", "owner")

    def __init__(self, owner: str, limit: int, advice: str) -> None:
        self.owner = owner
        self.limit = limit
        self.advice = advice
        self._changes: deque[int] = deque()
        self._used = 0

    def charge(self, nbytes: int) -> None:
        """Count bytes as used, or, where negative, as free again. Safe in finalizers."""
        self._changes.append(nbytes)

    @property
    def used(self) -> int:
        """The bytes in use."""
        global _summing
        with _lock:
            if not _summing:
                _summing = True
                try:
                    while self._changes:
                        self._used += self._changes.popleft()
                finally:
                    _summing = False
            return self._used


def snapshot() -> dict[str, Kind]:
    """Return the live objects by kind."""
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
        Memory that a buffer shares with its owner, such as a NumPy array, counts as 0 bytes.

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


def refuse_pickle(made: object, advice: str) -> NoReturn:
    """Raise the error for an object that was pickled and belongs to its process."""
    raise UnpicklableError(
        f"pickle: {type(made).__name__} objects belong to their process, and cannot be copied or "
        f"pickled. {advice}",
        call="pickle",
    )


class Closing(KnownAttributes):
    """A base class whose ``with`` block calls ``close()`` at its end."""

    __slots__ = ()

    #: Advice of the error that pickling it raises.
    _instead = "Make another one there."

    @abstractmethod
    def close(self) -> None:
        """Release all resources. Closing twice is allowed."""

    def __reduce__(self) -> str | tuple[Any, ...]:  # the types that pickle itself declares
        refuse_pickle(self, self._instead)

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
    # Runs under the lock. A finalizer that runs in the middle of it finds ``_summing`` set.
    global _host_bytes, _summing, too_many
    if _summing:
        return
    _summing = True
    try:
        while _changes:
            kind, engine, count, nbytes = _changes.popleft()
            total = _totals.setdefault((kind, engine), [0, 0])
            total[0] += count
            total[1] += nbytes
            if engine not in _elsewhere and (kind, engine) not in _ALIASES:
                _host_bytes += nbytes
        too_many = _host_bytes > _alarm
    finally:
        _summing = False


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Raise Ctrl-C once more if it ended a finalizer of ours: Python would print it and go on.

    A thread does so a moment later, when the finalizer has returned.
    """
    if not (isinstance(lost.exc_value, KeyboardInterrupt) and _is_ours(lost.exc_traceback)):
        _print_lost(lost)
        return
    with suppress(RuntimeError):  # DeviceError is one: no more threads, or the interpreter ends
        started = forks.latch()
        forks.thread(_interrupt, name="dala interrupt", args=(started,)).start()
        started.release()


def _interrupt(started: threading.Lock) -> None:
    started.acquire()
    time.sleep(0.01)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:  # Windows
        signal.raise_signal(signal.SIGINT)


def _is_ours(trace: TracebackType | None) -> bool:
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith("dala."):
            return True
        trace = trace.tb_next
    return False


_print_lost: Final = sys.unraisablehook
sys.unraisablehook = _raise_again


def _after_fork() -> None:
    global _summing
    _summing = False  # another thread of the parent may have been at it


forks.in_child(_after_fork)
