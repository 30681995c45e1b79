"""Expand gray and RGB pixels to RGBA."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    hinted,
    i64,
    load,
    shuffle,
    store,
    table,
    u8,
    u32,
    view,
)

#: A shuffle of sixteen pixels from three bytes to four, and their alphas.
SPREAD = tuple(3 * (k // 4) + min(k % 4, 2) for k in range(64))
FULL = (0, 0, 0, 255) * 16


@native
def expand_gray(source: Array[u8], out: Array[u32], start: i64, end: i64) -> None:
    """Expand pixels [start, end) of one byte each."""
    for k in range(start, end):
        out[k] = u32(source[k]) * 0x010101 | 0xFF000000


@native
def expand_row(source: Array[u8], first: i64, out: Array[u32], at: i64, count: i64) -> None:
    """Expand ``count`` pixels of three bytes each, starting at ``first``."""
    full = load(table(u8, FULL), 0, 64)
    made = view(out, u8, 4 * at)
    # Sixteen pixels are 48 bytes; 64 are read where there are enough.
    safe = min(count, (len(source) - 64) // 3 - first + 1)
    k = 0
    while k + 16 <= count and k < safe:
        v = load(source, 3 * (first + k), 64)
        store(made, 4 * k, shuffle(v, v, SPREAD) | full)
        k += 16
    for i in hinted(range(k, count), scalar=True):
        j = 3 * (first + i)
        r, g, b = u32(source[j]), u32(source[j + 1]), u32(source[j + 2])
        out[at + i] = r | (g << 8) | (b << 16) | 0xFF000000


@native
def expand_rgb(source: Array[u8], out: Array[u32], start: i64, end: i64) -> None:
    """Expand pixels [start, end) of three bytes each."""
    expand_row(source, start, out, start, end - start)
