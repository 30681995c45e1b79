"""Open files and folders of strangers, with paths by which libraries open the very same.

Decoders take paths, and open them again when they like. The path that they get here is a link in a
folder of this user, which leads to the descriptor (``/proc/self/fd``), so no name of a stranger is
ever looked up a second time. Where there is no such folder (macOS, Windows), it is the path at
which the file was found, without links and ``..``.
"""

from __future__ import annotations

import atexit
import hashlib
import mmap
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary, finalize

from dala import forks
from dala.errors import ParameterError
from dala.typing import PathLike
from dala.untrusted.beneath import Found

_DESCRIPTORS: Final = "/proc/self/fd"
_PREFIX: Final = "dala-opened-"
#: Bytes that are read at a time.
_PART: Final = 1 << 24


class Opened(os.PathLike[str]):
    """An open file, as it was checked; it is closed when nothing holds this object.

    As a path it opens the same file again. ``name`` is where it was found, for people.
    """

    def __init__(self, found: Found, path: str) -> None:
        self.name = Path(found.path)
        self._number, self._path = found.number, path
        self._owner = os.getpid()

    def __fspath__(self) -> str:
        forked = self._path != str(self.name) and self._owner != os.getpid()
        return f"{_DESCRIPTORS}/{self._number}" if forked else self._path

    def __str__(self) -> str:
        return str(self.name)  # errors name files so

    def __repr__(self) -> str:
        return f"<Opened {str(self.name)!r}>"

    def stat(self) -> os.stat_result:
        """Return the facts of the file."""
        return os.stat(self._number if self._number >= 0 else self._path)

    def content(self, most: int, call: str) -> bytes:
        """Return the bytes of the file.

        Raises:
            ParameterError: there are more than ``most``.
            OSError: it cannot be read.
        """
        data = bytearray()
        while len(data) <= most and (part := self._part(len(data), most + 1 - len(data))):
            data += part
        if len(data) > most:
            raise ParameterError(f"{call}: {self.name.name!r} has more than {most:,} bytes.")
        return bytes(data)

    def mapped(self) -> mmap.mmap | bytes:
        """Return the bytes of the file, which are read when they are looked at.

        Raises:
            OSError: it cannot be read.
        """
        if not self.stat().st_size:
            return b""
        return mmap.mmap(self._number, 0, access=mmap.ACCESS_READ)

    def _part(self, at: int, count: int) -> bytes:
        count = min(count, _PART)
        if hasattr(os, "pread"):  # others may read the same file
            return os.pread(self._number, count, at)
        with _links.lock:
            os.lseek(self._number, at, os.SEEK_SET)
            return os.read(self._number, count)


class _Links:
    """Links to descriptors, in a folder that only this user can enter.

    The path of a link follows from the file and its time of change, so that caches of libraries
    know a file again, and know that it has changed.
    """

    def __init__(self) -> None:
        #: Held while links are made, and while a descriptor that others may have is read.
        self.lock = forks.rlock()
        self._owner = 0
        self._folder = ""
        self._facts = os.stat_result((0,) * 10)
        self._open: WeakValueDictionary[str, Opened] = WeakValueDictionary()
        self._made: dict[str, int] = {}

    def opened(self, found: Found) -> Opened:
        """Return the object of a descriptor, or that of the same file if it is open already."""
        if found.number < 0:
            return Opened(found, found.path)
        try:
            facts = os.fstat(found.number)
        except OSError:
            os.close(found.number)
            raise
        name = hashlib.blake2s(os.fsencode(found.path), digest_size=4).hexdigest()
        key = f"{facts.st_dev:x}-{facts.st_ino:x}-{name}"
        if not stat.S_ISDIR(facts.st_mode):
            key += f"-{facts.st_mtime_ns:x}-{facts.st_size:x}"
        with self.lock:
            self._check_home()
            made = self._open.get(key)
            if made is not None:
                os.close(found.number)
                return made
            link = self._make(key, found)
            made = self._open[key] = Opened(found, link or found.path)
            finalize(made, self._drop, link, found.number, os.getpid())
        return made

    def _make(self, key: str, found: Found) -> str:
        """Return a new link to a descriptor; "" where descriptors have no paths."""
        direct = f"{_DESCRIPTORS}/{found.number}"
        try:
            if not os.path.samestat(os.stat(direct), os.fstat(found.number)):
                return ""
        except OSError:
            return ""
        link = os.path.join(self._folder, key, os.path.basename(found.path) or "root")
        self._made[link] = found.number  # before the link, as the old one's end may come meanwhile
        try:
            with suppress(FileExistsError):
                os.mkdir(os.path.dirname(link), 0o700)
            with suppress(FileNotFoundError):
                os.unlink(link)
            os.symlink(direct, link)
        except OSError:  # no room for links; this one has no suffix
            return direct
        return link

    def _check_home(self) -> None:
        """Make the folder; again after a fork, and where others have removed or replaced it."""
        with suppress(OSError):
            now, then = os.lstat(self._folder), self._facts
            same = os.path.samestat(now, then) and now.st_uid == then.st_uid
            if same and self._owner == os.getpid():
                return
        self._made, self._owner = {}, os.getpid()
        self._open.clear()
        try:
            self._folder = tempfile.mkdtemp(prefix=_PREFIX)
            self._facts = os.lstat(self._folder)
        except OSError:
            self._folder = os.devnull  # in which no link can be made
            return
        atexit.register(self._remove, self._folder, self._owner)

    @staticmethod
    def _remove(folder: str, owner: int) -> None:
        if owner == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)

    def _drop(self, link: str, number: int, owner: int) -> None:
        """Close a descriptor, and remove its link."""
        with self.lock:
            if owner == os.getpid() and self._made.get(link) == number:
                del self._made[link]
                with suppress(OSError):
                    os.unlink(link)
                    os.rmdir(os.path.dirname(link))
        os.close(number)


_links = _Links()
#: Return the object of a descriptor, which is closed with it.
opened: Final = _links.opened


def open_trusted(path: PathLike) -> Opened:
    """Open a file that the user's own program names, so that the checked file is the one read.

    Raises:
        OSError: it cannot be opened.
    """
    flags = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
    number = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | flags)
    return opened(Found(number, os.path.realpath(path)))


_SHOWN: Final = re.compile(rf"[^\s'\"]*{_PREFIX}[^/\s]*/[0-9a-f]+-[0-9a-f-]+/")


def readable(text: str) -> str:
    """Return a message without the folders of links, as people know the files.

    >>> readable("'/tmp/dala-opened-k2/fe-1c-9-a0/clip.mp4' is damaged")
    "'clip.mp4' is damaged"
    """
    return _SHOWN.sub("", text)
