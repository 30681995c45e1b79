"""``batch.videos``: what is to be done with which videos."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dala.batch import storage
from dala.batch.chains import BACKGROUND, Assets, ChainItem, names_of, pack_chain, params_of
from dala.batch.driver import Step
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest
from dala.batch.pictures import device_id
from dala.batch.places import Patterns, Template, digest, find_files, patterns_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.tasks import BatchTask, Json, JsonObject, Result, list_of
from dala.batch.video.settings import encoder_spec, seconds_of
from dala.batch.video.work import PlannedVideo, part_name, whole_result
from dala.errors import ParameterError, counted
from dala.media.video.suffixes import VIDEO_SUFFIXES
from dala.typing import PathLike

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


def videos(
    pattern: Patterns,
    out: PathLike,
    chain: Sequence[ChainItem],
    *,
    chunk: float | str | None = "60s",
    crf: int | None = None,
    codec: str | None = None,
    encoder: str | None = None,
    options: Mapping[str, str | float] | None = None,
    threads: int | None = None,
    audio: bool = True,
    deinterlace: bool = False,
    hdr: str = "sdr",
    on_resize: str = "scale",
    device: str | None = None,
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
        chunk: the least duration of a part, in seconds or such as "2min"; None to split nothing.
        crf: the quality: lower is better and larger.
        codec: "h264", "hevc", "av1", "vp9", "prores", "ffv1", ..; by default that of the container.
        encoder: hardware that every worker must have, such as "nvenc"; by default software.
        options: of the encoder.
        threads: of each encoder, which may change the result; by default as many as ``dala
            filter`` would use here. One is best where there are as many workers as cores.
        audio: keep the sound.
        deinterlace: make whole pictures of the fields of interlaced videos.
        hdr: "sdr" to tone-map HDR, "keep" to keep it and more than 8 bits.
        on_resize: "scale", or "error" where a video changes its size.
        device: where filters run; by default the current device.

    Raises:
        ParameterError: an argument is invalid.

    Example::

        job = batch.videos("videos/**/*.mp4", out="clean/{stem}.mp4", chain=["denoise"], crf=20)
        print(job.plan())
        job.run()
    """
    template = Template(out, _CALL)
    for name, value in (("audio", audio), ("deinterlace", deinterlace)):
        if not isinstance(value, bool):
            raise ParameterError.invalid(_CALL, name, "True or False", value)
    if not isinstance(hdr, str) or hdr not in ("sdr", "keep"):
        raise ParameterError.invalid(_CALL, "hdr", "'sdr' or 'keep'", hdr)
    if not isinstance(on_resize, str) or on_resize not in ("scale", "error"):
        raise ParameterError.invalid(_CALL, "on_resize", "'scale' or 'error'", on_resize)
    assets = Assets()
    packed = pack_chain(chain, assets.keep, _CALL)
    if BACKGROUND in names_of(packed)[1:]:
        raise ParameterError(f"{_CALL}: 'background' must be the first item of the chain.")
    place = device_id(device)
    settings, name, count = encoder_spec(
        _CALL, template, codec, encoder, options, crf, threads, place, deep=hdr == "keep"
    )
    settings |= {"deinterlace": deinterlace, "hdr": hdr, "on_resize": on_resize}
    spec: JsonObject = {
        "chain": packed,
        "chunk": seconds_of(_CALL, chunk),
        "halo": _halo(packed, deinterlace),
        "audio": audio,
        "encoder": settings,
    }
    return VideoJob(
        _CALL,
        patterns_of(pattern, _CALL),
        template,
        spec,
        assets=assets,
        device=place,
        encoder=name,
        threads=count,
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


class VideoJob(BatchJob):
    """A job over videos: indexed in groups, filtered in parts or in groups, stitched."""

    #: Videos of which parts are on their way: how many are left.
    _left: dict[str, int]

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task for each group of videos to index."""
        self._left = {}
        for group in self.groups():
            key = digest(*(source.key for source in group))
            part: JsonObject = {"videos": [source.to_json() for source in group]}
            label = f"index of {counted(len(group), 'videos')} from {group[0].name}"
            yield self.task(f"{key}-index", "index", label, part, weight=0.0)

    def groups(self) -> Iterator[list[PlannedVideo]]:
        """Yield the videos in groups that are indexed together."""
        seen: set[int] = set()
        group: list[PlannedVideo] = []
        for facts, root in find_files(self.patterns, VIDEO_SUFFIXES, self.call):
            out = self.out.name_of(facts.name, root)
            if out == facts.name:
                raise ParameterError(
                    f"{self.call}: {facts.name!r} is an input and is not overwritten. Change out."
                )
            if hash(out) in seen:
                raise ParameterError(
                    f"{self.call}: two videos would become {out!r}. Use {{path}} or {{name}} in "
                    "out."
                )
            seen.add(hash(out))
            key = digest(facts.name, str(facts.size), facts.stamp, out)
            group.append(PlannedVideo(facts.name, facts.size, facts.stamp, out, key))
            if int(digest(facts.name), 16) % _GROUP == 0 or len(group) >= 2 * _GROUP:
                yield group
                group = []
        if group:
            yield group

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the parts of indexed videos, or the stitch of one whose parts are done."""
        if task.kind == "index":
            return self._after_index(result, manifest)
        if task.kind == "video":
            key = PlannedVideo.of(task.part["source"]).key
            self._left[key] -= 1
            if self._left[key] == 0:
                del self._left[key]
                return [self._stitch(task)]
        if task.kind == "stitch":
            storage.remove_tree(storage.join(self.work, "parts", task.group))
        return ()

    def _after_index(self, result: Result, manifest: Manifest) -> list[Step]:
        steps: list[Step] = []
        short: list[tuple[PlannedVideo, float]] = []
        for found in list_of(result.facts, "videos"):
            assert isinstance(found, dict)
            source = PlannedVideo.of(found["source"])
            seconds = float(str(found["seconds"]))
            parts = list_of(found, "parts")
            if len(parts) == 1:
                short.append((source, seconds))
            elif whole_result(manifest, source) is not None:
                steps.append(self._stitch_of(source, len(parts)))
            else:
                self._left[source.key] = len(parts)
                steps += [self._part(source, n, len(parts), p) for n, p in enumerate(parts)]
        return [*steps, *self._short(short)]

    def _part(self, source: PlannedVideo, number: int, count: int, values: Json) -> BatchTask:
        assert isinstance(values, list)
        first, last, start, warm, begin, end = values
        part: JsonObject = {
            "source": source.to_json(),
            "part": [number, first, last, start, warm],
            "parts": count,
        }
        begins, ends = float(str(begin)), float(str(end))
        return self.task(
            f"{source.key}-{number}",
            "video",
            f"{source.name}, {begins:g} to {ends:g} s",
            part,
            weight=max(0.001, ends - begins),
            group=source.key,
        )

    def _stitch(self, task: BatchTask) -> BatchTask:
        count = task.part["parts"]
        assert isinstance(count, int)
        return self._stitch_of(PlannedVideo.of(task.part["source"]), count)

    def _stitch_of(self, source: PlannedVideo, count: int) -> BatchTask:
        part: JsonObject = {"source": source.to_json(), "parts": count}
        return self.task(
            f"{source.key}-stitch", "stitch", source.name, part, weight=0.0, group=source.key
        )

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
                label = (
                    group[0].name
                    if len(group) == 1
                    else (f"{len(group)} videos from {group[0].name}")
                )
                key = digest(*(one.key for one in group))
                part: JsonObject = {"videos": names}
                yield self.task(f"{key}-videos", "videos", label, part, weight=max(total, 0.001))
                group, total = [], 0.0

    def finished(self, task: BatchTask, manifest: Manifest) -> Result | None:
        """Return the result of a task whose record and files are there."""
        found = manifest.result_of(task.id)
        if found is None:
            return None
        if task.kind == "video":
            source = PlannedVideo.of(task.part["source"])
            number = list_of(task.part, "part")[0]
            assert isinstance(number, int)
            return found if storage.exists(part_name(self.work, source.key, number)) else None
        if task.kind == "stitch":
            return whole_result(manifest, PlannedVideo.of(task.part["source"]))
        if task.kind == "videos":
            sources = map(PlannedVideo.of, list_of(task.part, "videos"))
            done = all(whole_result(manifest, source) is not None for source in sources)
            return found if done else None
        return found

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many videos a finished task completes."""
        if task.kind == "videos":
            return len(list_of(result.facts, "made"))
        return int(task.kind == "stitch")

    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the number of videos, parts, key frames and bytes, and an estimate of the time.

        The videos are indexed, which reads them once; a run of the job does not do it again.

        Args:
            calibrate: filter some of the largest video for a few seconds, in as many processes as
                a run on this machine would have, to estimate the time and the bytes of the results.
        """
        from dala.batch.video.estimate import plan_videos

        return plan_videos(self, calibrate)
