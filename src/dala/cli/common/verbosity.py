"""How much a command says: ``--quiet`` and ``--verbose``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from dala.cli.common import daily
from dala.cli.common.places import result_of

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
    return record.levelno < 30 or name is None or daily.first_today(str(name))


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
