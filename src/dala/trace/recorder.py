"""The recorder: spans, waits, counters and finished frames, as tuples in memory.

Code that is traced tests one attribute where no trace runs::

    with tracer.span("decode") if tracer.on else OFF:
        ...

A record is ``(stage, name, begin, end, thread, frame, facts)``; times are nanoseconds of
``time.perf_counter_ns``. Stages that begin with ``wait:`` are waits; their facts ``by`` and
``at`` are the thread that ended them, and when. ``counter`` and ``done`` records have no length.
Threads append to one list, which is safe under the GIL, so that nothing here takes a lock.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import monotonic, perf_counter_ns
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar, cast

from dala import forks, resources

#: A record: stage, name, begin, end, thread, frame, facts.
Record: TypeAlias = "tuple[str, str, int, int, int, int | None, dict[str, Any] | None]"

#: Who put or took something: frame, thread and time.
Here: TypeAlias = "tuple[int | None, int, int]"
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

#: The most records in memory: about 60 MiB.
MOST: Final = 200_000
#: Records between two looks at the size of the ring.
STEP: Final = 8192
#: Delays of the system's scheduler that are kept, in nanoseconds.
LEAST_DELAY: Final = 3_000_000
#: Waits that are kept.
LEAST_WAIT: Final = 20_000
#: Nanoseconds between two looks at the memory.
SAMPLES: Final = 100_000_000
#: Numbers of frames in a process: those of others begin elsewhere.
PER_PROCESS: Final = 1 << 28


class _Off:
    """A context manager that does nothing: what a span is where no trace runs."""

    __slots__ = ()

    @property
    def facts(self) -> dict[str, Any]:
        """A dict that no one reads."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def woken(self, here: Here | None) -> None:
        """Do nothing."""


OFF: Final = _Off()


class _Schedule:
    """How long the system let a thread wait for a processor, from Linux's schedstat."""

    def __init__(self, thread: int) -> None:
        self._path = f"/proc/self/task/{thread}/schedstat"
        #: The open file; -1 before the first look, -2 where the system has none.
        self._file = -1

    def delay(self) -> int:
        """Return the nanoseconds so far; 0 where they are unknown."""
        try:
            if self._file == -1:
                self._file = -2
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            if self._file < 0:
                return 0
            return int(os.pread(self._file, 64, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return 0

    def __del__(self) -> None:
        if self._file >= 0:
            with suppress(OSError):
                os.close(self._file)


class _Local(forks.ThreadLocal):
    """What the recorder knows of a thread."""

    def __init__(self, names: dict[int, str]) -> None:
        self.thread = threading.get_native_id()
        names[self.thread] = threading.current_thread().name
        self.frame: int | None = None
        self.depth = 0
        self.schedule = _Schedule(self.thread)
        #: The scheduler's delay when it was looked at last, and the end of the last outermost span.
        self.delay = self.left = 0
        self.collecting = 0


class WorkSpan:
    """A span of work or a wait: from entering to leaving a ``with`` block."""

    __slots__ = ("_begin", "_frame", "_tracer", "facts", "name", "stage")

    #: Shorter ones are not recorded, in nanoseconds.
    least = 0

    def __init__(
        self, tracer: Tracer, stage: str, name: str, frame: int | None, facts: dict[str, Any]
    ) -> None:
        self._tracer, self.stage, self.name, self._frame = tracer, stage, name, frame
        #: What is shown with it; more may be added in the block.
        self.facts = facts

    def __enter__(self) -> Self:
        tracer = self._tracer
        local = tracer.local
        local.depth += 1
        self._begin = begin = tracer.clock()
        # A delay that counts does not fit into less time than it takes.
        if local.depth == 1 and begin - local.left > LEAST_DELAY:
            before, local.delay = local.delay, local.schedule.delay()
            if local.left > tracer.began and local.delay - before > LEAST_DELAY:
                self.facts["before_ns"] = local.delay - before
        return self

    def __exit__(self, *_: object) -> None:
        tracer = self._tracer
        end, local = tracer.clock(), tracer.local
        local.depth = max(local.depth - 1, 0)
        if local.depth == 0:
            local.left = end
            if end - self._begin > LEAST_DELAY:
                before, local.delay = local.delay, local.schedule.delay()
                if local.delay - before > LEAST_DELAY:
                    self.facts["delayed_ns"] = local.delay - before
        if end - self._begin < self.least:
            return
        frame = local.frame if self._frame is None else self._frame
        tracer.put(
            (self.stage, self.name, self._begin, end, local.thread, frame, self.facts or None)
        )


class WaitSpan(WorkSpan):
    """A span of waiting; most waits end at once."""

    __slots__ = ()

    least = LEAST_WAIT

    def woken(self, here: Here | None) -> None:
        """Note which thread ended it, and when: until this one went on, it waited for its turn."""
        if here is not None:
            self.facts["by"], self.facts["at"] = here[1:]


class Lock(Protocol):
    """A lock of any kind."""

    def acquire(self, blocking: bool = True) -> bool:
        """Acquire it."""

    def release(self) -> None:
        """Release it."""


class Holding:
    """A lock that a block holds in a trace, which has how long it was waited for::

    with Holding(lock, "scene") if tracer.on else lock:
        ...
    """

    __slots__ = ("_lock", "_name")

    def __init__(self, lock: Lock, name: str) -> None:
        self._lock, self._name = lock, name

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            with tracer.wait("lock", self._name) if tracer.on else OFF:
                self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Tracer:
    """The recorder of this process; there is one, :data:`tracer`, and tests make others.

    ``clock`` returns nanoseconds.
    """

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        #: Whether a trace runs: what spans test.
        self.on = False
        self.clock = clock
        self.records: list[Record] = []
        #: Names of threads and devices by their number.
        self.threads: dict[int, str] = {}
        #: What was found out about the run: error of a device's clock, and others.
        self.notes: dict[str, Any] = {}
        self.local = _Local(self.threads)
        #: Takes the records that are more than fit, with all=True; else the oldest are dropped.
        self.spill: Callable[[list[Record]], None] | None = None
        #: Called with each finished frame: (sink, frame, time).
        self.finished: list[Callable[[str, int | None, int], None]] = []
        #: Ends the trace that runs, if it gives way to others.
        self.lent: Callable[[], object] | None = None
        self.seconds = 30.0
        #: When the trace began.
        self.began = 0
        self._look, self._sampled = STEP, -(1 << 62)
        self._ids = itertools.count(1)

    # starting and stopping ----------------------------------------------------------------------
    def start(self, seconds: float, spill: Callable[[list[Record]], None] | None = None) -> None:
        """Record from now on: the last seconds, or all of it if there is a function to spill to."""
        self.seconds, self.spill, self.began = seconds, spill, self.clock()
        self.records, self.notes, self._look = [], {}, STEP
        gc.callbacks.append(self._collected)
        self.on = True

    def stop(self) -> list[Record]:
        """Stop, and return the records in memory."""
        self.on = False
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)
        found, self.records = self.records, []
        return found

    def forget(self) -> None:
        """Drop what a forked child has of its parent, and stop."""
        self.stop()
        self.threads.clear()
        self.local = _Local(self.threads)
        self.finished.clear()
        self._ids = itertools.count((os.getpid() % (1 << 22)) * PER_PROCESS + 1)

    # recording ------------------------------------------------------------------------------------
    def put(self, record: Record) -> None:
        """Append a record. One after the end is dropped."""
        if not self.on:
            return
        records = self.records
        records.append(record)
        if len(records) >= self._look:
            self._trim(records)

    def _trim(self, records: list[Record]) -> None:
        if self.spill is not None:
            self.records, self._look = [], STEP
            self.spill(records)
            return
        count = len(records)
        limit = records[-1][3] - int(self.seconds * 1e9)
        old = sum(1 for _ in itertools.takewhile(lambda r: r[3] < limit, records))
        del records[: max(old, count - MOST + STEP)]
        self._look = len(records) + STEP

    def span(self, stage: str, name: str = "", frame: int | None = None, **facts: Any) -> WorkSpan:
        """Return a span of work. ``frame`` is by default the one the thread works on."""
        return WorkSpan(self, stage, name, frame, facts)

    def wait(self, what: str, name: str = "", **facts: Any) -> WaitSpan:
        """Return a span of waiting; call its ``woken`` where it is known who ends it."""
        return WaitSpan(self, f"wait:{what}", name, None, facts)

    def count(self, name: str, value: float) -> None:
        """Record the value of a counter."""
        now = self.clock()
        self.put(("counter", name, now, now, self.local.thread, None, {"value": value}))

    def done(
        self,
        sink: str,
        frame: int | None = None,
        due: float | None = None,
        lane: int | None = None,
    ) -> None:
        """Record that a frame was shown, written or sent; ``due`` is when, by ``monotonic``.

        ``lane`` is a device's track where no thread of this process did it.
        """
        now, local = self.clock(), self.local
        frame = local.frame if frame is None else frame
        facts = None if due is None else {"due": now + round((due - monotonic()) * 1e9)}
        self.put(("done", sink, now, now, lane or local.thread, frame, facts))
        for call in self.finished:
            call(sink, frame, now)
        if now - self._sampled > SAMPLES:
            self._sampled = now
            self.count("host memory (MiB)", resources.host_bytes() / (1 << 20))
            self.count("buffers held", resources.snapshot()["buffer"]["count"])

    def dropped(self, sink: str, count: int) -> None:
        """Record how many frames a sink or queue has dropped so far."""
        self.count(f"dropped: {sink}", count)

    # frames ---------------------------------------------------------------------------------------
    def new_frame(self) -> int:
        """Return the id of a new frame, which this thread works on from now."""
        self.local.frame = made = next(self._ids)
        return made

    @property
    def frame(self) -> int | None:
        """The id of the frame that this thread works on."""
        return self.local.frame

    @frame.setter
    def frame(self, frame: int | None) -> None:
        self.local.frame = frame

    def here(self) -> Here:
        """Return the frame that this thread works on, the thread, and the time."""
        local = self.local
        return local.frame, local.thread, self.clock()

    def device(self, name: str) -> int:
        """Return the number of a device's track, which is no thread's."""
        for number, known in self.threads.items():
            if known == name:
                return number
        number = (1 << 23) + len(self.threads)
        self.threads[number] = name
        return number

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Record a run of Python's garbage collector."""
        local, now = self.local, self.clock()
        if phase == "start":
            local.collecting = now
        elif local.collecting and self.on:
            begin, local.collecting = local.collecting, 0
            if now - begin > LEAST_DELAY:
                name = f"generation {info.get('generation')}"
                self.put(("gc", name, begin, now, local.thread, local.frame, None))


#: The recorder of this process.
tracer: Final = Tracer()

forks.in_child(tracer.forget)


def traced(stage: str, name: str = "", *, new: bool = False) -> Callable[[F], F]:
    """Return a decorator: calls of the function are spans; with ``new`` each is a new frame's.

    >>> @traced("compose", "scene")
    ... def draw():
    ...     return 1
    >>> draw()
    1
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            if not tracer.on:
                return function(*args, **named)
            before = tracer.frame
            if new:
                tracer.new_frame()
            try:
                with tracer.span(stage, name):
                    return function(*args, **named)
            finally:
                tracer.frame = before

        return cast(F, call)

    return decorate


def each(stage: str, items: Iterable[T], *, new: bool = False) -> Iterator[T]:
    """Yield items, and record how long each took to come; with ``new`` each is a new frame.

    >>> list(each("demux", [1, 2]))
    [1, 2]
    """
    left = iter(items)
    while True:
        if new and tracer.on:
            tracer.new_frame()
        with tracer.span(stage) if tracer.on else OFF:
            found = list(itertools.islice(left, 1))
        if not found:
            return
        yield found.pop()


if os.environ.get("DALA_TRACE") or os.environ.get("DALA_TRACE_PARTS"):
    from dala.trace import session

    session.from_environment()
