"""Giving back memory that is needed at the start of a long job only."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Linux's number of the advice that pages are not needed.
_DONTNEED: Final = 4
#: The compiler, which has nothing to do once the first frame is through.
_COMPILER: Final = "libllvmlite"


def settle() -> None:
    """Gives back the pages of LLVM's own code, some 28 MB; they come back when used.

    Linux only; elsewhere it does nothing, nor where the process may not look at itself.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    with suppress(OSError, ValueError):
        for start, size in _code(_COMPILER):
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _DONTNEED)


def _code(library: str) -> Iterator[tuple[int, int]]:
    """Address and length of the executable parts of a library; nobody writes to these."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, *_, name = line.split(maxsplit=5)
        if rights == "r-xp" and library in name.rpartition("/")[2]:
            start, end = (int(number, 16) for number in place.split("-"))
            yield start, end - start
