"""Plans of jobs, before they are run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from dala.batch.planning.calibration import MeasuredSpeed, together
from dala.batch.report import Failure
from dala.batch.runners import Resources
from dala.batch.runners.local import worker_count
from dala.batch.tasks import Json
from dala.errors import counted


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
