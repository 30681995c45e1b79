"""Jobs whose result is a table: ``batch.detect``, ``classify``, ``faces``, ``hands``, ``poses``."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dala import folders
from dala.batch import storage
from dala.batch.driver import Step
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest
from dala.batch.pictures import SUFFIXES, device_id
from dala.batch.places import Patterns, Template, absolute, digest, find_files, patterns_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.report import BatchReport
from dala.batch.tables.parquet import write_folder
from dala.batch.tables.rows import TASKS, pyarrow, schema
from dala.batch.tables.sampling import seconds_of
from dala.batch.tables.table import ResultTable
from dala.batch.tables.work import close_models, load, version_of
from dala.batch.tasks import BatchTask, Json, JsonObject, Result, text_of
from dala.errors import ParameterError, counted
from dala.media.video.suffixes import VIDEO_SUFFIXES
from dala.typing import PathLike

if TYPE_CHECKING:
    import ray.data

#: A video is shared by so many tasks that each has about so many bytes of it.
_SHARE_BYTES: Final = 256 << 20
#: Pictures that are one task at most.
_GROUP: Final = 64


def detect(
    pattern: Patterns,
    *,
    out: PathLike | None = None,
    model: str = TASKS["detect"],
    every: float | str | Fraction | None = None,
    provider: str = "auto",
    device: str | None = None,
    **options: float,
) -> TableJob:
    """Find objects in many videos and pictures; the result is a table.

    Args:
        pattern: a folder, a pattern, a name or a list of them; paths or URLs.
        out: a folder for the table as Parquet files. Without it, ``run`` keeps the rows on this
            machine, and ``to_parquet`` writes them; clusters need one that all machines reach.
        model: the name of a model (``dala models``), or an ONNX file that all machines reach.
        every: seconds between two frames that are looked at, or a text such as "1s" or "500ms"; by
            default all frames.
        provider: the ONNX Runtime provider. "auto" takes that of this machine for all workers.
        device: where pictures are prepared; by default the current device.
        **options: those of the model's ``predict``, such as ``score``.

    Raises:
        ParameterError: an argument is invalid.
        UnknownModel: there is no such model.

    Example::

        batch.detect("videos/", model="yolo_v5", every="1s").run().to_parquet("found/")
    """
    return _job("detect", pattern, out, model, every, provider, device, options)


def classify(
    pattern: Patterns,
    *,
    out: PathLike | None = None,
    model: str = TASKS["classify"],
    every: float | str | Fraction | None = None,
    top: int = 1,
    provider: str = "auto",
    device: str | None = None,
    **options: float,
) -> TableJob:
    """Classify many pictures and frames of videos; the result is a table.

    Args:
        top: how many classes each picture has in the table.

    The others are those of :func:`detect`.

    Example::

        batch.classify("photos/**/*.jpg", top=3).run().to_parquet("classes/")
    """
    return _job("classify", pattern, out, model, every, provider, device, options, top)


def faces(
    pattern: Patterns,
    *,
    out: PathLike | None = None,
    model: str = TASKS["faces"],
    every: float | str | Fraction | None = None,
    provider: str = "auto",
    device: str | None = None,
    **options: float,
) -> TableJob:
    """Find faces in many videos and pictures; the table has their keypoints too.

    The arguments are those of :func:`detect`.

    Example::

        batch.faces("videos/**/*.mp4", every="2s").run().to_parquet("faces/")
    """
    return _job("faces", pattern, out, model, every, provider, device, options)


def hands(
    pattern: Patterns,
    *,
    out: PathLike | None = None,
    model: str = TASKS["hands"],
    every: float | str | Fraction | None = None,
    provider: str = "auto",
    device: str | None = None,
    **options: float,
) -> TableJob:
    """Find hands in many videos and pictures; the table has their keypoints too.

    The arguments are those of :func:`detect`.

    Example::

        batch.hands("videos/**/*.mp4", every="1s").run().to_parquet("hands/")
    """
    return _job("hands", pattern, out, model, every, provider, device, options)


def poses(
    pattern: Patterns,
    *,
    out: PathLike | None = None,
    model: str = TASKS["poses"],
    every: float | str | Fraction | None = None,
    provider: str = "auto",
    device: str | None = None,
    **options: float,
) -> TableJob:
    """Find people and their keypoints in many videos and pictures; the result is a table.

    The arguments are those of :func:`detect`.

    Example::

        batch.poses("videos/**/*.mp4", every="1s").run().to_parquet("poses/")
    """
    return _job("poses", pattern, out, model, every, provider, device, options)


def _job(
    task: str,
    pattern: Patterns,
    out: PathLike | None,
    model: str,
    every: float | str | Fraction | None,
    provider: str,
    device: str | None,
    options: dict[str, float],
    top: int = 1,
) -> TableJob:
    call = f"batch.{task}"
    pyarrow(call)
    patterns = patterns_of(pattern, call)
    step = seconds_of(every, call, "every")
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= 10_000:
        raise ParameterError.invalid(call, "top", "an int from 1 to 10000", top)
    name = _model_name(task, model, call)
    if not isinstance(provider, str):
        raise ParameterError.invalid(call, "provider", "a name, or 'auto'", provider)
    try:
        loaded = load(task, name, provider)
        loaded.spec.chosen(options)
        settings: dict[str, Json] = {
            "task": task,
            "model": name,
            "version": version_of(loaded.path),
            "provider": loaded.provider if provider == "auto" else provider,
            "every": "" if step is None else str(step),
            "top": top,
            "device": device_id(device),
            "options": {**options},
        }  # fmt: skip
    finally:
        close_models()
    return TableJob(call, patterns, out, settings)


def _model_name(task: str, model: str, call: str) -> str:
    """Return the name of a model that fits a task, or the file of one."""
    from dala.ml.custom import TASKS as FILE_TASKS
    from dala.ml.models import find_model

    if not isinstance(model, str) or not model:
        raise ParameterError.invalid(call, "model", "the name of a model or an ONNX file", model)
    known = find_model(model)
    if known is None:
        is_file = storage.is_url(model) or os.path.isfile(model)
        if is_file and task not in FILE_TASKS:
            raise ParameterError.invalid(call, "model", "the name of a model (dala models)", model)
        return absolute(model, call, "model") if is_file else model
    if known.task != task:
        home = f"batch.{known.task}" if known.task in TASKS else f"dala {known.task}"
        raise ParameterError(
            f"{call}: model must be one for this call, got {model!r}, which is for {home}.",
            call=call,
            argument="model",
        )
    return known.name


@dataclass
class TableReport(BatchReport):
    """What a job with a table did, and its table.

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


class TableJob(BatchJob):
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
        place = self.folder or self._home(call)
        made = Template(storage.join(place, "{path}{suffix}"), call)
        device = text_of(spec, "device")
        super().__init__(call, patterns, made, spec, device=device)

    @staticmethod
    def _home(call: str) -> str:
        found = folders.cache_folder("batch")
        if found is None:
            raise ParameterError(f"{call}: there is no home folder. Name a folder: out=...")
        return str(found)

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task for each share of a video, and for each group of pictures."""
        group: list[storage.Facts] = []
        before = ""
        for facts, root in find_files(self.patterns, VIDEO_SUFFIXES | SUFFIXES, self.call):
            if self.folder and facts.name.startswith(f"{self.folder}/"):
                continue
            picture = os.path.splitext(storage.name_of(facts.name))[1].lower() in SUFFIXES
            if group and (not picture or root != before or len(group) >= _GROUP):
                yield self._group(group, before)
                group = []
            before = root
            if picture:
                group.append(facts)
            else:
                yield from self._shares(facts)
        if group:
            yield self._group(group, before)

    def _group(self, files: list[storage.Facts], root: str) -> BatchTask:
        names: list[Json] = [facts.name[len(root) :].strip("/") for facts in files]
        key = digest(root, *(f"{f.name}\0{f.size}\0{f.stamp}" for f in files))
        size = sum(f.size for f in files)
        part: JsonObject = {"root": root, "names": names, "bytes": size}
        label = f"{counted(len(files), 'pictures')} from {storage.shown(files[0].name)}"
        return self.task(key, "table", label, part, weight=float(size))

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

    def finished(self, task: BatchTask, manifest: Manifest) -> Result | None:
        """Return the result of a task whose rows are there."""
        if not manifest.is_done(task.id):
            return None
        names = task.part.get("names")
        return Result(task.id, len(names) if isinstance(names, list) else 0, 0.0, 0.0)

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many inputs a finished task completes."""
        if "names" in task.part:
            return result.frames
        return 1 if task.part.get("share") == 0 else 0

    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the number of files, tasks and bytes, and an estimate of the time.

        Args:
            calibrate: look through some of the files for a few seconds, in as many processes as a
                run on this machine would have, to estimate the time.
        """
        from dala.batch.tables.estimate import Looked

        looked = Looked(self)
        plan = BatchPlan("files")
        for step in self.tasks(Manifest(self.work)):
            if isinstance(step, BatchTask):
                names = step.part.get("names")
                plan.chunks += 1
                plan.files += len(names) if isinstance(names, list) else 0
                plan.files += 1 if step.part.get("share") == 0 else 0
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
                name = manifest.file("parts", f"{step.id}.parquet")
                if storage.current().exists(name):
                    yield name

    def run(
        self,
        on: str = "local",
        *,
        workers: int | None = None,
        gpus: float | None = None,
        cpus: float | None = None,
        memory: int | str | None = None,
        resume: bool = False,
        retries: int = 2,
        progress: bool | None = None,
    ) -> TableReport:
        """Run the job; return what was done, and the table.

        The arguments are those of every job. With ``out``, the table is then in that folder.

        Raises:
            ParameterError: an argument is invalid, or a cluster is used without ``out``.
        """
        if on != "local" and not self.folder:
            raise ParameterError(
                f"{self.call}: out must be a folder that all machines reach if on is {on!r}. For "
                f"example: {self.call}(..., out='s3://bucket/found/').",
                call=self.call,
                argument="out",
            )
        found = super().run(
            on,
            workers=workers,
            gpus=gpus,
            cpus=cpus,
            memory=memory,
            resume=resume,
            retries=retries,
            progress=progress,
        )
        columns = schema(text_of(self.spec, "task"))
        table = ResultTable(self._parts, columns)
        if self.folder:
            write_folder(table.batches(), columns, self.folder)
            table = ResultTable(self._written, columns)
        kept = {f.name: getattr(found, f.name) for f in fields(BatchReport)}
        return TableReport(**kept, rows=len(table), table=table)

    def _written(self) -> Iterator[str]:
        for facts in storage.current().list(self.folder):
            if facts.name.endswith(".parquet"):
                yield facts.name
