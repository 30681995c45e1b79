"""Threads that give way to others of this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

#: How much less the threads that prepare frames count than those that encode them (nice's number).
LESS: Final = 10


def threads() -> list[int]:
    """The system's numbers of this process's threads; none where it does not tell."""
    if not sys.platform.startswith("linux"):
        return []
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc/self/task")]
    return []


def give_way(numbers: Iterable[int]) -> None:
    """Has threads run where others leave a core idle, rather than beside them.

    An encoder has moments in which it can use one core only. Frames that are prepared in these cost
    no time; prepared while it could use all cores, they hold it up. Linux only.
    """
    for number in numbers:
        with suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, number, LESS)
