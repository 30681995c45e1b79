"""The plan of a job over videos: indexed, and estimated from a short calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dala.batch import storage
from dala.batch.planning.calibration import calibrate as measure
from dala.batch.planning.plans import BatchPlan
from dala.batch.report import Failure
from dala.batch.tasks import BatchTask, Json
from dala.batch.video.work import PlannedVideo, chunk_of, index_name, video_index
from dala.errors import error_line
from dala.media.video.chunks.index import VideoIndex, VideoPart, split_video
from dala.notices import collected

if TYPE_CHECKING:
    from dala.batch.video.job import VideoJob


@dataclass
class _Largest:
    """The video with the most to compute, which the calibration filters."""

    source: PlannedVideo
    index: VideoIndex
    work: int


def plan_videos(job: VideoJob, calibrate: bool) -> BatchPlan:
    """Index all videos of a job, and estimate its time and bytes."""
    plan = BatchPlan("videos", processors=job.processors)
    job.write_assets()
    largest: _Largest | None = None
    work = 0
    task = job.task("plan", "index", "plan", {})
    with collected():
        for source in job.planned():
            plan.files += 1
            plan.bytes_read += source.size
            try:
                index, _ = video_index(task, source)
            except Exception as error:
                plan.unreadable.append(Failure(source.name, error_line(error)))
                continue
            seconds = chunk_of(source.out, job.spec)
            plan.chunks += len(split_video(index, seconds))
            plan.key_frames += len(index.keys)
            plan.frames += index.frames
            plan.seconds += index.seconds
            pixels = index.frames * index.width * index.height
            work += pixels
            if index.problem and seconds is not None and index.seconds > seconds:
                plan.whole.append(f"{source.name}: {index.problem}")
            if largest is None or pixels > largest.work:
                largest = _Largest(source, index, pixels)
    if calibrate and largest is not None:
        _estimate(plan, job, largest, work)
    return plan


def _estimate(plan: BatchPlan, job: VideoJob, largest: _Largest, work: int) -> None:
    parts = _parts(job, largest)

    def sample(number: int, folder: str) -> BatchTask:
        return _sample(job, largest, parts[number % len(parts)], folder)

    speed = measure(job.resources(), max(1, plan.chunks), sample)
    if speed is not None:
        pixels = largest.index.width * largest.index.height
        plan.estimate(speed, work / pixels, job.resources())


def _parts(job: VideoJob, largest: _Largest) -> list[VideoPart]:
    """Return the parts of a video, those in the middle first."""
    seconds = chunk_of(largest.source.out, job.spec)
    found = split_video(largest.index, seconds, int(str(job.spec["halo"])))
    return sorted(found, key=lambda part: abs(part.number - len(found) // 2))


def _sample(job: VideoJob, largest: _Largest, part: VideoPart, folder: str) -> BatchTask:
    """Return the task of a part, which writes into a folder of its own."""
    source = largest.source
    job.write_assets(folder)
    name = index_name(job.work, source.key)
    storage.write_bytes(index_name(folder, source.key), storage.read_bytes(name))
    values: list[Json] = [part.first, part.last, part.start, part.warm]
    return job.task(
        "plan", "video", source.name,
        {"source": source.to_json(), "number": part.number, "part": values, "parts": 1},
    )  # fmt: skip
