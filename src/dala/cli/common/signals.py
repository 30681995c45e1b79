"""Signals that stop a command, and its standard input and output as files."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from dala.cli.common.verbosity import names_folder
from dala.errors import ParameterError


class Stopped(KeyboardInterrupt):
    """A signal requested the end of the process."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number


@contextmanager
def stopping() -> Iterator[None]:
    """Raise :class:`Stopped` within the block on SIGTERM, and on SIGHUP where it exists."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    numbers = [getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]
    # An ignored signal stays ignored, as `nohup` requires.
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) == signal.SIG_DFL}

    def stop(number: int, frame: FrameType | None) -> None:
        for n in before:
            signal.signal(n, signal.SIG_IGN)  # a second signal must not interrupt the cleanup
        raise Stopped(number)

    for n in before:
        signal.signal(n, stop)
    try:
        yield
    finally:
        for n, old in before.items():
            signal.signal(n, old)


#: The name of standard input, or output.
PIPE: Final = "-"


@contextmanager
def piped(
    names: list[str], out: str, format: str | None, *, folders: bool = False
) -> Iterator[tuple[list[str], str]]:
    """Yield the names with temporary files in place of "-"; a result is copied at the end.

    The input is read whole, because most containers are not readable without seeking. Nothing is
    written to standard output unless the block succeeds. With ``folders``, the format may be that
    of the files in a folder.

    Raises:
        ParameterError: "-" is given for several inputs, or for the output without a format.
    """
    if format is not None and out != PIPE and not (folders and names_folder(out)):
        where = "a folder or the output '-'" if folders else "the output '-'"
        raise ParameterError(f"--format is for {where}. A file has the format of its suffix.")
    if PIPE not in (*names, out):
        yield names, out
        return
    if PIPE in names and len(names) > 1:
        raise ParameterError("'-' is standard input and must be the only input.")
    if out == PIPE and not format:
        raise ParameterError("the output '-' needs a format: --format png, --format mkv.")
    if out == PIPE and sys.stdout.isatty():
        raise ParameterError("standard output is a terminal. Redirect it to a file or a pipe.")
    with tempfile.TemporaryDirectory(prefix="dala-") as folder:
        if PIPE in names:
            names = [str(_spooled(Path(folder)))]
        target = Path(folder) / f"stdout.{(format or '').lstrip('.')}"
        yield names, str(target) if out == PIPE else out
        if out == PIPE and target.is_file():
            with target.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _spooled(folder: Path) -> Path:
    """Return standard input as a file whose suffix says whether it is a video."""
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not path.stat().st_size:
        raise ParameterError("standard input is empty.")
    return path.rename(path.with_suffix(".picture" if _is_picture(path) else ".mkv"))


def _is_picture(path: Path) -> bool:
    try:
        from dala.media.pictures.plugins import open_image

        with open_image(path):
            return True
    except Exception:  # Pillow raises nearly anything for a file that is no picture
        return False
