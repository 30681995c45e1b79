"""Workers at interpreter exit and across forks."""

from __future__ import annotations

import atexit
import os
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dala.gpu.render.worker import Worker

#: Seconds that closing a worker, and a fork, wait for the command that is running.
CLOSE_TIMEOUT: Final = 10.0

#: Every worker whose thread runs.
workers: Final[set[Worker]] = set()

_exiting = False
_paused: list[Worker] = []


def exiting() -> bool:
    """Return True once the interpreter is shutting down."""
    return _exiting


def _close_all() -> None:
    global _exiting
    _exiting = True
    for worker in list(workers):
        worker.close_soon()
    for worker in list(workers):
        worker.close()


def _before_fork() -> None:
    """Wait until no worker is busy: the child must not inherit a lock that is never released."""
    for worker in list(workers):
        if worker.pause_for_fork(CLOSE_TIMEOUT):
            _paused.append(worker)


def _after_fork_in_parent() -> None:
    while _paused:
        _paused.pop().resume_after_fork()


def _after_fork_in_child() -> None:
    """Mark every worker closed: the child has none of their threads."""
    _paused.clear()
    for worker in list(workers):
        worker.reset_after_fork()
    workers.clear()


@cache
def register() -> None:
    """Install the hooks; called for the first worker.

    The compiler registers its own fork hook when it is created, and holds its lock during a fork.
    Hooks that registered last run first, so workers must register after the compiler: a worker
    that is waited for here may still need that lock.
    """
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_after_fork_in_parent,
            after_in_child=_after_fork_in_child,
        )
    atexit.register(_close_all)
