"""Disk cache of object code.

An entry is a file named by the hash of everything that the code depends on. It is written to a
temporary file and renamed, so readers never see a partial one. It starts with a checksum, so
damaged files are ignored. If no folder is writable, nothing is cached and no warning is issued.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from typing import Final

from dala import folders

_MAGIC: Final = b"dala-o1\n"
_DIGEST: Final = hashlib.sha256().digest_size

#: The least recently used entries are removed when the total exceeds this.
CAPACITY_BYTES: Final = 64 << 20


def cache_folder() -> str | None:
    """Return the folder for object code, or None if DALA_CACHE turns caching off.

    It is in DALA_CACHE_DIR, or else in the user's cache folder.
    """
    if os.environ.get("DALA_CACHE", "").strip().lower() in ("0", "off", "no", "false"):
        return None
    folder = folders.cache_folder("objects")
    return None if folder is None else str(folder)


class ObjectCache:
    """Object code by key, in a folder. File system errors count as missing entries."""

    def __init__(
        self, folder: str | os.PathLike[str] | None, capacity: int = CAPACITY_BYTES
    ) -> None:
        # A str: importing pathlib would take longer than loading the code.
        self.folder = None if folder is None else os.fspath(folder)
        self.capacity = capacity

    def get(self, key: str) -> bytes | None:
        """Return the code stored under a key, or None."""
        if self.folder is None:
            return None
        path = os.path.join(self.folder, f"{key}.o")
        try:
            with open(path, "rb") as file:
                if not _trusted(file.fileno()):
                    return None
                data = file.read()
            code = data[len(_MAGIC) + _DIGEST :]
            if data[: len(_MAGIC) + _DIGEST] != _MAGIC + hashlib.sha256(code).digest():
                return None
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # marks it as recently used
        return code

    def put(self, key: str, code: bytes) -> None:
        """Store code under a key, if possible."""
        if self.folder is None:
            return
        path = os.path.join(self.folder, f"{key}.o")
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(_MAGIC + hashlib.sha256(code).digest() + code)
            os.replace(temporary, path)
            self._evict()
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def _evict(self) -> None:
        assert self.folder is not None
        entries = []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(OSError):  # another process may be removing files too
                found = entry.stat()
                entries.append((found.st_mtime, found.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        if total <= self.capacity:
            return
        for _, size, path in sorted(entries):
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= self.capacity * 3 // 4:
                return


def _trusted(descriptor: int) -> bool:
    """Return whether a file belongs to this user (or root): its contents will be executed."""
    if not hasattr(os, "geteuid"):
        return True
    return os.fstat(descriptor).st_uid in (os.geteuid(), 0)
