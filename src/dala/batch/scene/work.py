"""The tasks of scenes: count frames, render a part, stitch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.batch import storage
from dala.batch.environment import check_level
from dala.batch.manifest import file_record
from dala.batch.options import SceneJobOptions
from dala.batch.places import check_target
from dala.batch.tasks import (
    BatchTask,
    Json,
    JsonObject,
    Made,
    ProgressReport,
    int_of,
    text_of,
)
from dala.batch.video.work import (
    PlannedVideo,
    check_source,
    file_digest,
    look_at_each,
    part_name,
    part_reader,
    stitched,
)
from dala.errors import BatchError
from dala.media.scene.options import RenderOptions
from dala.media.scene.output import frame_total
from dala.media.scene.parts import SceneRun
from dala.notices import notify

if TYPE_CHECKING:
    from dala.media.scene.scene import Scene

_CALL: Final = "batch.scenes"


@contextmanager
def _loaded(task: BatchTask, source: PlannedVideo) -> Iterator[Scene]:
    """Yield the scene of a file, which must be what it was when it was planned."""
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
    """Return what of a scene is outside the contract of bytes; "" for nothing."""
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
        storage.writing(check_target(name, task.roots, _CALL), ".packets", task.home) as path,
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
        storage.writing(check_target(source.out, task.roots, _CALL), base=task.home) as path,
        _loaded(task, source) as scene,
    ):
        made = _run(task, scene).stitch(source.out, path, count, open_part, total)
        digest, size = file_digest(path)
    return stitched(source, made, digest, size)
