"""``batch.videos``: jobs that process videos."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, Unpack

from dala.batch import storage
from dala.batch.chains import (
    BACKGROUND,
    Assets,
    ChainItem,
    names_of,
    pack_chain,
    params_of,
    stage_outside,
)
from dala.batch.driver import Step
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest
from dala.batch.options import JobOptions, VideoJobOptions
from dala.batch.pictures import device_id
from dala.batch.places import Patterns, Template, check_name, digest, find_targets, patterns_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.planning.plans import calibrate as measure
from dala.batch.report import Failure
from dala.batch.tasks import BatchTask, Json, JsonObject, Result, int_of, list_of, objects_of
from dala.batch.video.work import (
    PlannedVideo,
    chunk_of,
    index_name,
    part_name,
    video_index,
    whole_result,
)
from dala.errors import ParameterError, counted, error_line
from dala.media.video.chunks.index import VideoIndex, VideoPart, split_video
from dala.media.video.encode import MAX_THREADS, default_codec, default_threads, find_encoder
from dala.media.video.output.opening import check_encoder, hardware_choice
from dala.media.video.suffixes import ANIMATED, VIDEO_SUFFIXES
from dala.notices import collected
from dala.options import takes
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.batch.keywords import VideoJobKeywords

J = TypeVar("J", bound=JobOptions)


def encoder_spec(call: str, template: Template, options: J, *, deep: bool = False) -> tuple[J, str]:
    """Return the options that a plan fixes, and FFmpeg's name of the encoder.

    Args:
        call: for messages.
        template: the names of the results, whose suffix names the container.
        options: those of the job.
        deep: whether more than eight bits may be kept, which decides on the codec later.

    Raises:
        ParameterError: an argument is invalid.
    """
    suffix = Path(template.text).suffix.lower()
    if suffix in {*ANIMATED, ".png"}:
        advice = "`dala filter` makes animations."
        raise ParameterError.invalid(call, "out", "the name of a video", template.text, advice)
    if options.encoder == "auto":
        expected = "the name of hardware, or None"
        advice = "A plan fixes the encoder, because others make other bytes."
        raise ParameterError.invalid(call, "encoder", expected, options.encoder, advice)
    place = device_id(options.device)
    name = _encoder_name(call, template, options.codec, options.encoder, deep)
    count = options.threads or default_threads(name) or min(os.cpu_count() or 1, MAX_THREADS)
    return replace(options, threads=count, device=place), name


def _encoder_name(
    call: str, template: Template, codec: str | None, encoder: str | None, deep: bool
) -> str:
    """Return FFmpeg's name of the encoder, as far as the arguments say."""
    container = Path(template.text).suffix.lower().lstrip(".")
    if template.text.endswith(("{suffix}", "{name}")):  # that of each source
        return find_encoder(codec)[0] if codec else ""
    if not container:
        expected = "a name with a suffix, such as 'clean/{stem}.mp4'"
        raise ParameterError.invalid(call, "out", expected, template.text)
    chosen = codec or default_codec(container)
    check_encoder(encoder, chosen, True)
    if encoder not in (None, "x264"):
        return hardware_choice(encoder, chosen, {}).name
    return find_encoder(chosen)[0] if codec or not deep else ""


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


class StitchedJob(BatchJob):
    """A job over files whose parts are tasks of their own; another one stitches them."""

    #: The files of a folder that are taken, and what they are.
    suffixes: ClassVar[frozenset[str]]
    what: ClassVar[str]
    #: The kinds of the tasks for a part, and for the stitch.
    part_kind: ClassVar[str]
    stitch_kind: ClassVar[str]
    #: Results of which parts are on their way: how many are left.
    _left: dict[str, int]

    def planned(self) -> Iterator[PlannedVideo]:
        """Yield the files, with their results."""
        self._left = {}
        found = find_targets(self.patterns, self.suffixes, self.out, self.call, self.what)
        for facts, _, out in found:
            key = digest(facts.name, str(facts.size), facts.stamp, out)
            yield PlannedVideo(facts.name, facts.size, facts.stamp, out, key)

    def parts(
        self,
        source: PlannedVideo,
        facts: JsonObject,
        parts: list[tuple[JsonObject, float, float]],
        manifest: Manifest,
    ) -> Iterator[BatchTask]:
        """Yield a task for each part of a file, or the stitch if its result is there.

        Args:
            source: the file.
            facts: what the stitch needs to know.
            parts: of each, its settings, and the seconds of its begin and end.
            manifest: the records.
        """
        # They come from a record, which may be of unknown origin.
        check_name(source.name, self.roots, self.call)
        check_name(source.out, [self.out.root], self.call)
        shared: JsonObject = {"source": source.to_json(), "parts": len(parts), **facts}
        if whole_result(manifest, source) is not None:
            yield self._stitch(shared)
            return
        self._left[source.key] = len(parts)
        for number, (own, begin, end) in enumerate(parts):
            yield self.task(
                f"{source.key}-{number}",
                self.part_kind,
                f"{source.name}, {begin:g} to {end:g} s",
                {**shared, "number": number, **own},
                weight=max(0.001, end - begin),
                group=source.key,
            )

    def _stitch(self, facts: JsonObject) -> BatchTask:
        source = PlannedVideo.of(facts["source"])
        part: JsonObject = {
            key: facts[key] for key in ("source", "parts", "frames") if key in facts
        }
        return self.task(
            f"{source.key}-stitch", self.stitch_kind, source.name, part, weight=0.0,
            group=source.key,
        )  # fmt: skip

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the stitch of a file whose parts are done."""
        if task.kind == self.part_kind:
            self._left[task.group] -= 1
            if self._left[task.group] == 0:
                del self._left[task.group]
                return [self._stitch(task.part)]
        if task.kind == self.stitch_kind:
            storage.remove_tree(storage.join(self.work, "parts", task.group))
        return ()

    def results_of(self, task: BatchTask) -> list[str]:
        """Return the name of the packets of a part, or of the result of a stitch."""
        if task.kind not in (self.part_kind, self.stitch_kind):
            return []
        source = PlannedVideo.of(task.part["source"])
        if task.kind == self.stitch_kind:
            return [source.out]
        return [part_name(self.work, source.key, int_of(task.part, "number"))]

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many videos a finished task completes."""
        return int(task.kind == self.stitch_kind)


def numbers_of(values: Json) -> list[float]:
    """Return a list of numbers of a task's settings.

    >>> numbers_of([0, 30, 1.5])
    [0, 30, 1.5]
    """
    assert isinstance(values, list)
    return [value for value in values if isinstance(value, int | float)]


_CALL: Final = "batch.videos"
#: Videos that one task indexes: a group ends after a name with a digest that this divides.
_GROUP: Final = 16
#: Seconds of short videos that one task filters, where ``chunk`` does not say.
_SHORT: Final = 60.0
#: Frames that a deinterlacer sees before the first that counts.
_FIELDS: Final = 2
#: The most frames that a memory is warmed up over, and the share of it that may be left.
_WARM: Final = 300
_LEFT: Final = 1 / 1024


@takes(VideoJobOptions)
def videos(
    pattern: Patterns, out: PathLike, chain: Sequence[ChainItem], **given: Unpack[VideoJobKeywords]
) -> BatchJob:
    """Filter many videos, long ones in parts.

    The result of a plan is the same to the byte, whatever the number of workers, their order, and
    what failed in between. Sound, subtitles, chapters and tags are taken from each source as they
    are.

    Args:
        pattern: a folder, a pattern such as "videos/**/*.mp4", a name or a list of them; paths or
            URLs.
        out: the names of the results, such as "clean/{stem}.mp4"; fields are ``{path}`` (the
            folders below the pattern's root and the stem), ``{parent}``, ``{stem}``, ``{name}``
            and ``{suffix}``. A folder stands for the same names in it.
        chain: filters, as for ``FramePipeline``; kernels, their functions or their text. The first
            may be ``("background", {...})``, with the arguments of ``dala.ml.Background``.

    Raises:
        ParameterError: an argument is invalid.

    Example::

        job = batch.videos("videos/**/*.mp4", out="clean/{stem}.mp4", chain=["denoise"], crf=20)
        print(job.plan())
        job.run()
    """
    options = VideoJobOptions.checked(_CALL, given)
    template = Template(out, _CALL)
    assets = Assets()
    packed = pack_chain(chain, assets.keep, _CALL)
    if BACKGROUND in names_of(packed)[1:]:
        raise ParameterError(f"{_CALL}: 'background' must be the first item of the chain.")
    options, name = encoder_spec(_CALL, template, options, deep=options.hdr == "keep")
    halo = _halo(packed, options.deinterlace)
    spec: JsonObject = {**options.to_json(), "chain": packed, "halo": halo}
    return VideoJob(
        _CALL,
        patterns_of(pattern, _CALL),
        template,
        spec,
        assets=assets,
        device=options.device or "",
        encoder=name,
        threads=options.threads or 1,
        outside=stage_outside(packed),
    )


def _halo(chain: Sequence[Json], deinterlace: bool) -> int:
    """Return how many frames before a part its filters must see.

    >>> _halo([{"filter": "background", "params": {}}], False), _halo([], True), _halo([], False)
    (14, 2, 0)
    """
    frames = _FIELDS if deinterlace else 0
    params = params_of(chain, BACKGROUND)
    if params is not None:
        smooth = params.get("smooth", 0.6)
        amount = float(smooth) if isinstance(smooth, int | float) else 0.6
        if amount > 0:  # what remains of a mask falls by this factor with each frame
            frames += min(_WARM, math.ceil(math.log(_LEFT) / math.log(amount)))
    return frames


class VideoJob(StitchedJob):
    """A job over videos: indexed in groups, filtered in parts or in groups, stitched."""

    suffixes, what = VIDEO_SUFFIXES, "videos"
    part_kind, stitch_kind = "video", "stitch"

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task for each group of videos to index."""
        for group in self.groups():
            key = digest(*(source.key for source in group))
            part: JsonObject = {"videos": [source.to_json() for source in group]}
            label = f"index of {counted(len(group), 'videos')} from {group[0].name}"
            yield self.task(f"{key}-index", "index", label, part, weight=0.0)

    def groups(self) -> Iterator[list[PlannedVideo]]:
        """Yield the videos in groups that are indexed together."""
        group: list[PlannedVideo] = []
        for source in self.planned():
            group.append(source)
            if int(digest(source.name), 16) % _GROUP == 0 or len(group) >= 2 * _GROUP:
                yield group
                group = []
        if group:
            yield group

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the parts of indexed videos, or the stitch of one whose parts are done."""
        if task.kind != "index":
            return super().follow(task, result, manifest)
        steps: list[Step] = []
        short: list[tuple[PlannedVideo, float]] = []
        for found in objects_of(result.facts, "videos"):
            source = PlannedVideo.of(found["source"])
            parts = [numbers_of(values) for values in list_of(found, "parts")]
            if len(parts) == 1:
                short.append((source, float(str(found["seconds"]))))
                continue
            own: list[tuple[JsonObject, float, float]] = [
                ({"part": [*frames]}, begin, end) for *frames, begin, end in parts
            ]
            steps += self.parts(source, {}, own, manifest)
        return [*steps, *self._short(short)]

    def _short(self, found: list[tuple[PlannedVideo, float]]) -> Iterator[BatchTask]:
        """Yield tasks of several short videos each."""
        chunk = self.spec.get("chunk")
        most = float(chunk) if isinstance(chunk, int | float) else _SHORT
        group: list[PlannedVideo] = []
        total = 0.0
        for number, (source, seconds) in enumerate(found):
            group.append(source)
            total += seconds
            if total >= most or number == len(found) - 1:
                names: list[Json] = [one.to_json() for one in group]
                many = f"{len(group)} videos from " if len(group) > 1 else ""
                label = f"{many}{group[0].name}"
                key = digest(*(one.key for one in group))
                part: JsonObject = {"videos": names}
                yield self.task(f"{key}-videos", "videos", label, part, weight=max(total, 0.001))
                group, total = [], 0.0

    def results_of(self, task: BatchTask) -> list[str]:
        """Return the names of the files of a task; a group of short videos has one for each."""
        if task.kind == "videos":
            return [PlannedVideo.of(values).out for values in list_of(task.part, "videos")]
        return super().results_of(task)

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many videos a finished task completes."""
        if task.kind == "videos":
            return len(list_of(result.facts, "made"))
        return super().files_of(task, result)

    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the number of videos, parts, key frames and bytes, and an estimate of the time.

        The videos are indexed, which reads them once; a run of the job does not do it again.

        Args:
            calibrate: filter some of the largest video for a few seconds, in as many processes as
                a run on this machine would have, to estimate the time and the bytes of the results.
        """
        return plan_videos(self, calibrate)
