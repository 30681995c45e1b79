"""Files that only this user can have written: folders checked, files opened with care, a key.

The library runs code from its cache. Otherwise everyone who can write there could run code as this
user. So a folder counts only if no one else can change it or a folder above it, a file only if it
is a regular one of this user, and an entry only if its seal was made with this user's key.
``DALA_CACHE_TRUST=1`` leaves out the checks of owners and permissions, not those of seals.

Windows has no owners and modes in this sense, and folders of users are private there.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import stat
import sys
import threading
from typing import Final

from dala.folders import user_folder

#: Bytes of the key that seals are made with.
KEY_BYTES: Final = 32
#: Bytes of a seal.
SEAL_BYTES: Final = hashlib.sha256().digest_size

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
#: Symbolic links that a path may have, as in Linux.
_MAX_LINKS: Final = 40


def trusts_all() -> bool:
    """Return whether DALA_CACHE_TRUST says that everyone who can write to the cache is trusted."""
    return os.environ.get("DALA_CACHE_TRUST", "").strip().lower() in ("1", "on", "yes", "true")


def distrust(folder: str) -> str:
    """Return why others could put files into a folder, or "" if only this user (or root) can.

    Every folder above it counts, and so do those that symbolic links lead through. Folders that
    others can write to are accepted if they are sticky, as ``/tmp`` is: no one can replace
    another user's files there. What does not exist yet is not judged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as mine:
    ...     distrust(mine)
    ''
    """
    if trusts_all() or not hasattr(os, "geteuid"):
        return ""
    users = (os.geteuid(), 0)
    ahead = os.path.abspath(folder).split(os.sep)[:0:-1]
    path, links = os.sep, 0
    while True:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{path} cannot be looked at ({error.strerror})"
        if found.st_uid not in users:
            return f"{path} belongs to another user"
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MAX_LINKS:
                return f"{path} has too many symbolic links"
            target = os.readlink(path)
            path = os.sep if os.path.isabs(target) else os.path.dirname(path)
            ahead += target.split(os.sep)[::-1]
        elif not stat.S_ISDIR(found.st_mode):
            return ""  # nothing can be below it, which opening it will tell
        elif found.st_mode & _OTHERS_WRITE and not found.st_mode & stat.S_ISVTX:
            return f"other users can write to {path}"
        if not ahead:
            return ""
        part = ahead.pop()
        if part == os.pardir:
            path = os.path.dirname(path)
        elif part not in ("", os.curdir):
            path = os.path.join(path, part)


def make_folder(folder: str) -> None:
    """Make a folder, and those above it that are missing, for this user only.

    Raises:
        OSError: it cannot be made.
    """
    if os.path.isdir(folder):
        return
    above = os.path.dirname(os.path.abspath(folder))
    if above != folder:
        make_folder(above)  # os.makedirs would leave these to the umask
    with contextlib.suppress(FileExistsError):  # another process was faster
        os.mkdir(folder, 0o700)


def read_private(path: str, limit: int, *, touch: bool = False, secret: bool = False) -> bytes:
    """Return the bytes of a regular file of this user that no one else can write.

    Never waits: pipes, devices, folders and symbolic links are refused.

    Args:
        path: the file.
        limit: the most bytes that it may have.
        touch: set its times to now.
        secret: no one else may be able to read it.

    Raises:
        OSError: there is no such file, or it is not one of those.
    """
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, name, 0)
    if not hasattr(os, "O_NOFOLLOW") and stat.S_ISLNK(os.lstat(path).st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link", path)
    number = os.open(path, flags)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        if found.st_size > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", path)
        if hasattr(os, "geteuid") and not trusts_all():
            if found.st_uid not in (os.geteuid(), 0):
                raise PermissionError(errno.EPERM, "it belongs to another user", path)
            mask = 0o077 if secret else _OTHERS_WRITE
            if found.st_mode & mask:
                what = "read or write" if secret else "write"
                raise PermissionError(errno.EPERM, f"other users can {what} it", path)
        data = bytearray()
        while len(data) <= limit and (more := os.read(number, found.st_size - len(data) + 1)):
            data += more  # one read for most files; a file that grows ends at the limit
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", path)
        if touch:
            with contextlib.suppress(OSError, TypeError):  # TypeError: Windows, by path only
                os.utime(number if os.utime in os.supports_fd else path)
        return bytes(data)
    finally:
        os.close(number)


def seal(key: bytes, name: str, data: bytes) -> bytes:
    """Return the proof that the holder of a key stored data under a name.

    >>> seal(b"k" * 32, "a", b"code") == seal(b"k" * 32, "b", b"code")
    False
    """
    made = hmac.new(key, f"{len(name)}:{name}:".encode(), "sha256")
    made.update(data)
    return made.digest()


# the key ------------------------------------------------------------------------------------------
def state_folder() -> str | None:
    """Return the user's folder for the key, or None if there is no home folder."""
    base = user_folder("XDG_STATE_HOME", "~/Library/Application Support", "~/.local/state")
    return None if base is None else os.path.join(base, "dala")


def secret_key(folder: str) -> tuple[bytes | None, str]:
    """Return this user's key, made on first use. Without one: None, and why it is not trusted.

    It is in a folder of its own (``~/.local/state/dala`` on Linux). Where that cannot be written,
    as in containers, it is in ``folder``, which must be one that only this user can write. Where
    neither can be written, the reason is "".
    """
    problem = ""
    for place in (state_folder(), folder):
        if place is None:
            continue
        why = distrust(place)
        if not why:
            try:
                return _key_in(place), ""
            except OSError as error:
                if error.errno not in _DISTRUSTED:
                    continue
                why = f"{error.filename or place}: {error.strerror or error}"
                # A key that others may know is reported, not passed over for another one.
                return None, why
        problem = problem or why
    return None, problem


def key_problem(folder: str) -> str:
    """Return why the key is not trusted, or "" if it is, or does not exist yet."""
    for place in (state_folder(), folder):
        if place is not None and not distrust(place):
            try:
                read_private(os.path.join(place, "key"), 4096, secret=True)
            except OSError as error:
                if error.errno in _DISTRUSTED:
                    return f"{error.filename or place}: {error.strerror or error}"
                continue
            return ""
    return ""


#: What :func:`read_private` raises for files that are not this user's alone.
_DISTRUSTED: Final = (errno.EPERM, errno.ELOOP, errno.EINVAL, errno.EFBIG)


def _key_in(folder: str) -> bytes:
    path = os.path.join(folder, "key")
    for _ in range(3):
        with contextlib.suppress(FileNotFoundError):
            found = read_private(path, 4096, secret=True)
            if len(found) == KEY_BYTES:
                return found
            _write_key(folder, path, replace=True)  # damaged, as after a full disk
            continue
        make_folder(folder)
        _write_key(folder, path, replace=False)
    raise OSError(errno.EIO, "the key cannot be read back", path)


def _write_key(folder: str, path: str, *, replace: bool) -> None:
    """Store a new key, complete at once. Of several processes, the first one's stays."""
    name = f".key.{os.getpid()}.{threading.get_ident()}.{os.urandom(4).hex()}"
    temporary = os.path.join(folder, name)
    try:
        _store_key(temporary)
        if replace:
            os.replace(temporary, path)
            return
        with contextlib.suppress(FileExistsError):
            if sys.platform == "win32":
                os.rename(temporary, path)  # fails there if the target exists
                return
            try:
                os.link(temporary, path)
            except FileExistsError:
                raise
            except OSError:  # no hard links here: others may see it short, and write it again
                _store_key(path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _store_key(path: str) -> None:
    """Write a key to a new file, which only this user can read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    number = os.open(path, flags, 0o600)
    try:
        os.write(number, os.urandom(KEY_BYTES))
        with contextlib.suppress(OSError):
            os.fsync(number)
    finally:
        os.close(number)
