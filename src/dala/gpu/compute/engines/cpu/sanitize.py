"""Sanitized runs: ``DALA_SANITIZE=1`` finds accesses of native code outside its arrays.

Native functions are compiled with a check of every access (``checked``), and each buffer ends at a
page that nothing may touch. An access beyond it ends the process; faulthandler shows the call.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Final

import numpy as np

from dala.typing import NDArray

#: True where the environment asks for a sanitized run.
SANITIZE: Final = os.environ.get("DALA_SANITIZE", "").strip() == "1"

#: Whether this system can protect pages.
CAN_FENCE: Final = sys.platform != "win32"


def fenced(nbytes: int, alignment: int) -> tuple[NDArray, int]:
    """Return zeroed bytes before a protected page, and their address.

    They start at a multiple of ``alignment``, so up to that many bytes may lie before the page.
    """
    page = mmap.PAGESIZE
    size = -(-max(nbytes, 1) // page) * page
    # By default a forked child would write to its parent's memory.
    memory = mmap.mmap(-1, size + page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = np.frombuffer(memory, np.uint8)  # keeps the mapping alive
    address = whole.ctypes.data
    if ctypes.CDLL(None, use_errno=True).mprotect(
        ctypes.c_void_p(address + size), ctypes.c_size_t(page), 0
    ):
        raise OSError(ctypes.get_errno(), "mprotect failed")
    start = (size - nbytes) // alignment * alignment
    return whole[start : start + nbytes], address + start
