"""How workers end: with the interpreter, and in a process that was forked."""

from __future__ import annotations

import atexit
import os
import threading
from functools import cache
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dala.gpu.render.worker import Worker

#: Seconds that closing, and a fork, wait for what is being done.
PATIENCE: Final = 10.0

#: All whose thread runs.
workers: Final[set[Worker]] = set()
_exiting = False


def exiting() -> bool:
    """True once the interpreter ends."""
    return _exiting


def _close_all() -> None:
    global _exiting
    _exiting = True
    for worker in list(workers):
        worker.close_soon()
    for worker in list(workers):
        worker.close()


_held: list[Any] = []


def _before_fork() -> None:
    """Waits until no worker is doing anything: the child gets no lock that nobody will release."""
    for worker in list(workers):
        if not worker.on_thread and worker._busy.acquire(timeout=PATIENCE):
            _held.append(worker._busy)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_fork() -> None:
    """The child has none of the threads: its copies of workers are closed."""
    _held.clear()
    for worker in list(workers):
        worker._forked = worker._closing = True
        worker._alert = True
        worker._room = threading.Condition()
        worker._busy, worker._gate = threading.RLock(), threading.RLock()
        worker._wake = SimpleQueue()
        worker.forked()
    workers.clear()


@cache
def register() -> None:
    """For the first worker: the compiler, which takes its lock for forks, has registered by then.

    What registers last is asked first, before a fork; it must not wait with that lock taken.
    """
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_after_fork_in_parent,
            after_in_child=_after_fork,
        )
    atexit.register(_close_all)
