"""What workers do for scenes: count frames, render a part, stitch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.batch import storage
from dala.batch.places import check_name, check_target
from dala.batch.tasks import (
    BatchTask,
    Json,
    JsonObject,
    Made,
    PartFailure,
    ProgressReport,
    int_of,
    list_of,
    object_of,
    text_of,
)
from dala.batch.video.work import PlannedVideo, file_digest, part_name
from dala.batch.worker import FINAL, error_text
from dala.errors import BatchError
from dala.media.notices import notify
from dala.media.scene.output import frame_total
from dala.media.scene.parts import render_part, scene_parts, stitch_scene
from dala.media.video.chunks.packets import PacketReader

if TYPE_CHECKING:
    from dala.media.scene.scene import Scene

_CALL: Final = "batch.scenes"


@contextmanager
def _loaded(task: BatchTask, source: PlannedVideo) -> Iterator[Scene]:
    """Yield the scene of a file, which must be what it was when it was planned."""
    from dala.media.scene import load_scene

    check_name(source.name, task.roots, _CALL)
    found = storage.facts(source.name)
    if (found.size, found.stamp) != (source.size, source.stamp):
        raise BatchError(f"{_CALL}: {source.name!r} has changed since the job was planned.")
    path = storage.local_path(source.name)
    assert path is not None  # the job has refused URLs
    with load_scene(path, device=text_of(object_of(task.spec, "encoder"), "device")) as scene:
        yield scene
        for name, error in scene.errors.items():
            notify(f"{source.name}: {name}: {error}")


def _rate(task: BatchTask, scene: Scene) -> Fraction:
    given = task.spec.get("fps")
    return scene.frame_rate if given is None else Fraction(str(given))


def _begin(task: BatchTask) -> Fraction:
    return Fraction(text_of(task.spec, "start"))


def count_frames(task: BatchTask, report: ProgressReport) -> Made:
    """Load scenes, and decide where they are split."""
    found: list[Json] = []
    failures: list[PartFailure] = []
    seconds = task.spec.get("seconds")
    chunk = task.spec.get("chunk")
    for number, values in enumerate(list_of(task.part, "scenes")):
        source = PlannedVideo.of(values)
        try:
            with _loaded(task, source) as scene:
                rate = _rate(task, scene)
                length = None if seconds is None else float(str(seconds))
                total = frame_total(scene, length, rate, _begin(task))
                least = None if chunk is None else Fraction(str(chunk))
                spans: list[Json] = [list(span) for span in scene_parts(scene, total, rate, least)]
        except Exception as error:
            failures.append(PartFailure(source.name, error_text(error), isinstance(error, FINAL)))
            continue
        found.append(
            {"source": source.to_json(), "frames": total, "rate": str(rate), "parts": spans}
        )
        report(number + 1)
    return Made(0, facts={"scenes": found}, failures=tuple(failures))


def render_scene(task: BatchTask, report: ProgressReport) -> Made:
    """Render a part of a scene, and keep its packets in the folder of the job."""
    source = PlannedVideo.of(task.part["source"])
    number, first, last = (
        int_of(task.part, "number"),
        int_of(task.part, "first"),
        int_of(task.part, "last"),
    )
    given = object_of(task.spec, "encoder")
    codec = given.get("codec")
    encoder = given.get("encoder")
    name = part_name(task.work, source.key, number)
    with (
        storage.writing(check_target(name, task.roots, _CALL), ".packets") as path,
        _loaded(task, source) as scene,
    ):
        frames = render_part(
            scene,
            Path(source.out).suffix,
            (first, last),
            _rate(task, scene),
            _begin(task),
            path,
            report,
            codec=None if codec is None else str(codec),
            options={key: str(value) for key, value in object_of(given, "options").items()},
            threads=int_of(given, "threads"),
            encoder=None if encoder is None else str(encoder),
        )
        digest, size = file_digest(path)
    return Made(frames, 0, size, {"digest": digest})


def stitch_rendered(task: BatchTask, report: ProgressReport) -> Made:
    """Write the packets of all parts of a scene to its result, with its sound."""
    source = PlannedVideo.of(task.part["source"])
    count, total = int_of(task.part, "parts"), int_of(task.part, "frames")
    codec = object_of(task.spec, "encoder").get("codec")

    def open_part(number: int) -> PacketReader:
        name = part_name(task.work, source.key, number)
        return PacketReader(storage.open_read(name), name)

    with (
        storage.writing(check_target(source.out, task.roots, _CALL)) as path,
        _loaded(task, source) as scene,
    ):
        made = stitch_scene(
            scene, source.out, path, count, open_part, total, _rate(task, scene), _begin(task),
            codec=None if codec is None else str(codec), audio=bool(task.spec.get("audio")),
        )  # fmt: skip
        digest, size = file_digest(path)
    facts: JsonObject = {
        "out": source.out, "digest": digest, "bytes": size, "frames": made.frames,
        "seams": made.seams,
    }  # fmt: skip
    return Made(0, 0, size, facts)
