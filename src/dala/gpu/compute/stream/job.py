"""Submitted jobs: their work, the memory they use, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, field
from typing import Final

from dala.budget import Limits, Token, capture, scope_of
from dala.errors import DalaError, FreedError
from dala.gpu.compute.buffer import span
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.stream.command import CommandState

FREED: Final = (
    "a buffer was freed before the work began. Free it after the command has ended, or drop it: "
    "the command keeps its buffers."
)


@dataclass(eq=False, repr=False)
class Job:
    """A submitted job: its work, the memory it uses, and the jobs that wait for it."""

    name: str
    background: bool
    #: None for a barrier, which runs nothing.
    engine: Engine | None = None
    run: Callable[[], None] | None = None
    #: The memory it uses, and whether it writes it.
    memory: dict[Storage, bool] = field(default_factory=dict)
    #: The buffers, kept alive until the job has ended.
    keep: tuple[object, ...] | None = None
    limits: InitVar[Limits | None] = None
    progress: CommandState = field(init=False)
    #: The number of jobs that this one still waits for.
    waiting: int = 0
    #: Jobs that wait until this one has ended, or is enqueued on a device that keeps the order.
    dependents: list[Job] = field(default_factory=list)
    #: Barriers that wait until this job has ended.
    barriers: list[Job] = field(default_factory=list)
    released: bool = False
    #: True once a worker runs it.
    started: bool = False

    def __post_init__(self, limits: Limits | None) -> None:
        engine = self.engine
        #: Address ranges of its buffers in foreign memory.
        self.spans = {s: span(engine, s) for s in self.memory if engine and s.foreign}
        #: The limits it was submitted with, and what cancels it.
        self.scope = scope_of(Token(), limits, capture())


def memory_of(reads: Iterable[Storage], writes: Iterable[Storage]) -> dict[Storage, bool]:
    """Return the memory of a job that reads and writes storages."""
    return dict.fromkeys(reads, False) | dict.fromkeys(writes, True)


def where(job: Job) -> str:
    """Return the id of the job's device, for diagnostics."""
    return "host" if job.engine is None else job.engine.id


def is_freed(job: Job) -> bool:
    """Return True if a buffer of the job was freed."""
    return any(storage.handle is None for storage in job.memory)


def check_alive(job: Job) -> None:
    """Raise FreedError if a buffer of the job was freed."""
    if is_freed(job):
        raise FreedError(FREED)


def name_command(error: BaseException, job: Job, among: int = 1) -> BaseException:
    """Add the command's id and name to an error's message."""
    whole: BaseException | None = error
    while whole is not None:  # frames in the traceback would keep buffers alive
        import traceback  # only errors need it

        traceback.clear_frames(whole.__traceback__)
        whole = whole.__cause__ or whole.__context__
    label = f"command {job.progress.id}, {job.name}"
    if among > 1:
        label += f" (or another of {among} that ran together)"
    if isinstance(error, DalaError) and type(error).__init__ is DalaError.__init__:
        made = error.within(label)
        made.__cause__ = error
        return made
    error.add_note(f"in {label}")
    return error
