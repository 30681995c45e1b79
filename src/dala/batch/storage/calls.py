"""The storage of this process as functions: workers and drivers name files, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from dala.batch.storage import urls
from dala.batch.storage.entries import Facts
from dala.batch.storage.store import FileStore, StorageOptions

_storage = FileStore()


def configure(options: StorageOptions | None) -> None:
    """Set the options of storage for this process, such as addresses and keys.

    Runners call it on workers with what the job's caller gave.

    >>> configure({"s3": {"anon": True}})
    >>> configure(None)
    """
    global _storage
    _storage = FileStore(options)


def current() -> FileStore:
    """Return the storage of this process.

    >>> current()
    <FileStore>
    """
    return _storage


def is_url(name: str) -> bool:
    """Return whether a name is a URL; ``file://`` counts as a path.

    >>> is_url("s3://films/a.mp4"), is_url("films/a.mp4"), is_url("file:///films/a.mp4")
    (True, False, False)
    """
    return not urls.is_local(name)


def local_path(name: str) -> Path | None:
    """Return the path of a local file; None for a URL.

    >>> local_path("memory://a"), local_path("file:///a")
    (None, PosixPath('/a'))
    """
    return Path(urls.local_path(name)) if urls.is_local(name) else None


def exists(name: str) -> bool:
    """Return whether there is a file or folder of a name.

    >>> exists("memory://nothing")
    False
    """
    return _storage.exists(name) or _storage.is_folder(name)


def facts(name: str) -> Facts:
    """Return the facts of a file.

    Raises:
        StorageNotFound: there is none.

    >>> write_bytes("memory://facts/a", b"123")
    >>> facts("memory://facts/a").size
    3
    """
    return _storage.stat(name)


def listing(pattern: str, suffixes: tuple[str, ...] = ()) -> Iterator[Facts]:
    """Yield the files of a pattern, a folder or a name, sorted within each folder.

    Names that begin with a dot are left out. Of a folder, files with these suffixes are taken.

    >>> write_bytes("memory://listing/a/b.png", b"123")
    >>> [file.path for file in listing("memory://listing")]
    ['a/b.png']
    """
    return _storage.find(pattern, suffixes)


def open_read(name: str) -> BinaryIO:
    """Open a file for reading; it can seek, and reads only what is asked for.

    >>> write_bytes("memory://opened", b"12345")
    >>> with open_read("memory://opened") as file:
    ...     file.seek(3), file.read()
    (3, b'45')
    """
    path = local_path(name)
    return cast("BinaryIO", _storage.open(name)) if path is None else path.open("rb")


def read_bytes(name: str) -> bytes:
    """Return the bytes of a file.

    >>> write_bytes("memory://read", b"12345")
    >>> read_bytes("memory://read")
    b'12345'
    """
    return _storage.read(name)


def write_bytes(name: str, data: bytes) -> None:
    """Write a file that appears whole, in place of one of that name.

    >>> write_bytes("memory://written", b"12345")
    """
    _storage.write(name, data)


def create(name: str, data: bytes) -> bool:
    """Write a file unless there is one of that name; return whether it was written.

    >>> remove("memory://created")
    >>> create("memory://created", b"1"), create("memory://created", b"2")
    (True, False)
    """
    return _storage.create(name, data)


@contextmanager
def writing(name: str, suffix: str = "") -> Iterator[Path]:
    """Yield the path of a local file to fill, which then appears under a name.

    An exception in the block leaves nothing.

    >>> with writing("memory://filled") as path:
    ...     _ = path.write_bytes(b"123")
    >>> read_bytes("memory://filled")
    b'123'
    """
    end = urls.name_of(name).rpartition(".")
    with _storage.part(name, suffix or (f".{end[2]}" if end[0] else "")) as part:
        yield part.path
        part.complete()


def remove(name: str) -> None:
    """Remove a file; a missing one is fine.

    >>> remove("memory://nothing")
    """
    _storage.remove(name)


def remove_tree(folder: str) -> None:
    """Remove a folder with all that is in it; a missing one is fine.

    >>> remove_tree("memory://nothing")
    """
    _storage.remove_tree(folder)
