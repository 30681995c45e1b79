"""Guards: native calls that end early on Ctrl-C, when cancelled, at a deadline or at exit.

``llvm/metering.py`` describes the stop cell, which tells compiled code to end. Cancelling
sets it at once. A monitor thread sets it at deadlines, and asks calls on the main thread,
twenty milliseconds apart, to run Python's signal handlers: they run in no other thread, and not
while native code runs. The monitor sleeps unless there are calls to look after.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from collections.abc import Generator
from queue import SimpleQueue
from types import TracebackType
from typing import Final

from dala import budget, forks
from dala.gpu.compute.engines.cpu.llvm.metering import CELL_WORDS

#: Seconds between two looks of the monitor.
TICK: Final = 0.02
#: Looks without a call to look after before the monitor sleeps.
_IDLE: Final = 50
#: The limit of calls without one.
_NO_LIMIT: Final = (1 << 63) - 1

_CONTINUE, _ASK, _END = range(3)
_Ask: Final = ctypes.CFUNCTYPE(ctypes.c_int)


class Guard:
    """The stop cell of one native call at a time, on one thread."""

    def __init__(self) -> None:
        self.cell = (ctypes.c_int64 * CELL_WORDS)()
        #: The last word of a job's head.
        self.word = struct.pack("=q", ctypes.addressof(self.cell))
        self.main = threading.get_ident() == threading.main_thread().ident
        self.scope: budget.Scope | None = None
        self.deadline: float | None = None
        #: Why the call has to end, or None.
        self.why: str | None = None
        #: What a signal handler raised.
        self.error: BaseException | None = None
        #: True from the second look of the monitor on.
        self.seen = False
        if self.main:
            handlers = _run_handlers(self)
            next(handlers)
            self._ask = _Ask(handlers.__next__)
            self.cell[2] = ctypes.cast(self._ask, ctypes.c_void_p).value or 0

    def begin(self, scope: budget.Scope | None) -> None:
        """Start a call within a scope."""
        cell = self.cell
        cell[0], cell[3], cell[4] = _CONTINUE, 0, _NO_LIMIT
        self.why = self.error = None
        self.seen = False
        self.scope, self.deadline = scope, None
        if scope is not None:
            self.deadline = scope.deadline
            if scope.limits.iterations is not None:
                cell[4] = scope.limits.iterations
        _active[self] = None
        if scope is not None and scope.token is not None:
            scope.token.watch(self.stop)
        if self.main or self.deadline is not None:
            _wake_monitor()

    def end(self, name: str) -> None:
        """End a call; raise the reason if it ended early."""
        scope = self.discard()
        error, why = self.error, self.why
        self.error = None
        if error is not None:
            raise error
        if self.cell[3]:
            raise budget.limit_exceeded(name, self.cell[4])
        if why == "timeout":
            raise budget.timed_out(name, None if scope is None else scope.seconds)
        if why is not None:
            raise budget.cancelled(name, why)

    def discard(self) -> budget.Scope | None:
        """End a call without an error; return its scope."""
        _active.pop(self, None)
        scope, self.scope = self.scope, None
        if scope is not None and scope.token is not None:
            scope.token.unwatch(self.stop)
        return scope

    def stop(self, why: str) -> None:
        """End the call soon; from any thread, also from a finalizer."""
        if self.why is None:
            self.why = why
        self.cell[0] = _END

    def look(self, now: float) -> None:
        """Look after the call, on the monitor's thread."""
        if self.deadline is not None and now >= self.deadline:
            self.stop("timeout")
        elif self.main and self.seen and self.cell[0] == _CONTINUE:
            self.cell[0] = _ASK
            if self.why is not None:  # it was stopped meanwhile
                self.cell[0] = _END
        self.seen = True


def _run_handlers(guard: Guard) -> Generator[int, None, None]:
    """Answer compiled code on the main thread. Resuming it here runs pending signal handlers.

    A generator, since it resumes inside of its ``try``: a handler's error is caught wherever it
    is raised. ctypes could only print it.
    """
    while True:
        try:
            while True:
                yield int(guard.why is not None)
                if guard.cell[0] == _ASK:
                    guard.cell[0] = _CONTINUE
                    if guard.why is not None:  # it was stopped meanwhile
                        guard.cell[0] = _END
        except GeneratorExit:
            return
        except BaseException as error:
            guard.error = error
            guard.stop("interrupt")


# guards --------------------------------------------------------------------------------------

_active: dict[Guard, None] = {}
#: Unused guards: of the main thread, and of all others.
_of_main: list[Guard] = []
_of_others: list[Guard] = []


def _free() -> list[Guard]:
    return _of_main if threading.get_ident() == threading.main_thread().ident else _of_others


class guarding:  # noqa: N801 - reads as a function
    """A context manager that gives a native call a guard, and raises why it ended early."""

    __slots__ = ("guard", "name", "scope")

    def __init__(self, scope: budget.Scope | None, name: str) -> None:
        self.scope = scope
        self.name = name
        free = _free()  # a signal handler may need a second one
        self.guard = free.pop() if free else Guard()

    def __enter__(self) -> Guard:
        guard = self.guard
        try:
            guard.begin(self.scope)
            if self.scope is not None:
                self.scope.check(self.name)
        except BaseException as error:  # an interrupt, too
            self.__exit__(type(error), error, None)
            raise
        return guard

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        guard = self.guard
        try:
            if error is None:
                guard.end(self.name)
            else:
                guard.discard()
        finally:
            _free().append(guard)


def running() -> int:
    """Return the number of native calls that run and can be ended."""
    return len(_active)


def stop_all(why: str) -> None:
    """End all native calls that can be ended, on all threads."""
    for active in list(_active):
        active.stop(why)


# the monitor -------------------------------------------------------------------------------------

_wakeups: SimpleQueue[None] = forks.simple_queue()
_awake = False
_watcher: threading.Thread | None = None


def _wake_monitor() -> None:
    global _awake, _watcher
    if _awake:
        return
    _awake = True
    if _watcher is None:
        _watcher = forks.thread(_monitor, name="dala-monitor")
        _watcher.start()
    _wakeups.put(None)


def _monitor() -> None:
    global _awake
    while True:
        _wakeups.get()
        idle = 0
        while idle < _IDLE:
            time.sleep(TICK)
            now = time.monotonic()
            idle += 1
            for active in list(_active):
                if active.main or active.deadline is not None:
                    idle = 0
                    active.look(now)
        _awake = False
        if any(active.main or active.deadline is not None for active in list(_active)):
            _wake_monitor()  # it began just now, and found the monitor awake


def _after_fork() -> None:
    global _awake, _watcher, _wakeups
    for guards in (_active, _of_main, _of_others):  # the main thread may be another one now
        guards.clear()
    _awake, _watcher, _wakeups = False, None, forks.simple_queue()


forks.in_child(_after_fork)
