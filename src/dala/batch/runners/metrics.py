"""The progress of a job in the metrics of a Ray cluster."""

from __future__ import annotations

from typing import Any, Final

from dala import forks
from dala.batch.driver import Display
from dala.batch.tasks import BatchTask, Failed, Result

#: Upper bounds of the histogram of tasks, in seconds.
_SECONDS: Final = [1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0]


class RayDisplay(Display):
    """A display that counts in Ray's own metrics, too; each machine of the cluster serves them."""

    @forks.cached_property
    def _meters(self) -> tuple[Any, Any, Any, Any]:
        from ray.util.metrics import Counter, Gauge, Histogram

        return (
            Counter("dala_batch_tasks", "Tasks that ended.", ("outcome",)),
            Counter("dala_batch_frames", "Frames, pictures or rows that are done."),
            Histogram("dala_batch_task_seconds", "Seconds of a task.", _SECONDS),
            Gauge("dala_batch_running", "Tasks that workers do now."),
        )

    def _count(self, outcome: str) -> None:
        tasks, _, _, running = self._meters
        tasks.inc(tags={"outcome": outcome})
        running.set(len(self._running))

    def started(self, task: BatchTask, worker: str) -> None:
        """Note a task that a worker began."""
        super().started(task, worker)
        self._meters[3].set(len(self._running))

    def finished(self, task: BatchTask, result: Result) -> None:
        """Count a task that is done."""
        super().finished(task, result)
        self._count("done")
        if result.frames:
            self._meters[1].inc(result.frames)
        self._meters[2].observe(result.seconds)

    def retried(self, task: BatchTask, event: Failed) -> None:
        """Count a task that is tried again."""
        super().retried(task, event)
        self._count("tried again")

    def gave_up(self, task: BatchTask) -> None:
        """Count a task that failed."""
        super().gave_up(task)
        self._count("failed")
