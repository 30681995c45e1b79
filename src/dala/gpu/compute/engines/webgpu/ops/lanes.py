"""Divide work along the middle axis of (outer, n, inner) between lanes and workgroups.

A workgroup of 256 invocations works on several *items* (results, or pieces of one). Each item is
shared by a number of *lanes*, a power of two.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dala.gpu.compute.engines.webgpu.wgsl.numbers import SIZE

#: Units per lane before an axis is split, and the number of lanes that keeps a device busy.
UNITS: Final = 32
ENOUGH_LANES: Final = 1 << 22
#: Where the work for a unit is small: lanes from which on each gets so many units, which leaves
#: less for the next pass.
BUSY_LANES: Final = 1 << 17
LONG_UNITS: Final = 128

Layout: TypeAlias = tuple[int, int, int]

_ROWS: Final = """\
let lane = t % p.lanes;
    let item = (group.y * groups.x + group.x) * items + t / p.lanes;
    let apart = 1u;"""
_COLUMNS: Final = """\
let lane = t / items;
    let item = (group.y * groups.x + group.x) * items + t % items;
    let apart = items;"""


def lane_text(rows: bool) -> str:
    """Return the lines that compute an invocation's item and lane."""
    return _ROWS if rows else _COLUMNS


def next_power_of_two(n: int) -> int:
    """Return the smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def lanes_of(n: int, inner: int) -> int:
    """Return the number of lanes per result: a whole group for long rows, one for wide columns."""
    most = 256 if inner == 1 else max(1, next_power_of_two(256 // min(inner, 256) + 1) // 2)
    return max(1, min(most, next_power_of_two(-(-n // 4))))


def width_of(kind: str, layout: Layout) -> int:
    """Return 4 if numbers can be read as vec4, else 1."""
    outer, n, inner = layout
    fits = inner % 4 == 0 if inner > 1 else outer == 1 or n % 4 == 0
    return 4 if SIZE[kind] == 4 and fits else 1


def split(kind: str, layout: Layout, *, light: bool = False) -> tuple[int, int]:
    """Return the length and number of pieces of the middle axis; 1 if enough lanes are busy.

    ``light`` says that the work for a unit is small, so that fewer lanes are enough.

    >>> split("f32", (1, 1 << 26, 1)), split("f32", (1, 1 << 26, 1), light=True)
    ((32768, 2048), (131072, 512))
    """
    outer, n, inner = layout
    width = width_of(kind, layout)
    units = -(-n // width) if inner == 1 else n
    across = inner if inner == 1 else inner // width
    lanes = lanes_of(units, across)
    splits = min(units // (lanes * UNITS), ENOUGH_LANES // (outer * across * lanes))
    if light:
        fewer = max(units // (lanes * LONG_UNITS), BUSY_LANES // (outer * across * lanes))
        splits = min(splits, fewer)
    splits = max(1, splits)
    length = -(-n // splits)
    if inner == 1:
        length = -(-length // 4) * 4
    return length, -(-n // length)
