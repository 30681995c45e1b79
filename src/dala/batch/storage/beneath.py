"""Folders reached without following a link, and the order in which files reach the disk.

What a job writes is beneath its folder of results. A link in there would take it elsewhere, so each
folder on the way is opened by its name in the one before, and a link is refused. Where the system
has no such calls (Windows), each name is looked at before it is used.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import Final

from dala.errors import StorageError

#: The folder with the state of jobs, in that of their results.
STATE: Final = ".dala-batch"

_STATE: Final = re.compile(rf"(?:^|(?<=[/\\])){re.escape(STATE)}(?=[/\\]|$)")
#: Whether names can be opened in a folder that is open.
_BY_NUMBER: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
#: Bits of a call of ``open`` that some systems do not have.
DIRECTORY: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
#: Answers of file systems that cannot sync this kind of file.
_CANNOT: Final = frozenset((errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EROFS))


class LinkRefused(StorageError):
    """A link is where a job writes its files."""


def home_of(url: str) -> str | None:
    """Return the folder of the results that a file of a job's state belongs to; None for others.

    >>> home_of("/out/.dala-batch/1/done/a.json"), home_of(".dala-batch"), home_of("/out/a.png")
    ('/out', '', None)
    """
    found = _STATE.search(url)
    return None if found is None else url[: found.start()].rstrip("/\\") or url[: found.start()]


class Folder:
    """A folder that is held open. Work by its number is done in this folder only.

    Args:
        path: the folder.
        base: a folder above it, or itself, that may be reached by links: its user has named it.
        make: make the folders that are missing.

    Raises:
        LinkRefused: a name below the base is a link.
        OSError: it cannot be opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as base:
    ...     folder = Folder(f"{base}/a/b", base, make=True)
    ...     folder.close()
    ...     os.path.isdir(f"{base}/a/b")
    True
    """

    def __init__(self, path: str, base: str, make: bool = False) -> None:
        self._path = path
        #: The number of the open folder, for ``dir_fd=``; None where there are none.
        self.number: int | None = None
        if make:
            _make(base or ".")
        inside = os.path.relpath(path or ".", base or ".").replace(os.sep, "/")
        names = [name for name in inside.split("/") if name != "."]
        if ".." in names:
            raise StorageError(f"storage: {path!r} is not in {base!r}.")
        if _BY_NUMBER:
            self.number = os.open(base or ".", os.O_RDONLY | DIRECTORY)
        walked = base or "."
        for name in names:
            walked = os.path.join(walked, name)
            try:
                self._enter(name, walked, make)
            except BaseException:
                self.close()
                raise

    def _enter(self, name: str, walked: str, make: bool) -> None:
        """Go on to a folder in this one."""
        there = name if self.number is not None else walked
        flags = os.O_RDONLY | DIRECTORY | NO_LINK
        while True:
            try:
                if self.number is not None:
                    inner = os.open(name, flags, dir_fd=self.number)
                    os.close(self.number)
                    self.number = inner
                elif not stat.S_ISDIR(os.lstat(walked).st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), walked)
            except FileNotFoundError:
                if not make:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(there, dir_fd=self.number)
                self.sync()
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
                    refuse_link(there, self.number, walked)
                raise
            else:
                return

    def at(self, name: str) -> str:
        """Return a name in this folder, as calls with ``dir_fd=folder.number`` take it."""
        return name if self.number is not None else os.path.join(self._path, name)

    def sync(self) -> None:
        """Wait until the names in this folder are on the disk."""
        if self.number is not None:
            sync(self.number)

    def close(self) -> None:
        """Close it. Doing it twice is fine."""
        number, self.number = self.number, None
        if number is not None:
            os.close(number)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "number", None) is not None:
            with contextlib.suppress(OSError):
                self.close()


def refuse_link(name: str, folder: int | None, shown: str) -> None:
    """Raise LinkRefused if a name in a folder is a link."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise LinkRefused(
            f"storage: {shown!r} is a link, and a job writes only into the folder of its results. "
            "Remove the link, or choose another out."
        )


def sync(number: int) -> None:
    """Wait until an open file or folder is on the disk, where the file system can say so.

    Raises:
        OSError: it could not be written.
    """
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def _make(path: str) -> None:
    """Make a folder and its parents; each is on the disk before its contents."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path.rstrip("/\\")) or "."
    _make(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    if _BY_NUMBER:
        with contextlib.suppress(PermissionError):  # it may be written, but not listed
            number = os.open(above, os.O_RDONLY | DIRECTORY)
            try:
                sync(number)
            finally:
                os.close(number)
