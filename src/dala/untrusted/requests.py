"""Requests of the web that stay with one host, for playlists."""

from __future__ import annotations

import base64
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Final, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, unquote_to_bytes, urlsplit, urlunsplit

from dala.errors import ParameterError, masked
from dala.untrusted.address import Address
from dala.untrusted.secret import SecretUrl

T = TypeVar("T")

_WEB: Final = {"http": 80, "https": 443}
#: Letters of paths and queries that are sent as they are.
_SENT: Final = "%/:=&?~#+!$,;'@()*[]-._"


class OtherHost(PermissionError):
    """A playlist leads to another host, to another protocol, or to an encrypted segment."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"it leads to '{SecretUrl(url)}', which is not on its host or is encrypted"
        )


class HostRequests:
    """Opens what a playlist names, on the host of the playlist only; redirects included.

    Another port is another host, and https does not lead to http.

    Args:
        url: the playlist, of http or https.
        timeout: seconds that an answer may take.

    >>> requests = HostRequests(SecretUrl("http://host/live.m3u8"), 10)
    >>> requests.check("http://host/1.ts")
    >>> requests.check("file:///home/me/notes.txt")
    Traceback (most recent call last):
    dala.untrusted.requests.OtherHost: it leads to 'file:///home/me/notes.txt', which is not on \
its host or is encrypted
    """

    def __init__(self, url: SecretUrl, timeout: float) -> None:
        self._url, self._timeout = url, timeout
        self._home = _parsed(url.reveal())
        self._opener = urllib.request.build_opener(_Redirects(self))

    def open(self, url: str, flags: int, options: Mapping[str, str]) -> Answer:
        """Return an open answer; PyAV calls it as ``io_open``.

        Raises:
            OtherHost: it is of another host or protocol.
            OSError: the host cannot be reached, or refuses.
        """
        self.check(url)
        request = urllib.request.Request(*_with_login(url, self._url.reveal()))
        first, end = int(options.get("offset", 0)), options.get("end_offset")
        if first or end:  # a segment that is a part of a file
            request.add_header("Range", f"bytes={first}-{int(end) - 1 if end else ''}")
        answer: HTTPResponse = _asked(lambda: self._opener.open(request, timeout=self._timeout))
        if first and answer.status != 206:
            answer.close()
            raise OSError("the host sends no parts of files")
        return Answer(answer)

    def check(self, url: str) -> None:
        """Raise OtherHost for a URL that is not of this host."""
        home, found = self._home, _allowed(url)
        if found is None or found.host != home.host:
            raise OtherHost(url)
        ports = _port(home), _port(found)
        if (ports[0] != ports[1] and ports != (80, 443)) or (home.scheme > found.scheme):
            raise OtherHost(url)


class Answer:
    """What a host sends, as FFmpeg reads it."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes, at most ``count``; none at the end."""
        return _asked(lambda: self._answer.read(count))

    def close(self) -> None:
        """End the connection."""
        self._answer.close()


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, requests: HostRequests) -> None:
        self._requests = requests

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str,
        headers: HTTPMessage, newurl: str,
    ) -> urllib.request.Request | None:  # fmt: skip
        self._requests.check(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _asked(ask: Callable[[], T]) -> T:
    """Return what a request returns; its errors hold URLs, so they are raised as other ones."""
    try:
        return ask()
    except OtherHost:
        raise
    except HTTPError as error:
        text = f"HTTP error {error.code}"
        error.close()
    except (OSError, HTTPException, ValueError) as error:
        text = masked(str(getattr(error, "reason", error)))
    raise OSError(text)


def _parsed(url: str) -> Address:
    return Address.parse(url, "video.open", "source", _WEB, "a URL of http or https")


def _allowed(url: str) -> Address | None:
    try:
        return _parsed(url)
    except ParameterError:
        return None


def _port(address: Address) -> int:
    return address.port or _WEB[address.scheme]


def _with_login(url: str, base: str) -> tuple[str, None, dict[str, str]]:
    """Return a URL without user and password, and the header that has them instead.

    >>> url, _, headers = _with_login("http://host/a b.ts", "http://me:pw@host/a.m3u8")
    >>> url, headers["Authorization"]
    ('http://host/a%20b.ts', 'Basic bWU6cHc=')
    """
    parts = urlsplit(url)
    user, _, place = parts.netloc.rpartition("@")
    user = user or urlsplit(base).netloc.rpartition("@")[0]
    headers = {"User-Agent": "dala"}
    if user:
        login = base64.b64encode(unquote_to_bytes(user)).decode()
        headers["Authorization"] = f"Basic {login}"
    path, query = quote(parts.path, safe=_SENT), quote(parts.query, safe=_SENT)
    return urlunsplit((parts.scheme, place, path, query, "")), None, headers
