"""Jobs whose result is a table: ``batch.detect``, ``classify``, ``faces``, ``hands``, ``poses``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, Unpack, cast

from dala import folders
from dala.batch import storage
from dala.batch.driver import Step
from dala.batch.jobs import GroupedJob, pictures_in
from dala.batch.manifest import Manifest
from dala.batch.options import ClassifyJobOptions, ModelJobOptions, RunOptions
from dala.batch.pictures import device_id
from dala.batch.places import Patterns, Template, absolute, digest, find_files, patterns_of
from dala.batch.planning.plans import BatchPlan, MeasuredSpeed, Sampled
from dala.batch.planning.plans import calibrate as measure
from dala.batch.report import BatchReport
from dala.batch.tables.parquet import TASKS, pyarrow, schema, write_folder
from dala.batch.tables.table import ResultTable
from dala.batch.tables.work import close_models, load, part_name, version_of
from dala.batch.tasks import BatchTask, Json, JsonObject, Result, int_of, list_of, text_of
from dala.errors import DalaError, ParameterError, counted
from dala.media.video.suffixes import PICTURE_SUFFIXES, VIDEO_SUFFIXES
from dala.options import takes
from dala.typing import PathLike

if TYPE_CHECKING:
    import ray.data

    from dala.batch.keywords import RunKeywords

#: A video is shared by so many tasks that each has about so many bytes of it.
_SHARE_BYTES: Final = 256 << 20
#: Pictures that are one task at most.
_GROUP: Final = 64


#: The value of an option.
OptionValue: TypeAlias = "float | str | Fraction | None"


@takes(ModelJobOptions)
def detect(pattern: Patterns, *, out: PathLike | None = None, **given: OptionValue) -> TableJob:
    """Find objects in many videos and pictures; the result is a table.

    The options of the model's ``predict``, such as ``overlap``, are taken too.

    Args:
        pattern: a folder, a pattern, a name or a list of them; paths or URLs.
        out: a folder for the table as Parquet files. Without it, ``run`` keeps the rows on this
            machine, and ``to_parquet`` writes them; clusters need one that all machines reach.

    Raises:
        ParameterError: an argument is invalid.
        UnknownModel: there is no such model.

    Example::

        batch.detect("videos/", model="yolo_v5", every="1s").run().to_parquet("found/")
    """
    return _job("detect", pattern, out, given)


@takes(ClassifyJobOptions)
def classify(pattern: Patterns, *, out: PathLike | None = None, **given: OptionValue) -> TableJob:
    """Classify many pictures and frames of videos; the result is a table.

    The arguments are those of :func:`detect`.

    Example::

        batch.classify("photos/**/*.jpg", top=3).run().to_parquet("classes/")
    """
    return _job("classify", pattern, out, given)


@takes(ModelJobOptions)
def faces(pattern: Patterns, *, out: PathLike | None = None, **given: OptionValue) -> TableJob:
    """Find faces in many videos and pictures; the table has their keypoints too.

    The arguments are those of :func:`detect`.

    Example::

        batch.faces("videos/**/*.mp4", every="2s").run().to_parquet("faces/")
    """
    return _job("faces", pattern, out, given)


@takes(ModelJobOptions)
def hands(pattern: Patterns, *, out: PathLike | None = None, **given: OptionValue) -> TableJob:
    """Find hands in many videos and pictures; the table has their keypoints too.

    The arguments are those of :func:`detect`.

    Example::

        batch.hands("videos/**/*.mp4", every="1s").run().to_parquet("hands/")
    """
    return _job("hands", pattern, out, given)


@takes(ModelJobOptions)
def poses(pattern: Patterns, *, out: PathLike | None = None, **given: OptionValue) -> TableJob:
    """Find people and their keypoints in many videos and pictures; the result is a table.

    The arguments are those of :func:`detect`.

    Example::

        batch.poses("videos/**/*.mp4", every="1s").run().to_parquet("poses/")
    """
    return _job("poses", pattern, out, given)


def _job(
    task: str, pattern: Patterns, out: PathLike | None, given: Mapping[str, OptionValue]
) -> TableJob:
    call = f"batch.{task}"
    pyarrow(call)
    patterns = patterns_of(pattern, call)
    group = ClassifyJobOptions if task == "classify" else ModelJobOptions
    specs = group.specs()
    options = group.checked(call, {n: v for n, v in given.items() if n in specs})
    own = {n: v for n, v in given.items() if (n not in specs or n == "score") and v is not None}
    predicting = cast("dict[str, float]", own)
    name = _model_name(task, TASKS[task] if options.model is None else options.model, call)
    try:
        loaded = load(task, name, options.provider)
        loaded.spec.chosen(predicting)
        settings: dict[str, Json] = {
            **options.to_json(),
            "task": task,
            "model": name,
            "version": version_of(loaded.path),
            "provider": loaded.provider if options.provider == "auto" else options.provider,
            "device": device_id(options.device),
            "options": {**predicting},
        }
    finally:
        close_models()
    return TableJob(call, patterns, out, settings)


def _model_name(task: str, model: str, call: str) -> str:
    """Return the name of a model that fits a task, or the file of one."""
    from dala.ml.custom import TASKS as FILE_TASKS
    from dala.ml.models import find_model

    known = find_model(model)
    if known is None:
        is_file = storage.is_url(model) or os.path.isfile(model)
        if is_file and task not in FILE_TASKS:
            raise ParameterError.invalid(call, "model", "the name of a model (dala models)", model)
        return absolute(model, call, "model") if is_file else model
    if known.task != task:
        home = f"batch.{known.task}" if known.task in TASKS else f"dala {known.task}"
        raise ParameterError(
            f"{call}: model must be one for this call, got {model!r}, which is for {home}."
        )
    return known.name


@dataclass
class TableReport(BatchReport):
    """The report of a job with a table, and the table.

    Example::

        report = batch.faces("videos/").run()
        print(report.rows)
        report.to_parquet("found/")
    """

    #: Rows of the table.
    rows: int = 0
    #: The table.
    table: ResultTable = field(default_factory=lambda: ResultTable([], None))

    def to_parquet(self, folder: PathLike) -> TableReport:
        """Write the table as Parquet files of a folder; return the report."""
        self.table.to_parquet(folder)
        return self

    def to_ray_dataset(self) -> ray.data.Dataset:
        """Return the table as a dataset of Ray Data."""
        return self.table.to_ray_dataset()

    def to_dict(self) -> dict[str, Json]:
        """Return the report as values of JSON, without the table."""
        kept = {f.name: getattr(self, f.name) for f in fields(BatchReport)}
        return {**BatchReport(**kept).to_dict(), "rows": self.rows}

    def __str__(self) -> str:
        return f"{super().__str__()}, {counted(self.rows, 'rows')}"


class TableJob(GroupedJob):
    """A job whose result is a table.

    Created by ``batch.detect`` and its sisters::

        job = batch.detect("videos/", every="1s", out="s3://films/found/")
        report = job.run(on="ray", gpus=0.25)
        for row in batch.read("s3://films/found/"):
            print(row["video"], row["time"], row["label"])
    """

    kind = "tables"

    def __init__(
        self, call: str, patterns: list[str], out: PathLike | None, spec: JsonObject
    ) -> None:
        #: The folder of the table; "" if the rows stay on this machine.
        self.folder = "" if out is None else absolute(out, call, "out").rstrip("/")
        place = self.folder or self._home(call, patterns, spec)
        made = Template(storage.join(place, "{path}{suffix}"), call)
        device = text_of(spec, "device")
        super().__init__(call, patterns, made, spec, device=device, outside="models are run")

    @staticmethod
    def _home(call: str, patterns: list[str], spec: JsonObject) -> str:
        """Return a folder for the rows on this machine, which is that of this job only."""
        found = folders.cache_folder("batch")
        if found is None:
            raise ParameterError(f"{call}: there is no home folder. Name a folder: out=...")
        what = json.dumps([call, patterns, spec], sort_keys=True)
        return storage.join(str(found), digest(what))

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task for each share of a video, and for each group of pictures."""
        group: list[storage.Facts] = []
        before = ""
        for facts, root in find_files(self.patterns, VIDEO_SUFFIXES | PICTURE_SUFFIXES, self.call):
            if self.folder and facts.name.startswith(f"{self.folder}/"):
                continue
            picture = os.path.splitext(storage.name_of(facts.name))[1].lower() in PICTURE_SUFFIXES
            if group and (not picture or root != before or len(group) >= _GROUP):
                yield self._pictures(group, before)
                group = []
            before = root
            if picture:
                group.append(facts)
            else:
                yield from self._shares(facts)
        if group:
            yield self._pictures(group, before)

    def _pictures(self, files: list[storage.Facts], root: str) -> BatchTask:
        size = sum(f.size for f in files)
        return self.group("table", files, root, float(size), bytes=size)

    def _shares(self, facts: storage.Facts) -> Iterator[BatchTask]:
        count = max(1, math.ceil(facts.size / _SHARE_BYTES))
        key = digest(facts.name, str(facts.size), facts.stamp)
        for number in range(count):
            part: JsonObject = {
                "video": facts.name, "share": number, "shares": count,
                "bytes": facts.size // count,
            }  # fmt: skip
            place = f", part {number + 1} of {count}" if count > 1 else ""
            label = f"{storage.shown(facts.name)}{place}"
            yield self.task(
                f"{key}-{number}", "table", label, part, weight=facts.size / count, group=key
            )

    def results_of(self, task: BatchTask) -> list[str]:
        """Return the name of the rows of a task."""
        return [part_name(self.work, task.id)]

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many inputs a finished task completes."""
        return result.frames if "names" in task.part else int(task.part.get("share") == 0)

    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the number of files, tasks and bytes, and an estimate of the time.

        Args:
            calibrate: look through some of the files for a few seconds, in as many processes as a
                run on this machine would have, to estimate the time.
        """
        looked = Looked(self)
        plan = BatchPlan("files")
        for step in self.tasks(Manifest(self.work)):
            if isinstance(step, BatchTask):
                plan.chunks += 1
                plan.files += pictures_in(step) + (step.part.get("share") == 0)
                plan.bytes_read += round(step.weight)
                looked.add(step)
        if calibrate:
            looked.estimate(plan)
        return plan

    def _parts(self) -> Iterator[str]:
        """Yield the names of the parts that are done, in the order of the files."""
        manifest = Manifest(self.work)
        for step in self.tasks(manifest):
            if isinstance(step, BatchTask):
                name = part_name(self.work, step.id)
                if storage.exists(name):
                    yield name

    @takes(RunOptions)
    def run(self, on: str = "local", **given: Unpack[RunKeywords]) -> TableReport:
        """Run the job; return a report, and the table.

        With ``out``, the table is then in that folder.

        Args:
            on: as for every job.

        Raises:
            ParameterError: an argument is invalid, or a cluster is used without ``out``.
        """
        if on != "local" and not self.folder:
            raise ParameterError(
                f"{self.call}: out must be a folder that all machines reach if on is {on!r}. For "
                f"example: {self.call}(..., out='s3://bucket/found/')."
            )
        found = super().run(on, **given)
        columns = schema(text_of(self.spec, "task"))
        table = ResultTable(self._parts, columns)
        if self.folder:
            write_folder(table.batches(), columns, self.folder)
            table = ResultTable(self._written, columns)
        return TableReport(**vars(found), rows=len(table), table=table)

    def _written(self) -> Iterator[str]:
        for facts in storage.list_folder(self.folder):
            if facts.name.endswith(".parquet"):
                yield facts.name


#: Tasks of pictures and of videos that are kept as samples.
_SAMPLE: Final = 16


class Looked:
    """The files of a job: how many frames of them are looked at, and how long one takes."""

    def __init__(self, job: TableJob) -> None:
        self._job = job
        self._pictures = Sampled[BatchTask](_SAMPLE)
        self._videos = Sampled[BatchTask](_SAMPLE)
        self._count = 0
        #: Bytes of all videos.
        self._bytes = 0

    def add(self, task: BatchTask) -> None:
        """Count the files of a task."""
        if "names" in task.part:
            self._pictures.add(task)
            self._count += len(list_of(task.part, "names"))
        else:
            self._videos.add(task)
            self._bytes += int_of(task.part, "bytes")

    def estimate(self, plan: BatchPlan) -> None:
        """Fill in the estimates of a plan; none if a sample cannot be looked through."""
        frames = self._frames()
        kinds = [(self._pictures, float(self._count)), (self._videos, frames)]
        measured = [
            (self._measured(sampled, plan.chunks), count) for sampled, count in kinds if count
        ]
        found = [(speed, count) for speed, count in measured if speed is not None]
        if not found or len(found) < len(measured):
            return
        total = sum(count for _, count in found)
        means = {
            name: sum(getattr(speed, name) * count for speed, count in found) / total
            for name in ("seconds", "cpu", "bytes")
        }
        plan.frames = round(total)
        plan.estimate(replace(found[0][0], **means), total, self._job.resources())

    def _measured(self, sampled: Sampled[BatchTask], chunks: int) -> MeasuredSpeed | None:
        kept = sampled.kept

        def sample(number: int, folder: str) -> BatchTask:
            return kept[(len(kept) // 2 + number) % len(kept)]

        return measure(self._job.resources(), chunks, sample)

    def _frames(self) -> float:
        """Return how many frames of all videos are looked at, by the headers of some."""
        options = ModelJobOptions.from_json(self._job.call, self._job.spec)
        every = cast("Fraction | None", options.every)
        looked = size = 0.0
        for task in self._videos.kept:
            found = _header(text_of(task.part, "video"))
            if found is not None:
                seconds, rate = found
                wanted = seconds / float(every) if every else seconds * rate
                looked += wanted / int_of(task.part, "shares")
                size += int_of(task.part, "bytes")
        return looked * self._bytes / size if size else 0.0


def _header(name: str) -> tuple[float, float] | None:
    """Return the seconds of a video and its frames a second; None if it does not say."""
    from dala.media import video

    try:
        with video.open(storage.source(name)) as reader:
            rate = float(reader.fps or 0)
            return (float(reader.duration), rate) if reader.duration and rate else None
    except (DalaError, OSError):
        return None
