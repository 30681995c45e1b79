"""As much of an HTTP server as one page needs, on the standard library's.

It listens on 127.0.0.1 alone, on a port that was free. Only paths that begin with a secret are
answered, and only requests whose Host is this machine by its own name: a page of somebody else's
can neither guess the one nor, with a domain that leads here, pass the other. The port in Host may
be another, for it is if the page is looked at through a tunnel.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

#: Seconds that a connection may stand still: with a request half sent, or an answer half read.
STILL: Final = 30.0

#: What the machine calls itself.
HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; frame-ancestors 'none'"
)


@dataclass
class Answer:
    """What a request is answered."""

    status: int
    body: bytes | memoryview
    headers: dict[str, str] = field(default_factory=dict)
    #: Called after the body with the connection, which stays open until this returns.
    keep: Callable[[socket.socket], None] | None = None


Answering = Callable[[str, dict[str, str]], Answer]


class Server:
    """Listens, and answers every connection on a thread of its own."""

    def __init__(self, answer: Answering, prefix: str) -> None:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._closed = False
        server = self

        class Handler(_Handler):
            answering = staticmethod(answer)
            path_prefix = prefix

        class Listener(socketserver.TCPServer):
            allow_reuse_address = False
            request_queue_size = 32

            def process_request(self, request: Any, client_address: Any) -> None:
                server._serve(self, request, client_address)

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A connection that broke is no news."""

        self._listener = Listener(("127.0.0.1", 0), Handler)
        port = self._listener.server_address[1]
        self.address = f"http://127.0.0.1:{port}{prefix}"
        self._loop = threading.Thread(
            target=self._listener.serve_forever, args=(0.1,), name="dala-http", daemon=True
        )
        self._loop.start()

    def _serve(self, listener: Any, request: socket.socket, client: Any) -> None:
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
        """Ends all connections and threads. Twice is fine."""
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
    """One connection; the browser sends one request after the other over it."""

    protocol_version = "HTTP/1.1"
    timeout = STILL
    disable_nagle_algorithm = True
    answering: Answering
    path_prefix = "/"

    def do_GET(self) -> None:
        """Answers what is ours."""
        at = urlsplit(self.path)
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in HOSTS or not at.path.startswith(self.path_prefix):
            self._send(Answer(404, b"There is nothing here.\n", {"Content-Type": "text/plain"}))
            return
        path = at.path.removeprefix(self.path_prefix)
        self._send(self.answering(path, dict(parse_qsl(at.query))))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.keep is None:
            self.send_header("Content-Length", str(len(answer.body)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(answer.body)
        if answer.keep is not None:
            self.wfile.flush()
            answer.keep(self.connection)

    def version_string(self) -> str:
        """The server's name."""
        return "dala"

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads a log of frames."""
