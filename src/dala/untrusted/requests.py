"""Requests of the web that stay with one host, for playlists."""

from __future__ import annotations

import base64
import io
import socket
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import IO, Any, Final, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, unquote_to_bytes, urlsplit, urlunsplit

from dala import budget
from dala.errors import CommandTimeout, ParameterError, masked
from dala.untrusted.address import Address
from dala.untrusted.secret import SecretUrl

T = TypeVar("T")
C = TypeVar("C", bound="_Connection")

_WEB: Final = {"http": 80, "https": 443}
#: Bytes per second that a host sends at least.
LEAST_RATE: Final = 1 << 10
#: The largest playlist, in bytes.
MAX_PLAYLIST: Final = 16 << 20
#: Letters of paths and queries that are sent as they are.
_SENT: Final = "%/:=&?~#+!$,;'@()*[]-._"


class OtherHost(PermissionError):
    """A playlist leads to another host, to another protocol, or to an encrypted segment."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"it leads to '{SecretUrl(url)}', which is not on its host or is encrypted"
        )


class HostRequests:
    """Opens the addresses of a playlist, on the host of the playlist only; redirects included.

    Another port is another host, and https does not lead to http. The name of the host is looked
    up once, so that a later answer of DNS leads nowhere else; a proxy looks it up by itself.

    Args:
        url: the playlist, of http or https.
        timeout: seconds that an answer may take.

    >>> requests = HostRequests(SecretUrl("http://host/live.m3u8"), 10)
    >>> requests.check("http://host/1.ts").host
    'host'
    >>> requests.check("file:///home/me/notes.txt")
    Traceback (most recent call last):
    dala.untrusted.requests.OtherHost: it leads to 'file:///home/me/notes.txt', which is not on \
its host or is encrypted
    """

    def __init__(self, url: SecretUrl, timeout: float) -> None:
        self._url, self._timeout = url, timeout
        self._home = _parsed(url.reveal())
        pins = _Pins(self._home.host.strip("[]"))
        self._opener = urllib.request.build_opener(_Redirects(self), _Web(pins))

    def open(self, url: str, flags: int, options: Mapping[str, str]) -> Answer:
        """Return an open answer; PyAV calls it as ``io_open``.

        Raises:
            OtherHost: it is of another host or protocol.
            OSError: the host cannot be reached, or refuses.
        """
        found = self.check(url).url.reveal()
        request = urllib.request.Request(*_with_login(found, self._url.reveal()))
        first, end = int(options.get("offset", 0)), options.get("end_offset")
        if first or end:  # a segment that is a part of a file
            request.add_header("Range", f"bytes={first}-{int(end) - 1 if end else ''}")
        answer: HTTPResponse = _asked(lambda: self._opener.open(request, timeout=self._timeout))
        if first and answer.status != 206:
            answer.close()
            raise OSError("the host sends no parts of files")
        return Answer(answer)

    def check(self, url: str) -> Address:
        """Return the address of a URL.

        Raises:
            OtherHost: it is not of this host.
        """
        home, found = self._home, _allowed(url)
        if found is None or found.host != home.host:
            raise OtherHost(url)
        ports = _port(home), _port(found)
        if (ports[0] != ports[1] and ports != (80, 443)) or (home.scheme > found.scheme):
            raise OtherHost(url)
        return found


class Answer:
    """The answer of a host, as FFmpeg reads it."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer
        #: Bytes that a playlist may still have; None for other answers, and before the first bytes.
        self._left: int | None = None
        self._begun = False

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes, at most ``count``; none at the end.

        Raises:
            OSError: the host sends too slowly, or a playlist without end.
        """
        if self._left is not None and self._left < 0:
            return b""
        data = _asked(lambda: self._answer.read(count))
        if not self._begun and data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"#EXT"):
            self._left = MAX_PLAYLIST
        self._begun = True
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise OSError(f"its playlist has more than {MAX_PLAYLIST:,} bytes")
        return data

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


class _Pins:
    """The addresses of a host, looked up once for each port."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._numbers: tuple[str, ...] = ()

    def connect(self, port: int, timeout: float | None) -> socket.socket:
        """Return a connection to one of the addresses."""
        if not self._numbers:
            found = socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)
            self._numbers = tuple(dict.fromkeys(str(place[0]) for *_, place in found))
        for number in self._numbers[:-1]:
            with suppress(OSError):
                return socket.create_connection((number, port), timeout)
        return socket.create_connection((self._numbers[-1], port), timeout)


class _Patient(io.RawIOBase):
    """The bytes of a host: at ``LEAST_RATE`` after some seconds of patience, or an error.

    A timeout of the socket is for each packet, and one byte a second would be enough for it.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._raw = connection, connection.makefile("rb", buffering=0)
        self._patience = connection.gettimeout() or 10.0
        self._until = monotonic() + self._patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        budget.check_deadline("video.open")
        until = min(self._until, budget.deadline() or self._until)
        if (left := until - monotonic()) <= 0:
            raise TimeoutError("it sends too slowly")
        self._socket.settimeout(left)
        try:
            count = self._raw.readinto(buffer) or 0
        except TimeoutError:
            budget.check_deadline("video.open")
            raise
        self._until = min(self._until + count / LEAST_RATE, monotonic() + self._patience)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_Patient(sock))


class _Connection(HTTPConnection):
    """A connection to the pinned addresses of a host; to a proxy as usual."""

    pins: _Pins
    response_class = _Response

    def connect(self) -> None:
        if self.host.lower() == self.pins.host:
            self.sock = self.pins.connect(self.port, self.timeout)
        else:
            super().connect()


class _TlsConnection(HTTPSConnection, _Connection):
    """The same, with TLS: its ``connect`` calls that of ``_Connection``."""


def _pinned(kind: type[C], pins: _Pins, **always: Any) -> Callable[..., C]:
    """Return a maker of connections of a kind, in the form that urllib calls."""

    def make(host: str, **more: Any) -> C:
        made = kind(host, **always, **more)
        made.pins = pins
        return made

    return make


class _Web(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    def __init__(self, pins: _Pins) -> None:
        super().__init__()
        self._plain = _pinned(_Connection, pins)
        self._tls = _pinned(_TlsConnection, pins, context=ssl.create_default_context())

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._plain, req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._tls, req)


def _asked(ask: Callable[[], T]) -> T:
    """Return the result of a request; its errors hold URLs, so they are raised as other ones."""
    try:
        return ask()
    except (OtherHost, CommandTimeout):
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
