"""Folders of the user that the library writes to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder(kind: str) -> Path | None:
    """Return the folder for one kind of cached files, or None if there is no home folder.

    It is in DALA_CACHE_DIR, or else in the user's cache folder. It may not exist yet.

    >>> cache_folder("models").name
    'models'
    """
    chosen = os.environ.get("DALA_CACHE_DIR")
    if chosen:
        return Path(chosen) / kind
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return None if base.startswith("~") else Path(base) / "dala" / kind
