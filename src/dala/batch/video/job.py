"""``batch.videos``: what is to be done with which videos."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Unpack

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
from dala.batch.options import VideoJobOptions
from dala.batch.places import Patterns, Template, digest, patterns_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.tasks import BatchTask, Json, JsonObject, Result, list_of, objects_of
from dala.batch.video.parts import StitchedJob, numbers_of
from dala.batch.video.settings import encoder_spec
from dala.batch.video.work import PlannedVideo
from dala.errors import ParameterError, counted
from dala.media.video.suffixes import VIDEO_SUFFIXES
from dala.options import takes
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.batch.keywords import VideoJobKeywords

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
    pattern: Patterns,
    out: PathLike,
    chain: Sequence[ChainItem],
    **given: Unpack[VideoJobKeywords],
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
        from dala.batch.video.estimate import plan_videos

        return plan_videos(self, calibrate)
