"""Opening an encoder, without the real-time priority that some take.

SVT-AV1, where it runs as root, gives itself and the thread that opens it the highest real-time
priority. Such a thread keeps all others of the machine waiting, and so do the processes that are
started from it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dala.media.video.source import AvObject

#: The threads of this process; on Linux only.
_THREADS: Final = Path("/proc/self/task")


def open_encoder(context: AvObject, *, strict: bool = False) -> None:
    """Open an encoder; its threads, and the calling one, keep their usual priority."""
    with _usual_priority():
        context.open(strict=strict)


@contextlib.contextmanager
def _usual_priority() -> Iterator[None]:
    """Take real-time priority back from the threads that got it, unless the caller has it."""
    if not hasattr(os, "sched_setscheduler") or not _THREADS.is_dir() or _is_realtime(0):
        yield
        return
    before = set(filter(_is_realtime, _threads()))
    try:
        yield
    finally:
        for thread in filter(_is_realtime, _threads() - before):
            with contextlib.suppress(OSError):
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def _threads() -> set[int]:
    return {int(name) for name in os.listdir(_THREADS)}


def _is_realtime(thread: int) -> bool:
    try:
        return os.sched_getscheduler(thread) in (os.SCHED_FIFO, os.SCHED_RR)
    except OSError:  # it has ended
        return False
