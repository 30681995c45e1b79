"""A runner that does tasks in the process of the test, with failures on demand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from dala.batch.tasks import (
    FINAL,
    BatchTask,
    Event,
    Failed,
    Finished,
    Progressed,
    Started,
    run_task,
)
from dala.errors import error_line


class InlineRunner:
    """Does one task with each call of ``wait``; ``before`` may raise, or end the driver."""

    name = "inline"

    def __init__(self, before: Callable[[BatchTask], object] = lambda task: None, width: int = 3):
        self._before = before
        self._width = width
        self._waiting: deque[BatchTask] = deque()
        #: Ids of the tasks that were begun, in order.
        self.begun: list[str] = []
        self.stopped: bool | None = None

    def start(self) -> str:
        return "the process of the test"

    def capacity(self) -> int:
        return self._width

    def submit(self, task: BatchTask) -> None:
        # What travels is text: nothing of the driver's objects may be needed.
        self._waiting.append(BatchTask.from_json(task.to_json()))

    def wait(self, seconds: float) -> list[Event]:
        task = self._waiting.pop() if len(self._waiting) % 2 else self._waiting.popleft()
        self.begun.append(task.id)
        events: list[Event] = [Started(task.id, "inline")]
        try:
            self._before(task)
            result = run_task(task, lambda n: events.append(Progressed(task.id, n)))
        except LostWorker as lost:
            return [*events, Failed(task.id, str(lost), "inline", lost=True)]
        except Exception as error:
            final = isinstance(error, FINAL)
            return [*events, Failed(task.id, error_line(error), "inline", final=final)]
        return [*events, Finished(task.id, result)]

    def stop(self, cancel: bool) -> None:
        self.stopped = cancel


class LostWorker(Exception):
    """The worker is gone."""
