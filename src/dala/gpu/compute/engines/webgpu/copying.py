"""Copies between host memory and mapped memory, on several threads.

One thread copies 13 GB/s on a server, four copy 40, eight 52; a bus moves 52.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dala import forks

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

#: The smallest part of a copy that is worth a thread, and the most threads.
PART_BYTES: Final = 2 << 20
MAX_THREADS: Final = 8

#: Larger downloads are cut in two, so that the device moves one half while the other is copied. A
#: piece costs a submit and two wakes of a thread, as long as copying 10 MB.
PIECE_BYTES: Final = 32 << 20

Bytes = npt.NDArray[np.uint8]


def pieces(nbytes: int) -> list[tuple[int, int]]:
    """Return the start and length of the pieces of a download.

    >>> pieces(1 << 20), len(pieces(99 << 20))
    ([(0, 1048576)], 2)
    """
    if nbytes < 2 * PIECE_BYTES:
        return [(0, nbytes)]
    half = nbytes // 512 * 256
    return [(0, half), (half, nbytes - half)]


def copy_bytes(target: Bytes, source: Bytes) -> None:
    """Copy all bytes; large arrays on several threads. The GIL is free meanwhile."""
    threads = min(MAX_THREADS, _cores() // 2, source.size // PART_BYTES)
    if threads < 2:
        np.copyto(target, source)
        return
    length = -(-source.size // threads // 64) * 64
    others: list[Future[None]] = [
        _pool().submit(np.copyto, target[start : start + length], source[start : start + length])
        for start in range(length, source.size, length)
    ]
    try:
        np.copyto(target[:length], source[:length])
    finally:
        for one in others:
            one.result()


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return forks.pool(MAX_THREADS - 1, "dala copy")


def _after_fork() -> None:
    _pool.cache_clear()


forks.in_child(_after_fork)
