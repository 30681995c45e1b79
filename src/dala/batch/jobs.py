"""Jobs: work on files, planned before it is run."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, Unpack, cast

from dala.batch.chains import Assets
from dala.batch.driver import Display, Driver, Step
from dala.batch.environment import environment, processor_text, resumed_environment
from dala.batch.manifest import Manifest
from dala.batch.options import RunOptions
from dala.batch.places import Template, digest, root_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.report import BatchReport
from dala.batch.runners import Resources, Runner, make_runner
from dala.batch.storage import STATE, Facts, join, shown
from dala.batch.tasks import BatchTask, Json, JsonObject, Result
from dala.errors import ParameterError, counted
from dala.notices import notify
from dala.options import takes

if TYPE_CHECKING:
    from dala.batch.keywords import RunKeywords

#: The version of the folder of a job.
_VERSION: Final = 2


@dataclass(eq=False, repr=False)
class BatchJob(ABC):
    """Work on many files, in processes of this machine or on a cluster.

    Created by ``batch.videos``, ``batch.images``, ``batch.scenes`` and others::

        job = batch.images("photos/**/*.jpg", out="small/{path}.webp", chain=["denoise"])
        print(job.plan())
        report = job.run()

    Args:
        call: the call that made it, for messages.
        patterns: absolute names of the inputs.
        out: the names of the results.
        spec: settings that all tasks share.
        assets: pictures and files of the chain.
        device: the id of the device that filters run on; "" for none.
        encoder: FFmpeg's name of the encoder; "" for none.
        threads: of the encoder.
        outside: which stage is outside the contract of bytes, and why; "" if none is.
    """

    #: The kind of results, if packages of their own decide their bytes.
    kind: ClassVar[str] = ""

    call: str
    patterns: list[str]
    out: Template
    spec: JsonObject
    assets: Assets = field(default_factory=Assets)
    device: str = ""
    encoder: str = ""
    threads: int = 1
    outside: str = ""

    def __post_init__(self) -> None:
        exact = not self.outside
        self.environment = environment(self.device, self.encoder, self.kind, exact=exact)
        #: The folder with the state of the job, beside its results.
        self.work = join(self.out.root, STATE, digest(json.dumps(self._what(), sort_keys=True)))
        #: The folders that tasks keep to.
        self.roots = tuple(dict.fromkeys([*map(root_of, self.patterns), self.out.root]))

    def _what(self) -> JsonObject:
        return {
            "call": self.call, "patterns": list(self.patterns), "out": self.out.text,
            "spec": self.spec,
        }  # fmt: skip

    def header(self) -> JsonObject:
        """Return the facts that must be equal for a job to be resumed."""
        fixed: JsonObject = {**self.environment}
        return {"version": _VERSION, **self._what(), "environment": fixed}

    def task(
        self, id: str, kind: str, label: str, part: JsonObject, weight: float = 1.0, group: str = ""
    ) -> BatchTask:
        """Return a task of this job."""
        shared = self.environment, self.roots
        return BatchTask(id, kind, label, self.work, self.spec, part, *shared, weight, group)

    # what each kind of job says ---------------------------------------------------------------
    @abstractmethod
    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield the first tasks, lazily and in an order that does not change."""

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the tasks that a finished one makes possible."""
        return ()

    def results_of(self, task: BatchTask) -> list[str]:
        """Return the names of the files that a task makes, in the order of its record."""
        return []

    def finished(self, task: BatchTask, manifest: Manifest) -> Result | None:
        """Return the result of a task that an earlier run has done; None to do it.

        It is done if its record is there, and the files that it speaks of are what they were.
        """
        return manifest.finished(task.id, self.results_of(task))

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many results a finished task completes."""
        return 0

    @abstractmethod
    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return the plan of the job: files, tasks, bytes, and an estimate of the time.

        Args:
            calibrate: do a piece of the job for a few seconds, in as many processes as a run on
                this machine would have, to estimate the time and the bytes of the results.
        """

    @property
    def processors(self) -> str:
        """Which processors can take part, and why; "" if filters run elsewhere."""
        return processor_text(self.environment, self.outside)

    def write_assets(self, folder: str | None = None) -> None:
        """Write pictures and files of the chain into the folder of the job, for workers."""
        self.assets.write(self.work if folder is None else folder)

    def resources(self) -> Resources:
        """Return the default resources of this job's tasks."""
        return Resources(threads=self.threads, device=self.device or "cpu")

    # running ----------------------------------------------------------------------------------
    @takes(RunOptions)
    def run(self, on: str = "local", **given: Unpack[RunKeywords]) -> BatchReport:
        """Run the job; return a report. Files that failed are in ``report.failures``.

        Args:
            on: "local" for processes of this machine, "ray" for the Ray cluster that is there, or
                the address of one.

        Raises:
            ParameterError: an argument is invalid.
            BatchError: another driver runs the job, or the job cannot be resumed.
            FileNotFoundError: no file matches.
        """
        options = RunOptions.checked("Job.run", given)
        resources = replace(
            self.resources(), workers=options.workers, gpus=options.gpus, cpus=options.cpus,
            memory=cast("int | None", options.memory),  # as it is after the check
        )  # fmt: skip
        runner = make_runner(on, resources)
        if options.metrics and runner.name != "ray":
            raise ParameterError.invalid(
                "Job.run", "metrics", "False, as this is no Ray cluster", True, "Use on='ray'."
            )
        damaged: list[str] = []
        manifest = Manifest(self.work, damaged.append)
        try:
            with manifest.hold():
                report, where = self._driven(runner, manifest, options)
        except FileNotFoundError:
            manifest.discard()  # no file matches: there is no job
            raise
        report.on = f"{runner.name} ({where})"
        report.notices = list(dict.fromkeys([*damaged, *report.notices]))
        return report

    def _driven(
        self, runner: Runner, manifest: Manifest, options: RunOptions
    ) -> tuple[BatchReport, str]:
        """Run all tasks; return the report, and where they ran."""
        cancel, resume = True, options.resume
        display = Display(options.progress)
        if options.metrics:
            from dala.batch.runners.metrics import RayDisplay

            display = RayDisplay(options.progress)
        try:
            where = runner.start()  # first: if it fails, the job has not begun
            if not resume and manifest.is_unfinished():
                notify(
                    f"{self.call}: what an earlier run has left in {self.work!r} is done again. "
                    "resume=True goes on with it."
                )
            if resume and (before := manifest.header()) is not None:
                fixed = before.get("environment")
                self.environment = resumed_environment(self.environment, fixed)
            manifest.begin(self.header(), resume)
            self.write_assets()
            report = Driver(self, runner, manifest, options.retries, display).run()
            manifest.end(report.ok)
            cancel = False
        finally:
            display.close()
            runner.stop(cancel)
        return report, where


class GroupedJob(BatchJob):
    """A job with tasks over groups of pictures."""

    def group(
        self, kind: str, files: list[Facts], root: str, weight: float, **more: Json
    ) -> BatchTask:
        """Return a task over pictures below a root."""
        key = digest(root, *(f"{f.name}\0{f.size}\0{f.stamp}" for f in files))
        label = f"{counted(len(files), 'pictures')} from {shown(files[0].name)}"
        part: JsonObject = {"root": root, "names": [f.inside(root) for f in files], **more}
        return self.task(key, kind, label, part, weight=weight)


def pictures_in(task: BatchTask) -> int:
    """Return how many pictures a task has; 0 for one of a video."""
    names = task.part.get("names")
    return len(names) if isinstance(names, list) else 0
