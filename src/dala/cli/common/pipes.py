"""Standard input and output as files: a name of "-" stands for them."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dala.cli.common.places import names_folder
from dala.errors import ParameterError

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
