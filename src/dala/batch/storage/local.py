"""Storage that is a file system: local disks, and what is mounted, such as NFS."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dala.batch.storage.urls import Facts, join, path_of
from dala.media.parts import PartFile


class LocalPart(PartFile):
    """A file that is written beside its target, and renamed when it is complete."""

    def complete(self) -> None:
        """Give the file its name, after its bytes are on the disk."""
        with contextlib.suppress(OSError):  # not every file system can
            number = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)
        super().complete()


class LocalPlace:
    """Files of this machine."""

    def stat(self, url: str) -> Facts:
        """Return the facts of a file."""
        path = path_of(url)
        found = os.stat(path)
        if os.path.isdir(path):
            raise IsADirectoryError(21, "Is a directory")
        return Facts(url, found.st_size, str(found.st_mtime_ns), os.path.basename(path))

    def is_folder(self, url: str) -> bool:
        """Return whether there is such a folder."""
        return os.path.isdir(path_of(url))

    def scan(self, url: str) -> tuple[list[str], Iterator[Facts]]:
        """Return the names of the folders in a folder, and its files, both sorted by name."""
        path = path_of(url)
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

    def read(self, url: str, start: int, end: int) -> bytes:
        """Return bytes of a file."""
        with open(path_of(url), "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def write(self, url: str, data: bytes) -> None:
        """Write a file, whole or not at all."""
        with self.part(url, "") as part:
            part.path.write_bytes(data)
            part.complete()

    def create(self, url: str, data: bytes) -> None:
        """Write a file, or raise FileExistsError."""
        target = path_of(url)
        with self.part(url, "") as part:
            part.path.write_bytes(data)
            try:
                os.link(part.path, target)
            except FileExistsError:
                raise
            except OSError:  # no links on this file system
                number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                with os.fdopen(number, "wb") as file:
                    file.write(data)

    def remove(self, url: str) -> None:
        """Remove a file."""
        os.unlink(path_of(url))

    def remove_tree(self, url: str) -> None:
        """Remove a folder with all that is in it."""
        shutil.rmtree(path_of(url))

    def part(self, url: str, suffix: str) -> LocalPart:
        """Return a new file beside its target, whose folder is made."""
        path = Path(path_of(url))
        path.parent.mkdir(parents=True, exist_ok=True)
        return LocalPart(path, suffix)


def _leads_up(link: str) -> bool:
    """Return whether a link leads to a folder that it is in, so that a walk would never end."""
    real = os.path.realpath(link)
    above = os.path.realpath(os.path.dirname(link))
    return above == real or above.startswith(real.rstrip(os.sep) + os.sep)
