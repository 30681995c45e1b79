"""Less memory for a long job: what only its start needs is given back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Linux's number of the advice that pages are not needed, and of the wish for no huge ones.
_DONTNEED: Final = 4
_NO_HUGE_PAGES: Final = 41
#: The compiler, which has nothing to do once the first frame is through.
_COMPILER: Final = "libllvmlite"


def small_pages() -> None:
    """Has memory come in small pages from now on: an encoder's huge ones are never quite full.

    At 1080p that is 15 MB less. Linux only; elsewhere it does nothing.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_NO_HUGE_PAGES, 1, 0, 0, 0)


def settle() -> None:
    """Gives back the pages of LLVM's own code and tables, some 40 MB; they come back when used.

    Linux only; elsewhere it does nothing, nor where the process may not look at itself.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    with suppress(OSError, ValueError):
        for start, size in _unwritten(_COMPILER):
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _DONTNEED)


def _unwritten(library: str) -> Iterator[tuple[int, int]]:
    """Address and length of those parts of a library that are still as they are in its file.

    Nobody may write to them, and nobody did before that was so: what the loader has filled in
    would be lost.
    """
    place, clean = (0, 0), False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            if clean:
                yield place
            start, end = (int(number, 16) for number in first.split("-"))
            place = start, end - start
            ours = library in line.rpartition("/")[2]
            clean = ours and rest[0] in ("r-xp", "r--p")
        elif first in ("Private_Dirty:", "Shared_Dirty:", "Anonymous:"):
            clean = clean and rest[0] == "0"
    if clean:
        yield place
