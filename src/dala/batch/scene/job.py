"""``batch.scenes``: jobs that render scene files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from dala.batch import storage
from dala.batch.driver import Step
from dala.batch.environment import check_level
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest, file_record
from dala.batch.options import SceneJobOptions
from dala.batch.places import Patterns, Template, check_name, patterns_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.report import Failure
from dala.batch.tasks import (
    BatchTask,
    Json,
    JsonObject,
    Made,
    ProgressReport,
    Result,
    int_of,
    list_of,
    objects_of,
    text_of,
)
from dala.batch.video.job import StitchedJob, encoder_spec, numbers_of
from dala.batch.video.work import (
    PlannedVideo,
    check_source,
    file_digest,
    look_at_each,
    part_name,
    part_reader,
    stitched,
)
from dala.errors import BatchError, ParameterError
from dala.media.scene.options import RenderOptions
from dala.media.scene.output import frame_total
from dala.media.scene.parts import SceneRun
from dala.notices import notify
from dala.options import takes
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.batch.keywords import SceneJobKeywords
    from dala.media.scene.scene import Scene


@contextmanager
def _loaded(task: BatchTask, source: PlannedVideo) -> Iterator[Scene]:
    """Yield the scene of a file, which must not have changed since it was planned."""
    from dala.media.scene import load_scene

    check_source(task, source, _CALL, BatchError)
    path = storage.local_path(source.name)
    assert path is not None  # the job has refused URLs
    with load_scene(path, device=text_of(task.spec, "device")) as scene:
        yield scene
        for name, error in scene.errors.items():
            notify(f"{source.name}: {name}: {error}")


def _run(task: BatchTask, scene: Scene) -> SceneRun:
    """Return the run of a scene by the options of a job."""
    return SceneRun.of(scene, RenderOptions.of(SceneJobOptions.from_json(_CALL, task.spec)))


def count_frames(task: BatchTask, report: ProgressReport) -> Made:
    """Load scenes, and decide where they are split."""

    def look(source: PlannedVideo) -> tuple[JsonObject, int]:
        with _loaded(task, source) as scene:
            run = _run(task, scene)
            seconds = SceneJobOptions.from_json(_CALL, task.spec).seconds
            total = frame_total(scene, seconds, run.rate, run.begin)
            spans: list[Json] = [list(span) for span in run.spans(total)]
        return {
            "source": source.to_json(), "frames": total, "rate": str(run.rate), "parts": spans,
        }, 0  # fmt: skip

    return look_at_each(task, "scenes", look, report)


def _floats(scene: Scene, name: str) -> str:
    """Name the part of a scene that is outside the contract of bytes; "" for none."""
    from dala.media.scene.nodes.nested import SceneNode
    from dala.media.scene.nodes.video import VideoNode
    from dala.media.video.files import open as open_video

    if scene.followers:
        return f"what nodes of {name!r} follow"
    for node in scene.nodes.values():
        if isinstance(node, SceneNode) and (found := _floats(node.child, name)):
            return found
        if isinstance(node, VideoNode) and isinstance(node.stream, str | Path):
            with open_video(node.stream) as reader:
                if reader.is_hdr:
                    return f"{node.stream!r} in {name!r}, an HDR video,"
    return ""


def render_scene(task: BatchTask, report: ProgressReport) -> Made:
    """Render a part of a scene, and keep its packets in the folder of the job."""
    source = PlannedVideo.of(task.part["source"])
    span = int_of(task.part, "first"), int_of(task.part, "last")
    name = part_name(task.work, source.key, int_of(task.part, "number"))
    with (
        storage.writing(
            check_name(name, task.roots, _CALL, writes=True), ".packets", task.home
        ) as path,
        _loaded(task, source) as scene,
    ):
        check_level(task.environment, lambda: _floats(scene, source.name))
        suffix = Path(source.out).suffix
        frames = _run(task, scene).render_part(suffix, span, path, report)
        digest, size = file_digest(path)
    return Made(frames, 0, size, files={name: file_record(name, digest=digest)})


def stitch_rendered(task: BatchTask, report: ProgressReport) -> Made:
    """Write the packets of all parts of a scene to its result, with its sound."""
    source = PlannedVideo.of(task.part["source"])
    count, total = int_of(task.part, "parts"), int_of(task.part, "frames")
    open_part = part_reader(task, source)
    with (
        storage.writing(
            check_name(source.out, task.roots, _CALL, writes=True), base=task.home
        ) as path,
        _loaded(task, source) as scene,
    ):
        made = _run(task, scene).stitch(source.out, path, count, open_part, total)
        digest, size = file_digest(path)
    return stitched(source, made, digest, size)


_CALL: Final = "batch.scenes"


@takes(SceneJobOptions)
def scenes(pattern: Patterns, out: PathLike, **given: Unpack[SceneJobKeywords]) -> BatchJob:
    """Render many scene files, long ones in parts of time.

    A result is the file that ``Scene.render_to`` writes with the same ``chunk``, and the same for
    any number of workers. A scene in which nodes follow others is rendered in one part.

    Args:
        pattern: a folder, a pattern such as "scenes/*.json", a name or a list of them. Workers
            read the files that a scene names as well.
        out: the names of the results, such as "videos/{stem}.mp4", as of ``batch.videos``.

    Raises:
        ParameterError: an argument is invalid.

    Example::

        batch.scenes("scenes/*.json", out="videos/{stem}.mp4", chunk="10s").run()
    """
    options = SceneJobOptions.checked(_CALL, given)
    template = Template(out, _CALL)
    names = patterns_of(pattern, _CALL)
    for name in names:
        if storage.is_url(name):
            expected = "paths: scenes name other files by them"
            raise ParameterError.invalid(_CALL, "pattern", expected, name)
    options, name = encoder_spec(_CALL, template, options)
    place, count = options.device or "", options.threads or 1
    return SceneJob(
        _CALL, names, template, options.to_json(), device=place, encoder=name, threads=count
    )


class SceneJob(StitchedJob):
    """A job over scene files: loaded, rendered in parts, stitched."""

    suffixes, what = frozenset((".json",)), "scenes"
    part_kind, stitch_kind = "scene", "scene stitch"

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task that loads each scene and counts its frames."""
        for source in self.planned():
            part: JsonObject = {"scenes": [source.to_json()]}
            yield self.task(f"{source.key}-count", "scenes", source.name, part, weight=0.0)

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the parts of a scene, or the stitch of one whose parts are done."""
        if task.kind != "scenes":
            return super().follow(task, result, manifest)
        steps: list[Step] = []
        for found in objects_of(result.facts, "scenes"):
            rate = Fraction(str(found["rate"]))
            parts: list[tuple[JsonObject, float, float]] = []
            for first, last in map(numbers_of, list_of(found, "parts")):
                own: JsonObject = {"first": first, "last": last}
                parts.append((own, float(first / rate), float(last / rate)))
            source = PlannedVideo.of(found["source"])
            steps += self.parts(source, {"frames": found["frames"]}, parts, manifest)
        return steps

    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the number of scenes, parts and frames. The scenes are loaded for it."""
        plan = BatchPlan("scenes", processors=self.processors)
        for source in self.planned():
            plan.files += 1
            plan.bytes_read += source.size
            part: JsonObject = {"scenes": [source.to_json()]}
            made = count_frames(self.task("plan", "scenes", source.name, part), lambda n: None)
            plan.unreadable += [Failure(one.label, one.error) for one in made.failures]
            for found in objects_of(made.facts, "scenes"):
                frames = int(str(found["frames"]))
                plan.frames += frames
                plan.seconds += float(frames / Fraction(str(found["rate"])))
                plan.chunks += len(list_of(found, "parts"))
        return plan
