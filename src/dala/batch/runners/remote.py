"""A worker on a Ray cluster: one process that does one task after the other, and owns its device.

Tasks, results and options are JSON text. Nothing that a driver sends is a function or an object of
another library, and frames never pass through Ray.
"""

from __future__ import annotations

import json
import os

import dala
from dala import forks
from dala.batch.tasks import Json


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
        #: The device of this process for each that plans name.
        self._devices: dict[str, str] = {}

    def hello(self, environment: str) -> str:
        """Return the worker's name, and the reason why it cannot take part in a plan, if any."""
        from dala.batch.environment import adopt_environment, check_environment
        from dala.batch.tasks import worker_name
        from dala.errors import DalaError

        refused = ""
        try:
            adopt_environment(json.loads(environment))
            check_environment(json.loads(self._placed(environment)))
        except DalaError as error:
            refused = str(error)
        return json.dumps({"worker": worker_name(), "refused": refused})

    def run(self, task: str) -> str:
        """Do a task; return its result, or the error."""
        from dala.batch.tasks import BatchTask, PartFailure, run_task

        try:
            found = BatchTask.from_json(self._placed(task))
            self._report(found.id, 0)
            result = run_task(found, lambda frames: self._report(found.id, frames))
            return json.dumps({"result": result.to_json()})
        except Exception as error:
            failed = PartFailure.of("", error)
            return json.dumps({"error": failed.error, "final": failed.final})

    def _placed(self, text: str) -> str:
        """Return JSON that names the GPU which Ray gave to this process, instead of the plan's."""
        found = json.loads(text)
        fixed = found.get("environment", found)
        wanted = fixed.get("device id", "")
        if wanted and wanted not in self._devices:
            self._devices[wanted] = _own_device(wanted, fixed.get("device", ""))
        own = self._devices.get(wanted, wanted)
        return text if own == wanted else json.dumps(_replaced(found, wanted, own))

    def _report(self, id: str, frames: int) -> None:
        with self._lock:
            self._state = (id, frames)

    def progress(self) -> str:
        """Return the task that it does, and the frames that are done."""
        with self._lock:
            return json.dumps(self._state)


def _own_device(wanted: str, kind: str) -> str:
    """Return the id of the GPU that Ray gave to this process."""
    if not wanted.startswith(("webgpu", "cuda")):
        return wanted
    import ray

    from dala.batch.environment import environment

    numbers = [int(n) for n in ray.get_gpu_ids() if str(n).isdigit()]
    here = [d.id for d in dala.devices() if environment(d.id)["device"] == kind]
    return chosen_device(wanted, numbers, here)


def chosen_device(wanted: str, numbers: list[int], here: list[str]) -> str:
    """Return which of the GPUs of a machine a process uses.

    Ray counts GPUs as their driver does, and so do adapters of one kind.

    Args:
        wanted: the id that the plan has.
        numbers: the numbers of the GPUs that Ray gave to the process.
        here: the ids of this machine's devices that are of the plan's kind, in order.

    >>> chosen_device("webgpu:0", [2], ["webgpu:0", "webgpu:1", "webgpu:2", "webgpu:3"])
    'webgpu:2'
    >>> chosen_device("webgpu:0", [], ["webgpu:1"]), chosen_device("webgpu:0", [1], [])
    ('webgpu:1', 'webgpu:0')
    """
    if not here:
        return wanted
    return here[numbers[0] % len(here)] if numbers else (wanted if wanted in here else here[0])


def _replaced(value: Json, wanted: str, own: str) -> Json:
    """Return a value of JSON in which a text stands for another one."""
    if isinstance(value, dict):
        return {key: _replaced(item, wanted, own) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, wanted, own) for item in value]
    return own if value == wanted else value
