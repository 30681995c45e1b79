"""Folders of the user that the library writes to."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def cache_folder(kind: str) -> Path | None:
    """Return the folder for one kind of cached files, or None if there is no home folder.

    It is in DALA_CACHE_DIR, or else in the user's cache folder. It may not exist yet.

    >>> cache_folder("models").name
    'models'
    """
    chosen = os.environ.get("DALA_CACHE_DIR")
    if chosen:
        return Path(chosen) / kind
    base = user_folder("XDG_CACHE_HOME", "~/Library/Caches", "~/.cache")
    return None if base is None else Path(base) / "dala" / kind


def bytes_in(folder: str | Path) -> int:
    """Return the bytes of all files in a folder; those that disappear meanwhile are left out."""
    found = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found += os.stat(os.path.join(root, name)).st_size
    return found


def user_folder(variable: str, mac: str, other: str) -> str | None:
    """Return a folder of the user, or None if there is no home folder.

    Args:
        variable: the environment variable with its path on Linux and the like.
        mac: its path on macOS.
        other: its path on Linux and the like. Windows has one folder for all kinds.
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser(mac)
    else:
        base = os.environ.get(variable) or os.path.expanduser(other)
    return None if base.startswith("~") else base
