"""Run rows on a device and compare them with the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from dala.answers.cases import Row
from dala.answers.table import checksum, stored
from dala.errors import DalaError
from dala.typing import NDArray


@dataclass(frozen=True)
class Difference:
    """A row whose result is not the stored one."""

    row: Row
    #: Values that differ, of how many; 0 where the result has another shape or there is none.
    count: int
    total: int
    #: The largest difference.
    most: int
    #: The first difference, as text.
    first: str

    def __str__(self) -> str:
        return f"{self.row.id}: {self.first}"


def check(rows: Iterable[Row], device: str) -> Iterator[tuple[Row, Difference | None]]:
    """Yield each row with its difference from the table, or None."""
    for row in rows:
        try:
            result = row.run(device)
        except DalaError as error:
            yield row, Difference(row, 0, 0, 0, f"{type(error).__name__}: {error}")
            continue
        expected = stored().get(row.id)
        yield row, None if checksum(result) == expected else _difference(row, result, expected)


def _difference(row: Row, result: NDArray, expected: str | None) -> Difference:
    """Compare a result with that of the reference engine, pixel by pixel."""
    want = row.run("reference")
    if checksum(want) != expected:
        advice = "The table is not current: python -m dala.answers.generate"
        return Difference(row, 0, want.size, 0, advice)
    return compare(row, result, want)


def compare(row: Row, result: NDArray, want: NDArray) -> Difference:
    """Return how a result differs from another.

    >>> a, b = np.zeros((2, 3, 3), np.uint8), np.zeros((2, 3, 3), np.uint8)
    >>> a[1, 2] = 7, 0, 1
    >>> print(compare(Row("blur", "min", "rgb", "photo"), a, b))
    blur/min/rgb/photo: at x=2, y=1: 7 0 1, must be 0 0 0; 2 of 18 values differ, by up to 7
    """
    if result.shape != want.shape or result.dtype != want.dtype:
        first = f"{result.dtype} of {result.shape}, must be {want.dtype} of {want.shape}"
        return Difference(row, 0, want.size, 0, first)
    apart = np.abs(result.astype(np.int64) - want)
    count, most = int(np.count_nonzero(apart)), int(apart.max(initial=0))
    y, x = np.argwhere(apart)[0][:2]
    got, must = (" ".join(map(str, np.atleast_1d(a[y, x]))) for a in (result, want))
    first = f"at x={x}, y={y}: {got}, must be {must}; {count} of {want.size} values differ, "
    return Difference(row, count, want.size, most, f"{first}by up to {most}")
