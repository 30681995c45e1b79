"""Storage that fsspec reaches: S3, Google Cloud, Azure, HTTP, SFTP, memory."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import random
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from dala import forks
from dala.batch.storage.urls import WEB, Facts, join, name_of, parent, shown
from dala.errors import DalaError, StorageError, StorageNotFound, masked_error
from dala.extras import needing
from dala.media.parts import UnfinishedFile

T = TypeVar("T")

#: Answers of servers after which the same request may succeed.
_STATUS: Final = frozenset((408, 425, 429, 500, 502, 503, 504, 509, 529))
#: The same as S3 and others call them.
_CODES: Final = frozenset((
    "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling",
    "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "OperationAborted",
    "ServerBusy", "IncompleteBody", "XAmzContentSHA256Mismatch", "BadDigest",
))  # fmt: skip
#: Errors of the system: connections, and files of NFS whose server was restarted.
_NUMBERS: Final = frozenset(
    getattr(errno, name)
    for name in (
        "EAGAIN", "EBUSY", "EINTR", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTDOWN",
        "EHOSTUNREACH", "ENETDOWN", "ENETRESET", "ENETUNREACH", "EPIPE", "EREMOTEIO", "ESTALE",
        "ETIMEDOUT",
    )
    if hasattr(errno, name)
)  # fmt: skip
#: Exceptions of HTTP libraries for a connection that broke, by name: none of them is imported here.
_NAMES: Final = frozenset((
    "ClientPayloadError", "ClientConnectionError", "ClientOSError", "ServerDisconnectedError",
    "ServerTimeoutError", "IncompleteRead", "IncompleteReadError", "HTTPClientError",
    "ConnectionClosedError", "ReadTimeoutError", "ConnectTimeoutError", "EndpointConnectionError",
    "ResponseParserError", "ResponseStreamingError", "FSTimeoutError", "ContentLengthError",
))  # fmt: skip


class CutShort(StorageError):
    """Storage sent fewer bytes than it was asked for."""


@dataclass(frozen=True)
class Retries:
    """How often a request is sent, and the pauses between, which double.

    Args:
        attempts: how often in all.
        first: seconds before the second attempt.
        most: the longest pause.
        timeout: seconds after which a request without an answer is sent again.
    """

    attempts: int = 6
    first: float = 0.2
    most: float = 10.0
    timeout: float = 60.0

    def pauses(self) -> Iterator[float]:
        """Yield the seconds to wait after each failed attempt but the last.

        They are spread at random, so that a thousand workers do not come back at once.
        """
        for k in range(self.attempts - 1):
            yield min(self.first * 2**k, self.most) * random.uniform(0.5, 1.5)


def passing(error: BaseException) -> bool:
    """Return whether a fault passes: the same request may succeed later.

    >>> passing(TimeoutError()), passing(FileNotFoundError()), passing(OSError(errno.ENOSPC, ""))
    (True, False, False)
    """
    seen: BaseException | None = error
    for _ in range(4):  # libraries wrap the error of the connection
        if seen is None:
            return False
        if isinstance(seen, CutShort | TimeoutError | ConnectionError):
            return True
        if isinstance(seen, FileNotFoundError | PermissionError | FileExistsError):
            return False
        for name in ("status", "code"):  # aiohttp's, gcsfs's
            status = getattr(seen, name, None)
            if isinstance(status, int):
                return status in _STATUS
        response = getattr(seen, "response", None)
        if isinstance(response, dict):
            code = str(response.get("Error", {}).get("Code", ""))
            return code in _CODES or (code.isdigit() and int(code) in _STATUS)
        if type(seen).__name__ in _NAMES:
            return True
        if isinstance(seen, OSError) and seen.errno in _NUMBERS:
            return True
        seen = seen.__cause__
    return False


def retrying(
    work: Callable[[], T],
    retries: Retries,
    call: str,
    url: str,
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Call ``work``, again after faults that pass, and return its result.

    Raises:
        StorageNotFound: there is no such file.
        StorageError: any other fault, or one that does not pass in time.
    """
    pauses = retries.pauses()
    tried = 1
    while True:
        try:
            return work()
        except DalaError as error:
            if not isinstance(error, CutShort):
                raise
            failed: Exception = error
        except Exception as error:  # libraries of storage raise nearly anything
            failed = error
        pause = next(pauses, None) if passing(failed) else None
        if pause is None:
            raise refused(failed, call, url, tried) from masked_error(failed)
        sleep(pause)
        tried += 1


def refused(error: BaseException, call: str, url: str, tried: int = 1) -> StorageError:
    """Return the error for a fault, in the form of this library."""
    name = shown(url)
    text = " ".join(str(error).split()).replace(url, name)
    if isinstance(error, StorageError):
        text = text.removeprefix(f"{error.call}: ") if error.call else text
        return StorageError(f"{call}: {text}")
    if isinstance(error, FileNotFoundError):
        return StorageNotFound(f"{call}: there is no file or folder {name!r}.")
    if isinstance(error, PermissionError):
        why = "storage refuses access to"
        advice = f" ({text})." if text else "."
        return StorageError(f"{call}: {why} {name!r}{advice}")
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOSPC:
        return StorageError(f"{call}: no space is left for {name!r}.")
    if number == errno.EISDIR:
        return StorageError(f"{call}: {name!r} is a folder. Name a file in it.")
    kind = type(error).__name__
    reason = f"{kind}: {text}" if text and not isinstance(error, OSError) else text or kind
    many = f" after {tried} attempts" if tried > 1 else ""
    made = StorageError(f"{call}: {name!r} cannot be reached{many} ({reason}).")
    if number is not None:
        made.errno = number
    return made


#: A file system of fsspec, which has no types.
FileSystem: TypeAlias = Any
#: What a file system says about a file: a dict whose keys differ by storage.
Details: TypeAlias = Any
#: Options of a file system, such as ``endpoint_url``; keys and secrets among them.
Options: TypeAlias = Mapping[str, object]

#: Storage whose uploads appear whole or not at all. Elsewhere files are written under another name,
#: and renamed.
_WHOLE: Final = frozenset(("memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss"))
#: What tells that a file was replaced.
_TAGS: Final = ("ETag", "etag", "md5Hash", "generation", "LastModified", "last_modified", "mtime",
                "created")  # fmt: skip


class RemotePlace:
    """Files of one protocol of fsspec.

    Args:
        protocol: such as "s3".
        options: those of its file system.
        timeout: seconds that a request may take.
    """

    def __init__(self, protocol: str, options: Options, timeout: float) -> None:
        self.protocol = protocol
        self._options = dict(options)
        self._timeout = timeout
        self._generation = -1
        self._system: FileSystem = None

    @property
    def system(self) -> FileSystem:
        """The file system, made anew in a forked child."""
        if self._system is None or self._generation != forks.generation():
            with needing("storage", "batch"):
                import fsspec
            options = dict(self._options)
            if self.protocol in ("s3", "s3a"):
                # Requests are sent again here, and not three times over in each layer below.
                config = options.get("config_kwargs")
                given = config if isinstance(config, Mapping) else {}
                options["config_kwargs"] = {"retries": {"total_max_attempts": 1}, **given}
            try:
                # Listings must show what other machines have written since.
                self._system = fsspec.filesystem(self.protocol, use_listings_cache=False, **options)
                if hasattr(self._system, "retries"):
                    self._system.retries = 1
            except ImportError as error:
                raise StorageError(
                    f"storage: files of {self.protocol}:// need another package ({error})."
                ) from None
            self._generation = forks.generation()
        return self._system

    def _bounded(self) -> dict[str, float]:
        """Return the argument that ends a request without an answer."""
        return {"timeout": self._timeout} if getattr(self.system, "async_impl", False) else {}

    def stat(self, url: str) -> Facts:
        """Return the facts of a file."""
        found = self.system.info(url, **self._bounded())
        if found.get("type") == "directory":
            raise IsADirectoryError(21, "Is a directory")
        if found.get("size") is None:
            raise StorageError(
                f"storage: the server of {shown(url)!r} does not say how long the file is."
            )
        return _stored(url, found, name_of(url))

    def is_folder(self, url: str) -> bool:
        """Return whether there is such a folder."""
        return False if self.protocol in WEB else bool(self.system.isdir(url.rstrip("/")))

    def scan(self, url: str) -> tuple[list[str], Iterator[Facts]]:
        """Return the names of the folders in a folder, and its files, both sorted by name."""
        if self.protocol in WEB:
            raise StorageError(f"storage: {shown(url)!r} cannot be listed. Name its files.")
        found = self.system.ls(url.rstrip("/"), detail=True)
        own = url.partition("://")[2].strip("/")
        folders: list[str] = []
        files: list[tuple[str, Details]] = []
        for facts in found:
            whole = facts["name"].rstrip("/")
            name = whole.rpartition("/")[2]
            if whole.strip("/") == own or not name:
                continue  # the marker of the folder itself
            if facts["type"] == "directory":
                folders.append(name)
            else:
                files.append((name, facts))
        files.sort(key=lambda item: item[0])
        made = (_stored(join(url, name), facts, name) for name, facts in files)
        return sorted(set(folders)), made

    def read(self, url: str, start: int, end: int) -> bytes:
        """Return bytes of a file."""
        if start >= end:
            return b""
        data = self.system.cat_file(url, start=start, end=end, **self._bounded())
        if len(data) > end - start:
            raise StorageError(
                f"storage: the server of {shown(url)!r} does not send parts of files (HTTP ranges)."
            )
        if len(data) < end - start:
            raise CutShort(f"storage: {shown(url)!r}: got {len(data):,} of {end - start:,} bytes.")
        return bytes(data)

    def write(self, url: str, data: bytes, base: str = "") -> None:
        """Write a file, whole or not at all. There are no links that ``base`` would refuse."""
        self.refuse_web(url)
        if self.protocol in _WHOLE:
            self.system.pipe_file(url, data)
            return
        with RemotePart(functools.partial(self.send, url=url)) as part:
            part.path.write_bytes(data)
            part.complete()

    def create(self, url: str, data: bytes) -> None:
        """Write a file, or raise FileExistsError.

        S3 and memory refuse the second of two writers; other storage is asked before.
        """
        self.refuse_web(url)
        if self.protocol in ("s3", "s3a", "memory", "gs", "gcs"):
            try:
                self.system.pipe_file(url, data, mode="create")
            except OSError as error:
                response = getattr(error.__cause__, "response", None) or {}
                code = str(response.get("Error", {}).get("Code", ""))
                if code in ("PreconditionFailed", "412", "ConditionalRequestConflict"):
                    raise FileExistsError(17, "File exists") from error
                raise
            return
        if self.system.exists(url):
            raise FileExistsError(17, "File exists")
        self.write(url, data)

    def remove(self, url: str) -> None:
        """Remove a file."""
        self.refuse_web(url)
        self.system.rm_file(url)

    def remove_tree(self, url: str) -> None:
        """Remove a folder with all that is in it."""
        self.refuse_web(url)
        self.system.rm(url.rstrip("/"), recursive=True)

    def send(self, source: Path, url: str) -> None:
        """Copy a file of this machine to storage, where it appears whole or not at all."""
        if self.protocol in _WHOLE:
            self.system.put_file(str(source), url)
        else:
            self.system.makedirs(parent(url), exist_ok=True)
            name = join(parent(url), f".{name_of(url)}.{secrets.token_hex(4)}.dala.part")
            try:
                self.system.put_file(str(source), name)
                self.system.mv(name, url)
            except BaseException:
                with contextlib.suppress(Exception):
                    self.system.rm_file(name)
                raise
        sent, size = self.stat(url).size, source.stat().st_size
        if sent != size:
            raise CutShort(
                f"storage: {shown(url)!r} has {sent:,} of {size:,} bytes after the copy."
            )

    def refuse_web(self, url: str) -> None:
        """Raise StorageError for a web address, which cannot be written."""
        if self.protocol in WEB:
            raise StorageError(f"storage: {shown(url)!r} cannot be written: HTTP is only read.")


class RemotePart(UnfinishedFile):
    """A file that is written in a temporary folder, and sent to storage when it is complete."""

    def __init__(self, send: Callable[[Path], object], suffix: str = "") -> None:
        self._send = send
        number, name = tempfile.mkstemp(suffix=suffix or ".part", prefix="dala-")
        os.close(number)
        self.path = Path(name)
        forks.finalize(self, functools.partial(_unlink, self.path))

    def complete(self) -> None:
        """Send the file."""
        self._send(self.path)
        self.discard()

    def discard(self) -> None:
        """Remove the bytes written so far."""
        _unlink(self.path)


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _stored(url: str, facts: Details, path: str) -> Facts:
    found = next((facts[name] for name in _TAGS if facts.get(name) is not None), "")
    # A listing may have seconds where the facts of a file have a date.
    tag = f"{found.timestamp():.6f}" if isinstance(found, datetime) else str(found)
    if isinstance(found, float):
        tag = f"{found:.6f}"
    return Facts(url, int(facts.get("size") or 0), tag.strip('"'), path)
