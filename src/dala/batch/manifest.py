"""The manifest of a job: a small file for each finished task, so that a job goes on after anything.

The folder of a job, beside its results, has the plan (``plan.json``), an index of each video
(``index/``), unfinished results (``parts/``), and a record of each task that is done (``done/``) or
was given up (``failed/``). Every file appears whole or not at all. Workers write the records, after
the files that these speak of: if one of them dies, what it has recorded is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from dala import forks
from dala.batch import storage
from dala.batch.chains import newest
from dala.batch.tasks import JsonObject, Result, json_object
from dala.errors import BatchError, ParameterError
from dala.typing import NDArray

#: Seconds between two signs of life of a driver.
_BEAT: Final = 5.0
#: Seconds after which a silent driver counts as gone.
_SILENT: Final = 30.0
#: How often a driver tries to leave its sign of life.
_TRIES: Final = 10
#: Seconds before a sign that cannot be read is read again.
_PAUSE: Final = 0.2
#: Seconds by which clocks of machines may differ.
_DAY: Final = 86400.0


class Manifest:
    """The records in the folder of a job.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manifest = Manifest(folder)
    ...     manifest.record(Result("clip-0", 30, 1.0, 1.0))
    ...     manifest.result_of("clip-0").frames, manifest.result_of("clip-1")
    (30, None)
    """

    def __init__(self, work: str) -> None:
        self.work = work
        #: Digests of the names of the records that a run found, sorted; None before it begins.
        self._before: NDArray | None = None

    def file(self, *parts: str) -> str:
        """Return the name of a file in the folder of the job."""
        return storage.join(self.work, *parts)

    # the plan -----------------------------------------------------------------------------------
    def header(self) -> JsonObject | None:
        """Return the plan that the folder was made for; None if there is none."""
        try:
            return newest(json_object(storage.read_bytes(self.file("plan.json")), "plan.json"))
        except FileNotFoundError:
            return None
        except ParameterError as error:
            raise BatchError(
                f"batch: {self.file('plan.json')!r} is damaged ({error}) Remove the folder, or "
                "run without resume."
            ) from None

    def begin(self, header: JsonObject, resume: bool) -> bool:
        """Keep the plan, and the records if the same plan is resumed; return whether it is.

        Raises:
            BatchError: another plan is to be resumed.
        """
        before = self.header() if resume else None
        if before is not None and before != header:
            changed = sorted(k for k in {*before, *header} if before.get(k) != header.get(k))
            raise BatchError(
                f"batch: the job in {self.work!r} cannot be resumed: {', '.join(changed)} "
                "differ from its plan. Run it without resume to start over."
            )
        storage.remove(self.file("finished.json"))
        if before is None:
            self.clear()
            storage.write_bytes(self.file("plan.json"), json.dumps(header, indent=1).encode())
        self._before = _digests(self._records() if before is not None else ())
        return before is not None

    def _records(self) -> Iterator[str]:
        """Yield the ids of the tasks that are done: one listing, not a request for each."""
        for facts in storage.list_folder(self.file("done")):
            yield storage.name_of(facts.name).removesuffix(".json")

    def is_unfinished(self) -> bool:
        """Return whether a run was stopped, or has failures."""
        there = storage.exists(self.file("plan.json"))
        return there and not storage.exists(self.file("finished.json"))

    def end(self, whole: bool) -> None:
        """Note that a run has ended; ``whole`` if nothing failed."""
        if whole:
            storage.write_bytes(self.file("finished.json"), b"{}")

    def clear(self) -> None:
        """Remove all records and unfinished results; the indexes of videos stay."""
        for folder in ("done", "failed", "parts"):
            storage.remove_tree(self.file(folder))
        for name in ("plan.json", "finished.json"):
            storage.remove(self.file(name))

    def discard(self) -> None:
        """Remove the folder of a job that has done nothing."""
        if not storage.is_folder(self.file("done")) and not storage.is_folder(self.file("parts")):
            storage.remove_tree(self.work)

    # records ------------------------------------------------------------------------------------
    def record(self, result: Result) -> None:
        """Keep the record of a finished task."""
        storage.write_bytes(self.file("done", f"{result.id}.json"), result.to_json().encode())

    def is_done(self, id: str) -> bool:
        """Return whether there is a record of a task; after :meth:`begin`, one of an earlier run.

        >>> Manifest("memory://nothing").is_done("clip-0")
        False
        """
        if self._before is None:
            return storage.exists(self.file("done", f"{id}.json"))
        wanted = _digests([id])[0]
        at = int(np.searchsorted(self._before, wanted))
        return at < len(self._before) and bool(self._before[at] == wanted)

    def result_of(self, id: str) -> Result | None:
        """Return the record of a task; None if it is not done."""
        if self._before is not None and not self.is_done(id):
            return None
        try:
            return Result.from_json(storage.read_bytes(self.file("done", f"{id}.json")))
        except (FileNotFoundError, ParameterError):
            return None  # it is done, again if its record is damaged

    def forget(self, id: str) -> None:
        """Remove the record of a task, so that it is done again."""
        storage.remove(self.file("done", f"{id}.json"))

    def record_failure(self, id: str, label: str, error: str) -> None:
        """Keep why a task was given up."""
        text = json.dumps({"id": id, "label": label, "error": error}, indent=1)
        storage.write_bytes(self.file("failed", f"{id}.json"), text.encode())

    # one driver at a time -----------------------------------------------------------------------
    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the only driver of the job within the block.

        A driver gives a sign of life every few seconds. One on this machine that has ended, and one
        that was silent for half a minute, no longer counts; nor does a sign that cannot be read.

        Raises:
            BatchError: another driver runs the job, or its sign cannot be removed.
        """
        name, token = self.file("driver.json"), secrets.token_hex(8)
        tries = 0
        while not storage.create(name, _sign(token)):
            tries += 1
            if tries == _TRIES:
                raise BatchError(
                    f"batch: {name!r} can be neither read nor replaced. Remove it, and run the job "
                    "again."
                )
            other = self._driver(name)
            if other is None and tries < _TRIES // 2:
                time.sleep(_PAUSE)  # it has just ended, or is about to write its sign
                continue
            if other is not None and _is_alive(other):
                since = time.strftime("%H:%M:%S", time.localtime(_number(other, "since")))
                raise BatchError(
                    f"batch: another driver (process {other.get('process')} on "
                    f"{other.get('machine')}) has run this job since {since}. Wait for it, or stop "
                    f"it first. The job is in {self.work!r}."
                )
            storage.remove(name)
        began = time.time()
        ended = forks.event()

        def beat() -> None:
            while not ended.wait(_BEAT):
                if self._holds(name, token):
                    storage.write_bytes(name, _sign(token, began))

        thread = forks.thread(beat, name="dala batch driver")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            if self._holds(name, token):
                storage.remove(name)

    def _holds(self, name: str, token: str) -> bool:
        found = self._driver(name)
        return found is not None and found.get("token") == token

    def _driver(self, name: str) -> JsonObject | None:
        """Return the sign of a driver; None if there is none that can be read."""
        try:
            found = json_object(storage.read_bytes(name), "driver.json")
        except (FileNotFoundError, ParameterError):
            return None
        texts = all(isinstance(found.get(key), str) for key in ("machine", "token"))
        most = {"process": 2**31, "since": time.time() + _DAY, "beat": time.time() + _DAY}
        numbers = all(
            isinstance(value := found.get(key), int | float)
            and type(value) is not bool
            and 0 <= value < end
            for key, end in most.items()
        )
        return found if texts and numbers else None


def _digests(ids: Iterable[str]) -> NDArray:
    """Return a number for each id, sorted: eight bytes each, where a job has millions."""
    found = (hashlib.blake2b(id.encode(), digest_size=8).digest() for id in ids)
    return np.sort(np.frombuffer(b"".join(found), "<u8"))


def _sign(token: str, since: float | None = None) -> bytes:
    now = time.time()
    return json.dumps({
        "machine": socket.gethostname(), "process": os.getpid(), "token": token,
        "since": since or now, "beat": now,
    }).encode()  # fmt: skip


def _number(values: JsonObject, key: str) -> float:
    found = values[key]
    assert isinstance(found, int | float)
    return float(found)


def _is_alive(other: JsonObject) -> bool:
    if time.time() - _number(other, "beat") > _SILENT:
        return False
    if other.get("machine") != socket.gethostname():
        return True
    if sys.platform == "win32":
        return True  # os.kill would send it a Ctrl-C there; its silence shows that it ended
    try:
        os.kill(int(_number(other, "process")), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
