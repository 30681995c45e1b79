"""Servers on loopback for storage: S3 (moto's), and HTTP with ranges and faults on demand."""

from __future__ import annotations

import contextlib
import http.server
import logging
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass
class Web:
    """An HTTP server: files by path, faults that the next requests get, and what was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    #: "503", "cut" or "drop" for each of the next requests of bytes.
    faults: list[str] = field(default_factory=list)
    #: Whether it knows ranges.
    ranges: bool = True
    #: The ranges of requests that were answered.
    asked: list[tuple[int, int]] = field(default_factory=list)
    url: str = ""


@contextlib.contextmanager
def web_server() -> Iterator[Web]:
    """Yield a server that ends with the block."""
    web = Web()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(send=False)

        def do_GET(self) -> None:
            fault = web.faults.pop(0) if web.faults else ""
            if fault == "503":
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif fault == "drop":
                self.close_connection = True
            else:
                self.answer(send=True, cut=fault == "cut")

        def answer(self, send: bool, cut: bool = False) -> None:
            data = web.files.get(self.path.partition("?")[0])
            if data is None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start, end, status = 0, len(data), 200
            wanted = self.headers.get("Range", "")
            if wanted.startswith("bytes=") and web.ranges:
                first, _, last = wanted[6:].partition("-")
                start, end, status = int(first), min(int(last or len(data)) + 1, len(data)), 206
            self.send_response(status)
            self.send_header("Content-Length", str(end - start))
            if web.ranges:
                self.send_header("Accept-Ranges", "bytes")
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
            self.end_headers()
            if send:
                web.asked.append((start, end))
                self.wfile.write(data[start : (start + end) // 2 if cut else end])
                self.close_connection = cut

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


#: Returns what becomes of a request: "", "503", "500" (nothing is done), "lost" (it is done, but
#: the answer never arrives) or "slow".
Fate: TypeAlias = "Callable[[str, str], str]"


@contextlib.contextmanager
def s3_server(bucket: str, fate: Fate | None = None) -> Iterator[dict[str, dict[str, object]]]:
    """Yield the options of storage for an S3 server with an empty bucket.

    Args:
        bucket: its name.
        fate: from the method and path of a request to what becomes of it.
    """
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    inner = DomainDispatcherApplication(create_backend_app)

    def app(environ: dict[str, Any], start: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        what = fate(method, path) if fate is not None else ""
        if what in ("503", "500"):
            code, line = {
                "503": ("SlowDown", "503 Slow Down"),
                "500": ("InternalError", "500 Internal Server Error"),
            }[what]
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start(line, [("Content-Type", "application/xml")])
            return [f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()]
        if what == "slow":
            time.sleep(0.5)
        found = inner(environ, start)
        if what == "lost":
            b"".join(found)
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        return found

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    options: dict[str, object] = {
        "endpoint_url": f"http://127.0.0.1:{server.server_port}",
        "key": "testing",
        "secret": "testing",
        "client_kwargs": {"region_name": "us-east-1"},
    }
    try:
        make = urllib.request.Request(f"{options['endpoint_url']}/{bucket}", method="PUT")
        urllib.request.urlopen(make).close()
        yield {"s3": options}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
