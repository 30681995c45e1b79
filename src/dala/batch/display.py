"""One line of progress for all workers: files, tasks, frames a second, what is slow, time left."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Final

from dala.batch.events import Failed
from dala.batch.tasks import BatchTask, Result
from dala.errors import counted
from dala.media.progress import clock_text

#: Seconds between two updates of the line.
_PAUSE: Final = 0.25
#: A running task is slow if it takes so many times as long as the mean of the finished ones.
_SLOW: Final = 2.0


class Display:
    """Counts what happens in a job, and shows it as a line on a terminal.

    Args:
        shows: whether to write to standard error; by default if it is a terminal.
    """

    def __init__(self, shows: bool | None = None) -> None:
        self._shows = sys.stderr.isatty() if shows is None else shows
        #: The weight of all tasks; None if unknown.
        self._total: float | None = None
        self._start = time.monotonic()
        self._drawn = 0.0
        self._weight = self._before = 0.0
        self._frames = self._tasks = self._failed = 0
        self._seconds = 0.0
        #: For each running task: its label, worker, start and frames so far.
        self._running: dict[str, tuple[str, str, float, int]] = {}

    def expect(self, total: float) -> None:
        """Set the weight of all tasks."""
        self._total = total

    def skipped(self, task: BatchTask) -> None:
        """Count a task that an earlier run has done."""
        self._before += task.weight

    def started(self, task: BatchTask, worker: str) -> None:
        """Note a task that a worker began."""
        self._running[task.id] = (task.label, worker, time.monotonic(), 0)

    def progressed(self, task: BatchTask, frames: int) -> None:
        """Note the frames of a running task."""
        found = self._running.get(task.id, (task.label, "", time.monotonic(), 0))
        self._running[task.id] = (*found[:3], frames)

    def finished(self, task: BatchTask, result: Result) -> None:
        """Count a task that is done."""
        self._running.pop(task.id, None)
        self._weight += task.weight
        self._frames += result.frames
        self._tasks += 1
        self._seconds += result.seconds

    def retried(self, task: BatchTask, event: Failed) -> None:
        """Say why a task is tried again."""
        self._running.pop(task.id, None)
        self._note(f"{task.label}: {event.error} It is tried again.")

    def gave_up(self, task: BatchTask) -> None:
        """Count a task that failed."""
        self._running.pop(task.id, None)
        self._failed += 1

    def _note(self, text: str) -> None:
        if self._shows:
            sys.stderr.write(f"\r\x1b[K{text}\n")

    def draw(self, force: bool = False) -> None:
        """Update the line, at most a few times a second."""
        now = time.monotonic()
        if not self._shows or (now - self._drawn < _PAUSE and not force):
            return
        self._drawn = now
        columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{self.line(now)[: columns - 1]}")
        sys.stderr.flush()

    def line(self, now: float) -> str:
        """Return the line at a time of ``time.monotonic``."""
        past = max(now - self._start, 1e-9)
        frames = self._frames + sum(found[3] for found in self._running.values())
        parts = [
            counted(self._tasks, "tasks"),
            counted(frames, "frames"),
            f"{frames / past:.1f} fps",
        ]
        if self._total and self._weight:
            share = min(1.0, (self._weight + self._before) / self._total)
            left = (self._total - self._before - self._weight) * past / self._weight
            bar = ("#" * int(16 * share)).ljust(16)
            parts = [f"[{bar}] {share:4.0%}", *parts, f"{clock_text(max(0.0, left))} left"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        slow = self._slow(now)
        if slow:
            parts.append(f"slow: {slow}")
        return "  ".join(parts)

    def _slow(self, now: float) -> str:
        if not self._tasks:
            return ""
        mean = self._seconds / self._tasks
        label, worker, since, _ = min(
            self._running.values(), key=lambda found: found[2], default=("", "", now, 0)
        )
        return f"{label} on {worker}" if now - since > _SLOW * mean + 1 else ""

    def close(self) -> None:
        """Remove the line."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
