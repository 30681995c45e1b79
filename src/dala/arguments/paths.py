"""Files that are not there."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.errors import FileMissing, did_you_mean

if TYPE_CHECKING:
    from dala.typing import PathLike

#: Names in a folder that are compared with that of a file which is not there.
_MOST_NAMES: Final = 1000


def near_files(path: PathLike) -> str:
    """Return advice for a file that is not there: similar names in its folder.

    >>> near_files("/no/such/file.png")
    "There is no folder '/no/such'."
    """
    wanted = Path(os.fsdecode(path))
    try:
        with os.scandir(wanted.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
    except FileNotFoundError:
        return f"There is no folder '{wanted.parent}'."
    except OSError:
        return ""
    return did_you_mean(wanted.name, names)


def missing_file(path: PathLike, call: str = "") -> FileMissing:
    """Return the error for a file that is not there.

    >>> missing_file("/no/such/file.png", "Frame.open")
    FileMissing("Frame.open: there is no file '/no/such/file.png'. There is no folder '/no/such'.")
    """
    text = f"{call}: " * bool(call) + f"there is no file {os.fsdecode(path)!r}."
    return FileMissing(f"{text} {near_files(path)}".rstrip(), call=call)
