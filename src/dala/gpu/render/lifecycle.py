"""Workers at interpreter exit and across forks."""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING, Final

from dala import forks

if TYPE_CHECKING:
    from dala.gpu.render.worker import Worker

#: Seconds that closing a worker waits for the command that is running.
CLOSE_TIMEOUT: Final = 10.0

#: Every worker whose thread runs.
workers: Final[set[Worker]] = set()

_exiting = False


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


def _in_child() -> None:
    """Mark every worker closed: the child has none of their threads."""
    for worker in list(workers):
        worker.reset_after_fork()
    workers.clear()


@cache
def register() -> None:
    """Install the hooks; called for the first worker."""
    forks.in_child(_in_child)
    atexit.register(_close_all)
