"""Jobs over pictures: ``batch.images``."""

from __future__ import annotations

import io
import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from dala import forks
from dala.batch import storage
from dala.batch.chains import Assets, ChainItem, pack_chain, stage_outside, unpack_chain
from dala.batch.driver import Step
from dala.batch.environment import check_level
from dala.batch.jobs import BatchJob, GroupedJob
from dala.batch.keeping import kept
from dala.batch.manifest import Manifest, checksum, file_record
from dala.batch.options import PictureJobOptions
from dala.batch.places import (
    Patterns,
    Template,
    check_name,
    digest,
    find_targets,
    patterns_of,
)
from dala.batch.planning.plans import BatchPlan, Sampled
from dala.batch.planning.plans import calibrate as measure
from dala.batch.tasks import (
    BatchTask,
    Json,
    JsonObject,
    Made,
    PartFailure,
    ProgressReport,
    Result,
    ResultFile,
    list_of,
    text_of,
)
from dala.media.video.suffixes import PICTURE_SUFFIXES
from dala.options import takes
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.batch.keywords import PictureJobKeywords

_CALL: Final = "batch.images"
#: A group ends after a file whose name has a digest that this divides, or after the most files.
#: So a file that is added changes one group, and the others of a resumed job stay as they are.
_MEAN: Final = 48
_MOST: Final = 96
#: Of pictures with fewer bytes, a group has so many times as many.
_SMALL: Final = 16 << 10
_TIMES: Final = 8
#: Pictures that are read ahead or being written, and the bytes of those being written.
_AHEAD: Final = 8
_HELD: Final = 64 << 20
#: Pictures that a calibration filters, chosen from all of them.
_SAMPLE: Final = 256
#: A group ends once its files have so many bytes.
_BYTES: Final = 256 << 20


@takes(PictureJobOptions)
def images(
    pattern: Patterns,
    out: PathLike,
    chain: Sequence[ChainItem],
    **given: Unpack[PictureJobKeywords],
) -> BatchJob:
    """Filter many pictures.

    Args:
        pattern: a folder, a pattern such as "photos/**/*.jpg", a name or a list of them; paths
            or URLs.
        out: the names of the results, such as "small/{path}.webp"; fields are ``{path}`` (the
            folders below the pattern's root and the stem), ``{parent}``, ``{stem}``, ``{name}``
            and ``{suffix}``. A folder stands for the same names in it.
        chain: filters, as for ``FramePipeline``.

    Example::

        batch.images("photos/**/*.jpg", out="small/{path}.webp",
                     chain=[("resize", {"size": (640, 360)})]).run()
    """
    from dala.gpu.command import color_to_rgba

    options = PictureJobOptions.checked(_CALL, given)
    below = f"#{color_to_rgba(options.background).hex()}"
    options = replace(options, background=below, device=device_id(options.device))
    assets = Assets()
    spec: JsonObject = {**options.to_json(), "chain": pack_chain(chain, assets.keep, _CALL)}
    return PictureJob(
        _CALL,
        patterns_of(pattern, _CALL),
        Template(out, _CALL),
        spec,
        assets=assets,
        device=text_of(spec, "device"),
        outside=stage_outside(list_of(spec, "chain")),
    )


def device_id(device: str | None) -> str:
    """Return the id of a device; by default that of the current one.

    >>> device_id("cpu")
    'cpu'
    """
    from dala.gpu.compute import buffer_zeros

    with buffer_zeros(1, "u8", device=device) as probe:
        return probe.device


class PictureJob(GroupedJob):
    """A job over pictures, in groups of some dozens."""

    kind = "pictures"

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task for each group of pictures."""
        for files, root in self._groups():
            yield self.group("pictures", files, root, float(len(files)), out=self.out.text)

    def _groups(self) -> Iterator[tuple[list[storage.Facts], str]]:
        group: list[storage.Facts] = []
        before, size, count = "", 0, 0.0
        found = find_targets(self.patterns, PICTURE_SUFFIXES, self.out, self.call, "pictures")
        for facts, root, _ in found:
            if group and root != before:
                yield group, before
                group, size, count = [], 0, 0.0
            before = root
            group.append(facts)
            size += facts.size
            # By each file alone, so that others have no say in where a group ends.
            many = _TIMES if facts.size < _SMALL else 1
            count += 1 / many
            ends = int(digest(facts.name), 16) % (_MEAN * many) == 0
            if ends or count >= _MOST or size >= _BYTES:
                yield group, root
                group, size, count = [], 0, 0.0
        if group:
            yield group, before

    def results_of(self, task: BatchTask) -> list[str]:
        """Return the names of the pictures that a group makes."""
        return [target for _, target in _targets(task)]

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many pictures a group has made."""
        return result.frames

    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the number of pictures, groups and bytes, and an estimate of the time.

        Args:
            calibrate: filter some of the pictures for a few seconds, in as many processes as a run
                on this machine would have, to estimate the time and the bytes of the results.
        """
        plan = BatchPlan("pictures", processors=self.processors)
        sampled = Sampled[tuple[str, str]](_SAMPLE)
        for files, root in self._groups():
            plan.chunks += 1
            plan.files += len(files)
            plan.bytes_read += sum(facts.size for facts in files)
            for facts in files:
                sampled.add((root, facts.inside(root)))
        found = sampled.kept
        if calibrate and found:

            def sample(number: int, folder: str) -> BatchTask:
                self.write_assets(folder)
                end = "{suffix}" if self.out.text.endswith(("{suffix}", "{name}")) else ""
                end = end or os.path.splitext(self.out.text)[1]
                root = found[len(found) // 2][0]
                names: list[Json] = [name for home, name in found if home == root]
                part: JsonObject = {
                    "root": root, "names": names, "out": f"{folder}/out/{{path}}{end}",
                }  # fmt: skip
                return self.task("plan", "pictures", "plan", part)

            speed = measure(self.resources(), plan.chunks, sample)
            if speed is not None:
                plan.estimate(speed, plan.files, self.resources())
        return plan


def _targets(task: BatchTask) -> Iterator[tuple[str, str]]:
    """Yield the pictures of a task, each with the name of its result."""
    root = text_of(task.part, "root")
    template = Template(text_of(task.part, "out"), _CALL)
    for name in list_of(task.part, "names"):
        source = check_name(storage.join(root, str(name)), task.roots, _CALL)
        yield source, template.name_of(source, root)


def filter_group(task: BatchTask, report: ProgressReport) -> Made:
    """Filter the pictures of a group. One that fails does not keep the others from being made.

    While one is filtered, others are read and written, so that storage may be slow.
    """
    from dala.media.filters.pipeline import FramePipeline
    from dala.media.pictures.filtering import filter_picture, large_pictures

    spec = task.spec
    packed, device = list_of(spec, "chain"), text_of(spec, "device")
    chain = unpack_chain(packed, task.work)
    options = PictureJobOptions.from_json(_CALL, spec)
    targets = dict(_targets(task))
    key = json.dumps(["pictures", task.work, packed, device])
    with (
        large_pictures(),
        kept(key, lambda: FramePipeline(1 << 20, 1 << 20, device=device)) as pipeline,
        _Traffic(list(targets), task.home, report) as traffic,
    ):
        for source, target in targets.items():
            check_name(target, task.roots, _CALL, writes=True)
            try:
                made, data = io.BytesIO(), traffic.read(source)
                check_level(task.environment, partial(_deep, data, source, options.max_pixels))
                suffix = os.path.splitext(target)[1]
                filter_picture(pipeline, chain, data, made, suffix, options)
            except Exception as error:
                traffic.failed(source, error)
                continue
            traffic.write(source, target, made.getvalue())
        traffic.finish()
    failures = tuple(traffic.failures[name] for name in targets if name in traffic.failures)
    files = {targets[name]: traffic.made[name] for name in targets if name in traffic.made}
    return Made(
        len(files), traffic.bytes_read, traffic.bytes_written, failures=failures, files=files
    )


def _deep(data: bytes, name: str, most: int) -> str:
    """Return the name of a picture of more than 8 bits; "" for others."""
    from dala.media.files import read_picture

    found = read_picture(data, most, color="raw", depth="stored")
    return f"{name!r}, a picture of {found.bits} bits," if found.bits > 8 else ""


class _Traffic:
    """Reads pictures ahead, and writes results while others are filtered.

    Args:
        names: the pictures, in the order in which they are read.
        home: the folder of the results.
        report: is called with the number of results that are written.
    """

    def __init__(self, names: list[str], home: str, report: ProgressReport) -> None:
        self._home = home
        self._report = report
        self._pool = forks.pool(_AHEAD, "dala-pictures")
        self._names = iter(names)
        self._reads: deque[Future[bytes]] = deque()
        #: Results on their way: the picture, the bytes, and the write.
        self._writes: deque[tuple[str, int, Future[ResultFile]]] = deque()
        self._held = 0
        self.failures: dict[str, PartFailure] = {}
        #: The records of the results, by picture.
        self.made: dict[str, ResultFile] = {}
        self.bytes_read = self.bytes_written = 0

    def read(self, name: str) -> bytes:
        """Return the bytes of the next picture."""
        while len(self._reads) < _AHEAD and (following := next(self._names, None)) is not None:
            self._reads.append(self._pool.submit(storage.read_bytes, following))
        found = self._reads.popleft().result()
        self.bytes_read += len(found)
        return found

    def write(self, name: str, target: str, data: bytes) -> None:
        """Write a result; wait while too many are on their way."""
        self._writes.append((name, len(data), self._pool.submit(self._keep, target, data)))
        self._held += len(data)
        while self._writes and (
            len(self._writes) > _AHEAD or self._held > _HELD or self._writes[0][2].done()
        ):
            self._written()

    def _keep(self, target: str, data: bytes) -> ResultFile:
        storage.write_bytes(target, data, self._home)
        return file_record(target, digest=checksum(data))

    def _written(self) -> None:
        name, size, write = self._writes.popleft()
        self._held -= size
        try:
            self.made[name] = write.result()
        except Exception as error:
            self.failed(name, error)
            return
        self.bytes_written += size
        self._report(len(self.made))

    def failed(self, name: str, error: Exception) -> None:
        """Note a picture that cannot be read, filtered or written."""
        self.failures[name] = PartFailure.of(name, error)

    def finish(self) -> None:
        """Wait for all results."""
        while self._writes:
            self._written()

    def __enter__(self) -> _Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
