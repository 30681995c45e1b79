"""Unfinished files: written beside their target, and renamed when they are complete.

A process that is killed leaves its unfinished file behind. The next process that writes to the
folder removes it. A lock on the file, which the system releases when its owner ends, shows whether
the owner lives; files of a live process are never touched.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

try:
    import fcntl
except ImportError:  # Windows: an open file cannot be removed there, which does the same
    fcntl = None  # type: ignore[assignment]

__all__ = ["PartFile", "UnfinishedFile", "write_folder"]

#: The names of unfinished files.
_NAME: Final = re.compile(r"\..*\.[0-9a-f]{8}\.dala\.part(\.[^.]*)?")
#: Bytes of the target's name that are part of the name: file systems allow 255 in all.
_STEM_BYTES: Final = 120
#: Folders that this process has searched for left-over files.
_searched: set[str] = set()


class UnfinishedFile(ABC):
    """A file that is being written. As a context it is discarded at the end if not complete."""

    #: Where to write it.
    path: Path

    @abstractmethod
    def complete(self) -> None:
        """Give the file its name, whole or not at all."""

    @abstractmethod
    def discard(self) -> None:
        """Remove the written parts. Doing it twice, or after ``complete``, is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


class PartFile(UnfinishedFile):
    """An unfinished file, empty at first, beside its target.

    Args:
        target: the path of the finished file.
        suffix: the suffix of the unfinished one, for programs that go by it.

    Raises:
        OSError: the folder cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with PartFile(Path(folder, "note.txt")) as part:
    ...         _ = part.path.write_text("done")
    ...         part.complete()
    ...     os.listdir(folder)
    ['note.txt']
    """

    def __init__(self, target: Path, suffix: str = "") -> None:
        self.target = target
        stem = os.fsdecode(os.fsencode(target.stem)[:_STEM_BYTES])
        _remove_left_over(target.parent)
        while True:
            name = f".{stem}.{secrets.token_hex(4)}.dala.part{suffix}"
            self.path = target.with_name(name)
            self._number = self._make()
            if _lock(self._number) and self._is_there():
                return
            os.close(self._number)  # another process took it for left over, and removes it
            self._remove()

    def _make(self) -> int:
        """Make it, and return a descriptor of it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        return os.open(self.path, flags, 0o666)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _is_there(self) -> bool:
        if fcntl is None:
            return True
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._number))
        except OSError:
            return False

    def complete(self) -> None:
        """Give the file its name.

        Raises:
            OSError: the target cannot be replaced; the unfinished file is removed.
        """
        try:
            if fcntl is None:
                self._release()
            os.replace(self.path, self.target)
        except BaseException:
            self.discard()
            raise
        self._release()

    def discard(self) -> None:
        """Remove the file."""
        if self._number < 0 and fcntl is not None:
            return
        if fcntl is None:
            self._release()
        self._remove()
        self._release()

    def _release(self) -> None:
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    def __del__(self) -> None:
        if getattr(self, "_number", -1) >= 0:
            with contextlib.suppress(OSError):
                os.close(self._number)


class _PartFolder(PartFile):
    """The same for a folder."""

    def _make(self) -> int:
        os.mkdir(self.path)
        return os.open(os.devnull if fcntl is None else self.path, os.O_RDONLY)

    def _remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder. A new one is there as a whole or not at all.

    In one that is there, each file is replaced as a whole. Until the last one is, a folder whose
    name ends in ``.dala.part`` lies in it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_folder(Path(folder, "page"), {"a/b.txt": b"done"})
    ...     Path(folder, "page/a/b.txt").read_bytes(), os.listdir(folder)
    (b'done', ['page'])
    """
    new = not folder.exists()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _PartFolder(folder if new else folder / folder.name) as part:
        for name, content in files.items():
            path = part.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if new:
            part.complete()
            return
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(part.path / name, folder / name)


def _lock(number: int) -> bool:
    """Lock an open file; return False if another process has locked it."""
    if fcntl is not None:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # no locks on this file system, so no one removes the file either
    return True


def _remove_left_over(folder: Path) -> None:
    """Remove the unfinished files of processes that have ended, once per folder and process."""
    key = os.path.abspath(folder)
    if key in _searched:
        return
    _searched.add(key)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = [e.path for e in entries if _NAME.fullmatch(e.name)]
        for path in found:
            _remove_dead(path)


def _remove_dead(path: str) -> None:
    if fcntl is None:
        with contextlib.suppress(OSError):  # fails while its owner has it open
            os.unlink(path)
        return
    folder = os.path.isdir(path)
    flags = os.O_RDONLY if folder else os.O_RDWR  # some file systems lock only what can be written
    try:
        number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if folder or stat.S_ISREG(os.fstat(number).st_mode):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (shutil.rmtree if folder else os.unlink)(path)
    except OSError:
        pass  # its owner lives, or the file system has no locks
    finally:
        os.close(number)
