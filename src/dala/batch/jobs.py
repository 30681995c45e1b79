"""Jobs: what is to be done with which files, planned before it is run."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from dala.batch.chains import Assets
from dala.batch.display import Display
from dala.batch.driver import Driver, Step
from dala.batch.environment import environment
from dala.batch.manifest import Manifest
from dala.batch.places import STATE, Template, digest, root_of
from dala.batch.planning.plans import BatchPlan
from dala.batch.report import BatchReport
from dala.batch.runners import Resources, Runner, make_runner
from dala.batch.storage import join
from dala.batch.tasks import BatchTask, JsonObject, Result
from dala.errors import ParameterError
from dala.media.notices import notify

#: The version of the folder of a job.
_VERSION: Final = 1


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
    """

    #: The kind of results, if packages of their own decide their bytes.
    kind: ClassVar[str] = ""

    def __init__(
        self,
        call: str,
        patterns: list[str],
        out: Template,
        spec: JsonObject,
        *,
        assets: Assets | None = None,
        device: str = "",
        encoder: str = "",
        threads: int = 1,
    ) -> None:
        self.call = call
        self.patterns = patterns
        self.out = out
        self.spec = spec
        self.environment = environment(device, encoder, self.kind)
        self._assets = assets or Assets()
        self._device = device
        self._threads = threads
        #: The folder with the state of the job, beside its results.
        self.work = join(out.root, STATE, digest(json.dumps(self._what(), sort_keys=True)))
        #: The folders that tasks keep to.
        self.roots = tuple(dict.fromkeys([*map(root_of, patterns), out.root]))

    def _what(self) -> JsonObject:
        return {
            "call": self.call, "patterns": list(self.patterns), "out": self.out.text,
            "spec": self.spec,
        }  # fmt: skip

    def header(self) -> JsonObject:
        """Return what must be the same for a job to be resumed."""
        fixed: JsonObject = {**self.environment}
        return {"version": _VERSION, **self._what(), "environment": fixed}

    def task(
        self,
        id: str,
        kind: str,
        label: str,
        part: JsonObject,
        *,
        weight: float = 1.0,
        group: str = "",
    ) -> BatchTask:
        """Return a task of this job."""
        return BatchTask(
            id, kind, label, self.work, self.spec, part, self.environment, self.roots,
            weight, group,
        )  # fmt: skip

    # what each kind of job says ---------------------------------------------------------------
    @abstractmethod
    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield the first tasks, lazily and in an order that does not change."""

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the tasks that a finished one makes possible."""
        return ()

    def finished(self, task: BatchTask, manifest: Manifest) -> Result | None:
        """Return the result of a task that an earlier run has done; None to do it."""
        return manifest.result_of(task.id)

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many results a finished task completes."""
        return 0

    @abstractmethod
    def plan(self, calibrate: bool = True) -> BatchPlan:
        """Return what the job would do: files, tasks, bytes, and an estimate of the time.

        Args:
            calibrate: do a piece of the job for a few seconds, in as many processes as a run on
                this machine would have, to estimate the time and the bytes of the results.
        """

    def write_assets(self, folder: str | None = None) -> None:
        """Write pictures and files of the chain into the folder of the job, for workers."""
        self._assets.write(self.work if folder is None else folder)

    def resources(self) -> Resources:
        """Return what tasks of this job need, where the caller does not say."""
        return Resources(threads=self._threads, device=self._device or "cpu")

    # running ----------------------------------------------------------------------------------
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
    ) -> BatchReport:
        """Run the job; return what was done. Files that failed are in ``report.failures``.

        Args:
            on: "local" for processes of this machine, "ray" for the Ray cluster that is there, or
                the address of one.
            workers: processes of a local run; by default as many as the threads of encoders leave
                room for.
            gpus: the share of a GPU that a task takes.
            cpus: the CPUs that a task takes; by default the threads of its encoder.
            memory: the memory that a task takes, in bytes or such as "2GB".
            resume: go on with what an earlier run of the same job has left, instead of starting
                over.
            retries: how often a task that failed is tried again.
            progress: show a line of progress; by default if standard error is a terminal.

        Raises:
            ParameterError: an argument is invalid.
            BatchError: another driver runs the job, or the job cannot be resumed.
            FileNotFoundError: no file matches.
        """
        if not isinstance(resume, bool):
            raise ParameterError.invalid("Job.run", "resume", "True or False", resume)
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ParameterError.invalid("Job.run", "retries", "an int of at least 0", retries)
        resources = _resources(workers, gpus, cpus, memory, self._threads, self._device)
        runner = make_runner(on, resources)
        manifest = Manifest(self.work)
        display = Display(progress)
        try:
            with manifest.hold():
                report, where = self._driven(runner, manifest, retries, display, resume)
        except FileNotFoundError:
            manifest.discard()  # no file matches: there is no job
            raise
        report.on = f"{runner.name} ({where})"
        return report

    def _driven(
        self, runner: Runner, manifest: Manifest, retries: int, display: Display, resume: bool
    ) -> tuple[BatchReport, str]:
        """Run all tasks; return the report, and where they ran."""
        cancel = True
        try:
            where = runner.start()  # first: if it fails, the job has not begun
            if not resume and manifest.is_unfinished():
                notify(
                    f"{self.call}: what an earlier run has left in {self.work!r} is done again. "
                    "resume=True goes on with it."
                )
            manifest.begin(self.header(), resume)
            self.write_assets()
            report = Driver(self, runner, manifest, retries, display).run()
            manifest.end(report.ok)
            cancel = False
        finally:
            display.close()
            runner.stop(cancel)
        return report, where


def _resources(
    workers: int | None,
    gpus: float | None,
    cpus: float | None,
    memory: int | str | None,
    threads: int,
    device: str,
) -> Resources:
    call = "Job.run"
    if workers is not None and (
        isinstance(workers, bool) or not isinstance(workers, int) or workers < 1
    ):
        raise ParameterError.invalid(call, "workers", "an int of at least 1, or None", workers)
    for name, value in (("gpus", gpus), ("cpus", cpus)):
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6
        ):
            raise ParameterError.invalid(call, name, "a number of at least 0, or None", value)
    limit = None if memory is None else _bytes(call, memory)
    return Resources(workers, gpus, cpus, limit, threads, device or "cpu")


_UNITS: Final = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20,
                 "GIB": 1 << 30}  # fmt: skip


def _bytes(call: str, given: int | str) -> int:
    """Return a number of bytes.

    >>> _bytes("Job.run", "2GB"), _bytes("Job.run", 1024)
    (2000000000, 1024)
    """
    if isinstance(given, str):
        text = given.strip().upper().replace(" ", "")
        unit = text.lstrip("0123456789.")
        number = text[: len(text) - len(unit)]
        if unit in _UNITS and number.replace(".", "", 1).isdigit():
            return round(float(number) * _UNITS[unit])
    elif isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    raise ParameterError.invalid(call, "memory", "bytes, or a text such as '2GB'", given)
