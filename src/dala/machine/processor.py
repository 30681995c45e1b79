"""The processor's level of instructions, which decides the last bits of results."""

from __future__ import annotations

import os
from typing import Final

from dala.gpu.compute.engines.cpu import level

#: The levels of instructions that can be chosen with DALA_CPU, highest first.
CPU_LEVELS: Final = tuple(level.LEVELS)


def cpu_level() -> str:
    """Return the level of instructions that the CPU engine of this process uses.

    It is that of the processor, or the one of the environment variable DALA_CPU.

    >>> cpu_level() in ("", *CPU_LEVELS) or "avx" in cpu_level()
    True
    """
    return level.level()


def choose_cpu_level(wanted: str) -> None:
    """Use a lower level, so that this process computes as an older processor would.

    It must be called before the first kernel is compiled. Nothing changes if the processor does
    not have that level, or if DALA_CPU is set already.

    >>> choose_cpu_level("")
    """
    if wanted not in CPU_LEVELS or os.environ.get("DALA_CPU"):
        return
    own = cpu_level()
    if own in CPU_LEVELS and CPU_LEVELS.index(own) < CPU_LEVELS.index(wanted):
        os.environ["DALA_CPU"] = wanted
