"""Compilations in progress: each runs once, on a thread of its own, and blocks no one else.

A caller waits for its own compilation only. On Ctrl-C, or when the time of ``dala.limits`` ends,
it returns at once; the compilation ends in the background, and its code is kept for the next call.
"""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from dala import budget, forks
from dala.trace.recorder import OFF, tracer

T = TypeVar("T")

#: Seconds between looks at the clock, and at signals that the system gave to another thread.
POLL_SECONDS: Final = 0.05


class _Compile(Generic[T]):
    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make
        self.done = forks.event()
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.make()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class Compiles(Generic[T]):
    """Runs compilations by key.

    >>> compiles: Compiles[int] = Compiles()
    >>> compiles.run("answer", lambda: 6 * 7, "example")
    42
    """

    def __init__(self) -> None:
        self._lock = forks.lock()
        self._running: dict[Hashable, _Compile[T]] = {}
        forks.in_child(self._forget)
        _all.add(self)  # type: ignore[arg-type] # only finish() is called

    @property
    def running(self) -> int:
        """The number of compilations in progress."""
        return len(self._running)

    def run(self, key: Hashable, make: Callable[[], T], call: str) -> T:
        """Return the result of ``make``; callers with an equal key share one run.

        Raises:
            CommandTimeout: the time of ``dala.limits`` ended first.
        """
        with self._lock:
            job = self._running.get(key)
            if job is None:
                job = _Compile(make)
                try:
                    self._running[key] = job
                    self._start(key, job, call)
                except BaseException:  # Ctrl-C: it may not have started
                    self._running.pop(key, None)
                    raise
        until = budget.deadline()
        left = POLL_SECONDS
        with tracer.wait("the compilation of", call) if tracer.on else OFF:
            while not job.done.wait(left):
                if until is not None:
                    budget.check_deadline(call)
                    left = min(POLL_SECONDS, max(until - time.monotonic(), 0.001))
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value] # T may include None

    def _start(self, key: Hashable, job: _Compile[T], call: str) -> None:
        def work() -> None:
            with tracer.span("compile", call) if tracer.on else OFF:
                job.run()
            self._running.pop(key, None)

        try:
            forks.thread(work, name="dala-compile").start()
        except RuntimeError:  # no thread can be started while the interpreter exits
            work()

    def _forget(self) -> None:
        """Drop compilations of the parent: in a forked child no one finishes them."""
        self._running.clear()

    def finish(self) -> None:
        """Wait for all that are running.

        >>> Compiles().finish()
        """
        for job in list(self._running.values()):
            job.done.wait()


_all: weakref.WeakSet[Compiles[object]] = weakref.WeakSet()


@atexit.register
def _finish_all() -> None:
    """Wait for compilations at exit: LLVM must not be unloaded under them."""
    for compiles in list(_all):
        compiles.finish()
