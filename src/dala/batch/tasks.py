"""Tasks and their results, as they travel: names, times and settings; never frames."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple, Self, TypeAlias, cast

from dala.batch.storage import home_of
from dala.errors import MissingPackage, ParameterError, error_line

#: A value of JSON.
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
#: An object of JSON.
JsonObject: TypeAlias = "dict[str, Json]"

#: Errors that another try cannot change.
FINAL: Final = (ParameterError, MissingPackage)

#: Is called with the number of frames (or pictures) that a task has finished so far.
ProgressReport: TypeAlias = "Callable[[int], None]"

#: The function that does each kind of task: ``f(task, report) -> Made``, as "module:name".
HANDLERS: Final = {
    "index": "dala.batch.video.work:index_videos",
    "scene": "dala.batch.scene.job:render_scene",
    "scene stitch": "dala.batch.scene.job:stitch_rendered",
    "scenes": "dala.batch.scene.job:count_frames",
    "pictures": "dala.batch.pictures:filter_group",
    "table": "dala.batch.tables.work:make_rows",
    "stitch": "dala.batch.video.work:stitch_video",
    "video": "dala.batch.video.work:filter_part",
    "videos": "dala.batch.video.work:filter_videos",
}


class Record:
    """A dataclass that travels as JSON."""

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(cast("Any", self)), separators=(",", ":"))


@dataclass(frozen=True)
class BatchTask(Record):
    """A piece of a job: a few hundred bytes that a worker on any machine can act on.

    >>> task = BatchTask("a-0", "pictures", "2 pictures", "/out/.dala-batch/1", {"chain": []}, {})
    >>> BatchTask.from_json(task.to_json()) == task
    True
    """

    #: Stable within the job; the name of its record in the manifest.
    id: str
    #: A key of ``HANDLERS``.
    kind: str
    #: For people: "clip.mp4, 60 to 120 s".
    label: str
    #: The folder of the job, in which records and unfinished results are.
    work: str
    #: Settings that all tasks of the job share, such as the chain and the encoder.
    spec: JsonObject
    #: What is of this task only.
    part: JsonObject
    #: What a worker must match: versions, architecture, device.
    environment: dict[str, str] = field(default_factory=dict)
    #: Folders and URLs under which everything is that it may read and write.
    roots: tuple[str, ...] = ()
    #: Its share of the work, in any unit that the tasks of a job have in common.
    weight: float = 1.0
    #: The file that it is a part of: if a task is given up, the others of its group are not begun.
    group: str = ""

    @property
    def home(self) -> str:
        """The folder of the results. Below it no link is followed when files are written."""
        return home_of(self.work) or self.work

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the task of a text.

        Raises:
            ParameterError: the text is none.
        """
        found = json_object(text, "Task.from_json")
        try:
            return cls(**{**found, "roots": tuple(found.get("roots", ()))})
        except TypeError as error:
            raise ParameterError(f"Task.from_json: {error}.") from None


class ResultFile(NamedTuple):
    """A file that a task has made, as its record has it.

    >>> ResultFile.of([12, "1700000000", "00ff"]).size
    12
    """

    size: int
    #: The time of the file, or the storage's tag: if it is the same, the bytes are.
    stamp: str
    #: The checksum of the bytes.
    digest: str

    @classmethod
    def of(cls, found: Json) -> ResultFile:
        """Return the record of a value of JSON.

        Raises:
            ParameterError: it is none.
        """
        made = {"file": found}
        size, stamp, digest = _of("Result.of", made, "file", list)
        made = {"size": size, "stamp": stamp, "digest": digest}
        return cls(*(_of("Result.of", made, key, kind) for key, kind in _FILE.items()))


@dataclass(frozen=True)
class Made:
    """The result of the function of a task."""

    #: Frames, pictures or rows.
    frames: int
    bytes_read: int = 0
    bytes_written: int = 0
    #: What later tasks and the report need.
    facts: JsonObject = field(default_factory=dict)
    #: Files of a group that failed, while others were made.
    failures: tuple[PartFailure, ...] = ()
    #: The files that were made, by name: those that the job's ``results_of`` says.
    files: dict[str, ResultFile] = field(default_factory=dict)


@dataclass(frozen=True)
class PartFailure:
    """A file of a group that failed."""

    label: str
    error: str
    #: Whether another try cannot change it.
    final: bool = False

    @classmethod
    def of(cls, label: str, error: Exception) -> PartFailure:
        """Return the failure of a file by an exception.

        >>> PartFailure.of("a.png", ValueError("no"))
        PartFailure(label='a.png', error='ValueError: no', final=False)
        """
        return cls(label, error_line(error), isinstance(error, FINAL))


@dataclass(frozen=True)
class Result(Record):
    """The record of a finished task, kept in the manifest.

    >>> made = Result("a-0", 30, 1.5, 2.0, facts={"digest": "00"})
    >>> Result.from_json(made.to_json()) == made
    True
    """

    id: str
    frames: int
    seconds: float
    cpu_seconds: float
    bytes_read: int = 0
    bytes_written: int = 0
    #: The machine and process that did it.
    worker: str = ""
    facts: JsonObject = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    failures: tuple[PartFailure, ...] = ()
    #: The files of the task. It has no names of them: the task says where they are.
    files: tuple[ResultFile, ...] = ()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the result of a text.

        Raises:
            ParameterError: the text is none.
        """
        return cls.of(json_object(text, "Result.from_json"))

    @classmethod
    def of(cls, found: JsonObject) -> Self:
        """Return the result of an object of JSON.

        Raises:
            ParameterError: the object is none.
        """
        call = "Result.of"
        rest: dict[str, Any] = {**found}
        try:
            failures = tuple(PartFailure(**one) for one in rest.pop("failures", ()))
            notices = tuple(rest.pop("notices", ()))
            files = tuple(map(ResultFile.of, rest.pop("files", ())))
            made = cls(**rest, notices=notices, failures=failures, files=files)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{call}: {error}.") from None
        for name, kind in _KINDS.items():
            _of(call, vars(made), name, kind)
        return made


#: The types of a result's values.
_KINDS: Final[dict[str, type]] = {
    "id": str, "worker": str, "frames": int, "bytes_read": int, "bytes_written": int,
    "seconds": float, "cpu_seconds": float, "facts": dict,
}  # fmt: skip
#: The types of a file's values.
_FILE: Final[dict[str, type]] = {"size": int, "stamp": str, "digest": str}
_WORDS: Final = {
    str: "a text", int: "an int", float: "a number", dict: "an object", list: "a list",
}  # fmt: skip


def json_object(text: str | bytes, call: str) -> dict[str, Any]:
    """Return the object of a text.

    Raises:
        ParameterError: the text is no JSON, or no object.

    >>> json_object('{"frames": 30}', "example")
    {'frames': 30}
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{call}: it is not JSON ({error}).") from None
    if not isinstance(found, dict):
        raise ParameterError.invalid(call, "text", "an object", found)
    return found


def worker_name() -> str:
    """Return the name of this process among workers: the machine and the process.

    >>> worker_name().endswith(str(os.getpid()))
    True
    """
    return f"{socket.gethostname()}:{os.getpid()}"


def run_task(task: BatchTask, report: ProgressReport | None = None) -> Result:
    """Do a task and keep its record in the manifest. Runners call it on workers.

    It depends on nothing but the task, the files that it names, and this machine. Done twice, it
    makes the same files.

    Raises:
        BatchError: this machine differs from what the plan fixes.
        ParameterError: there is no such kind of task.

    Example::

        result = run_task(BatchTask.from_json(line))
    """
    from dala.batch.environment import check_environment
    from dala.batch.manifest import Manifest
    from dala.notices import collected

    check_environment(task.environment)
    start, used = perf_counter(), process_time()
    with collected() as notices:
        made = handler(task.kind)(task, report or (lambda frames: None))
    facts = {**vars(made), "files": tuple(made.files.values())}
    result = Result(
        task.id,
        seconds=round(perf_counter() - start, 4),
        cpu_seconds=round(process_time() - used, 4),
        worker=worker_name(),
        notices=tuple(notices),
        **facts,
    )
    if not result.failures:
        Manifest(task.work).record(result, made.files)
    return result


def handler(kind: str) -> Callable[[BatchTask, ProgressReport], Made]:
    """Return the function that does a kind of task.

    Raises:
        ParameterError: there is none.
    """
    place = HANDLERS.get(kind)
    if place is None:
        raise ParameterError.invalid("run_task", "kind", f"one of {', '.join(HANDLERS)}", kind)
    module, _, name = place.partition(":")
    return cast("Callable[[BatchTask, ProgressReport], Made]", getattr(import_module(module), name))


def _of(call: str, values: Mapping[str, Any], key: str, kind: type) -> Any:
    """Return a value of a kind; ints are numbers too."""
    found = values.get(key)
    accepted = (int, float) if kind is float else kind
    if not isinstance(found, accepted) or isinstance(found, bool):
        raise ParameterError.invalid(call, key, _WORDS[kind], found)
    return found


def text_of(values: Mapping[str, Json], key: str) -> str:
    """Return a text of a task's settings.

    >>> text_of({"out": "a.mp4"}, "out")
    'a.mp4'
    """
    return cast("str", _of("task", values, key, str))


def int_of(values: Mapping[str, Json], key: str) -> int:
    """Return a whole number of a task's settings.

    >>> int_of({"count": 3}, "count")
    3
    """
    return cast("int", _of("task", values, key, int))


def object_of(values: Mapping[str, Json], key: str) -> JsonObject:
    """Return an object of a task's settings.

    >>> object_of({"options": {"crf": "20"}}, "options")
    {'crf': '20'}
    """
    return cast("JsonObject", _of("task", values, key, dict))


def list_of(values: Mapping[str, Json], key: str) -> list[Json]:
    """Return a list of a task's settings.

    >>> list_of({"files": ["a.png"]}, "files")
    ['a.png']
    """
    return cast("list[Json]", _of("task", values, key, list))


def objects_of(values: Mapping[str, Json], key: str) -> list[JsonObject]:
    """Return a list of objects of a task's settings.

    >>> objects_of({"videos": [{"frames": 3}]}, "videos")
    [{'frames': 3}]
    """
    found = list_of(values, key)
    return [_of("task", {key: one}, key, dict) for one in found]


@dataclass(frozen=True)
class Started:
    """A worker began a task."""

    id: str
    worker: str


@dataclass(frozen=True)
class Progressed:
    """A task has finished so many of its frames."""

    id: str
    frames: int
    #: Seconds of processors that it has used, if known.
    cpu: float = 0.0


@dataclass(frozen=True)
class Finished:
    """A task is done, and its record is in the manifest."""

    id: str
    result: Result


@dataclass(frozen=True)
class Failed:
    """A task raised an error, or its worker was lost."""

    id: str
    error: str
    worker: str
    #: Whether it would fail everywhere, so that it is not tried again.
    final: bool = False
    #: Whether the worker died, rather than that the task raised an error.
    lost: bool = False


#: Anything that happened.
Event: TypeAlias = Started | Progressed | Finished | Failed
