"""Where a command writes: missing folders are made."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def names_folder(out: str) -> bool:
    """Return whether a name is that of a folder: one that is there, or it ends with a slash.

    >>> names_folder("small/"), names_folder("out.png")
    (True, False)
    """
    return out.endswith(("/", os.sep)) or os.path.isdir(out) or not Path(out).suffix


def _folder(args: argparse.Namespace) -> Path | None:
    """Return the folder of the file that a command writes, if it writes one."""
    paths = getattr(args, "paths", None) or []
    writes = len(paths) > 1 and args.command != "view"
    out = paths[-1] if writes else getattr(args, "out", None)
    if not isinstance(out, str | Path) or str(out) in ("", "-") or "://" in str(out):
        return None
    return Path(out).parent


@contextmanager
def made_folders(args: argparse.Namespace) -> Iterator[None]:
    """Make the missing folders of a command's result; those still empty go if it fails."""
    folder, made = _folder(args), list[Path]()
    if folder is not None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            made.append(one)
    try:
        yield
    finally:
        for one in reversed(made):
            try:
                one.rmdir()
            except OSError:  # it holds the result
                break
