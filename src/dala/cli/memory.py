"""Giving back memory that is needed at the start of a long job only."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Linux's number of it: pages may go; a page of a file comes back from there when it is used.
_DONTNEED: Final = 4
#: The compiler, which has nothing to do once the first frame is through.
_COMPILER: Final = "libllvmlite"


def settle() -> None:
    """Gives back what compiling has left: free memory of the heap, and pages of LLVM's own code.

    Linux only; elsewhere it does nothing. Whatever is needed again comes back by itself.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with suppress(AttributeError):  # musl has no malloc_trim
        libc.malloc_trim(ctypes.c_size_t(0))
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
