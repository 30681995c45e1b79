"""``batch.scenes``: what is to be rendered from which scene files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Unpack

from dala.batch import storage
from dala.batch.driver import Step
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest
from dala.batch.options import SceneJobOptions
from dala.batch.places import Patterns, Template, patterns_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.report import Failure
from dala.batch.scene.work import count_frames
from dala.batch.tasks import BatchTask, JsonObject, Result, list_of, objects_of
from dala.batch.video.parts import StitchedJob, numbers_of
from dala.batch.video.settings import encoder_spec
from dala.batch.video.work import PlannedVideo
from dala.errors import ParameterError
from dala.options import takes
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.batch.keywords import SceneJobKeywords

_CALL: Final = "batch.scenes"


@takes(SceneJobOptions)
def scenes(
    pattern: Patterns,
    out: PathLike,
    **given: Unpack[SceneJobKeywords],
) -> BatchJob:
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
            raise ParameterError.invalid(
                _CALL, "pattern", "paths: scenes name other files by them", name
            )
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
