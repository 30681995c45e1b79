"""Runners: where tasks run. The driver decides which tasks run, and which are tried again."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from dala.batch.tasks import BatchTask, Event
from dala.errors import ParameterError

__all__ = ["Resources", "Runner", "make_runner"]


@dataclass(frozen=True)
class Resources:
    """The resources of a task, and how many may run at once."""

    #: Processes of a local run; None for as many as fit.
    workers: int | None = None
    #: Share of a GPU that a task takes; None for none, or a whole one if the device is a GPU.
    gpus: float | None = None
    #: CPUs that a task takes; None for the threads of its encoder.
    cpus: float | None = None
    #: Bytes of memory that a task takes; None for no limit.
    memory: int | None = None
    #: Threads of the encoder in each task.
    threads: int = 1
    #: The id of the device that filters run on.
    device: str = "cpu"


class Runner(Protocol):
    """Runs tasks somewhere, and reports events. It tries nothing twice.

    Example::

        runner.start()
        runner.submit(task)
        for event in runner.wait(1.0):
            ...
        runner.stop(cancel=False)
    """

    #: "local" or "ray".
    name: str

    def start(self) -> str:
        """Start it; return a description of its resources, such as "2 processes"."""

    def capacity(self) -> int:
        """Return how many tasks it takes at once; the number may change."""

    def submit(self, task: BatchTask) -> None:
        """Begin a task, now or when a worker is free."""

    def wait(self, seconds: float) -> list[Event]:
        """Return the events since the last call; wait so long if there are none."""

    def stop(self, cancel: bool) -> None:
        """End all workers; with ``cancel`` without waiting for their tasks."""


def make_runner(on: str, resources: Resources) -> Runner:
    """Return the runner of a name: "local", "ray", or the address of a Ray cluster.

    Raises:
        ParameterError: it is none of these.

    >>> make_runner("local", Resources(workers=2)).name
    'local'
    """
    if not isinstance(on, str) or not (on in ("local", "ray", "auto") or "://" in on or ":" in on):
        expected = "'local', 'ray' or the address of a Ray cluster"
        raise ParameterError.invalid("Job.run", "on", expected, on)
    if on == "local":
        from dala.batch.runners.local import LocalRunner

        return LocalRunner(resources)
    made: Runner = import_module("dala.batch.runners.ray").RayRunner(on, resources)
    return made
