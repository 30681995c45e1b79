"""The plan of a job over videos: indexed, and estimated from a short calibration."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final

from dala.batch.plans import BatchPlan
from dala.batch.report import Failure
from dala.batch.runners.local import worker_count
from dala.batch.tasks import BatchTask
from dala.batch.video.work import PlannedVideo, chunk_of, encode_source, video_index
from dala.batch.worker import error_text
from dala.media.notices import collected
from dala.media.video.chunks.index import VideoIndex, VideoPart, split_video

if TYPE_CHECKING:
    from dala.batch.video.job import VideoJob

#: Frames that are filtered to see how long one takes: first those that compile and warm up.
_FIRST: Final = 8
_FRAMES: Final = 90
#: Seconds that the calibration takes at most, after its first frames.
_SECONDS: Final = 4.0
#: Seconds until a process has started and compiled its filters, where it was not measured.
_START: Final = 1.0


@dataclass
class _Largest:
    """The video with the most to compute, which the calibration filters."""

    source: PlannedVideo
    index: VideoIndex
    work: int


def plan_videos(job: VideoJob) -> BatchPlan:
    """Index all videos of a job, and estimate its time and bytes."""
    plan = BatchPlan("videos")
    job.write_assets()
    largest: _Largest | None = None
    work = read = 0
    task = job.task("plan", "index", "plan", {})
    with collected():
        for source in (source for group in job.groups() for source in group):
            plan.files += 1
            plan.bytes_read += source.size
            try:
                index, _ = video_index(task, source)
            except Exception as error:
                plan.unreadable.append(Failure(source.name, error_text(error)))
                continue
            seconds = chunk_of(source.out, job.spec)
            plan.chunks += len(split_video(index, seconds))
            plan.key_frames += len(index.keys)
            plan.frames += index.frames
            plan.seconds += index.seconds
            pixels = index.frames * index.width * index.height
            work += pixels
            read += source.size
            if index.problem and seconds is not None and index.seconds > seconds:
                plan.whole.append(f"{source.name}: {index.problem}")
            if largest is None or pixels > largest.work:
                largest = _Largest(source, index, pixels)
        if largest is not None:
            _estimate(plan, job, task, largest, work)
    return plan


def _estimate(
    plan: BatchPlan, job: VideoJob, task: BatchTask, largest: _Largest, work: int
) -> None:
    speed = _calibrate(task, largest)
    if speed is None:
        return
    frames = work / (largest.index.width * largest.index.height)
    workers = worker_count(job.resources())
    plan.workers = min(workers, max(1, plan.chunks))
    wall, cpu = frames * speed.seconds, frames * speed.cpu
    plan.worker_minutes = (wall + speed.start) / 60
    plan.cpu_minutes = (cpu + _START * plan.workers) / 60
    # As many processes as there are, but not more than the cores have to give.
    together = max(wall / plan.workers, cpu / (os.cpu_count() or 1))
    plan.minutes = (together + speed.start) / 60
    plan.bytes_written = round(frames * speed.bytes)


@dataclass(frozen=True)
class _Speed:
    """Seconds, seconds of processors and bytes of a frame, and seconds before the first."""

    seconds: float
    cpu: float
    bytes: float
    start: float


class _Enough(Exception):
    """The calibration has seen enough frames."""


def _calibrate(task: BatchTask, largest: _Largest) -> _Speed | None:
    """Filter frames from the middle of a video, as a task would."""
    index = largest.index
    count = min(index.frames, _FRAMES + _FIRST)
    middle = 0
    if not index.problem and len(index.keys):
        at = min(len(index.keys) - 1, len(index.keys) // 2)
        middle = int(index.keys[at])
        if index.frames - middle < count:
            middle = 0
    part = split_video(index, None)[0]
    if middle:
        part = VideoPart(0, middle, middle + count, middle, middle)
    else:
        part = replace(part, last=min(part.last, count)) if not index.problem else part
    marks: list[tuple[int, float, float]] = []
    begin = perf_counter()

    def report(frames: int) -> None:
        now = perf_counter()
        marks.append((frames, now, process_time()))
        if frames > _FIRST and now - marks[min(_FIRST, len(marks) - 1)][1] > _SECONDS:
            raise _Enough

    size = 0
    with TemporaryDirectory(prefix="dala-batch-") as folder:
        path = Path(folder, "0.packets")
        try:
            encode_source(task, largest.source, index, part, path, report)
            size = path.stat().st_size
        except _Enough:
            size = 0
        end, used = perf_counter(), process_time()
    if not marks:
        return None
    first = marks[min(_FIRST, len(marks) - 1) - 1] if len(marks) > 1 else marks[0]
    last = marks[-1]
    # The encoder works on the last frames after they were given to it.
    done, seconds, cpu = (
        (last[0] - first[0], end - first[1], used - first[2])
        if last[0] > first[0]
        else (last[0], end - begin, used)
    )
    start = max(0.0, first[1] - begin)
    each = size / last[0] if size else largest.source.size / max(1, index.frames)
    return _Speed(seconds / done, cpu / done, each, start + _START)
