"""Requests of pages to the browser presenter."""

from __future__ import annotations

import socket

from dala.gpu.presenters.requests import RequestRefused, parse_request, read_head
from tests.fuzz.target import Target

GET = (
    b"GET /frame?after=3&x=%C3%A4 HTTP/1.1\r\nHost: localhost:8000\r\n"
    b"Connection: keep-alive\r\n\r\n"
)


class Requests(Target):
    """Bytes on a connection: heads are read and parsed until they end or one is refused."""

    name = "requests"
    errors = (RequestRefused,)
    words = (
        b"GET ",
        b"POST ",
        b"HTTP/1.0",
        b"HTTP/9.9",
        b"\r\n\r\n",
        b"\n\n",
        b"Host: ",
        b"Host: [::1]:80\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: 99999999999\r\n",
        b"?after=",
        b"%00",
        b"%ff",
        b"..",
        b"//",
        b"\0",
        b"\xff",
        b":",
        b" ",
        b"A" * 300,
    )

    def seeds(self) -> list[bytes]:
        return [GET, GET + GET, b"\r\n" + GET.replace(b"\r", b""), b"GET / HTTP/1.0\r\n\r\n"]

    def read(self, data: bytes) -> str:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.settimeout(5)
            theirs.sendall(data[:60_000])
            theirs.shutdown(socket.SHUT_WR)
            pending, found = bytearray(), []
            while (head := read_head(ours, pending, 5.0, 5.0)) is not None:
                found.append(parse_request(head))
        return repr(found)
