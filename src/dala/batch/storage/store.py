"""Files of a job, wherever they are: find, read by ranges, write whole or not at all."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, TypeVar, cast

from dala.arguments import SOME, Items
from dala.batch.storage.local import LocalPlace
from dala.batch.storage.reading import RangeReader
from dala.batch.storage.remote import (
    FileSystem,
    RemotePart,
    RemotePlace,
    Retries,
    refused,
    retrying,
)
from dala.batch.storage.urls import (
    WEB,
    Facts,
    check_protocol,
    is_url,
    join,
    name_of,
    path_of,
    protocol_of,
)
from dala.errors import DalaError, ParameterError, StorageNotFound
from dala.media.parts import UnfinishedFile

#: Returns the folders and files of a folder.
Scan: TypeAlias = Callable[[str], tuple[list[str], Iterator[Facts]]]

_MAGIC: Final = re.compile(r"[*?\[]")
#: The part of a pattern that stands for any number of folders.
_ANY: Final = "**"


def has_magic(url: str) -> bool:
    """Return whether a URL is a pattern. Web addresses are none: a ``?`` begins their query.

    >>> has_magic("films/*.mp4"), has_magic("https://example.com/a.mp4?key=*")
    (True, False)
    """
    return protocol_of(url) not in WEB and _MAGIC.search(url) is not None


def split(pattern: str) -> tuple[str, list[str]]:
    """Return the folder that a pattern begins with, and the parts after it.

    >>> split("s3://films/2024/**/*.mp4")
    ('s3://films/2024', ['**', '*.mp4'])
    >>> split("*.mp4"), split("/*.mp4")
    (('.', ['*.mp4']), ('/', ['*.mp4']))
    """
    found = _MAGIC.search(pattern)
    assert found is not None
    at = pattern.rfind("/", 0, found.start())
    head = pattern[:at] if at >= 0 else "."
    if head == "" or head.endswith((":", "/")):
        head = pattern[: at + 1]
    return head, [part for part in pattern[at + 1 :].split("/") if part]


def walk(scan: Scan, folder: str, parts: list[str]) -> Iterator[Facts]:
    """Yield the files that match the parts of a pattern, sorted by name in each folder.

    ``*`` and ``?`` match no name that begins with a dot, as in a shell. Folders in which nothing
    can match are not listed, and no file is found twice.
    """
    if parts[-1] == _ANY:
        parts = [*parts, "*"]
    matchers = [_matcher(part) for part in parts]

    def closed(states: set[int]) -> set[int]:
        """Add the parts after each "**", which may stand for no folder at all."""
        for at in sorted(states):
            while parts[at] == _ANY:
                at += 1
                states.add(at)
        return states

    def inside(url: str, states: set[int], below: str) -> Iterator[Facts]:
        folders, files = scan(url)
        if len(parts) - 1 in states:
            for file in files:
                if matchers[-1](file.path):
                    yield file.below(below)
        for name in folders:
            after = {at for at in states if parts[at] == _ANY and not name.startswith(".")}
            after |= {at + 1 for at in states if at + 1 < len(parts) and matchers[at](name)}
            if after:
                found = f"{below}/{name}" if below else name
                yield from inside(join(url, name), closed(after), found)

    yield from inside(folder, closed({0}), "")


def _matcher(pattern: str) -> Callable[[str], bool]:
    if pattern == _ANY:
        return lambda name: False
    compiled = re.compile(fnmatch.translate(pattern)).match
    hidden = pattern.startswith(".")
    return lambda name: (hidden or not name.startswith(".")) and compiled(name) is not None


T = TypeVar("T")

#: A value of an option of storage, such as an address, a key or a number of connections.
StorageOption: TypeAlias = "str | int | float | bool | Mapping[str, StorageOption] | None"
#: Options of storage by protocol, as fsspec takes them: ``{"s3": {"endpoint_url": "..."}}``.
StorageOptions: TypeAlias = Mapping[str, Mapping[str, StorageOption]]
#: One kind of storage. Its errors are those of the library below.
Place: TypeAlias = LocalPlace | RemotePlace


class FileStore:
    """Files on disks, in S3, Google Cloud, Azure or behind HTTP, in one form.

    Every call takes a path or a URL. Local files are read and written directly; the others through
    fsspec. Requests that fail for a reason that passes (503, "slow down", a lost connection, no
    answer) are sent again with growing pauses. A storage is small, and can be pickled: a worker
    opens its own connections.

    Args:
        options: options of fsspec by protocol, such as ``{"s3": {"endpoint_url": "..."}}``.
        retries: how often requests are sent, and how long they may take.

    >>> store = FileStore()
    >>> store.write("memory://example/a.txt", b"hello")
    >>> [(file.path, file.size) for file in store.find("memory://example/*.txt")]
    [('a.txt', 5)]
    """

    def __init__(
        self, options: StorageOptions | None = None, retries: Retries | None = None
    ) -> None:
        self.retries = retries or Retries()
        self.configure(options)

    def configure(self, options: StorageOptions | None) -> None:
        """Set the options, such as addresses and keys.

        Runners call it on workers with what the job's caller gave.

        >>> FileStore().configure({"s3": {"anon": True}})
        """
        for name in options or {}:
            expected = "that of a known storage"
            check_protocol("storage.configure", "protocol", expected, name, name)
        self.options = {name: dict(value) for name, value in (options or {}).items()}
        self._places: dict[str, Place] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return FileStore, (self.options, self.retries)

    def __repr__(self) -> str:  # options hold keys and secrets
        return "<FileStore>"

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
        some = Items("a path, a URL, a pattern, or a list of them", SOME)
        some.check("storage.find", "pattern", patterns)
        wanted = tuple(suffix.lower() for suffix in suffixes)
        for one in patterns:
            url = os.fspath(one) if isinstance(one, os.PathLike) else one
            if not isinstance(url, str) or not url:
                raise ParameterError.invalid("storage.find", "pattern", "a path or a URL", url)
            yield from self._find(url, wanted)

    def _find(self, url: str, suffixes: tuple[str, ...]) -> Iterator[Facts]:
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
        return self._do("find", url, lambda place: place.scan(url))

    def list(self, folder: str) -> Iterator[Facts]:
        """Yield the files in a folder, none if there is no such folder."""
        try:
            _, files = self._scan(folder)
        except StorageNotFound:
            return
        yield from files

    # facts --------------------------------------------------------------------------------------
    def stat(self, url: str) -> Facts:
        """Return the facts of a file.

        Raises:
            StorageNotFound: there is no such file.
        """

        def found(place: Place) -> Facts:
            try:
                return place.stat(url)
            except IsADirectoryError:
                raise FileNotFoundError(url) from None

        return self._do("stat", url, found)

    def exists(self, url: str) -> bool:
        """Return whether there is such a file; False for folders."""
        try:
            self.stat(url)
        except StorageNotFound:
            return False
        return True

    def is_folder(self, url: str) -> bool:
        """Return whether there is such a folder."""
        return self._do("stat", url, lambda place: place.is_folder(url))

    # reading ------------------------------------------------------------------------------------
    def open(self, url: str) -> BinaryIO:
        """Open a file for reading. Only the byte ranges that are read are fetched.

        Raises:
            StorageNotFound: there is no such file.
        """
        if not is_url(url):
            return self._do("open", url, lambda place: cast("LocalPlace", place).open(url))

        def fetch(start: int, end: int) -> bytes:
            return self._do("open", url, lambda place: place.read(url, start, end))

        return cast("BinaryIO", RangeReader(fetch, self.stat(url).size, url))

    def source(self, url: str) -> str | BinaryIO:
        """Return the argument of ``video.open``: the path of a local file, else the open file."""
        return self.open(url) if is_url(url) else path_of(url)

    def read(self, url: str, most: int | None = None) -> bytes:
        """Return all bytes of a file, or the first ones."""

        def found(place: Place) -> bytes:
            size = place.stat(url).size
            return place.read(url, 0, size if most is None else min(size, most))

        return self._do("read", url, found)

    # writing ------------------------------------------------------------------------------------
    def write(self, url: str, data: bytes, base: str = "") -> None:
        """Write a file, whole or not at all. Folders are made.

        Below the folder ``base`` no link of a file system is followed, nor in the state of a job.
        After a loss of power the file is there, with ``base`` from :meth:`settle` on.

        Raises:
            LinkRefused: there is one on the way.
        """
        self._do("write", url, lambda place: place.write(url, data, base))

    def settle(self, folder: str) -> None:
        """Wait until the files in a folder, as they are named, outlast a loss of power."""

        def settled(place: Place) -> None:
            if isinstance(place, LocalPlace):
                place.settle(folder)

        self._do("settle", folder, settled)

    @contextmanager
    def locked(self, folder: str) -> Iterator[bool]:
        """Hold a folder; yield whether no other process of this machine does, also around or in it.

        Where there are no locks, as in object stores, nothing is held, and it yields True.
        """
        place = self._place(folder)
        held: list[int] = []
        try:
            if isinstance(place, LocalPlace):
                try:
                    held = place.lock(folder)
                except BlockingIOError:
                    yield False
                    return
                except DalaError:
                    raise
                except OSError as error:
                    raise refused(error, "storage.locked", folder) from error
            yield True
        finally:
            for number in held:
                os.close(number)

    def create(self, url: str, data: bytes) -> bool:
        """Write a file unless there is another one. Return whether the file is this one.

        Of two machines that try at the same time with different data, one succeeds: on file
        systems, S3, Google Cloud and in memory. Other storage is asked whether there is a file,
        and then written.
        """

        def write(place: Place) -> bool:
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

        return self._do("create", url, write)

    def part(self, url: str, suffix: str = "", base: str = "") -> UnfinishedFile:
        """Return a new file to write on this machine, which gets its name when it is complete."""

        def made(place: Place) -> UnfinishedFile:
            if isinstance(place, LocalPlace):
                return place.part(url, suffix, base)
            place.refuse_web(url)
            return RemotePart(
                lambda path: self._do("part", url, lambda _: place.send(path, url)), suffix
            )

        return self._do("part", url, made)

    @contextmanager
    def writing(self, name: str, suffix: str = "", base: str = "") -> Iterator[Path]:
        """Yield the path of a local file to fill, which then appears under a name.

        An exception in the block leaves nothing. ``base`` is as for :meth:`write`.
        """
        end = name_of(name).rpartition(".")
        with self.part(name, suffix or (f".{end[2]}" if end[0] else ""), base) as part:
            yield part.path
            part.complete()

    def remove_tree(self, folder: str) -> None:
        """Remove a folder with all that is in it. One that is gone is no error."""
        with suppress(StorageNotFound):
            self._do("remove_tree", folder, lambda place: place.remove_tree(folder))

    def remove(self, url: str) -> None:
        """Remove a file. One that is gone is no error."""
        with suppress(StorageNotFound):
            self._do("remove", url, lambda place: place.remove(url))

    def system_of(self, url: str) -> FileSystem | None:
        """Return the file system of fsspec for a URL, for other libraries; None for local files."""
        place = self._place(url)
        return place.system if isinstance(place, RemotePlace) else None

    # inside -------------------------------------------------------------------------------------
    def _place(self, url: str) -> Place:
        protocol = protocol_of(url)
        found = self._places.get(protocol)
        if found is None:
            options = self.options.get(protocol, {})
            local = protocol == "file"
            found = LocalPlace() if local else RemotePlace(protocol, options, self.retries.timeout)
            self._places[protocol] = found
        return found

    def _do(self, name: str, url: str, work: Callable[[Place], T]) -> T:
        """Do some work, again after faults that pass, and return its result."""
        place = self._place(url)
        return retrying(lambda: work(place), self.retries, f"storage.{name}", url)
