"""Where a command writes: missing folders are made."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dala.errors import ParameterError

#: Commands whose last path is the result.
_LAST: Final = ("batch", "filter")


def names_folder(out: str) -> bool:
    """Return whether a name is that of a folder: one that is there, or it ends with a slash.

    >>> names_folder("small/"), names_folder("out.png")
    (True, False)
    """
    return out.endswith(("/", os.sep)) or os.path.isdir(out) or not Path(out).suffix


def result_of(args: argparse.Namespace) -> Path | None:
    """Return the file or folder that a command writes; None if it writes none, or elsewhere."""
    out = getattr(args, "out", None)
    if args.command in _LAST and len(args.paths) > 1:
        out = args.paths[-1]
    if not isinstance(out, str | Path) or str(out) in ("", "-") or "://" in str(out):
        return None
    return Path(out)


@contextmanager
def made_folders(args: argparse.Namespace) -> Iterator[None]:
    """Make the missing folders of a command's result; those still empty go if it fails."""
    result, made = result_of(args), list[Path]()
    try:
        for one in [] if result is None else reversed(result.parents):
            if not one.is_dir():
                _make(one)
                made.append(one)
        yield
    finally:
        for one in reversed(made):
            try:
                one.rmdir()
            except OSError:  # it holds the result
                break


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"the folder '{folder}' cannot be made ({error.strerror}). Name a result elsewhere."
        ) from None
