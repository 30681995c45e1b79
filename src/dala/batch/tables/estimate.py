"""The estimate of a job with a table: some of its pictures and videos are looked through."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dala.batch import storage
from dala.batch.planning.calibration import MeasuredSpeed, Sampled
from dala.batch.planning.calibration import calibrate as measure
from dala.batch.planning.plans import BatchPlan
from dala.batch.tasks import BatchTask, int_of, list_of, text_of
from dala.errors import DalaError

if TYPE_CHECKING:
    from dala.batch.tables.jobs import TableJob

#: Tasks of pictures and of videos that are kept as samples.
_SAMPLE: Final = 16


class Looked:
    """The files of a job: how many frames of them are looked at, and how long one takes."""

    def __init__(self, job: TableJob) -> None:
        self._job = job
        self._pictures = Sampled[BatchTask](_SAMPLE)
        self._videos = Sampled[BatchTask](_SAMPLE)
        self._count = 0
        #: Bytes of all videos.
        self._bytes = 0

    def add(self, task: BatchTask) -> None:
        """Count the files of a task."""
        if "names" in task.part:
            self._pictures.add(task)
            self._count += len(list_of(task.part, "names"))
        else:
            self._videos.add(task)
            self._bytes += int_of(task.part, "bytes")

    def estimate(self, plan: BatchPlan) -> None:
        """Fill in the estimates of a plan; none if a sample cannot be looked through."""
        frames = self._frames()
        kinds = [(self._pictures, float(self._count)), (self._videos, frames)]
        measured = [
            (self._measured(sampled, plan.chunks), count) for sampled, count in kinds if count
        ]
        found = [(speed, count) for speed, count in measured if speed is not None]
        if not found or len(found) < len(measured):
            return
        total = sum(count for _, count in found)
        means = {
            name: sum(getattr(speed, name) * count for speed, count in found) / total
            for name in ("seconds", "cpu", "bytes")
        }
        plan.frames = round(total)
        plan.estimate(replace(found[0][0], **means), total, self._job.resources())

    def _measured(self, sampled: Sampled[BatchTask], chunks: int) -> MeasuredSpeed | None:
        kept = sampled.kept

        def sample(number: int, folder: str) -> BatchTask:
            return kept[(len(kept) // 2 + number) % len(kept)]

        return measure(self._job.resources(), chunks, sample)

    def _frames(self) -> float:
        """Return how many frames of all videos are looked at, by the headers of some."""
        every = text_of(self._job.spec, "every")
        looked = size = 0.0
        for task in self._videos.kept:
            found = _header(text_of(task.part, "video"))
            if found is not None:
                seconds, rate = found
                wanted = seconds / float(Fraction(every)) if every else seconds * rate
                looked += wanted / int_of(task.part, "shares")
                size += int_of(task.part, "bytes")
        return looked * self._bytes / size if size else 0.0


def _header(name: str) -> tuple[float, float] | None:
    """Return the seconds of a video and its frames a second; None if it does not say."""
    from dala.media import video

    try:
        with video.open(storage.source(name)) as reader:
            rate = float(reader.fps or 0)
            return (float(reader.duration), rate) if reader.duration and rate else None
    except (DalaError, OSError):
        return None
