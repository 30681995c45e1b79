"""Run rows on a device and compare them with the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dala.answers.cases import Row
from dala.answers.table import checksum, stored
from dala.typing import NDArray


def check(rows: Iterable[Row], device: str) -> Iterator[tuple[Row, str]]:
    """Yield each row with how it differs from the table; with "" if it does not.

    The first differing row of each filter is compared with the reference engine's result, pixel by
    pixel; of the others only the checksum is known.
    """
    seen = set()
    for row in rows:
        try:
            result = row.run(device)
        except Exception as error:  # whatever a driver raises belongs in the report
            yield row, f"{type(error).__name__}: {error}"
            continue
        if checksum(result) == stored().get(row.id):
            yield row, ""
        elif row.name in seen:
            yield row, "its checksum differs"
        else:
            seen.add(row.name)
            yield row, difference(row, result)


def difference(row: Row, result: NDArray) -> str:
    """Return how a result differs from the reference engine's."""
    want = row.run("reference")
    if checksum(want) != stored().get(row.id):
        return "the table is not current: python -m dala.answers.generate"
    return compare(result, want)


def compare(result: NDArray, want: NDArray) -> str:
    """Return the first differing pixel of a result, and the count of differing values.

    >>> a, b = np.zeros((2, 3, 3), np.uint8), np.zeros((2, 3, 3), np.uint8)
    >>> a[1, 2] = 7, 0, 1
    >>> compare(a, b)
    'at x=2, y=1: 7 0 1, must be 0 0 0; 2 of 18 values differ, by up to 7'
    """
    if result.shape != want.shape or result.dtype != want.dtype:
        return f"{result.dtype} of {result.shape}, must be {want.dtype} of {want.shape}"
    apart = np.abs(result.astype(np.int64) - want)
    if not apart.any():
        return "no difference"
    y, x = np.argwhere(apart)[0][:2]
    got, must = (" ".join(map(str, np.atleast_1d(a[y, x]))) for a in (result, want))
    count = f"{np.count_nonzero(apart)} of {want.size} values differ, by up to {apart.max()}"
    return f"at x={x}, y={y}: {got}, must be {must}; {count}"
