"""Tasks: what travels to workers, and what comes back. Names, times and settings; never frames."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from time import perf_counter, process_time
from types import UnionType
from typing import Any, Final, Self, TypeAlias, cast

from dala.errors import ParameterError

#: A value of JSON.
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
#: An object of JSON.
JsonObject: TypeAlias = "dict[str, Json]"

#: Is called with the number of frames (or pictures) that a task has finished so far.
ProgressReport: TypeAlias = "Callable[[int], None]"

#: The function that does each kind of task: ``f(task, report) -> Made``, as "module:name".
HANDLERS: Final = {
    "index": "dala.batch.video.work:index_videos",
    "scene": "dala.batch.scene.work:render_scene",
    "scene stitch": "dala.batch.scene.work:stitch_rendered",
    "scenes": "dala.batch.scene.work:count_frames",
    "pictures": "dala.batch.pictures:filter_group",
    "table": "dala.batch.tables.work:make_rows",
    "stitch": "dala.batch.video.work:stitch_video",
    "video": "dala.batch.video.work:filter_part",
    "videos": "dala.batch.video.work:filter_videos",
}


@dataclass(frozen=True)
class BatchTask:
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

    def to_json(self) -> str:
        """Return the task as text."""
        return json.dumps(asdict(self), separators=(",", ":"))

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


@dataclass(frozen=True)
class Made:
    """What the function of a task returns."""

    #: Frames, pictures or rows.
    frames: int
    bytes_read: int = 0
    bytes_written: int = 0
    #: What later tasks and the report need.
    facts: JsonObject = field(default_factory=dict)
    #: What was converted, repaired or left out.
    notices: tuple[str, ...] = ()
    #: Files of a group that failed, while others were made.
    failures: tuple[PartFailure, ...] = ()


@dataclass(frozen=True)
class PartFailure:
    """A file of a group that failed."""

    label: str
    error: str
    #: Whether another try cannot change it.
    final: bool = False


@dataclass(frozen=True)
class Result:
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

    def to_json(self) -> str:
        """Return the result as text."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the result of a text.

        Raises:
            ParameterError: the text is none.
        """
        call = "Result.from_json"
        found = json_object(text, call)
        try:
            failures = tuple(PartFailure(**one) for one in found.pop("failures", ()))
            notices = tuple(found.pop("notices", ()))
            made = cls(**found, notices=notices, failures=failures)
        except TypeError as error:
            raise ParameterError(f"{call}: {error}.") from None
        for names, kind, expected in _KINDS:
            for name in names:
                value = getattr(made, name)
                if not isinstance(value, kind) or isinstance(value, bool):
                    raise ParameterError.invalid(call, name, expected, value)
        return made


#: The types of a result's values.
_KINDS: Final[tuple[tuple[tuple[str, ...], type | UnionType, str], ...]] = (
    (("id", "worker"), str, "a text"),
    (("frames", "bytes_read", "bytes_written"), int, "an int"),
    (("seconds", "cpu_seconds"), int | float, "a number"),
    (("facts",), dict, "an object"),
)


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
    from dala.media.notices import collected

    check_environment(task.environment)
    start, used = perf_counter(), process_time()
    with collected() as notices:
        made = handler(task.kind)(task, report or _ignore)
    result = Result(
        task.id,
        made.frames,
        round(perf_counter() - start, 4),
        round(process_time() - used, 4),
        made.bytes_read,
        made.bytes_written,
        worker_name(),
        made.facts,
        (*made.notices, *notices),
        made.failures,
    )
    if not result.failures:
        Manifest(task.work).record(result)
    return result


def _ignore(frames: int) -> None:
    """BatchReport to no one."""


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


def text_of(values: Mapping[str, Json], key: str) -> str:
    """Return a text of a task's settings.

    >>> text_of({"out": "a.mp4"}, "out")
    'a.mp4'
    """
    found = values.get(key)
    if not isinstance(found, str):
        raise ParameterError.invalid("task", key, "a text", found)
    return found


def int_of(values: Mapping[str, Json], key: str) -> int:
    """Return a whole number of a task's settings.

    >>> int_of({"count": 3}, "count")
    3
    """
    found = values.get(key)
    if not isinstance(found, int) or isinstance(found, bool):
        raise ParameterError.invalid("task", key, "an int", found)
    return found


def object_of(values: Mapping[str, Json], key: str) -> JsonObject:
    """Return an object of a task's settings.

    >>> object_of({"options": {"crf": "20"}}, "options")
    {'crf': '20'}
    """
    found = values.get(key)
    if not isinstance(found, dict):
        raise ParameterError.invalid("task", key, "an object", found)
    return found


def list_of(values: Mapping[str, Json], key: str) -> list[Json]:
    """Return a list of a task's settings.

    >>> list_of({"files": ["a.png"]}, "files")
    ['a.png']
    """
    found = values.get(key)
    if not isinstance(found, list):
        raise ParameterError.invalid("task", key, "a list", found)
    return found
