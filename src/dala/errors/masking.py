"""Secrets of URLs in texts: passwords, stream keys, tokens and passphrases are masked.

The text of every error of the library passes through here, as do notices and what the command line
prints of other errors. A URL keeps protocol, host and port, and its path where paths are names and
not keys. Queries and fragments are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

__all__ = ["masked", "masked_error", "masked_url", "resembles_url"]

#: Protocols of storage, whose URLs have no query: "?" is a letter of a name.
_STORAGE: Final = frozenset((
    "file", "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "hdfs",
    "sftp", "ssh", "smb",
))  # fmt: skip
#: Protocols whose paths name files. The path of any other may be a key.
_PATHS: Final = _STORAGE | {"http", "https", "webhdfs", "ftp", "ws", "wss"}

#: The beginning of a URL; where there may be keys, also of one with too few slashes.
_BEGIN: Final = re.compile(
    r"(?<![a-z0-9+.-])(?:([a-z][a-z0-9+.-]{1,19})://"
    r"|(rtmp[a-z]{0,2}|rtsps?|srt|rist|whip(?:\+https?)?|whep|https?|s?ftp|tcp|tls|udp):"
    r"(?:/(?!/)|(?=[^\s/'\"]))|([a-z][a-z0-9+.-]{1,19}):/(?=[^\s/]+@))",
    re.IGNORECASE,
)
_BARE_END: Final = re.compile(r"[\s\"'<>`]")
_PARTS: Final = re.compile(r"([^/?#]*)([^?#]*)(.*)", re.DOTALL)
_HOST: Final = re.compile(r"(?:\[[\w:.%-]*\]|[^:\[\]\s\\]*)(?::\d*)?")


def masked(text: str) -> str:
    """Return a text with the secrets of its URLs masked.

    In quotation marks a URL ends with them, elsewhere at a space.

    >>> masked("rtsp://me:secret@host:554/cam?token=1")
    'rtsp://***@host:554/...'
    >>> masked("no answer from 'https://host/a.mp4?key=secret', or from srt://host:9?streamid=x.")
    "no answer from 'https://host/a.mp4', or from srt://host:9."
    """
    made: list[str] = []
    at = 0
    while ":" in text and (found := _BEGIN.search(text, at)) is not None:
        end = _end(text, found)
        made += [text[at : found.end()], _rest(found, text[found.end() : end])]
        at = end
    return "".join([*made, text[at:]]) if made else text


def masked_url(url: str) -> str:
    """Return a URL with its secrets masked, whichever characters it has.

    >>> masked_url("rtmp://host/app/a 'quoted' key")
    'rtmp://host/...'
    """
    found = _BEGIN.match(url)
    if found is None:
        return url
    return url[: found.end()] + _rest(found, url[found.end() :])


def resembles_url(text: str) -> bool:
    """Return whether a text is a URL, or was meant as one, and not the path of a file.

    >>> resembles_url("rtmp:/host/app/key"), resembles_url("clips/a.mp4")
    (True, False)
    """
    return _BEGIN.match(text) is not None and ("\0" in text or not os.path.lexists(text))


def _end(text: str, begin: re.Match[str]) -> int:
    """Return where a URL ends."""
    quote = text[begin.start() - 1 : begin.start()]
    if quote and quote in "'\"":
        at = begin.end()
        while at < len(text) and text[at] != quote:
            at += 2 if text[at] == "\\" else 1
        return min(at, len(text))
    found = _BARE_END.search(text, begin.end())
    end = len(text) if found is None else found.start()
    while end > begin.end() and text[end - 1] in ".,;:!)]}":
        end -= 1
    return end


def _rest(begin: re.Match[str], rest: str) -> str:
    """Return the part of a URL after its protocol, masked."""
    scheme = str(begin[1] or begin[2] or begin[3]).lower()
    found = _PARTS.fullmatch(rest)
    assert found is not None
    place, path, query = found.groups()
    user, at, host = place.rpartition("@")
    if _HOST.fullmatch(host) is None:  # a password with a slash: all before may be part of it
        return "***"
    if scheme in _STORAGE and ":" not in user:
        return rest  # the name of a user or a container, without a password
    if scheme not in _PATHS:
        path = "/..." if len(path) > 1 else path
    return f"{'***' if user else ''}{at}{host}{path}{query if scheme in _STORAGE else ''}"


def masked_error(error: BaseException) -> BaseException:
    """Return an error of another library and its causes, without secrets.

    Their arguments are masked in place. One whose text comes from elsewhere is replaced by an
    error of its name and text.
    """
    for each in _chain(error):
        _mask(each)
        for name in ("__cause__", "__context__"):
            other = getattr(each, name)
            if other is not None and str(other) != masked(str(other)):
                setattr(each, name, _stand_in(other))
    return error if str(error) == masked(str(error)) else _stand_in(error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, each once, the first of them first."""
    seen: dict[int, BaseException] = {}
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen[id(each)] = each
            waiting += [each.__cause__, each.__context__]
    yield from reversed(list(seen.values()))


def _mask(error: BaseException) -> None:
    with suppress(Exception):  # classes of others may refuse anything
        error.args = tuple(_masked_value(value) for value in error.args)
        if isinstance(error, OSError):
            for name in ("filename", "filename2"):
                slot = getattr(OSError, name)
                if isinstance(value := slot.__get__(error), str):
                    slot.__set__(error, _masked_value(value))


def _masked_value(value: object) -> object:
    if isinstance(value, str):  # the name of a file or a message
        return masked_url(value) if _BEGIN.match(value) else masked(value)
    if isinstance(value, tuple):
        return tuple(_masked_value(item) for item in value)
    return value


def _stand_in(error: BaseException) -> BaseException:
    made = RuntimeError(f"{type(error).__name__}: {masked(str(error))}")
    made.__cause__ = error.__cause__
    made.__suppress_context__ = error.__suppress_context__
    return made.with_traceback(error.__traceback__)
