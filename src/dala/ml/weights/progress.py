"""The progress of a download, as a line on the terminal: share and sizes."""

from __future__ import annotations

import shutil
import sys

from dala.resources import Closing


class DownloadBar(Closing):
    """A progress bar of a download, on standard error if that is a terminal.

    >>> with DownloadBar("yolo_v5") as report:
    ...     report("downloading", 3_000_000, 94_000_000)
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.shows = sys.stderr.isatty()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show the progress of a step: bytes done and in total, 0 if it has no size."""
        if self.shows:
            columns = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{line(self.name, what, done, total)[:columns]}")
            sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self.shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def line(name: str, what: str, done: int, total: int) -> str:
    """Return the line of a step.

    >>> line("yolo_v5", "downloading", 23_500_000, 94_000_000)
    'yolo_v5: downloading [######                  ]  23.5 of 94.0 MB'
    >>> line("yolo_v5", "converting", 0, 0)
    'yolo_v5: converting'
    """
    if not total:
        return f"{name}: {what}"
    done = min(done, total)
    bar = ("#" * (24 * done // total)).ljust(24)
    return f"{name}: {what} [{bar}]  {done / 1e6:.1f} of {total / 1e6:.1f} MB"
