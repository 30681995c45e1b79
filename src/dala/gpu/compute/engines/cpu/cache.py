"""Disk cache of object code.

An entry is a file named by the hash of everything that the code depends on. It is written to a
temporary file and renamed, so readers never see a partial one. It starts with a seal: a keyed hash
of its name and contents, made with a key of this user, so damaged, foreign and exchanged files are
ignored. A folder that other users can write to is not used; ``dala.trust`` has the rules. If no
folder is writable, nothing is cached and no warning is issued.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import stat
import threading
from typing import Final

from dala import folders
from dala.trust import SEAL_BYTES, distrust, make_folder, read_private, seal, secret_key

_MAGIC: Final = b"dala-o2\n"
_HEADER: Final = len(_MAGIC) + SEAL_BYTES
_SUFFIX: Final = ".o"

#: The least recently used entries are removed when the total exceeds this.
CAPACITY_BYTES: Final = 64 << 20
#: Larger entries are neither stored nor read. The largest of our own have 0.2 MB.
ENTRY_BYTES: Final = 16 << 20

#: Folders whose refusal was logged.
_logged: set[str] = set()


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
        self.folder = None if folder is None else os.path.abspath(folder)
        self.capacity = capacity
        #: Why the folder is not used, or "".
        self.refused = ""
        self._key: bytes | None = None
        self._checked = False
        self._unseen = capacity  # bytes stored since the folder was last measured

    def get(self, key: str) -> bytes | None:
        """Return the code stored under a key, or None."""
        path = self._path(key)
        if path is None:
            return None
        try:
            data = read_private(path, ENTRY_BYTES + _HEADER, touch=True)
        except OSError:
            return None
        secret = self._secret()
        code = data[_HEADER:]
        if secret is None or data[: len(_MAGIC)] != _MAGIC:
            return None
        if not hmac.compare_digest(data[len(_MAGIC) : _HEADER], seal(secret, key, code)):
            return None
        return code

    def put(self, key: str, code: bytes) -> None:
        """Store code under a key, if possible."""
        path = self._path(key)
        if path is None or self.folder is None or len(code) > ENTRY_BYTES:
            return
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            if not self._checked:
                make_folder(self.folder)
            if not self._usable():
                return
            secret = self._secret()
            if secret is None:
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            # The opener's descriptor cannot be lost between two calls.
            with open(temporary, "wb", opener=lambda path, _: os.open(path, flags, 0o600)) as file:
                file.write(_MAGIC + seal(secret, key, code) + code)
            os.replace(temporary, path)
            self._unseen += len(code)
            if self._unseen > self.capacity // 16:
                self._unseen = 0
                self._evict()
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def _path(self, key: str) -> str | None:
        if self.folder is None or not key.isalnum() or not self._usable():
            return None
        return os.path.join(self.folder, key + _SUFFIX)

    def _usable(self) -> bool:
        """Return whether only this user can write to the folder. If not, that is logged once."""
        if self._checked:
            return not self.refused
        assert self.folder is not None
        self.refused = distrust(self.folder)
        # One that does not exist yet is checked again when it does.
        self._checked = bool(self.refused) or os.path.isdir(self.folder)
        if self.refused:
            self._log(self.refused)
        return not self.refused

    def _secret(self) -> bytes | None:
        """Return the key of the seals, read at the first entry; None if there is none."""
        if self._key is None and not self.refused:
            assert self.folder is not None
            self._key, problem = secret_key(self.folder)
            if self._key is None:
                self._checked = True
                self.refused = problem or "no folder for the key of its seals is writable"
                if problem:
                    self._log(problem)
        return self._key

    def _log(self, problem: str) -> None:
        assert self.folder is not None
        if self.folder not in _logged:
            import logging  # slow to import

            _logged.add(self.folder)
            logging.getLogger("dala").warning(
                "dala: the cache of compiled kernels in %s is not used: %s. `dala doctor` has "
                "advice; DALA_CACHE=0 turns the cache off without this message.",
                self.folder,
                problem,
            )

    def _evict(self) -> None:
        assert self.folder is not None
        entries = []
        for entry in os.scandir(self.folder):
            if not entry.name.endswith((_SUFFIX, ".tmp")):
                continue  # not ours
            with contextlib.suppress(OSError):  # another process may be removing files too
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
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
