"""One piece of submitted work: what it runs, what it touches, and how its error is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dala.errors import DalaError, FreedError
from dala.gpu.compute.buffer import span
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.stream.command import CommandState

FREED: Final = (
    "a buffer was freed before the work had begun. Free it after the command has ended; one that "
    "is merely let go of is kept until then."
)


class Job:
    """One piece of work: what it runs, what it touches, and whom it holds up."""

    __slots__ = (
        "background",
        "engine",
        "followers",
        "held_up",
        "keep",
        "let_go",
        "name",
        "progress",
        "run",
        "spans",
        "touches",
        "waiting",
    )

    progress: CommandState

    def __init__(
        self,
        name: str,
        background: bool,
        engine: Engine | None = None,
        run: Callable[[], None] | None = None,
        reads: Sequence[Storage] = (),
        writes: Sequence[Storage] = (),
        keep: Any = None,
    ) -> None:
        self.name = name
        self.background = background
        #: None for a barrier, which touches everything and runs nothing.
        self.engine = engine
        self.run = run
        self.touches = dict.fromkeys(reads, False) | dict.fromkeys(writes, True)
        #: Where those of its buffers begin and end that lie over somebody else's memory.
        self.spans = {s: span(engine, s) for s in self.touches if engine and s.foreign}
        #: The buffers, so that none is collected meanwhile.
        self.keep = keep
        #: How many others must come first.
        self.waiting = 0
        #: Those that wait until this one is done, or enqueued where the device keeps the order.
        self.followers: list[Job] = []
        #: Barriers, which wait until it has ended.
        self.held_up: list[Job] = []
        self.let_go = False


def where(job: Job) -> str:
    """The device's id, for the counts."""
    return "host" if job.engine is None else job.engine.id


def is_freed(job: Job) -> bool:
    """True if memory that it touches was given back."""
    return any(storage.handle is None for storage in job.touches)


def check_alive(job: Job) -> None:
    """Refuses work on memory that was given back."""
    if is_freed(job):
        raise FreedError(FREED)


def named(error: BaseException, job: Job, among: int = 1) -> BaseException:
    """The error with the command's id and name in its message, of the same type."""
    whole: BaseException | None = error
    while whole is not None:  # what its frames hold would live as long as the error
        import traceback  # only errors need it

        traceback.clear_frames(whole.__traceback__)
        whole = whole.__cause__ or whole.__context__
    label = f"command {job.progress.id}, {job.name}"
    if among > 1:
        label += f" (or another of {among} that were done together)"
    if isinstance(error, DalaError) and type(error).__init__ is DalaError.__init__:
        made = error.within(label)
        made.__cause__ = error
        return made
    error.add_note(f"in {label}")
    return error
