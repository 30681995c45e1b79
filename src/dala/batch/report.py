"""Reports of jobs: counts, times, and each failure with its file and time."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from dala.batch.tasks import Json
from dala.errors import BatchError, counted


@dataclass(frozen=True)
class Failure:
    """A file, or a part of one, that was given up.

    >>> print(Failure("clip.mp4, 60 to 120 s", "no space left on device", tries=3))
    clip.mp4, 60 to 120 s: no space left on device (tried 3 times)
    """

    #: The file and, of a part, its time: "clip.mp4, 60 to 120 s".
    label: str
    error: str
    #: How often it was tried.
    tries: int = 1

    def __str__(self) -> str:
        times = f" (tried {self.tries} times)" if self.tries > 1 else ""
        named = self.label in self.error
        return f"{self.error}{times}" if named else f"{self.label}: {self.error}{times}"


@dataclass
class BatchReport:
    """The report that :meth:`BatchJob.run` returns.

    >>> report = BatchReport(on="local", frames=300, seconds=10.0, files=1)
    >>> print(report)
    1 file, 300 frames in 10.0 s (30.0 a second) on local
    """

    #: Where it ran: "local (2 processes)".
    on: str = ""
    #: Results that are complete, those of earlier runs included.
    files: int = 0
    #: Tasks that were done in this run, and those that earlier runs had done.
    tasks: int = 0
    resumed: int = 0
    #: Frames, pictures or rows of this run.
    frames: int = 0
    #: Seconds that passed, and those that processors worked in tasks.
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    #: Tasks that were tried again, and workers that died.
    retries: int = 0
    lost: int = 0
    failures: list[Failure] = field(default_factory=list)
    #: What was converted, repaired or left out, each once.
    notices: list[str] = field(default_factory=list)
    #: The folder of the job, with its manifest.
    work: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def check(self) -> None:
        """Raise if something failed.

        Raises:
            BatchError: it names the first failures.
        """
        if self.failures:
            shown = "; ".join(map(str, self.failures[:3]))
            more = f"; and {len(self.failures) - 3} more" if len(self.failures) > 3 else ""
            raise BatchError(f"batch: {len(self.failures)} failed: {shown}{more}.")

    def to_dict(self) -> dict[str, Json]:
        """Return the report as values of JSON."""
        return asdict(self)

    def __str__(self) -> str:
        speed = f" ({self.frames / self.seconds:.1f} a second)" if self.seconds > 0 else ""
        parts = [
            f"{counted(self.files, 'files')}, {counted(self.frames, 'frames')} in "
            f"{self.seconds:.1f} s{speed} on {self.on}"
        ]
        ends = (self.resumed, "tasks", "done before"), (self.lost, "workers", "lost")
        for count, what, became in ends:
            if count:
                parts.append(f"{counted(count, what)} {'was' if count == 1 else 'were'} {became}")
        if self.retries:
            parts.append(f"{counted(self.retries, 'tasks')} tried again")
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        return ", ".join(parts)
