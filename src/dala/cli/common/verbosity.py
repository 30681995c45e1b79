"""Notes on standard error, and where a command writes: how much it says, and folders it makes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from dala.errors import ParameterError
from dala.folders import cache_folder

if TYPE_CHECKING:
    from logging import LogRecord


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
    """Return whether to show a record of the library's log: a notice with a name, once a day."""
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
