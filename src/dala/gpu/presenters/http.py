"""A minimal HTTP server for pages. It is ours because the standard library's has no bounds.

Showing a surface needs no package, and web frameworks do not bound what a connection costs. By
default it listens on 127.0.0.1 only, on a free port. It serves only paths that begin with a secret,
and only requests whose Host is a local name: another site can neither guess the secret nor use DNS
rebinding. The port in Host may differ, as it does through a tunnel.

Any program on the machine may connect, so every connection costs a bounded amount: of time until
its request is complete, of bytes, and of places. When the places are taken, a connection that has
not shown the secret yet gives way; pages that have it keep theirs.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from dala import forks
from dala.gpu.presenters.base import POLL_SECONDS, join
from dala.gpu.presenters.requests import HttpRequest, RequestRefused, parse_request, read_head

#: The local names that a request's Host may have.
HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

#: Headers of responses that have no others.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; connect-src 'self' ws://127.0.0.1:* ws://localhost:*; "
    "img-src data:; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}

#: Bytes of a body that are sent at a time.
CHUNK: Final = 256 * 1024


@dataclass(frozen=True)
class ServerLimits:
    """Limits on the connections of a server."""

    #: Connections at a time, from all addresses.
    connections: int = 128
    #: Connections at a time from one address. A page uses two.
    per_address: int = 64
    #: Seconds in which a request must be complete, from its first byte; for the first request of a
    #: connection, from the connection's begin.
    request_seconds: float = 10.0
    #: Seconds after which a connection without a request, or whose client reads nothing, is closed.
    idle_seconds: float = 30.0
    #: Bytes per second that a client must read on average, after the idle seconds.
    least_rate: float = 1e6
    #: Seconds that the server accepts nothing where the system has no descriptors or threads left;
    #: doubled up to a second while that lasts.
    retry_seconds: float = 0.05


@dataclass
class HttpResponse:
    """The response to a request."""

    status: int
    body: bytes | memoryview
    headers: dict[str, str] = field(default_factory=dict)
    #: Called with the connection after the body was sent; the connection stays open meanwhile.
    keep: Callable[[socket.socket], None] | None = None


Responder = Callable[[str, dict[str, str]], HttpResponse]


def text_response(status: int, text: str) -> HttpResponse:
    """Return a response of one line of text.

    >>> text_response(404, "Not found.").body
    b'Not found.\\n'
    """
    return HttpResponse(status, f"{text}\n".encode(), {"Content-Type": "text/plain"})


@dataclass(eq=False)
class _Connection:
    """One connection, with its requests one after another."""

    socket: socket.socket
    address: str
    #: True once it sent a request with the secret.
    known: bool = False


class PageServer:
    """A server with one thread per connection.

    Args:
        respond: Returns the response to a path, below the prefix, and its query. It runs on the
            connection's thread.
        prefix: The path that holds the secret, with a slash at both ends.
        failed: Called with an exception of ``respond``, whose request gets status 500.
        limits: What connections may cost.
        upgrade: Returns the response to a WebSocket's handshake on a path, whose key is the second
            argument; None where there is none.
        place: The address and port to listen on.
        hosts: The names that the Host of a request may have; None for any. By default the local
            ones on a loopback address, and any on others.
        headers: Headers of responses that have no others.
        context: For https.

    Raises:
        OSError: It cannot listen there.
    """

    def __init__(
        self,
        respond: Responder,
        prefix: str,
        failed: Callable[[Exception], None],
        limits: ServerLimits | None = None,
        upgrade: Callable[[str, str], HttpResponse] | None = None,
        place: tuple[str, int] = ("127.0.0.1", 0),
        hosts: frozenset[str] | None = HOSTS,
        headers: Mapping[str, str] = HEADERS,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._respond = respond
        self._upgrade = upgrade
        self._prefix = prefix
        self._failed = failed
        self._limits = limits or ServerLimits()
        self._lock = forks.lock()
        #: In the order in which they were accepted.
        self._open: dict[_Connection, None] = {}
        self._threads: set[threading.Thread] = set()
        self._closed = forks.event()
        #: Connections refused or closed to make room.
        self.refused = 0
        self._hosts = hosts if place[0] in ("127.0.0.1", "localhost") else None
        self._headers, self._context = headers, context
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self._listener = socket.create_server(place, family=family, backlog=64)
        self._listener.settimeout(POLL_SECONDS)
        #: The port that it listens on.
        self.port: int = self._listener.getsockname()[1]
        self.address = f"http://{place[0]}:{self.port}{prefix}"
        forks.in_child(self._leave_to_parent)
        self._loop = forks.thread(self._accept_all, name="dala-http")
        try:
            self._loop.start()
        except BaseException:
            self._listener.close()
            raise

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def wait(self, seconds: float) -> bool:
        """Wait, at most so long; return whether the server was closed."""
        return self._closed.wait(seconds)

    # accepting ----------------------------------------------------------------------------------
    def _accept_all(self) -> None:
        pause = self._limits.retry_seconds
        while not self._closed.is_set():
            try:
                self._begin(*self._listener.accept())
                pause = self._limits.retry_seconds
            except (TimeoutError, ConnectionError):
                continue  # none, or one that is gone again
            except (OSError, RuntimeError):
                # No descriptors, memory or threads. The connection stays readable, so that to try
                # again at once would only use up a core.
                self._make_room(None)
                self._closed.wait(pause)
                pause = min(2 * pause, 1.0)

    def _begin(self, accepted: socket.socket, client: tuple[str, int]) -> None:
        accepted.settimeout(self._limits.idle_seconds)
        if self._context is not None:  # the connection's thread makes the handshake
            accepted = self._context.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            )
        connection = _Connection(accepted, client[0])
        if not self._has_room(connection.address):
            self.refused += 1
            with contextlib.suppress(OSError):
                if self._context is None:
                    self._send(connection, text_response(503, "Too many connections."), keep=False)
            accepted.close()
            return
        thread = forks.thread(self._work, args=(connection,), name="dala-http-connection")
        with self._lock:
            if self._closed.is_set():
                accepted.close()
                return
            self._open[connection] = None
            self._threads = {each for each in self._threads if each.is_alive()} | {thread}
            try:
                thread.start()
            except BaseException:
                del self._open[connection]
                self._threads.discard(thread)
                accepted.close()
                raise

    def _has_room(self, address: str) -> bool:
        with self._lock:
            here = sum(1 for each in self._open if each.address == address)
            full = len(self._open) >= self._limits.connections
        if here >= self._limits.per_address:
            return self._make_room(address)
        return not full or self._make_room(None)

    def _make_room(self, address: str | None) -> bool:
        """Close the oldest connection without the secret, of an address or of all."""
        with self._lock:
            for each in self._open:
                if not each.known and address in (None, each.address):
                    del self._open[each]
                    self.refused += 1
                    _shut_down(each.socket)
                    return True
        return False

    def close(self) -> None:
        """End all connections and threads. Safe to call twice."""
        with self._lock:
            self._closed.set()
            connections, threads = list(self._open), list(self._threads)
        _shut_down(self._listener)  # wakes accept() where the system does that; else it polls
        self._listener.close()
        for connection in connections:
            _shut_down(connection.socket)
        join(5.0, self._loop, *threads)

    def _leave_to_parent(self) -> None:
        """Close the sockets of a forked child, so that the parent alone holds them."""
        self._closed.set()
        for held in (self._listener, *(connection.socket for connection in self._open)):
            held.close()
        self._open.clear()

    # one connection -----------------------------------------------------------------------------
    def _work(self, connection: _Connection) -> None:
        try:
            with contextlib.suppress(OSError):  # the client is gone
                self._serve(connection)
        finally:
            with self._lock:
                self._open.pop(connection, None)
            connection.socket.close()

    def _serve(self, connection: _Connection) -> None:
        pending, limits = bytearray(), self._limits
        idle = limits.request_seconds
        while not self._closed.is_set():
            try:
                head = read_head(connection.socket, pending, idle, limits.request_seconds)
                if head is None:
                    return
                request = parse_request(head)
            except RequestRefused as refused:
                response = text_response(refused.status, refused.reason)
                if refused.status == 405:
                    response.headers["Allow"] = "GET, HEAD"
                self._send(connection, response, keep=False)
                _linger(connection.socket)
                return
            response = self._answer(connection, request)
            keep = request.keep_alive and connection.known and response.keep is None
            self._send(connection, response, keep, body=request.method == "GET")
            if response.keep is not None and request.method == "GET":
                response.keep(connection.socket)
            if not keep:
                return
            del response  # its frame is large, and the next request may be far off
            idle = limits.idle_seconds

    def _answer(self, connection: _Connection, request: HttpRequest) -> HttpResponse:
        wrong_host = self._hosts is not None and request.host not in self._hosts
        if wrong_host or not request.path.startswith(self._prefix):
            return text_response(404, "Not found.")
        connection.known = True
        path = request.path.removeprefix(self._prefix)
        try:
            if request.websocket and self._upgrade is not None:
                return self._upgrade(path, request.websocket)
            return self._respond(path, request.query)
        except Exception as error:
            self._failed(error)
            return text_response(500, "The program failed to respond.")

    def _send(
        self, connection: _Connection, response: HttpResponse, keep: bool, *, body: bool = True
    ) -> None:
        headers = {
            **self._headers,
            **response.headers,
            "Server": "dala",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        if response.keep is None and response.status != HTTPStatus.NO_CONTENT:
            headers["Content-Length"] = str(len(response.body))
        if not keep:
            headers.setdefault("Connection", "close")
        lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
        lines += (f"{name}: {value}" for name, value in headers.items())
        limits, raw = self._limits, connection.socket
        raw.settimeout(limits.idle_seconds)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if not body:
            return
        content = memoryview(response.body)
        end = time.monotonic() + limits.idle_seconds + len(content) / limits.least_rate
        for at in range(0, len(content), CHUNK):
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the client reads too slowly")
            raw.settimeout(min(left, limits.idle_seconds))
            raw.sendall(content[at : at + CHUNK])


def _shut_down(connection: socket.socket) -> None:
    """End a connection of another thread, whose wait ends with it."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # of TLS, the one below it


def _linger(connection: socket.socket) -> None:
    """Read the rest of a request, for a moment: closing now would discard its response."""
    end = time.monotonic() + 0.5
    connection.shutdown(socket.SHUT_WR)
    for _ in range(64):
        connection.settimeout(max(end - time.monotonic(), 0.001))
        if not connection.recv(4096):
            return
