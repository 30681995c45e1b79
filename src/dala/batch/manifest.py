"""The manifest of a job: a small file for each finished task, so that a job goes on after anything.

The folder of a job, beside its results, has the plan (``plan.json``), an index of each video
(``index/``), unfinished results (``parts/``), and a record of each task that is done (``done/``) or
was given up (``failed/``). Workers write the records, after the files that these speak of: if one
of them dies, what it has recorded is there. A record has the size, the time and the checksum of
each of these files. It has no names: the task says where they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from typing import Final

import numpy as np

from dala.batch import storage
from dala.batch.storage import STATE, Facts, records
from dala.batch.storage.holding import Holder
from dala.batch.tasks import JsonObject, Result, ResultFile
from dala.errors import BatchError, StorageError, StorageNotFound
from dala.notices import notify
from dala.typing import NDArray

#: Results of a task from which on a folder elsewhere is listed, instead of asking for each.
_MANY: Final = 8


class Manifest:
    """The records in the folder of a job.

    Args:
        work: the folder.
        say: is called with a sentence about a damaged record.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manifest = Manifest(folder)
    ...     manifest.record(Result("clip-0", 30, 1.0, 1.0))
    ...     manifest.finished("clip-0").frames, manifest.finished("clip-1")
    (30, None)
    """

    def __init__(self, work: str, say: records.Say = notify) -> None:
        self.work = work
        self._say = say
        #: Digests of the names of the records that a run found, sorted; None before it begins.
        self._before: NDArray | None = None
        #: The folder elsewhere that was listed last, and digests of the facts of its files.
        self._listed: tuple[str, NDArray] = ("", _digests(()))
        # One job has the folder of the results, whatever it does there.
        above = storage.parent(work)
        home = above if storage.name_of(above) == STATE else work
        self._holder = Holder(home, work, say)

    def file(self, *parts: str) -> str:
        """Return the name of a file in the folder of the job."""
        return storage.join(self.work, *parts)

    # the plan -----------------------------------------------------------------------------------
    def header(self) -> JsonObject | None:
        """Return the plan that the folder was made for; None if there is none."""
        return records.read(self.file("plan.json"), dict, self._say)

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
            records.write(self.file("plan.json"), header)
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
            with suppress(StorageError):  # all is done, if the disk is full too
                records.write(self.file("finished.json"), {})

    def clear(self) -> None:
        """Remove all records and unfinished results; the indexes of videos stay."""
        # The plan first: without it, records that are still there belong to nothing.
        for name in ("plan.json", "finished.json"):
            storage.remove(self.file(name))
        for folder in ("done", "failed", "parts"):
            storage.remove_tree(self.file(folder))

    def discard(self) -> None:
        """Remove the folder of a job that has done nothing."""
        if not storage.is_folder(self.file("done")) and not storage.is_folder(self.file("parts")):
            storage.remove_tree(self.work)

    # records ------------------------------------------------------------------------------------
    def record(self, result: Result, files: Iterable[str] = ()) -> None:
        """Keep the record of a finished task, once its files are on the disk.

        Args:
            result: of the task, with what is known of its files.
            files: their names.
        """
        for folder in dict.fromkeys(map(storage.parent, files)):
            storage.settle(folder)
        records.write(self.file("done", f"{result.id}.json"), asdict(result))

    def is_done(self, id: str) -> bool:
        """Return whether there is a record of a task; after :meth:`begin`, one of an earlier run.

        >>> Manifest("memory://nothing").is_done("clip-0")
        False
        """
        if self._before is None:
            return storage.exists(self.file("done", f"{id}.json"))
        return _has(self._before, _digests([id])[0])

    def finished(self, id: str, files: Sequence[str] = ()) -> Result | None:
        """Return the record of a finished task whose files have not changed.

        Args:
            id: of the task.
            files: the names of its files, in the order of the record.
        """
        if self._before is not None and not self.is_done(id):
            return None
        found = records.read(self.file("done", f"{id}.json"), Result.of, self._say)
        if found is None or found.id != id or len(found.files) != len(files):
            return None
        listed = len(files) >= _MANY and storage.is_url(files[0])
        whole = all(
            (listed and self._is_listed(name, known)) or self._is_whole(name, known)
            for name, known in zip(files, found.files, strict=True)
        )
        return found if whole else None

    def _is_listed(self, name: str, known: ResultFile) -> bool:
        """Return whether the listing of a folder has a file as it was."""
        folder = storage.parent(name)
        if folder != self._listed[0]:
            self._listed = folder, _digests(map(_facts, storage.list_folder(folder)))
        wanted = _facts(Facts(name, known.size, known.stamp))
        return _has(self._listed[1], _digests([wanted])[0])

    def _is_whole(self, name: str, known: ResultFile) -> bool:
        """Return whether a file is there with its size and its time, or with its checksum."""
        try:
            found = storage.facts(name)
            if found.size != known.size:
                return False
            return found.stamp == known.stamp or file_record(name, found).digest == known.digest
        except StorageNotFound:
            return False

    def record_failure(self, id: str, label: str, error: str) -> None:
        """Keep why a task was given up, for people; the report has it, too."""
        about: JsonObject = {"id": id, "label": label, "error": error}
        with suppress(StorageError):  # it may have failed for a full disk
            records.write(self.file("failed", f"{id}.json"), about)

    # one driver at a time -----------------------------------------------------------------------
    def hold(self) -> AbstractContextManager[None]:
        """Be the only driver in the folder of the results within a block.

        The system says whether one on this machine still runs. One on another machine counts as
        gone after half a minute of silence; a sign that cannot be read does not count.

        Raises:
            BatchError: another driver runs a job there, or its sign cannot be removed.
        """
        return self._holder.held()

    def check_held(self) -> None:
        """Raise BatchError if another driver has taken the folder."""
        self._holder.check()


def checksum(data: bytes) -> str:
    """Return the checksum of the bytes of a file.

    >>> checksum(b"hello")
    '2cf24dba5fb0a30e26e83b2ac5b9e29e'
    """
    return hashlib.sha256(data).hexdigest()[:32]


def file_record(name: str, found: Facts | None = None, digest: str = "") -> ResultFile:
    """Return the record of a complete file.

    Args:
        name: its name.
        found: its facts, if they are known.
        digest: its checksum, if it was computed while the file was made.

    >>> storage.write_bytes("memory://example/a.txt", b"hello")
    >>> file_record("memory://example/a.txt").digest
    '2cf24dba5fb0a30e26e83b2ac5b9e29e'
    """
    found = found or storage.facts(name)
    if not digest:
        with storage.open_read(name) as file:
            whole = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]  # it has readinto
        digest = whole.hexdigest()[:32]
    return ResultFile(found.size, found.stamp, digest)


def _facts(found: Facts) -> str:
    return f"{storage.name_of(found.name)}\0{found.size}\0{found.stamp}"


def _digests(ids: Iterable[str]) -> NDArray:
    """Return a number for each id, sorted: eight bytes each, where a job has millions."""
    found = (hashlib.blake2b(id.encode(), digest_size=8).digest() for id in ids)
    return np.sort(np.frombuffer(b"".join(found), "<u8"))


def _has(sorted_digests: NDArray, wanted: int) -> bool:
    at = int(np.searchsorted(sorted_digests, wanted))
    return at < len(sorted_digests) and bool(sorted_digests[at] == wanted)
