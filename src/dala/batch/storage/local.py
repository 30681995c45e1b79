"""Storage that is a file system: local disks, and mounted ones, such as NFS."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dala.batch.storage.beneath import DIRECTORY, NO_LINK, Folder, home_of, refuse_link, sync
from dala.batch.storage.urls import Facts, join, path_of
from dala.media.parts import PartFile

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file would wait for a writer


class LocalPart(PartFile):
    """A file that is written beside its target, and renamed when it is complete.

    Args:
        folder: the folder of both, which it closes.
        target: the path of the finished file.
        suffix: of the unfinished file.
        durable: whether the name must be on the disk as well when it is complete.
    """

    def __init__(self, folder: Folder, target: Path, suffix: str, durable: bool) -> None:
        self._folder, self._durable = folder, durable
        super().__init__(target, suffix)

    def fill(self, data: bytes) -> None:
        """Write all bytes of the file."""
        number = self._opened(os.O_WRONLY)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(number, rest) :]
        finally:
            os.close(number)

    def _opened(self, flags: int) -> int:
        """Open the unfinished file, by its name in the folder that was opened before."""
        name, binary = self._folder.at(self.path.name), getattr(os, "O_BINARY", 0)
        return os.open(name, flags | NO_LINK | binary, dir_fd=self._folder.number)

    def settle(self) -> None:
        """Wait until its bytes are on the disk."""
        number = self._opened(os.O_RDWR)  # Windows syncs only what may be written
        try:
            sync(number)
        finally:
            os.close(number)

    def complete(self) -> None:
        """Give the file its name, after its bytes are on the disk."""
        folder = self._folder
        try:
            self.settle()
            if folder.number is None:
                super().complete()
                return
            os.replace(
                self.path.name, self.target.name, src_dir_fd=folder.number, dst_dir_fd=folder.number
            )
            if self._durable:
                folder.sync()
        finally:
            self.discard()

    def claim(self, data: bytes) -> None:
        """Give the file its name, or raise FileExistsError.

        Args:
            data: its bytes, for file systems without links, where it is written under its name.
        """
        folder = self._folder
        at, number = folder.at(self.target.name), folder.number
        try:
            os.link(folder.at(self.path.name), at, src_dir_fd=number, dst_dir_fd=number)
        except FileExistsError:
            raise
        except OSError:
            made = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=number)
            with os.fdopen(made, "wb") as file:
                file.write(data)
                file.flush()
                sync(made)
        folder.sync()

    def discard(self) -> None:
        """Remove the unfinished file."""
        super().discard()
        self._folder.close()


class LocalPlace:
    """Files of this machine.

    No link is followed in the state of a job, and none below the base of a file that is written.
    """

    @contextlib.contextmanager
    def _at(self, path: str) -> Iterator[tuple[str, int | None, bool]]:
        """Yield a name, the folder that it is in for ``dir_fd=``, and whether it may be a link."""
        base = home_of(path)
        if base is None:
            yield path, None, True
            return
        path = path.rstrip("/")
        with Folder(os.path.dirname(path), base) as folder:
            yield folder.at(os.path.basename(path)), folder.number, False

    def _stat(self, path: str) -> os.stat_result:
        with self._at(path) as (name, folder, links):
            if not links:
                refuse_link(name, folder, path)
            return os.stat(name, dir_fd=folder)

    def stat(self, url: str) -> Facts:
        """Return the facts of a file."""
        path = path_of(url)
        found = self._stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(21, "Is a directory")
        return Facts(url, found.st_size, str(found.st_mtime_ns), os.path.basename(path))

    def is_folder(self, url: str) -> bool:
        """Return whether there is such a folder."""
        try:
            return stat.S_ISDIR(self._stat(path_of(url)).st_mode)
        except (OSError, ValueError):
            return False

    def scan(self, url: str) -> tuple[list[str], Iterator[Facts]]:
        """Return the names of the folders in a folder, and its files, both sorted by name."""
        path = path_of(url)
        if home_of(path) is not None:
            self._stat(path)
        folders: list[str] = []
        files: list[str] = []
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    if not entry.is_dir():
                        files.append(entry.name)
                    elif not entry.is_symlink() or not _leads_up(entry.path):
                        folders.append(entry.name)
                except OSError:
                    continue  # a link that leads nowhere
        return sorted(folders), self._files(url, sorted(files))

    def _files(self, url: str, names: list[str]) -> Iterator[Facts]:
        for name in names:
            whole = join(url, name)
            path = path_of(whole)
            with contextlib.suppress(OSError):  # gone since the folder was listed
                found = os.stat(path)
                if os.path.isfile(path):  # no pipes, no devices
                    yield Facts(whole, found.st_size, str(found.st_mtime_ns), name)

    def open(self, url: str) -> BinaryIO:
        """Open a file for reading."""
        path = path_of(url)
        with self._at(path) as (name, folder, links):
            if links:
                return open(path, "rb")
            refuse_link(name, folder, path)
            number = os.open(
                name, os.O_RDONLY | NO_LINK | _NO_WAIT | getattr(os, "O_BINARY", 0), dir_fd=folder
            )
        file = os.fdopen(number, "rb")  # it refuses folders
        if not stat.S_ISREG(os.fstat(number).st_mode):
            file.close()
            raise OSError(errno.EINVAL, "It is no file", path)
        return file

    def read(self, url: str, start: int, end: int) -> bytes:
        """Return bytes of a file."""
        with self.open(url) as file:
            file.seek(start)
            return file.read(end - start)

    def write(self, url: str, data: bytes, base: str = "") -> None:
        """Write a file, whole or not at all."""
        with self.part(url, "", base) as part:
            part.fill(data)
            part.complete()

    def create(self, url: str, data: bytes) -> None:
        """Write a file, or raise FileExistsError."""
        with self.part(url, "") as part:
            part.fill(data)
            part.settle()
            part.claim(data)

    def remove(self, url: str) -> None:
        """Remove a file. In the state of a job it is gone for good, even if power fails then."""
        with self._at(path_of(url)) as (name, folder, _):
            os.unlink(name, dir_fd=folder)
            if folder is not None:
                sync(folder)

    def remove_tree(self, url: str) -> None:
        """Remove a folder with all that is in it; in the state of a job, for good."""
        path = path_of(url)
        with self._at(path) as (name, folder, links):
            if not links:
                refuse_link(name, folder, path)
            shutil.rmtree(name, dir_fd=folder)
            if folder is not None:
                sync(folder)

    def part(self, url: str, suffix: str, base: str = "") -> LocalPart:
        """Return a new file beside its target, whose folder is made.

        Args:
            url: the target.
            suffix: of the unfinished file.
            base: a folder above it, below which no link is followed. The names of its files are on
                the disk after :meth:`settle`; those of others when they are complete.
        """
        path = path_of(url)
        above = os.path.dirname(path)
        state = home_of(path)
        folder = Folder(above, base or above if state is None else state, make=True)
        try:
            return LocalPart(folder, Path(path), suffix, durable=not base or state is not None)
        except BaseException:
            folder.close()
            raise

    def settle(self, url: str) -> None:
        """Wait until the names of the files in a folder are on the disk."""
        path = path_of(url)
        with Folder(path, path) as folder:
            folder.sync()

    def lock(self, url: str) -> list[int]:
        """Return the numbers of folders that are locked until they are closed; none without locks.

        The system releases the locks when the process ends, however it does. The folder of the
        results is locked, too, and shared with others are those around it: so jobs in folders
        inside each other see each other, and jobs in folders side by side do not.

        Raises:
            BlockingIOError: another process has locked one.
        """
        path, home = path_of(url), home_of(path_of(url))
        top = os.path.realpath(home or path)
        held: list[int] = []
        try:
            with Folder(path, home or path, make=True) as folder:
                if folder.number is not None:
                    held += _locked(os.dup(folder.number), shared=False)
            around = [top] if home is not None else []
            while (above := os.path.dirname(top)) != top:
                around.append(top := above)
            for each in around:
                with contextlib.suppress(PermissionError):  # this user cannot read it
                    number = os.open(each, os.O_RDONLY | DIRECTORY)
                    held += _locked(number, shared=home is None or each != around[0])
        except BaseException:
            for number in held:
                os.close(number)
            raise
        return held


def _locked(number: int, *, shared: bool) -> list[int]:
    """Return the number of a folder, which is locked; none, and close it, without locks."""
    if fcntl is not None:
        try:
            fcntl.flock(number, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return [number]
        except BlockingIOError:
            os.close(number)
            raise
        except OSError:
            pass  # no locks on this file system
    os.close(number)
    return []


def _leads_up(link: str) -> bool:
    """Return whether a link leads to a folder that it is in, so that a walk would never end."""
    real = os.path.realpath(link)
    above = os.path.realpath(os.path.dirname(link))
    return above == real or above.startswith(real.rstrip(os.sep) + os.sep)
