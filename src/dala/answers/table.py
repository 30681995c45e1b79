"""The stored checksums, one line for each filter, setting and kind of picture; comparing rows."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Final

import numpy as np

from dala.answers.cases import Row
from dala.answers.material import PICTURES
from dala.typing import NDArray

FILE: Final = "answers.txt"
_PICTURES: Final = "# Pictures: "
_HEAD: Final = (
    "# Checksums of the reference engine's results; python -m dala.answers.generate writes them.",
    f"{_PICTURES}{' '.join(PICTURES)}",
)


def checksum(result: NDArray) -> str:
    """Return the checksum of a result: CRC-32 of its shape and its bytes.

    >>> import numpy as np
    >>> checksum(np.zeros((2, 3), np.uint8))
    '00f0c910'
    """
    head = "x".join(map(str, result.shape)).encode()
    return f"{zlib.crc32(result.tobytes(), zlib.crc32(head)):08x}"


@cache
def stored() -> Mapping[str, str]:
    """Return the stored checksum of each row, by the row's id."""
    found, pictures = {}, list(PICTURES)
    text = resources.files(__package__).joinpath(FILE).read_text("ascii")
    for line in text.splitlines():
        if line.startswith("#"):
            if line.startswith(_PICTURES):  # those of the file, which may be an older one
                pictures = line.removeprefix(_PICTURES).split()
            continue
        name, *sums = line.split()
        if len(sums) == 1:
            found[name] = sums[0]
        else:
            found.update(zip((f"{name}/{p}" for p in pictures), sums, strict=True))
    return found


def written(sums: Mapping[Row, str]) -> str:
    """Return the text of the table for the checksums of rows, in the order of the rows."""
    lines = [*_HEAD]
    for (name, setting, kind), some in groupby(sums, lambda r: (r.name, r.setting, r.kind)):
        own = "/".join(filter(None, (name, setting, kind)))
        lines.append(" ".join([own, *(sums[row] for row in some)]))
    return "\n".join(lines) + "\n"


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
