"""Progress of long work, as a line on the terminal: share, count, speed, time left."""

from __future__ import annotations

import shutil
import sys
from time import perf_counter
from typing import Final, Self

#: Seconds between two updates of the line.
_PAUSE: Final = 0.1


class StatusLine:
    """A line on standard error that is written over.

    Args:
        shows: whether it is shown; by default if standard error is a terminal.
    """

    def __init__(self, shows: bool | None = None) -> None:
        self.shows = sys.stderr.isatty() if shows is None else shows

    def show(self, text: str) -> None:
        """Write the line, as far as the terminal is wide."""
        if self.shows:
            columns = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r\x1b[K{text[: columns - 1]}")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the line."""
        self.show("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Progress(StatusLine):
    """A counter of finished items, with a line on standard error if that is a terminal.

    Args:
        total: the number of items; None if unknown.
        unit: their name, such as "frames".
    """

    def __init__(self, total: int | None, unit: str) -> None:
        super().__init__()
        self.total = total
        self.unit = unit
        self.done = 0
        self._start = perf_counter()
        self._drawn = self._start

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self._start

    def step(self) -> None:
        """Count one more item."""
        self.done += 1
        now = perf_counter()
        if self.shows and now - self._drawn >= _PAUSE:
            self._drawn = now
            self.show(line(self.done, self.total, now - self._start, self.unit))


def line(done: int, total: int | None, seconds: float, unit: str) -> str:
    """Return the line, with a bar if the total is known.

    >>> line(50, 200, 2.0, "frames")
    '[######                  ]  25%  50/200 frames  25.0 fps  0:06 left'
    >>> line(50, None, 2.0, "frames")
    '50 frames  25.0 fps  0:02'
    """
    rate = done / seconds if seconds > 0 else 0.0
    speed = f"{rate:.1f} fps" if unit == "frames" else f"{rate:.1f}/s"
    if total is None or total < done:
        return f"{done} {unit}  {speed}  {clock_text(seconds)}"
    share = done / total if total else 1.0
    bar = ("#" * int(24 * share)).ljust(24)
    left = clock_text((total - done) / rate) if rate else "?"
    return f"[{bar}] {share:4.0%}  {done}/{total} {unit}  {speed}  {left} left"


def clock_text(seconds: float) -> str:
    """Return seconds as a clock shows them.

    >>> clock_text(6.2), clock_text(3661)
    ('0:06', '1:01:01')
    """
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    if hours:
        return f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{rest // 60}:{rest % 60:02}"
