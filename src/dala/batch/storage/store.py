"""Files of a job, wherever they are: find, read by ranges, write whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from dala.batch.storage.entries import Facts, Place, StoredPart
from dala.batch.storage.faults import Retries, retrying, storage_errors
from dala.batch.storage.local import LocalPlace
from dala.batch.storage.patterns import has_magic, split, walk
from dala.batch.storage.reading import RangeReader
from dala.batch.storage.remote import FileSystem, RemotePart, RemotePlace
from dala.batch.storage.urls import (
    Roots,
    check_protocol,
    is_local,
    local_path,
    protocol_of,
    shown,
)
from dala.errors import ParameterError, StorageNotFound
from dala.media.parts import UnfinishedFile

T = TypeVar("T")

#: A value of an option of storage, such as an address, a key or a number of connections.
StorageOption: TypeAlias = "str | int | float | bool | Mapping[str, StorageOption] | None"
#: Options of storage by protocol, as fsspec takes them: ``{"s3": {"endpoint_url": "..."}}``.
StorageOptions: TypeAlias = Mapping[str, Mapping[str, StorageOption]]


class FileStore:
    """Files on disks, in S3, Google Cloud, Azure or behind HTTP, in one form.

    Every call takes a path or a URL. Local files are read and written directly; the others through
    fsspec. Requests that fail for a reason that passes (503, "slow down", a lost connection, no
    answer) are sent again with growing pauses. A storage is small, and can be pickled: a worker
    opens its own connections.

    Args:
        options: options of fsspec by protocol, such as ``{"s3": {"endpoint_url": "..."}}``.
        roots: folders and files that it is kept to; anything by default.
        retries: how often requests are sent, and how long they may take.

    >>> store = FileStore()
    >>> store.write("memory://example/a.txt", b"hello")
    >>> [(file.path, file.size) for file in store.find("memory://example/*.txt")]
    [('a.txt', 5)]
    """

    def __init__(
        self,
        options: StorageOptions | None = None,
        roots: Iterable[str] | None = None,
        retries: Retries | None = None,
    ) -> None:
        self.options = {name: dict(value) for name, value in (options or {}).items()}
        for name in self.options:
            check_protocol("storage.configure", name)
        self.roots = None if roots is None else Roots(roots)
        self.retries = retries or Retries()
        self._places: dict[str, Place] = {}

    def __reduce__(self) -> tuple[object, ...]:
        roots = None if self.roots is None else self.roots.urls
        return FileStore, (self.options, roots, self.retries)

    def __repr__(self) -> str:  # options hold keys and secrets
        kept = "" if self.roots is None else f" kept to {', '.join(map(shown, self.roots.urls))}"
        return f"<FileStore{kept}>"

    def within(self, roots: Iterable[str]) -> FileStore:
        """Return the same storage, kept to these roots."""
        return FileStore(self.options, roots, self.retries)

    # finding ------------------------------------------------------------------------------------
    def find(
        self, pattern: str | os.PathLike[str] | Sequence[str], suffixes: Iterable[str] = ()
    ) -> Iterator[Facts]:
        """Yield the files of a pattern, a folder, a file, or a list of them.

        ``*``, ``?``, ``[...]`` and ``**`` work as in a shell. A folder stands for all files below
        it. They come sorted by name, folder by folder, while storage is listed.

        Args:
            pattern: what to find.
            suffixes: those that files of a folder must have, such as ``".mp4"``; any by default.

        Raises:
            StorageNotFound: there is no such file or folder.
            StorageError: storage cannot be listed.
        """
        patterns = [pattern] if isinstance(pattern, str | os.PathLike) else pattern
        if not isinstance(patterns, Sequence) or not patterns:
            raise ParameterError.invalid(
                "storage.find", "pattern", "a path, a URL, a pattern, or a list of them", pattern
            )
        wanted = tuple(suffix.lower() for suffix in suffixes)
        for one in patterns:
            yield from self._find(_text("storage.find", one), wanted)

    def _find(self, url: str, suffixes: tuple[str, ...]) -> Iterator[Facts]:
        call = "storage.find"
        self._check(call, split(url)[0] if has_magic(url) else url)
        if not has_magic(url) or self.exists(url):  # a name may hold a bracket
            try:
                yield self.stat(url)
                return
            except StorageNotFound:
                if not self.is_folder(url):
                    raise
            folder, parts = url, ["**"]
        else:
            (folder, parts), suffixes = split(url), ()
        for file in walk(self._scan, folder, parts):
            if not suffixes or file.name.lower().endswith(suffixes):
                yield file

    def _scan(self, url: str) -> tuple[list[str], Iterator[Facts]]:
        place = self._place(url)
        return self._again(lambda: place.scan(url), "storage.find", url)

    def list(self, folder: str) -> Iterator[Facts]:
        """Yield the files in a folder, none if there is no such folder."""
        self._check("storage.list", folder)
        try:
            _, files = self._scan(folder)
        except StorageNotFound:
            return
        yield from files

    # facts --------------------------------------------------------------------------------------
    def stat(self, url: str) -> Facts:
        """Return the size of a file and what tells that it was replaced.

        Raises:
            StorageNotFound: there is no such file.
        """
        place = self._place(url, "storage.stat")

        def found() -> Facts:
            try:
                return place.stat(url)
            except IsADirectoryError:
                raise FileNotFoundError(url) from None

        return self._again(found, "storage.stat", url)

    def size(self, url: str) -> int:
        """Return the bytes of a file."""
        return self.stat(url).size

    def exists(self, url: str) -> bool:
        """Return whether there is such a file; False for folders."""
        try:
            self.stat(url)
        except StorageNotFound:
            return False
        return True

    def is_folder(self, url: str) -> bool:
        """Return whether there is such a folder."""
        place = self._place(url, "storage.stat")
        return self._again(lambda: place.is_folder(url), "storage.stat", url)

    # reading ------------------------------------------------------------------------------------
    def open(self, url: str) -> RangeReader:
        """Open a file for reading. Only the byte ranges that are read are fetched.

        Raises:
            StorageNotFound: there is no such file.
        """
        call = "storage.open"
        place = self._place(url, call)
        size = self.stat(url).size

        def fetch(start: int, end: int) -> bytes:
            return self._again(lambda: place.read(url, start, end), call, url)

        return RangeReader(fetch, size, url)

    def source(self, url: str) -> str | RangeReader:
        """Return what ``video.open`` reads: the path of a local file, else the open file."""
        if not is_local(url):
            return self.open(url)
        self._check("storage.open", url)
        return local_path(url)

    def read(self, url: str) -> bytes:
        """Return all bytes of a file."""
        call = "storage.read"
        place = self._place(url, call)
        return self._again(lambda: place.read(url, 0, place.stat(url).size), call, url)

    # writing ------------------------------------------------------------------------------------
    def write(self, url: str, data: bytes) -> None:
        """Write a file, whole or not at all. Folders are made."""
        place = self._place(url, "storage.write", writes=True)
        self._again(lambda: place.write(url, data), "storage.write", url)

    def create(self, url: str, data: bytes) -> bool:
        """Write a file unless there is another one. Return whether the file is this one.

        Of two machines that try at the same time with different data, one succeeds: on file
        systems, S3, Google Cloud and in memory. Other storage is asked whether there is a file,
        and then written.
        """
        call = "storage.create"
        place = self._place(url, call, writes=True)

        def write() -> bool:
            try:
                place.create(url, data)
            except FileExistsError:
                # An answer may have been lost, and libraries below send requests again by
                # themselves: then the file is that of the attempt before.
                try:
                    return self.read(url) == data
                except StorageNotFound:  # it was another's, who has just removed it
                    return False
            return True

        return self._again(write, call, url)

    def part(self, url: str, suffix: str = "") -> StoredPart:
        """Return a new file to write on this machine, which gets its name when it is complete."""
        call = "storage.part"
        place = self._place(url, call, writes=True)
        with storage_errors(call, url):
            made = place.part(url, suffix)
        return _Retried(made, self, url) if isinstance(made, RemotePart) else made

    def remove_tree(self, folder: str) -> None:
        """Remove a folder with all that is in it. One that is gone is no error."""
        place = self._place(folder, "storage.remove_tree", writes=True)
        try:
            self._again(lambda: place.remove_tree(folder), "storage.remove_tree", folder)
        except StorageNotFound:
            return

    def remove(self, url: str) -> None:
        """Remove a file. One that is gone is no error."""
        place = self._place(url, "storage.remove", writes=True)
        try:
            self._again(lambda: place.remove(url), "storage.remove", url)
        except StorageNotFound:
            return

    def system_of(self, url: str) -> FileSystem | None:
        """Return the file system of fsspec for a URL, for other libraries; None for local files."""
        place = self._place(url, "storage.open")
        return place.system if isinstance(place, RemotePlace) else None

    # inside -------------------------------------------------------------------------------------
    def _place(self, url: str, call: str = "", *, writes: bool = False) -> Place:
        if call:
            self._check(call, url, writes=writes)
        protocol = protocol_of(url)
        found = self._places.get(protocol)
        if found is None:
            if protocol == "file":
                found = LocalPlace()
            else:
                options = self.options.get(protocol, {})
                found = RemotePlace(protocol, options, self.retries.timeout)
            self._places[protocol] = found
        return found

    def _check(self, call: str, url: str, *, writes: bool = False) -> None:
        if self.roots is not None:
            self.roots.check(call, url, writes=writes)

    def _again(self, work: Callable[[], T], call: str, url: str) -> T:
        return retrying(work, self.retries, call, url)


class _Retried(UnfinishedFile):
    """A part whose upload is tried again."""

    def __init__(self, part: RemotePart, store: FileStore, url: str) -> None:
        self._part = part
        self._store = store
        self._url = url
        self.path = part.path

    def complete(self) -> None:
        retrying(self._part.complete, self._store.retries, "storage.part", self._url)

    def discard(self) -> None:
        self._part.discard()


def _text(call: str, url: str | os.PathLike[str]) -> str:
    if isinstance(url, os.PathLike):
        url = os.fspath(url)
    if not isinstance(url, str) or not url:
        raise ParameterError.invalid(call, "pattern", "a path or a URL", url)
    return url
