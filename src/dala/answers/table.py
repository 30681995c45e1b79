"""The stored checksums: one line for each filter, setting and kind of picture."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Final

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
