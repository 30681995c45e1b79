"""The driver of a job: gives tasks to a runner, tries failed ones again, and keeps count.

It holds only the tasks that are on their way, so its memory does not grow with the job.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from dala.batch.manifest import Manifest
from dala.batch.report import BatchReport, Failure
from dala.batch.runners import Runner
from dala.batch.tasks import BatchTask, Event, Failed, Finished, Progressed, Result, Started
from dala.budget import check_deadline
from dala.errors import counted
from dala.media.progress import StatusLine, clock_text

if TYPE_CHECKING:
    from dala.batch.jobs import BatchJob

#: Seconds between two updates of the line.
_PAUSE: Final = 0.25
#: A running task is slow if it takes so many times as long as the mean of the finished ones.
_SLOW: Final = 2.0


class Display(StatusLine):
    """Counts the events of a job, and shows them as a line on a terminal.

    Args:
        shows: whether to write to standard error; by default if it is a terminal.
    """

    def __init__(self, shows: bool | None = None) -> None:
        super().__init__(shows)
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
        if self.shows:
            sys.stderr.write(f"\r\x1b[K{text}\n")

    def draw(self, force: bool = False) -> None:
        """Update the line, at most a few times a second."""
        now = time.monotonic()
        if self.shows and (force or now - self._drawn >= _PAUSE):
            self._drawn = now
            self.show(self.line(now))

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


#: What a job yields: tasks, and files that fail before there is a task.
Step: TypeAlias = "BatchTask | Failure"

#: Workers that a task may lose before it counts as the cause.
_LOSSES: Final = 5
#: Notices that a report keeps.
_NOTICES: Final = 200


@dataclass
class _Flight:
    """A task on its way."""

    task: BatchTask
    tries: int = 1
    losses: int = 0


class Driver:
    """Runs the tasks of a job on a runner.

    Args:
        job: says what is to be done.
        runner: where tasks run; it is started.
        manifest: the records.
        retries: how often a task that failed is tried again.
        display: shows progress.
    """

    def __init__(
        self, job: BatchJob, runner: Runner, manifest: Manifest, retries: int, display: Display
    ) -> None:
        self._job = job
        self._runner = runner
        self._manifest = manifest
        self._retries = retries
        self._display = display
        self._steps: Iterator[Step] = iter(())
        self._next: deque[Step] = deque()
        self._flights: dict[str, _Flight] = {}
        #: Groups (videos) of which a task was given up: their other tasks are not begun.
        self._given_up: set[str] = set()
        #: The weight of all tasks so far, and whether there are no others to be listed.
        self._known = 0.0
        self._listed = False
        self.report = BatchReport(work=manifest.work)

    def run(self) -> BatchReport:
        """Run all tasks. Failures are part of the report."""
        start = time.monotonic()
        self._steps = self._job.tasks(self._manifest)
        more = True
        try:
            while more or self._flights or self._next:
                self._manifest.check_held()
                more = self._fill()
                check_deadline("Job.run")
                if self._flights:
                    for event in self._runner.wait(0.2):
                        self._happened(event)
                    self._display.draw()
        finally:
            self.report.seconds = round(time.monotonic() - start, 3)
        return self.report

    def _fill(self) -> bool:
        """Submit as many tasks as the runner takes; return whether there may be more."""
        while len(self._flights) < self._runner.capacity():
            # Follow-ups first: they complete files, and free what these hold.
            if self._next:
                step: Step | None = self._next.popleft()
            else:
                step = next(self._steps, None)
                self._seen(step)
            if step is None:
                return False
            if isinstance(step, Failure):
                self._fail(step, "")
                continue
            if step.group and step.group in self._given_up:
                continue
            before = self._job.finished(step, self._manifest)
            if before is not None and self._resumed(step, before):
                continue
            self._flights[step.id] = _Flight(step)
            self._runner.submit(step)
        return True

    def _resumed(self, step: BatchTask, before: Result) -> bool:
        """Count a task that an earlier run has done. Return False if its record makes no sense."""
        try:
            self._complete(step, before)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            return False
        self.report.resumed += 1
        self._display.skipped(step)
        return True

    def _seen(self, step: Step | None) -> None:
        """Add a step to the expected total; once all are known, so is the time left."""
        if isinstance(step, BatchTask):
            self._known += step.weight
        elif step is None:
            self._listed = True
        indexing = any(not flight.task.weight for flight in self._flights.values())
        if self._listed and not indexing:
            self._display.expect(self._known)

    def _happened(self, event: Event) -> None:
        flight = self._flights.get(event.id)
        if flight is None:
            return  # of a worker that was taken for lost
        if isinstance(event, Started):
            self._display.started(flight.task, event.worker)
        elif isinstance(event, Progressed):
            self._display.progressed(flight.task, event.frames)
        elif isinstance(event, Finished):
            self._finished(flight, event.result)
        else:
            self._failed(flight, event)

    def _finished(self, flight: _Flight, result: Result) -> None:
        """Count a task. If some files of a group failed, try it again, or report these."""
        task, failures = flight.task, result.failures
        if flight.tries <= self._retries and not all(f.final for f in failures):
            self._again(flight, Failed(task.id, failures[0].error, result.worker))
            return
        del self._flights[task.id]
        self._count(result)
        self._display.finished(task, result)
        self._complete(task, result)
        for one in failures:
            self._fail(Failure(one.label, one.error, flight.tries), "")
        if failures:
            error = "; ".join(f.error for f in failures)
            self._manifest.record_failure(task.id, task.label, error)

    def _again(self, flight: _Flight, event: Failed) -> None:
        self.report.retries += 1
        flight.tries += 1
        self._display.retried(flight.task, event)
        self._runner.submit(flight.task)

    def _failed(self, flight: _Flight, event: Failed) -> None:
        task = flight.task
        if event.lost:
            self.report.lost += 1
            flight.losses += 1
        again = flight.losses <= _LOSSES if event.lost else flight.tries <= self._retries
        if again and not event.final:
            self._again(flight, event)
            return
        del self._flights[task.id]
        self._display.gave_up(task)
        self._fail(Failure(task.label, event.error, flight.tries), task.group)
        self._manifest.record_failure(task.id, task.label, event.error)

    def _fail(self, failure: Failure, group: str) -> None:
        self.report.failures.append(failure)
        if group:
            self._given_up.add(group)

    def _count(self, result: Result) -> None:
        report = self.report
        report.tasks += 1
        report.frames += result.frames
        report.cpu_seconds += result.cpu_seconds
        report.bytes_read += result.bytes_read
        report.bytes_written += result.bytes_written
        for notice in result.notices:
            if notice not in report.notices and len(report.notices) < _NOTICES:
                report.notices.append(notice)

    def _complete(self, task: BatchTask, result: Result) -> None:
        # Depth first: what completes a file comes before what begins another.
        follow = list(self._job.follow(task, result, self._manifest))
        self.report.files += self._job.files_of(task, result)
        self._next.extendleft(reversed(follow))
        for step in follow:
            self._seen(step)
