"""The tasks of videos: index, filter a part, stitch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from dala.batch import storage
from dala.batch.chains import BACKGROUND, names_of, unpack_chain
from dala.batch.environment import check_level
from dala.batch.keeping import kept
from dala.batch.manifest import Manifest, file_record
from dala.batch.options import VideoJobOptions
from dala.batch.places import check_name
from dala.batch.storage import records
from dala.batch.tasks import (
    BatchTask,
    Json,
    JsonObject,
    Made,
    PartFailure,
    ProgressReport,
    Result,
    ResultFile,
    int_of,
    list_of,
    text_of,
)
from dala.errors import DalaError, VideoError
from dala.media.filters.plans import Filter
from dala.media.frame import Frame
from dala.media.video.chain import VideoChain
from dala.media.video.chunks.index import HIDING, VideoIndex, VideoPart, index_video, split_video
from dala.media.video.chunks.packets import (
    EncodedPart,
    EncoderSettings,
    PacketReader,
    encode_part,
    part_chain,
)
from dala.media.video.chunks.stitching import Stitched, stitch
from dala.media.video.decoding.planes import open_planes
from dala.media.video.options import DecodeOptions
from dala.media.video.source import VideoSource, source_of
from dala.notices import notify

_CALL: Final = "batch.videos"
#: Containers that count frames instead of storing their times, so that they need one encoder.
_COUNTED: Final = (".avi", ".ogg", ".ogv", ".y4m")


class PlannedVideo(NamedTuple):
    """A video as tasks name it: its file, its facts when it was planned, and its result."""

    name: str
    size: int
    stamp: str
    out: str
    #: A short name for all of this, by which its files in the folder of the job are named.
    key: str

    @classmethod
    def of(cls, values: Json) -> PlannedVideo:
        """Return the video of a task's settings."""
        assert isinstance(values, list)
        name, size, stamp, out, key = values
        return cls(str(name), int(str(size)), str(stamp), str(out), str(key))

    def to_json(self) -> list[Json]:
        """Return it as values of JSON."""
        return [self.name, self.size, self.stamp, self.out, self.key]


def index_name(work: str, key: str) -> str:
    """Return the name of the index of a video.

    >>> index_name("/out/.dala-batch/1", "ab")
    '/out/.dala-batch/1/index/ab.json'
    """
    return storage.join(work, "index", f"{key}.json")


def part_name(work: str, key: str, number: int) -> str:
    """Return the name of the packets of a part.

    >>> part_name("/out/.dala-batch/1", "ab", 3)
    '/out/.dala-batch/1/parts/ab/3.packets'
    """
    return storage.join(work, "parts", key, f"{number}.packets")


def check_source(task: BatchTask, source: PlannedVideo, call: str, error: type[DalaError]) -> None:
    """Check that a file belongs to the job, and has not changed since it was planned.

    Raises:
        ParameterError: it is outside of the job.
        DalaError: it has changed; of the type that is given.
    """
    check_name(source.name, task.roots, call)
    found = storage.facts(source.name)
    if (found.size, found.stamp) != (source.size, source.stamp):
        raise error(f"{call}: {source.name!r} has changed since the job was planned.")


def part_reader(task: BatchTask, source: PlannedVideo) -> Callable[[int], PacketReader]:
    """Return a function that opens the packets of a part by its number."""

    def open_part(number: int) -> PacketReader:
        name = part_name(task.work, source.key, number)
        return PacketReader(storage.open_read(name), name)

    return open_part


def _opened(task: BatchTask, source: PlannedVideo) -> VideoSource:
    """Return a video to read, which must not have changed since it was planned."""
    check_source(task, source, _CALL, VideoError)
    return source_of(storage.source(source.name), _CALL)


# indexing -----------------------------------------------------------------------------------------
def index_videos(task: BatchTask, report: ProgressReport) -> Made:
    """Index videos, and decide where they are split. Known ones are not read again."""

    def look(source: PlannedVideo) -> tuple[JsonObject, int]:
        index, read = video_index(task, source)
        return plan_of(source, index, task.spec), read

    return look_at_each(task, "videos", look, report)


def look_at_each(
    task: BatchTask,
    key: str,
    look: Callable[[PlannedVideo], tuple[JsonObject, int]],
    report: ProgressReport,
) -> Made:
    """Return the plan of each file. A file that fails does not stop the others.

    Args:
        task: has the files.
        key: the setting that they are in, and the fact of the result.
        look: returns what is known of a file, and the bytes that were read for it.
        report: is called with the number of files so far.
    """
    found: list[Json] = []
    failures: list[PartFailure] = []
    read = 0
    for number, source in enumerate(map(PlannedVideo.of, list_of(task.part, key))):
        try:
            facts, size = look(source)
        except Exception as error:
            failures.append(PartFailure.of(source.name, error))
            continue
        found.append(facts)
        read += size
        report(number + 1)
    return Made(0, read, facts={key: found}, failures=tuple(failures))


def plan_of(source: PlannedVideo, index: VideoIndex, spec: JsonObject) -> JsonObject:
    """Return the plan of a video: its size and its parts."""
    parts: list[Json] = []
    for part in split_video(index, chunk_of(source.out, spec), int_of(spec, "halo")):
        start = round(float(index.time(part.first)), 3)
        whole = part.last >= index.frames
        end = index.seconds + float(index.time(0)) if whole else float(index.time(part.last))
        parts.append([part.first, part.last, part.start, part.warm, start, round(end, 3)])
    return {
        "source": source.to_json(),
        "frames": index.frames,
        "keys": len(index.keys),
        "seconds": round(index.seconds, 3),
        "problem": index.problem,
        "parts": parts,
    }


def chunk_of(out: str, spec: JsonObject) -> float | None:
    """Return the least seconds of a part of a result; None if it is one part.

    >>> chunk_of("a.mp4", {"chunk": 60.0}), chunk_of("a.avi", {"chunk": 60.0})
    (60.0, None)
    """
    found = spec.get("chunk")
    counted = Path(out).suffix.lower() in _COUNTED
    return float(found) if isinstance(found, int | float) and not counted else None


def video_index(task: BatchTask, source: PlannedVideo) -> tuple[VideoIndex, int]:
    """Return the index of a video, and the bytes that were read to make it."""
    name = index_name(task.work, source.key)
    found = records.read(name, VideoIndex.from_json, notify)
    if found is not None:
        return found, 0
    opened = _opened(task, source)
    index = index_video(opened, _CALL)
    if task.spec.get("deinterlace"):
        index = _scanned(index, opened, task)
    records.write(name, index.to_json())
    return index, source.size


def _scanned(index: VideoIndex, opened: VideoSource, task: BatchTask) -> VideoIndex:
    """Return the index with how the video is scanned, by its first frames."""
    from dataclasses import replace

    options = DecodeOptions(device=text_of(task.spec, "device"), deinterlace="auto")
    with open_planes(opened, options) as reader:
        next(iter(reader), None)
        return replace(index, scan=reader.scan or "none")


# filtering ----------------------------------------------------------------------------------------
def filter_part(task: BatchTask, report: ProgressReport) -> Made:
    """Filter and encode a part of a video, and keep its packets in the folder of the job."""
    source = PlannedVideo.of(task.part["source"])
    number = int_of(task.part, "number")
    part = VideoPart(number, *(int(str(value)) for value in list_of(task.part, "part")))
    index, _ = video_index(task, source)
    name = part_name(task.work, source.key, number)
    with storage.writing(
        check_name(name, task.roots, _CALL, writes=True), ".packets", task.home
    ) as path:
        made = encode_source(task, source, index, part, path, report)
        digest, size = file_digest(path)
    share = source.size * (part.last - part.first) // max(1, index.frames)
    files = {name: file_record(name, digest=digest)}
    return Made(made.frames, share, size, {"hidden": made.hidden}, files=files)


def encode_source(
    task: BatchTask,
    source: PlannedVideo,
    index: VideoIndex,
    part: VideoPart,
    path: Path,
    report: ProgressReport,
) -> EncodedPart:
    """Filter and encode a part of a video to a file of packets."""
    settings = encoder_settings(task.spec, source.out)
    check_level(task.environment, lambda: _deep(_opened(task, source), settings.hdr == "keep"))
    with _stages(task, settings.device) as stages:
        return encode_part(
            _opened(task, source), source.name, index, part, stages, settings, path, report
        )


def _deep(source: VideoSource, keep: bool) -> str:
    """Name the part of a video's work that is computed in floats; "" if it is filtered in bytes."""
    from dala.media.video.files import open as open_video

    with open_video(source) as reader:
        deep = reader.is_hdr or (keep and reader.bits > 8)
        return f"{source.label!r}, of HDR or more than 8 bits," if deep else ""


def encoder_settings(spec: JsonObject, out: str) -> EncoderSettings:
    """Return how the parts of a result are encoded."""
    options = VideoJobOptions.from_json(_CALL, spec)
    return EncoderSettings.of(options, suffix=Path(out).suffix.lower(), device=options.device)


@contextmanager
def _stages(task: BatchTask, device: str | None) -> Iterator[VideoChain]:
    """Yield the filters of a task; one that changes the background is called for each frame."""
    packed = list_of(task.spec, "chain")
    if BACKGROUND not in names_of(packed)[:1]:
        key = json.dumps(["video", task.work, packed, device])
        with kept(key, lambda: part_chain(unpack_chain(packed, task.work), device)) as stages:
            yield stages
        return
    from dala.ml.background import Background

    chain = unpack_chain(packed, task.work)
    first = chain[0]
    assert isinstance(first, tuple)
    make: Callable[..., Background] = Background
    with make(**first[1], device=device) as background:
        rest = list(chain[1:])

        def filters(frame: Frame) -> Sequence[Filter]:
            return [*background.filters(frame), *rest]

        with part_chain(filters, device) as stages:
            yield stages


def file_digest(path: Path) -> tuple[str, int]:
    """Return a digest of a file, and its size."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()[:32]
        return found, file.tell()


# stitching ----------------------------------------------------------------------------------------
def stitch_video(task: BatchTask, report: ProgressReport) -> Made:
    """Write the packets of all parts of a video to its result, checked before it has its name."""
    source = PlannedVideo.of(task.part["source"])
    index, _ = video_index(task, source)
    return _stitch(task, source, index, int_of(task.part, "parts"), part_reader(task, source))


def _stitch(
    task: BatchTask,
    source: PlannedVideo,
    index: VideoIndex,
    parts: int,
    open_part: Callable[[int], PacketReader],
) -> Made:
    # Where frames may be hidden, or times are repaired, parts have checked themselves.
    known = not index.problem and index.codec not in HIDING and not index.undecodable
    with storage.writing(
        check_name(source.out, task.roots, _CALL, writes=True), base=task.home
    ) as path:
        made = stitch(
            parts,
            open_part,
            _opened(task, source),
            path,
            sound=bool(task.spec.get("audio")),
            format=Path(source.out).suffix.lstrip("."),
            expected=(index.times, index.time_base) if known else None,
        )
        digest, size = file_digest(path)
    return stitched(source, made, digest, size, sound=[round(offset, 6) for offset in made.sound])


def stitched(source: PlannedVideo, made: Stitched, digest: str, size: int, **more: Json) -> Made:
    """Return the facts of a stitched result."""
    facts: JsonObject = {"out": source.out, "frames": made.frames, "seams": made.seams, **more}
    files = {source.out: file_record(source.out, digest=digest)}
    return Made(0, 0, size, facts, files=files)


# whole videos -------------------------------------------------------------------------------------
def filter_videos(task: BatchTask, report: ProgressReport) -> Made:
    """Filter short videos whole. One that fails does not keep the others from being made."""
    manifest = Manifest(task.work)
    failures: list[PartFailure] = []
    made: list[Json] = []
    files: dict[str, ResultFile] = {}
    frames = read = written = 0
    for values in list_of(task.part, "videos"):
        source = PlannedVideo.of(values)
        before = frames
        try:
            done = whole_result(manifest, source)
            if done is None:
                done = _filter_whole(task, source, lambda n: report(before + n))  # noqa: B023
                manifest.record(done, [source.out])
                frames += done.frames
                read += source.size
                written += done.bytes_written
            made.append(done.facts)
            files[source.out] = done.files[0]
        except Exception as error:
            failures.append(PartFailure.of(source.name, error))
    return Made(frames, read, written, {"made": made}, failures=tuple(failures), files=files)


def whole_result(manifest: Manifest, source: PlannedVideo) -> Result | None:
    """Return the record of a finished video whose result is there; None to make it."""
    return manifest.finished(f"{source.key}-stitch", [source.out])


def _filter_whole(task: BatchTask, source: PlannedVideo, report: ProgressReport) -> Result:
    index, _ = video_index(task, source)
    part = VideoPart(0, 0, index.frames, 0, 0)
    with TemporaryDirectory(prefix="dala-batch-") as folder:
        path = Path(folder, "0.packets")
        done = encode_source(task, source, index, part, path, report)
        stitched = _stitch(
            task, source, index, 1, lambda _: PacketReader(path.open("rb"), str(path))
        )
    return Result(
        f"{source.key}-stitch", done.frames, 0.0, 0.0, source.size, stitched.bytes_written,
        facts=stitched.facts, files=tuple(stitched.files.values()),
    )  # fmt: skip
