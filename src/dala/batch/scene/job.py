"""``batch.scenes``: what is to be rendered from which scene files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from dala.batch import storage
from dala.batch.driver import Step
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest
from dala.batch.pictures import device_id
from dala.batch.places import Patterns, Template, digest, find_files, patterns_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.report import Failure
from dala.batch.scene.work import count_frames
from dala.batch.tasks import BatchTask, Json, JsonObject, Result, list_of
from dala.batch.video.settings import encoder_spec, seconds_of
from dala.batch.video.work import PlannedVideo, part_name, whole_result
from dala.errors import ParameterError
from dala.media.scene.clock import frame_rate
from dala.typing import PathLike

_CALL: Final = "batch.scenes"
_SUFFIXES: Final = frozenset((".json",))


def scenes(
    pattern: Patterns,
    out: PathLike,
    *,
    chunk: float | str | None = "60s",
    seconds: float | None = None,
    fps: float | str | Fraction | None = None,
    start: float = 0.0,
    crf: int | None = None,
    codec: str | None = None,
    encoder: str | None = None,
    options: Mapping[str, str | float] | None = None,
    threads: int | None = None,
    audio: bool = True,
    device: str | None = None,
) -> BatchJob:
    """Render many scene files, long ones in parts of time.

    A result is the file that ``Scene.render_to`` writes with the same ``chunk``, and the same for
    any number of workers. A scene in which nodes follow others is rendered in one part.

    Args:
        pattern: a folder, a pattern such as "scenes/*.json", a name or a list of them. Workers
            read the files that a scene names as well.
        out: the names of the results, such as "videos/{stem}.mp4", as of ``batch.videos``.
        chunk: the duration of a part, in seconds or such as "2min"; None to split nothing.
        seconds: duration; by default each scene's own.
        fps: frames per second; by default each scene's own.
        start: the scene's time of the first frame.
        crf: the quality: lower is better and larger.
        codec: "h264", "hevc", "av1", "vp9", ..; by default that of the container.
        encoder: hardware that every worker must have, such as "nvenc"; by default software.
        options: of the encoder.
        threads: of each encoder, which may change the result.
        audio: write the sound.
        device: where scenes are rendered; by default the current device.

    Raises:
        ParameterError: an argument is invalid.

    Example::

        batch.scenes("scenes/*.json", out="videos/{stem}.mp4", chunk="10s").run()
    """
    template = Template(out, _CALL)
    if not isinstance(audio, bool):
        raise ParameterError.invalid(_CALL, "audio", "True or False", audio)
    if seconds is not None and (
        isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9
    ):
        raise ParameterError.invalid(_CALL, "seconds", "a number above 0, or None", seconds)
    if isinstance(start, bool) or not isinstance(start, int | float) or not abs(start) < 1e9:
        raise ParameterError.invalid(_CALL, "start", "a number of seconds", start)
    names = patterns_of(pattern, _CALL)
    for name in names:
        if storage.is_url(name):
            raise ParameterError.invalid(
                _CALL, "pattern", "paths: scenes name other files by them", name
            )
    place = device_id(device)
    settings, name, count = encoder_spec(
        _CALL, template, codec, encoder, options, crf, threads, place
    )
    spec: JsonObject = {
        "chunk": seconds_of(_CALL, chunk),
        "seconds": None if seconds is None else str(Fraction(seconds).limit_denominator(10**6)),
        "fps": None if fps is None else str(frame_rate(fps)),
        "start": str(Fraction(start).limit_denominator(10**6)),
        "audio": audio,
        "encoder": settings,
    }
    return SceneJob(_CALL, names, template, spec, device=place, encoder=name, threads=count)


class SceneJob(BatchJob):
    """A job over scene files: loaded, rendered in parts, stitched."""

    #: Scenes of which parts are on their way: how many are left.
    _left: dict[str, int]

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task that loads each scene and counts its frames."""
        self._left = {}
        for source in self._scenes():
            part: JsonObject = {"scenes": [source.to_json()]}
            yield self.task(f"{source.key}-count", "scenes", source.name, part, weight=0.0)

    def _scenes(self) -> Iterator[PlannedVideo]:
        seen: set[str] = set()
        for facts, root in find_files(self.patterns, _SUFFIXES, self.call):
            out = self.out.name_of(facts.name, root)
            if out in seen or out == facts.name:
                raise ParameterError(
                    f"{self.call}: {out!r} would be written twice, or over a scene. Use {{path}} "
                    "or {stem} in out."
                )
            seen.add(out)
            key = digest(facts.name, str(facts.size), facts.stamp, out)
            yield PlannedVideo(facts.name, facts.size, facts.stamp, out, key)

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the parts of a scene, or the stitch of one whose parts are done."""
        if task.kind == "scenes":
            steps: list[Step] = []
            for found in list_of(result.facts, "scenes"):
                assert isinstance(found, dict)
                steps += self._parts(found, manifest)
            return steps
        if task.kind == "scene":
            self._left[task.group] -= 1
            if self._left[task.group] == 0:
                del self._left[task.group]
                return [self._stitch(task.part)]
        if task.kind == "scene stitch":
            storage.remove_tree(storage.join(self.work, "parts", task.group))
        return ()

    def _parts(self, found: JsonObject, manifest: Manifest) -> Iterator[BatchTask]:
        source = PlannedVideo.of(found["source"])
        spans = list_of(found, "parts")
        facts: JsonObject = {
            "source": found["source"], "frames": found["frames"], "parts": len(spans)
        }  # fmt: skip
        if whole_result(manifest, source) is not None:
            yield self._stitch(facts)
            return
        self._left[source.key] = len(spans)
        rate = Fraction(str(found["rate"]))
        for number, span in enumerate(spans):
            assert isinstance(span, list)
            first, last = (int(str(value)) for value in span)
            yield self.task(
                f"{source.key}-{number}",
                "scene",
                f"{source.name}, {float(first / rate):g} to {float(last / rate):g} s",
                {**facts, "number": number, "first": first, "last": last},
                weight=float((last - first) / rate),
                group=source.key,
            )

    def _stitch(self, facts: JsonObject) -> BatchTask:
        source = PlannedVideo.of(facts["source"])
        part: JsonObject = {key: facts[key] for key in ("source", "frames", "parts")}
        return self.task(
            f"{source.key}-stitch", "scene stitch", source.name, part, weight=0.0,
            group=source.key,
        )  # fmt: skip

    def finished(self, task: BatchTask, manifest: Manifest) -> Result | None:
        """Return the result of a task whose record and files are there."""
        found = manifest.result_of(task.id)
        if found is None or task.kind == "scenes":
            return found
        source = PlannedVideo.of(task.part["source"])
        if task.kind == "scene stitch":
            return whole_result(manifest, source)
        number: Json = task.part["number"]
        there = storage.exists(part_name(self.work, source.key, int(str(number))))
        return found if there else None

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many videos a finished task completes."""
        return int(task.kind == "scene stitch")

    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the number of scenes, parts and frames. The scenes are loaded for it."""
        plan = BatchPlan("scenes")
        for source in self._scenes():
            plan.files += 1
            plan.bytes_read += source.size
            part: JsonObject = {"scenes": [source.to_json()]}
            made = count_frames(self.task("plan", "scenes", source.name, part), lambda n: None)
            plan.unreadable += [Failure(one.label, one.error) for one in made.failures]
            for found in list_of(made.facts, "scenes"):
                assert isinstance(found, dict)
                frames = int(str(found["frames"]))
                plan.frames += frames
                plan.seconds += float(frames / Fraction(str(found["rate"])))
                plan.chunks += len(list_of(found, "parts"))
        return plan
