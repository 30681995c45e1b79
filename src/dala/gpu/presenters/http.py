"""A minimal HTTP server for one page, on the standard library's.

It listens on 127.0.0.1 only, on a free port. It serves only paths that begin with a secret, and
only requests whose Host is a local name: another site can neither guess the secret nor use DNS
rebinding. The port in Host may differ, as it does through a tunnel.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Final
from urllib.parse import parse_qsl, urlsplit

#: Seconds after which a connection that makes no progress is closed.
IDLE_SECONDS: Final = 30.0

#: The local names that a request's Host may have.
HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; frame-ancestors 'none'"
)


@dataclass
class HttpResponse:
    """The response to a request."""

    status: int
    body: bytes | memoryview
    headers: dict[str, str] = field(default_factory=dict)
    #: Called with the connection after the body was sent; the connection stays open meanwhile.
    keep: Callable[[socket.socket], None] | None = None


Responder = Callable[[str, dict[str, str]], HttpResponse]


class PageServer:
    """A server with one thread per connection."""

    def __init__(self, response: Responder, prefix: str) -> None:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._closed = False
        server = self

        class Handler(_Handler):
            respond = staticmethod(response)
            path_prefix = prefix

        class Listener(socketserver.TCPServer):
            allow_reuse_address = False
            request_queue_size = 32

            def process_request(self, request: object, client_address: object) -> None:
                assert isinstance(request, socket.socket)
                server._serve(self, request, client_address)

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore broken connections."""

        self._listener = Listener(("127.0.0.1", 0), Handler)
        port = self._listener.server_address[1]
        self.address = f"http://127.0.0.1:{port}{prefix}"
        self._loop = threading.Thread(
            target=self._listener.serve_forever, args=(0.1,), name="dala-http", daemon=True
        )
        self._loop.start()

    def _serve(
        self, listener: socketserver.TCPServer, request: socket.socket, client: object
    ) -> None:
        def work() -> None:
            try:
                listener.finish_request(request, client)
            except OSError:
                pass  # the browser is gone
            finally:
                with self._lock:
                    self._open.discard(request)
                    self._threads.discard(threading.current_thread())
                listener.shutdown_request(request)

        thread = threading.Thread(target=work, name="dala-http-connection", daemon=True)
        with self._lock:
            if self._closed:
                listener.shutdown_request(request)
                return
            self._open.add(request)
            self._threads.add(thread)
            thread.start()

    def close(self) -> None:
        """End all connections and threads. Safe to call twice."""
        with self._lock:
            first, self._closed = not self._closed, True
            connections, threads = list(self._open), list(self._threads)
        if first:
            self._listener.shutdown()
            self._listener.server_close()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in (self._loop, *threads):
            if thread is not threading.current_thread():
                thread.join(timeout=5.0)


class _Handler(BaseHTTPRequestHandler):
    """One connection, with its requests one after another."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    respond: Responder
    path_prefix = "/"

    def do_GET(self) -> None:
        """Answer a request with the right host and path."""
        at = urlsplit(self.path)
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in HOSTS or not at.path.startswith(self.path_prefix):
            self._send(HttpResponse(404, b"Not found.\n", {"Content-Type": "text/plain"}))
            return
        path = at.path.removeprefix(self.path_prefix)
        self._send(self.respond(path, dict(parse_qsl(at.query))))

    def _send(self, response: HttpResponse) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.keep is None:
            self.send_header("Content-Length", str(len(response.body)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(response.body)
        if response.keep is not None:
            self.wfile.flush()
            response.keep(self.connection)

    def version_string(self) -> str:
        """Return the name of the server."""
        return "dala"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
