"""A worker on a Ray cluster: one process that does one task after the other, and owns its device.

Tasks, results and options are JSON text. Nothing that a driver sends is a function or an object of
another library, and frames never pass through Ray.
"""

from __future__ import annotations

import json
import os

from dala import forks

__all__ = ["RayWorker"]


class RayWorker:
    """The actor: Ray calls ``run`` on one thread and ``progress`` on another.

    Args:
        settings: JSON with ``storage`` (the options of storage that the job's caller gave) and
            ``threads`` (for filters on the CPU).

    >>> worker = RayWorker('{"storage": null, "threads": 1}')
    >>> worker.progress()
    '["", 0]'
    """

    def __init__(self, settings: str) -> None:
        found = json.loads(settings)
        if found["threads"]:
            # Set before the engine starts, so that workers of one machine share its cores.
            os.environ.setdefault("DALA_THREADS", str(found["threads"]))
        from dala.batch import storage

        storage.configure(found["storage"])
        self._lock = forks.lock()
        self._state = ("", 0)

    def hello(self, environment: str) -> str:
        """Return who this is, and why it cannot take part in a plan, if it cannot."""
        from dala.batch.environment import check_environment
        from dala.batch.tasks import worker_name
        from dala.errors import DalaError

        refused = ""
        try:
            check_environment(json.loads(environment))
        except DalaError as error:
            refused = str(error)
        return json.dumps({"worker": worker_name(), "refused": refused})

    def run(self, task: str) -> str:
        """Do a task; return its result, or the error."""
        from dala.batch.tasks import BatchTask, run_task
        from dala.batch.worker import FINAL, error_text

        try:
            found = BatchTask.from_json(task)
            self._report(found.id, 0)
            result = run_task(found, lambda frames: self._report(found.id, frames))
            return json.dumps({"result": result.to_json()})
        except Exception as error:
            return json.dumps({"error": error_text(error), "final": isinstance(error, FINAL)})

    def _report(self, id: str, frames: int) -> None:
        with self._lock:
            self._state = (id, frames)

    def progress(self) -> str:
        """Return the task that it does, and the frames that are done."""
        with self._lock:
            return json.dumps(self._state)
