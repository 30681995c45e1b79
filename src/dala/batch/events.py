"""Events that runners report to the driver while tasks run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dala.batch.tasks import Result


@dataclass(frozen=True)
class Started:
    """A worker began a task."""

    id: str
    worker: str


@dataclass(frozen=True)
class Progressed:
    """A task has finished so many of its frames."""

    id: str
    frames: int
    #: Seconds of processors that it has used, if known.
    cpu: float = 0.0


@dataclass(frozen=True)
class Finished:
    """A task is done, and its record is in the manifest."""

    id: str
    result: Result


@dataclass(frozen=True)
class Failed:
    """A task raised an error, or its worker was lost."""

    id: str
    error: str
    worker: str
    #: Whether it would fail everywhere, so that it is not tried again.
    final: bool = False
    #: Whether the worker died, rather than that the task raised an error.
    lost: bool = False


#: Anything that happened.
Event: TypeAlias = Started | Progressed | Finished | Failed
