"""One trace: from its start to a file, with the parts that child processes wrote.

A child process, forked or started, appends its records to a file of its own in a folder that the
parent made (``DALA_TRACE_PARTS``); the parent adds them when it ends. ``time.perf_counter`` is the
same clock in all processes of a machine.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Self

from dala import forks
from dala.arguments import Flag, Quantity
from dala.errors import DalaError, ParameterError
from dala.trace.recorder import Holding, Record, tracer

if TYPE_CHECKING:
    from dala.trace.export import Event
    from dala.trace.report import TraceReport
    from dala.typing import PathLike

#: The environment variables that name a file to trace to, and the folder of children.
VARIABLE: Final = "DALA_TRACE"
PARTS: Final = "DALA_TRACE_PARTS"
#: Seconds between two writes of a child's records, which may be killed.
CHILD_SECONDS: Final = 0.25
#: A file in that folder if only the last seconds are kept, and the bytes of half of a child's part.
_RING: Final = "ring"
_PART_BYTES: Final = 16 << 20
#: Seconds of the ring.
SECONDS: Final = 60.0
_CALL: Final = "dala.trace"


class TraceRun:
    """A trace that runs while its block does, and is written when it ends.

    Returned by ``dala.trace(path)``. ``report()`` says why frames were late.
    """

    def __init__(self, path: PathLike | None, seconds: float, all: bool) -> None:
        #: The file, or None if nothing is written.
        self.path = None if path is None else Path(os.fsdecode(path))
        if self.path is not None and not self.path.parent.is_dir():
            raise ParameterError(
                f"{_CALL}: no such folder: {str(self.path.parent)!r}. Create it first."
            )
        self.seconds = Quantity(0, above=True, unit="seconds").check(_CALL, "seconds", seconds)
        self.all = Flag().check(_CALL, "all", all)
        self._folder: Path | None = None
        self._home = forks.Home()
        self._events: list[Event] | None = None
        self._threads: dict[int, dict[int, str]] = {}
        self._notes: dict[str, Any] = {}

    # running --------------------------------------------------------------------------------------
    def start(self, lent: Callable[[], object] | None = None) -> Self:
        """Start to record. One trace runs at a time in a process.

        Args:
            lent: ends the trace, which gives way to any other, without a word.

        Raises:
            DalaError: another trace runs.
        """
        if tracer.lent is not None:
            tracer.lent()
        if tracer.on or self._events is not None:
            raise DalaError(f"{_CALL}: a trace runs already. End it first; one runs at a time.")
        self._folder = Path(tempfile.mkdtemp(prefix="dala-trace-"))
        if not self.all:
            (self._folder / _RING).touch()
        os.environ[PARTS] = str(self._folder)
        forks.NativeLock.waits = lambda guard: Holding(guard, guard.library).__enter__()
        tracer.start(self.seconds, self._spill if self.all else None)
        tracer.lent = lent
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Stop, and write the file. Stopping twice is fine; a forked child writes nothing."""
        atexit.unregister(self.stop)
        if not self._home.here or self._folder is None:
            return
        folder, self._folder = self._folder, None
        os.environ.pop(PARTS, None)
        forks.NativeLock.waits = None
        self._notes = {"seconds": None if self.all else self.seconds, **tracer.notes}
        end = tracer.clock()
        records, tracer.lent = tracer.stop(), None
        own = os.getpid()
        self._threads = {own: dict(tracer.threads)}
        self._events = [(own, record) for record in records]
        try:
            _gather(folder, self._events, self._threads)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if not self.all:
            limit = end - int(self.seconds * 1e9)
            self._events = [event for event in self._events if event[1][3] >= limit]
        if self.path is not None:
            from dala.trace.export import write

            write(self.path, self._events, self._threads, self._notes)

    def _spill(self, records: list[Record]) -> None:
        folder = self._folder
        if folder is not None:
            _append(folder, records)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # results --------------------------------------------------------------------------------------
    @property
    def events(self) -> list[Event]:
        """The records by process, once the trace has ended."""
        if self._events is None or self._folder is not None:
            raise DalaError(f"{_CALL}: the trace has not ended. Read it after its block.")
        return self._events

    @property
    def threads(self) -> dict[int, str]:
        """Names of threads and devices of this process by number, once the trace has ended."""
        return self._threads.get(os.getpid(), {})

    def report(self, *, tolerance: float = 8.0, budget: float | None = None) -> TraceReport:
        """Return the report on late frames, once the trace has ended.

        Args:
            tolerance: milliseconds that a frame may be late.
            budget: milliseconds of a frame; by default its due time, else the usual time of one.
        """
        from dala.trace.report import TraceReport

        return TraceReport(self.events, self._threads, tolerance=tolerance, budget=budget)

    def __repr__(self) -> str:
        state = "ended" if self._events is not None else "running" if self._folder else "new"
        return f"<TraceRun {'' if self.path is None else str(self.path)!r} {state}>"


def _record(*values: Any) -> Record:
    """Return a record of values that were JSON."""
    stage, name, begin, end, thread, frame, facts = values
    return stage, name, begin, end, thread, frame, facts


def so_far() -> tuple[list[Event], dict[int, dict[int, str]]]:
    """Return the events so far of the trace that runs, with what children wrote, and threads."""
    own = os.getpid()
    events: list[Event] = [(own, record) for record in tracer.records[:]]
    threads = {own: dict(tracer.threads)}
    if PARTS in os.environ:
        _gather(Path(os.environ[PARTS]), events, threads)
    return events, threads


def _gather(folder: Path, events: list[Event], threads: dict[int, dict[int, str]]) -> None:
    """Add what was spilled, and what children wrote."""
    for part in folder.glob("*.jsonl*"):
        process = int(part.name.partition(".")[0])
        names = threads.setdefault(process, {})
        with part.open() as lines:
            for line in lines:
                with suppress(ValueError):  # the last line of a process that was killed
                    made = json.loads(line)
                    names |= {int(n): name for n, name in made["threads"].items()}
                    events += [(process, _record(*r)) for r in made["records"]]


# processes ----------------------------------------------------------------------------------------
def _append(folder: Path, records: list[Record]) -> None:
    """Append records to this process's part."""
    line = json.dumps({"threads": tracer.threads, "records": records}, default=str)
    part = folder / f"{os.getpid()}.jsonl"
    try:
        with part.open("a") as file:
            full = file.tell() > _PART_BYTES and (folder / _RING).exists()
            file.write(line + "\n")
        if full:  # the one before it is dropped
            part.replace(part.with_suffix(".jsonl.old"))
    except OSError:  # the parent's trace has ended
        tracer.stop()


def _record_part(folder: Path) -> None:
    """Record in a child process, whose parent's folder this is."""
    if not folder.is_dir():
        return  # the trace has ended
    written = [perf_counter_ns()]

    def flush() -> None:
        records, tracer.records = tracer.records, []
        if records:
            _append(folder, records)

    def finished(sink: str, frame: int | None, now: int) -> None:
        if now - written[0] > CHILD_SECONDS * 1e9:
            written[0] = now
            flush()

    def end() -> None:
        flush()
        tracer.finished.remove(finished)
        tracer.stop()
        tracer.lent = None

    tracer.start(1e9, lambda records: _append(folder, records))
    tracer.lent = end  # the child may trace itself
    tracer.finished.append(finished)
    forks.at_child_exit(flush)


def _in_child() -> None:
    if PARTS in os.environ:
        _record_part(Path(os.environ[PARTS]))


def from_environment() -> None:
    """Start what the environment wants: the part of a child, or a trace of the whole program."""
    path = os.environ.get(VARIABLE, "")
    if PARTS in os.environ:
        _in_child()
    elif path:
        TraceRun(path, SECONDS, False).start()


forks.in_child(_in_child)
