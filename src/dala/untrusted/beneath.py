"""Names resolved beneath allowed folders, where checking and opening are one step.

A path is followed from ``/`` as the kernel follows it: ``..`` is the folder above the one that was
reached, after links. Outside of the allowed folders nothing is opened. In one, every step is made
by the descriptor of the folder before it, so that what is checked is what is opened, whatever
happens to the names meanwhile. Linux does the steps in one call (``openat2``) where it can. Where
there are no such descriptors (Windows), a path is resolved, opened and compared.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple

#: Symbolic links that a path may have, as in Linux.
_MAX_LINKS: Final = 40
#: How often a step is tried again when names change under it.
_TRIES: Final = 16

_QUIET: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
#: Never waits for the other side of a pipe, and takes no terminal.
_FILE: Final = (
    os.O_RDONLY | _QUIET | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
)  # fmt: skip
_FOLDER: Final = _QUIET | getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0)

#: The number of the system call openat2 on every processor but Alpha, and its flags.
_OPENAT2: Final = 437
_NO_MAGIC, _BENEATH = 0x02, 0x08
#: What a kernel, or the filter of a container, says that has no openat2.
_LACKING: Final = (errno.ENOSYS, errno.EPERM)


def _best() -> str:
    if os.open not in os.supports_dir_fd or not _NOFOLLOW:
        return "resolve"
    return "kernel" if sys.platform == "linux" else "walk"


#: "kernel" (openat2, and the walk for what it refuses), "walk" or "resolve".
mode = _best()


class Found(NamedTuple):
    """A descriptor, and the path without links and ``..`` at which it was found."""

    #: -1 for folders where they have none.
    number: int
    path: str


class Outside(Exception):
    """The path leads out of the allowed folders."""


def find(path: str, roots: Collection[str], files: Collection[str], *, folder: bool) -> Found:
    """Open a file or folder that an absolute path leads to. Pipes and devices are not waited for.

    Args:
        path: the path, as it was written.
        roots: the allowed folders, without links.
        files: files outside of them that are allowed.
        folder: whether it must be a folder; else it must be a regular file.

    Raises:
        Outside: it leads out of the folders.
        OSError: it leads to nothing, or to another kind of file.
    """
    found = _resolved(path, roots, files, folder) if mode == "resolve" else (
        _Walk(path, roots, files, folder).run()
    )  # fmt: skip
    if not folder and not stat.S_ISREG(os.fstat(found.number).st_mode):
        os.close(found.number)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return found


class _Walk:
    """One path on its way. Outside of the folders only links are read."""

    def __init__(
        self, path: str, roots: Collection[str], files: Collection[str], folder: bool
    ) -> None:
        self._roots, self._files, self._folder = roots, files, folder
        #: Parts of the path that are to come, the next one last.
        self._ahead = path.split("/")[::-1]
        #: How many of them are of the path itself, and not of links.
        self._own = len(self._ahead)
        #: Where it is, and the folders of the way from an allowed one to there.
        self._here = "/"
        self._held: list[int] = []
        self._links = 0

    def run(self) -> Found:
        """Follow the path to its end."""
        try:
            while True:
                if not self._held and self._here in self._roots:
                    self._held.append(os.open(self._here, _FOLDER | _NOFOLLOW))
                    if mode == "kernel" and (found := self._at_once()) is not None:
                        return found
                if not self._ahead:
                    return self._end()
                own = len(self._ahead) <= self._own
                self._own -= own
                if (found := self._step(self._ahead.pop(), own)) is not None:
                    return found
        except FileNotFoundError:
            if not self._held:
                raise Outside from None
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        while self._held:
            os.close(self._held.pop())

    def _end(self) -> Found:
        """Return the folder at which the path ends."""
        if not self._held:
            raise Outside
        if not self._folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return Found(self._held.pop(), self._here)

    def _is_above(self) -> bool:
        return any(within(allowed, self._here) for allowed in (*self._roots, *self._files))

    def _step(self, part: str, own: bool) -> Found | None:
        """Take one part of the path; return the opened file or folder if it is the last one."""
        if part in ("", "."):
            return None
        if part == "..":
            # Else whether this opens something would tell a stranger what there is outside.
            if own and not self._held and not self._is_above():
                raise Outside
            self._here = os.path.dirname(self._here)
            if self._held:
                os.close(self._held.pop())
            return None
        for _ in range(_TRIES):
            if (target := self._link(part)) is not None:
                self._turn(target)
                return None
            try:
                return self._enter(part)
            except OSError as error:  # a link since it was looked at
                if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                    raise
                changed = error
        raise changed

    def _link(self, part: str) -> str | None:
        """Return where a name leads; None if it is no link."""
        try:
            if self._held:
                return os.readlink(part, dir_fd=self._held[-1])
            return os.readlink(os.path.join(self._here, part))
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            if not self._held:  # what is outside is not shown
                raise Outside from None
            raise

    def _turn(self, target: str) -> None:
        """Go on where a link leads."""
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            self._leave()
            self._here = "/"
        self._ahead += target.split("/")[::-1]

    def _enter(self, part: str) -> Found | None:
        """Go into a folder, or open the file at the end."""
        there = os.path.join(self._here, part)
        if not self._ahead and not self._folder:
            if self._held:
                return Found(os.open(part, _FILE | _NOFOLLOW, dir_fd=self._held[-1]), there)
            if there in self._files:
                return Found(os.open(there, _FILE | _NOFOLLOW), there)
        if self._held:
            self._held.append(os.open(part, _FOLDER | _NOFOLLOW, dir_fd=self._held[-1]))
        self._here = there
        return None

    def _at_once(self) -> Found | None:
        """Let the kernel go the rest of the way; None where the walk must decide."""
        global mode
        rest = "/".join(reversed(self._ahead))
        flags = _FOLDER if self._folder else _FILE
        for _ in range(_TRIES):
            number = openat2(self._held[-1], rest or ".", flags)
            if number != -errno.EAGAIN:  # else something was renamed meanwhile
                break
        if -number in _LACKING:
            mode = "walk"
        if -number in (*_LACKING, errno.EAGAIN, errno.EXDEV, errno.ELOOP):
            return None
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        path = self._name(number)
        if path is None:
            os.close(number)
            return None
        return Found(number, path)

    def _name(self, number: int) -> str | None:
        """Return the path of a descriptor in this folder; None if it is unknown."""
        try:
            path = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            return None
        return path if within(path, self._here) else None


class _How(ctypes.Structure):
    """The argument ``open_how`` of openat2."""

    _fields_ = (
        ("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64),
    )  # fmt: skip


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def openat2(folder: int, path: str, flags: int) -> int:
    """Open a path beneath a folder's descriptor; return the new one, or the error below zero."""
    how = _How(flags, 0, _BENEATH | _NO_MAGIC)
    found = _library().syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(folder), ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)),
    )  # fmt: skip
    return int(found) if found >= 0 else -ctypes.get_errno()


def _resolved(path: str, roots: Collection[str], files: Collection[str], folder: bool) -> Found:
    """Resolve, open, and check that the path still leads to the opened file."""
    for _ in range(_TRIES):
        there = os.path.realpath(path)
        if there not in files and not any(within(there, root) for root in roots):
            raise Outside
        if folder:
            if not os.path.isdir(there):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return Found(-1, there)
        number = os.open(there, _FILE | _NOFOLLOW)
        with suppress(OSError):
            same = os.path.samestat(os.stat(there), os.fstat(number))
            if same and os.path.realpath(path) == there:
                return Found(number, there)
        os.close(number)
    raise OSError(errno.EAGAIN, "it changes all the time")


def within(path: str, root: str) -> bool:
    """Return whether a path without links is a folder, or in it.

    >>> within("/a/b", "/a"), within("/ab", "/a"), within("/a", "/")
    (True, False, True)
    """
    one, other = os.path.normcase(path), os.path.normcase(root)
    return one == other or one.startswith(other.rstrip(os.sep) + os.sep)
