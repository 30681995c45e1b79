"""Faults of storage: which are tried again, how long to wait, and the errors of the others."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from dala.batch.storage.urls import shown
from dala.errors import DalaError, StorageError, StorageNotFound, masked_error

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
    """Return what ``work`` returns, which is called again after faults that pass.

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
        return StorageError(f"{call}: {text}", call=call)
    if isinstance(error, FileNotFoundError):
        return StorageNotFound(f"{call}: there is no file or folder {name!r}.", call=call)
    if isinstance(error, PermissionError):
        why = "storage refuses access to"
        advice = f" ({text})." if text else "."
        return StorageError(f"{call}: {why} {name!r}{advice}", call=call)
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOSPC:
        return StorageError(f"{call}: no space is left for {name!r}.", call=call)
    if number == errno.EISDIR:
        return StorageError(f"{call}: {name!r} is a folder. Name a file in it.", call=call)
    kind = type(error).__name__
    reason = f"{kind}: {text}" if text and not isinstance(error, OSError) else text or kind
    many = f" after {tried} attempts" if tried > 1 else ""
    made = StorageError(f"{call}: {name!r} cannot be reached{many} ({reason}).", call=call)
    if number is not None:
        made.errno = number
    return made
