"""The task of a table: run the model over pictures or a share of a video."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import dala
from dala import forks
from dala.batch import storage
from dala.batch.manifest import file_record
from dala.batch.options import ClassifyJobOptions, ModelJobOptions
from dala.batch.places import check_name
from dala.batch.tables.parquet import RowFile, rows_of, schema
from dala.batch.tasks import (
    BatchTask,
    JsonObject,
    Made,
    PartFailure,
    ProgressReport,
    int_of,
    list_of,
    object_of,
    text_of,
    worker_name,
)
from dala.errors import BatchError

if TYPE_CHECKING:
    from dala.media.frame import Frame
    from dala.media.video.reader import Reader
    from dala.ml.model import Model
    from dala.ml.results import Prediction


class Share:
    """The stretch of a video that one of several tasks looks at.

    Args:
        duration: seconds of the video by its header; None if unknown.
        number: which of the tasks, from 0.
        count: how many tasks.
        every: seconds between two frames; None for all frames.

    >>> shares = [Share(10.0, k, 3, Fraction(1)) for k in range(3)]
    >>> [(float(s.start), None if s.end is None else float(s.end)) for s in shares]
    [(0.0, 3.0), (3.0, 6.0), (6.0, None)]
    """

    def __init__(
        self, duration: float | None, number: int, count: int, every: Fraction | None
    ) -> None:
        self._every = every
        self._last = -1
        self.empty = False
        if not duration or duration <= 0:
            # Nothing can be shared out: the first task does it all.
            self.empty, number, count = number > 0, 0, 1
            duration = 0.0
        whole = Fraction(duration).limit_denominator(1_000_000)
        if every is None:
            borders = [whole * k / count for k in (number, number + 1)]
        else:
            steps = math.ceil(whole / every)
            borders = [steps * k // count * every for k in (number, number + 1)]
        self.start = borders[0]
        #: None for the last task, which goes on to the real end of the video.
        self.end = None if number == count - 1 else borders[1]

    def wants(self, time: Fraction) -> bool:
        """Return whether to take the frame of a time; times ascend."""
        if time < self.start or self.over(time):
            return False
        if self._every is None:
            return True
        step = math.floor(time / self._every)
        if step <= self._last:
            return False
        self._last = step
        return True

    def over(self, time: Fraction) -> bool:
        """Return whether a time is after this share."""
        return self.end is not None and time >= self.end


def frames_of(reader: Reader, share: Share) -> Iterator[Frame]:
    """Yield the frames of a share."""
    if share.empty or (share.end is not None and share.start >= share.end):
        return
    if share.start > 0:
        reader.seek(share.start)
    ended = False

    def wanted(time: Fraction) -> bool:
        nonlocal ended
        ended = share.over(time)
        return ended or share.wants(time)

    for frame in reader.where(wanted):
        if ended:
            return
        yield frame


#: The model of this process, which lives on between tasks: its key, and the model.
_loaded: dict[tuple[str, str, str], Model[Prediction]] = {}
_loading: Final = forks.lock()
#: Folders with copies of models, removed when the process ends.
_copies: list[tempfile.TemporaryDirectory[str]] = []


def version_of(path: str | Path) -> str:
    """Return the version of a model's weights: the start of the digest of its file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def load(task: str, name: str, provider: str) -> Model[Prediction]:
    """Return a model by name or from a file, loaded once by each process."""
    from dala.ml.gpu import load_model
    from dala.ml.models import find_model

    key = (task, name, provider)
    with _loading:
        if key not in _loaded:
            _close_all()
            if find_model(name) is not None:
                _loaded[key] = load_model(name, provider)
            else:
                _loaded[key] = load_model(_local_file(name), provider, task=task)
        return _loaded[key]


def _local_file(name: str) -> str:
    """Return the path of a model's file, which is copied from storage first if it is elsewhere."""
    path = storage.local_path(name)
    if path is not None:
        return str(path)
    folder = tempfile.TemporaryDirectory(prefix="dala-model-")
    made = Path(folder.name, storage.name_of(name))
    made.write_bytes(storage.read_bytes(name))
    _copies.append(folder)
    return str(made)


def close_models() -> None:
    """Close the models of this process."""
    with _loading:
        _close_all()


def _close_all() -> None:
    while _loaded:
        _loaded.popitem()[1].close()


def part_name(work: str, id: str) -> str:
    """Return the name of the rows of a task.

    >>> part_name("/out/.dala-batch/1", "ab")
    '/out/.dala-batch/1/parts/ab.parquet'
    """
    return storage.join(work, "parts", f"{id}.parquet")


def make_rows(task: BatchTask, report: ProgressReport) -> Made:
    """Write the rows of a task to its part in the folder of the job."""
    spec, part = task.spec, task.part
    kind = text_of(spec, "task")
    name, version = text_of(spec, "model"), text_of(spec, "version")
    model = load(kind, name, text_of(spec, "provider"))
    top = ClassifyJobOptions.from_json("batch", spec).top
    found = version_of(model.path)
    if found != version:
        raise BatchError(
            f"batch: the worker {worker_name()} cannot take part: its weights of {model.name!r} "
            f"are {found}, the plan has {version}. Copy the driver's file {model.path} there, or "
            "remove its own."
        )
    target = part_name(task.work, task.id)
    failures: list[PartFailure] = []
    seen = 0
    about = {"dala.task": kind, "dala.model": model.name, "dala.version": version}
    with storage.writing(target, base=task.home) as path:
        file = RowFile(path, schema(kind), about)
        pictures = "names" in part
        results = _pictures(task, model, failures) if pictures else _video(task, model)
        for label, time, result in results:
            for row in rows_of(kind, result, label, time, top):
                file.add({**row, "model": model.name, "version": version})
            seen += 1
            report(seen)
        file.close()
        written = path.stat().st_size
    facts: JsonObject = {"rows": file.rows}
    files = {target: file_record(target)}
    read = int_of(part, "bytes")
    return Made(seen, read, written, facts, failures=tuple(failures), files=files)


def _options(task: BatchTask) -> dict[str, float]:
    made: dict[str, float] = {}
    for name, value in object_of(task.spec, "options").items():
        assert isinstance(value, int | float)
        made[name] = value
    return made


def _pictures(
    task: BatchTask, model: Model[Prediction], failures: list[PartFailure]
) -> Iterator[tuple[str, None, Prediction]]:
    """Yield the result of each picture. One that cannot be read does not keep the others."""
    from dala.media.frame import Frame

    options, root = _options(task), text_of(task.part, "root")
    for name in map(str, list_of(task.part, "names")):
        source = check_name(storage.join(root, name), task.roots, "batch")
        try:
            with dala.device(text_of(task.spec, "device")):
                frame = Frame.open(storage.read_bytes(source))
                result = model.predict(frame, **options)
        except Exception as error:
            failures.append(PartFailure.of(source, error))
            continue
        yield storage.shown(source), None, result


def _video(
    task: BatchTask, model: Model[Prediction]
) -> Iterator[tuple[str, float | None, Prediction]]:
    """Yield the result of each frame that is looked at."""
    from dala.media import video

    part = task.part
    source = check_name(text_of(part, "video"), task.roots, "batch")
    step = cast("Fraction | None", ModelJobOptions.from_json("batch", task.spec).every)
    options, label = _options(task), storage.shown(source)
    device = dala.device(text_of(task.spec, "device"))
    with device, video.open(storage.source(source), policy="every") as reader:
        share = Share(reader.duration, int_of(part, "share"), int_of(part, "shares"), step)
        frames = frames_of(reader, share)
        if model.spec.steps is None:
            for one in model.stream(frames, policy="every", **options):
                yield label, None if one.time is None else float(one.time), one.result
        else:  # in a stream it would remember frames, and rows depend on how videos are shared
            for frame in frames:
                time = None if frame.time is None else float(frame.time)
                yield label, time, model.predict(frame, **options)
