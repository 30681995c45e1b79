"""Notes on standard error: how much a command says, and what it says once a day."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dala.cli.common.places import result_of
from dala.folders import cache_folder

if TYPE_CHECKING:
    from logging import LogRecord


class _NoTerminal:
    """A stream that is no terminal, so that nothing draws progress on it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        """Return False."""
        return False


def _news(record: LogRecord) -> bool:
    """Return whether to show what the library logs: a notice with a name, once a day."""
    name = getattr(record, "notice", None)
    return record.levelno < 30 or name is None or first_today(str(name))


@contextmanager
def spoken(args: argparse.Namespace) -> Iterator[None]:
    """Run a block as quietly or as verbosely as the command line says.

    Quiet: errors, and results that were asked for. Verbose: also what the library logs, such as the
    device and why it was chosen.
    """
    import logging
    import warnings
    from contextlib import redirect_stderr

    logger = logging.getLogger("dala")
    if not (args.quiet or args.verbose):
        logger.addFilter(_news)
        try:
            yield
        finally:
            logger.removeFilter(_news)
        return
    level, handler = logger.level, logging.StreamHandler()
    logger.setLevel(logging.ERROR if args.quiet else logging.INFO)
    if args.verbose:
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    stream = sys.stderr
    if args.quiet and stream is not None:
        stream = _NoTerminal(stream)
    try:
        with warnings.catch_warnings(), redirect_stderr(stream):
            warnings.simplefilter("ignore" if args.quiet else "always", UserWarning)
            yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def says_what_it_did(args: argparse.Namespace) -> bool:
    """Return whether a command prints its text: a quiet one does only if that is the result."""
    return not (args.quiet and result_of(args) is not None)


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
