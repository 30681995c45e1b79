"""Plans of jobs, before they are run."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Final, Generic, TypeVar

from dala.batch.report import Failure
from dala.batch.runners import Resources
from dala.batch.runners.local import LocalRunner, worker_count
from dala.batch.tasks import BatchTask, Event, Failed, Finished, Json, Progressed
from dala.budget import check_deadline
from dala.errors import counted
from dala.folders import bytes_in

S = TypeVar("S")

#: Seconds that are measured, those that are enough for a small piece, and the most of all.
_SECONDS: Final = 4.0
_ENOUGH: Final = 1.5
_LONGEST: Final = 60.0
#: Processes that measure at once.
_PROCESSES: Final = 8


@dataclass(frozen=True)
class MeasuredSpeed:
    """The time of a frame or picture in each of some processes that run at the same time.

    >>> MeasuredSpeed(0.01, 0.02, 500.0, 1.0, 1.5, 2).seconds
    0.01
    """

    #: Seconds, seconds of processors, and bytes of the result.
    seconds: float
    cpu: float
    bytes: float
    #: Seconds and seconds of processors until a process is at full speed.
    start: float
    start_cpu: float
    #: How many processes were measured.
    processes: int


@dataclass
class _Mark:
    """The progress of a process: seconds since the calibration began, and of processors."""

    frames: int
    seconds: float
    cpu: float
    bytes: int


@dataclass
class _Measured:
    """The measurements of one process."""

    folder: str
    task: BatchTask
    #: Where it was at full speed first, and where it was last.
    first: _Mark | None = None
    last: _Mark | None = None
    #: Frames, seconds of processors and bytes of the passes before.
    frames: int = 0
    cpu: float = 0.0
    written: int = 0
    passes: int = 0
    failed: bool = False

    def mark(self, frames: int, seconds: float, cpu: float) -> None:
        """Note how far it is."""
        made = _Mark(self.frames + frames, seconds, self.cpu + cpu, bytes_in(self.folder))
        self.first, self.last = self.first or made, made

    @property
    def measured(self) -> float:
        """Seconds at full speed."""
        return self.last.seconds - self.first.seconds if self.first and self.last else 0.0

    @property
    def settled(self) -> bool:
        """Whether it was measured for long enough."""
        return self.measured >= (_SECONDS if self.passes < 2 else _ENOUGH)

    def took_note(self, event: Event, now: float) -> bool:
        """Take note of an event; return whether the task is to be done once more."""
        if isinstance(event, Progressed) and event.frames:
            self.mark(event.frames, now, event.cpu)
        elif isinstance(event, Finished):
            self.mark(event.result.frames, now, event.result.cpu_seconds)
            self.passes += 1
            self.frames += event.result.frames
            self.cpu += event.result.cpu_seconds
            self.written += event.result.bytes_written
            self.failed = not event.result.frames
        elif isinstance(event, Failed):
            self.failed = True
        return isinstance(event, Finished) and not self.failed

    def speed(self) -> tuple[float, float, float, float, float] | None:
        """Return the numbers of a :class:`MeasuredSpeed`; None if there are none."""
        first, last = self.first, self.last
        if self.failed or first is None or last is None:
            return None
        frames, since = last.frames - first.frames, first
        if not frames:  # there was one report: it counts from the beginning
            frames, since = last.frames, _Mark(0, 0.0, 0.0, 0)
        seconds = (last.seconds - since.seconds) / frames
        cpu = (last.cpu - since.cpu) / frames
        # One that was done says what it has written.
        bytes = (self.written / self.frames) if self.frames else (last.bytes - since.bytes) / frames
        start = max(0.0, first.seconds - first.frames * seconds)
        return seconds, cpu, bytes, start, max(0.0, first.cpu - first.frames * cpu)


def calibrate(
    resources: Resources, limit: int, sample: Callable[[int, str], BatchTask]
) -> MeasuredSpeed | None:
    """Measure a piece of a job in processes of this machine; None if it cannot be done.

    Args:
        resources: what a run would use.
        limit: the most processes that have something to do.
        sample: returns the piece for a process, by its number and the folder that it writes to.
    """
    count = max(1, min(worker_count(resources), limit, _PROCESSES))
    with TemporaryDirectory(prefix="dala-plan-") as place, ExitStack() as held:
        began, processes = time.monotonic(), dict[str, _Measured]()
        runner = LocalRunner(resources, count)
        runner.start()
        held.callback(runner.stop, cancel=True)
        for number in range(count):
            folder = os.path.join(place, str(number))
            made = sample(number, folder)
            task = replace(made, id=f"plan-{number}", work=folder, roots=(*made.roots, folder))
            if any(root.startswith("memory://") for root in task.roots):
                return None  # files of this process, which others cannot read
            processes[task.id] = _Measured(folder, task)
            runner.submit(task)
        while any(not (one.failed or one.settled) for one in processes.values()):
            check_deadline("Job.plan")
            if time.monotonic() - began > _LONGEST:
                break
            for event in runner.wait(0.2):
                one = processes.get(event.id)
                if one is not None and one.took_note(event, time.monotonic() - began):
                    runner.submit(one.task)  # until all are measured: a run keeps all busy
    speeds = [s for one in processes.values() if (s := one.speed()) is not None]
    if not speeds:
        return None
    means = (sum(values) / len(speeds) for values in zip(*speeds, strict=True))
    seconds, cpu, size, start, start_cpu = means
    return MeasuredSpeed(seconds, cpu, size, start, start_cpu, len(speeds))


class Sampled(Generic[S]):
    """Some of a long sequence, each with the same chance to be among them, in order.

    >>> sample = Sampled[int](2)
    >>> for number in range(100):
    ...     sample.add(number)
    >>> sample.seen, len(sample.kept)
    (100, 2)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._chance = random.Random(1)
        self._kept: list[tuple[int, S]] = []
        #: How many there were.
        self.seen = 0

    def add(self, item: S) -> None:
        """Take one into account."""
        if len(self._kept) < self._size:
            self._kept.append((self.seen, item))
        elif (place := self._chance.randrange(self.seen + 1)) < self._size:
            self._kept[place] = self.seen, item
        self.seen += 1

    @property
    def kept(self) -> list[S]:
        """The items that were chosen."""
        return [item for _, item in sorted(self._kept, key=lambda pair: pair[0])]


def together(speed: MeasuredSpeed, frames: float, chunks: int, workers: int) -> float:
    """Return the seconds of a run with so many processes, each with whole chunks to do.

    >>> together(MeasuredSpeed(0.01, 0.01, 0.0, 1.0, 1.0, 2), 3000, 3, 2)
    21.0
    """
    cores = os.cpu_count() or 1
    rounds = -(-chunks // workers)
    share = max(1 / workers, rounds / max(1, chunks) if chunks < 8 * workers else 0.0)
    busy = frames * speed.seconds * share
    return max(busy, frames * speed.cpu / cores) + speed.start


@dataclass
class BatchPlan:
    """The size of a job, and an estimate of its time.

    >>> print(BatchPlan("videos", files=2, chunks=6, key_frames=120, frames=9000, seconds=300.0))
    2 videos, 6 chunks, 120 key frames, 9000 frames (5:00)
    """

    #: The kind of files: "videos", "pictures" or "scenes".
    what: str
    files: int = 0
    #: Pieces that are encoded on their own; of pictures, groups.
    chunks: int = 0
    key_frames: int = 0
    frames: int = 0
    #: Seconds of video.
    seconds: float = 0.0
    bytes_read: int = 0
    #: An estimate from the calibration; None without one.
    bytes_written: int | None = None
    #: Minutes that one of the workers would take for all of it while the others are busy too, by
    #: the calibration; None without one.
    worker_minutes: float | None = None
    #: Minutes of processors for all of it, by the calibration; None without one.
    cpu_minutes: float | None = None
    #: Minutes of a local run with its default number of processes; None without a calibration.
    minutes: float | None = None
    workers: int = 1
    #: Which levels of the processor can take part, and why; "" if filters run elsewhere.
    processors: str = ""
    #: Videos that are not split, each with the reason.
    whole: list[str] = field(default_factory=list)
    #: Files that cannot be read.
    unreadable: list[Failure] = field(default_factory=list)

    def estimate(self, speed: MeasuredSpeed, frames: float, resources: Resources) -> None:
        """Fill in the estimates, from the speed that a calibration measured.

        Args:
            speed: of a frame or picture.
            frames: how many there are, in units of those that were measured.
            resources: what a run would use.
        """
        workers = min(worker_count(resources), max(1, self.chunks))
        self.workers = workers
        self.worker_minutes = (frames * speed.seconds + speed.start) / 60
        self.cpu_minutes = (frames * speed.cpu + speed.start_cpu * workers) / 60
        self.minutes = together(speed, frames, self.chunks, workers) / 60
        self.bytes_written = round(frames * speed.bytes)

    def to_dict(self) -> dict[str, Json]:
        """Return the plan as values of JSON."""
        return asdict(self)

    def __str__(self) -> str:
        from dala.media.progress import clock_text

        pieces = "groups" if self.what == "pictures" else "chunks"
        counts = {pieces: self.chunks, "key frames": self.key_frames, "frames": self.frames}
        listed = [counted(count, what) for what, count in counts.items() if count]
        text = ", ".join([counted(self.files, self.what), *listed])
        if self.seconds:
            text += f" ({clock_text(self.seconds)})"
        lines = [text]
        if self.bytes_read:
            lines.append(f"reads {_size(self.bytes_read)}")
            if self.bytes_written is not None:
                lines[-1] += f", writes about {_size(self.bytes_written)}"
        if self.minutes is not None:
            many = counted(self.workers, "processes", "process")
            lines.append(f"about {_minutes(self.minutes)} with {many} here (an estimate)")
        lines += [self.processors] if self.processors else []
        lines += [f"not split: {text}" for text in self.whole[:10]]
        if len(self.whole) > 10:
            lines.append(f"and {len(self.whole) - 10} more are not split")
        lines += [f"cannot be read: {failure}" for failure in self.unreadable[:10]]
        return "\n".join(lines)


def _minutes(minutes: float) -> str:
    if minutes < 1:
        return f"{minutes * 60:.1f} s"
    return f"{minutes:.1f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"


def _size(count: int) -> str:
    """Return a number of bytes for people.

    >>> _size(512), _size(2_500_000)
    ('512 bytes', '2.5 MB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
