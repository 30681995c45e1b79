"""Work that takes a while: rendering to a file, exporting a page; with progress and cancelling."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

from dala import forks
from dala.errors import DalaError, ParameterError
from dala.studio.cards.chain import describe_error
from dala.studio.catalogue.parameters import JsonObject

#: Seconds between reports.
_REPORTS: Final = 0.2
#: Finished jobs that are remembered.
_KEPT: Final = 20


class JobStopped(Exception):
    """A job was cancelled."""


class StudioJob:
    """One piece of work on a thread of its own.

    Args:
        id: the handle of the job.
        title: what it makes.
        report: called with the job's state when it changes.
    """

    def __init__(self, id: str, title: str, report: Callable[[JsonObject], None]) -> None:
        self.id, self.title = id, title
        self._report = report
        self._cancelled = False
        self._begun = self._told = monotonic()
        self.state = "running"
        self.done = 0
        self.total: int | None = None
        self.facts: JsonObject = {}

    def step(self, count: int = 1, total: int | None = None) -> None:
        """Note progress.

        Raises:
            JobStopped: the job was cancelled.
        """
        if self._cancelled:
            raise JobStopped
        self.done += count
        self.total = total if total is not None else self.total
        now = monotonic()
        if now - self._told >= _REPORTS:
            self._told = now
            self.tell()

    def cancel(self) -> None:
        """End the job at its next step."""
        self._cancelled = True

    def tell(self) -> None:
        """Report the state."""
        seconds = max(monotonic() - self._begun, 1e-6)
        own = {name: getattr(self, name) for name in ("id", "title", "state", "done", "total")}
        self._report({**own, "rate": round(self.done / seconds, 2), **self.facts})

    def run(self, work: Callable[[StudioJob], JsonObject]) -> None:
        """Do the work, and report its end."""
        try:
            self.facts = work(self)
            self.state = "done"
        except JobStopped:
            self.state = "cancelled"
        except Exception as error:
            told = isinstance(error, DalaError | OSError | ValueError | MemoryError)
            text = describe_error(error) if told else repr(error)
            self.state, self.facts = "failed", {"error": {"text": text}}
        self.tell()


class Jobs:
    """The jobs of a session.

    Args:
        most: how many may run at the same time.
        report: called with the state of a job when it changes.
    """

    def __init__(self, most: int, report: Callable[[JsonObject], None]) -> None:
        self._most, self._report = most, report
        self._jobs: dict[str, tuple[StudioJob, threading.Thread]] = {}
        self._serial = 0

    def start(self, title: str, work: Callable[[StudioJob], JsonObject]) -> str:
        """Start a job, and return its handle.

        Raises:
            ParameterError: too many run.
        """
        running = [j for j, thread in self._jobs.values() if thread.is_alive()]
        if len(running) >= self._most:
            raise ParameterError(
                f"render: {self._most} jobs are running. Wait for one, or cancel it."
            )
        for id in list(self._jobs)[: max(len(self._jobs) - _KEPT, 0)]:
            if not self._jobs[id][1].is_alive():
                del self._jobs[id]
        self._serial += 1
        job = StudioJob(f"j{self._serial}", title, self._report)
        thread = forks.thread(job.run, name="dala-studio-job", args=(work,))
        self._jobs[job.id] = job, thread
        job.tell()
        thread.start()
        return job.id

    def cancel(self, id: object) -> None:
        """Cancel a job.

        Raises:
            ParameterError: there is no such job.
        """
        if not isinstance(id, str) or id not in self._jobs:
            raise ParameterError.invalid("cancel", "job", "the id of a job", id)
        self._jobs[id][0].cancel()

    def wait(self) -> None:
        """Wait until no job runs."""
        for _, thread in self._jobs.values():
            thread.join()

    def close(self) -> None:
        """Cancel all jobs, and wait for their ends."""
        for job, _ in self._jobs.values():
            job.cancel()
        self.wait()
