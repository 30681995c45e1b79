"""HTTP requests, read from a connection and parsed. Everything about them is bounded.

A request is a line and headers, without a body. Its size and the time it takes to arrive have
limits, so that a connection that sends slowly, nothing or nonsense ends soon.
"""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

#: Bytes of a request's line and headers at most.
MAX_HEAD: Final = 16 * 1024

#: Headers of a request at most.
MAX_HEADERS: Final = 64

#: Parameters in the query of a request at most.
MAX_PARAMETERS: Final = 8

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VERSION: Final = re.compile(r"HTTP/([0-9])\.([0-9])")
_TARGET: Final = re.compile(r"[\x21-\x7e]+")
_HOST: Final = re.compile(r"(\[[0-9a-f:.]*\]|[^:\[\]]*)(?::[0-9]*)?")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
#: The 16 bytes of a WebSocket's handshake, in base64.
_KEY: Final = re.compile(r"[0-9A-Za-z+/]{22}==")
#: An empty line after the head. Lines may end without CR, as some clients by hand do.
_END: Final = re.compile(rb"\n\r?\n")


class RequestRefused(Exception):
    """A request that is malformed or too large, with the status of its response."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class HttpRequest:
    """A request without a body."""

    method: str
    #: The host without its port, lower case.
    host: str
    path: str
    query: dict[str, str]
    #: True where the client wants to send another request on the same connection.
    keep_alive: bool
    #: The key of a WebSocket's handshake; empty for other requests, and for pages of other sites.
    websocket: str = ""


def read_head(
    connection: socket.socket, pending: bytearray, idle: float, seconds: float
) -> bytes | None:
    """Read until the end of a request's headers. Return None where no request arrives.

    Args:
        connection: The connection; its timeout is changed.
        pending: Bytes received after the previous request; those after this one are left in it.
        idle: Seconds to wait for the first byte.
        seconds: Seconds from the first byte to the last one.

    Raises:
        RequestRefused: The head is too large, or took too long.
        OSError: The connection is broken.
    """
    end = time.monotonic() + (seconds if pending else idle)
    started = bool(pending)
    while True:
        if started and (found := _END.search(pending)) is not None:
            head = bytes(pending[: found.start()])
            del pending[: found.end()]
            return head
        if len(pending) > MAX_HEAD:
            raise RequestRefused(431, f"The request has more than {MAX_HEAD} bytes.")
        left = end - time.monotonic()
        if left <= 0:
            if not started:
                return None
            raise RequestRefused(408, f"The request took more than {seconds:g} seconds.")
        connection.settimeout(left)
        try:
            received = connection.recv(4096)
        except TimeoutError:
            continue
        if not received:
            return None
        if not started:
            started, end = True, time.monotonic() + seconds
        pending += received
        if pending.startswith((b"\r", b"\n")):  # some clients send an empty line after a request
            del pending[: len(pending) - len(pending.lstrip(b"\r\n"))]


def parse_request(head: bytes) -> HttpRequest:
    """Parse a request's line and headers.

    Raises:
        RequestRefused: It is malformed, or asks for what this server does not have.

    >>> parse_request(b"GET /page?after=3 HTTP/1.1\\r\\nHost: localhost:80\\r\\n").query
    {'after': '3'}
    """
    lines = head.decode("latin-1").replace("\r\n", "\n").rstrip("\r\n").split("\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise RequestRefused(400, "The request line is malformed.")
    method, target, version = words
    found = _VERSION.fullmatch(version)
    if found is None:
        raise RequestRefused(400, "The request line has no version of HTTP.")
    if found[1] != "1":
        raise RequestRefused(505, "HTTP must be version 1.")
    headers = _parse_headers(lines[1:])
    if method not in ("GET", "HEAD"):
        raise RequestRefused(405, "The method must be GET or HEAD.")
    if "transfer-encoding" in headers or headers.get("content-length", "0").strip("0"):
        raise RequestRefused(413, "A request must have no body.")
    host, path = headers.get("host"), target
    if target.lower().startswith("http://"):
        host, slash, path = target[7:].partition("/")
        path = slash + path
    if host is None and found[2] != "0":
        raise RequestRefused(400, "The request has no Host.")
    path, _, query = path.partition("?")
    try:
        parameters = dict(parse_qsl(query, max_num_fields=MAX_PARAMETERS))
    except ValueError:
        raise RequestRefused(400, "The query has too many parameters.") from None
    wish = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    keep = "keep-alive" in wish if found[2] == "0" else "close" not in wish
    local = _HOST.fullmatch((host or "").lower())
    name = local[1] if local else ""
    return HttpRequest(method, name, path, parameters, keep, _websocket_key(headers))


def _parse_headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > MAX_HEADERS:
        raise RequestRefused(431, f"The request has more than {MAX_HEADERS} headers.")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise RequestRefused(400, "A header is malformed.")
        name = name.lower()
        if name in headers and name in ("host", "content-length", "transfer-encoding"):
            raise RequestRefused(400, f"The header {name} is given twice.")
        headers[name] = value.strip(" \t")
    return headers


def _websocket_key(headers: dict[str, str]) -> str:
    """Return the key of a handshake that was made by a page of this server itself, else ""."""
    wanted = {"upgrade": "websocket", "sec-websocket-version": "13"}
    if any(headers.get(name, "").lower() != value for name, value in wanted.items()):
        return ""
    if headers.get("origin", "").lower() != f"http://{headers.get('host', '')}".lower():
        return ""
    key = headers.get("sec-websocket-key", "")
    return key if _KEY.fullmatch(key) else ""
