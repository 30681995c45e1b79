"""What is said once a day: a stamp for each notice, in the cache folder of this user."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

from dala.folders import cache_folder


def first_today(name: str, today: date | None = None, folder: Path | None = None) -> bool:
    """Return whether this is the first call of the day for a notice, and remember it.

    Where nothing can be remembered, every call is the first.

    Args:
        name: the notice.
        today: the day; by default that of the clock.
        folder: where the stamps are; by default in the user's cache.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [first_today("cpu", date(2026, 1, day), Path(folder)) for day in (1, 1, 2)]
    [True, False, True]
    """
    day = (today or date.today()).isoformat()
    folder = folder or cache_folder("notices")
    if folder is None:
        return True
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(folder / name, flags, 0o600), "r+", encoding="ascii") as stamp:
            if stamp.read(32) == day:
                return False
            stamp.seek(0)
            stamp.truncate()
            stamp.write(day)
    except (OSError, ValueError):  # a folder of others, a full disk, a stamp that is no text
        return True
    return True
