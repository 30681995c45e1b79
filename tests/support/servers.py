"""Servers on loopback for storage: S3 (moto's), and HTTP with ranges and faults on demand."""

from __future__ import annotations

import contextlib
import http.server
import logging
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field


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
                start, end, status = int(first), min(int(last) + 1, len(data)), 206
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


@contextlib.contextmanager
def s3_server(bucket: str) -> Iterator[dict[str, dict[str, object]]]:
    """Yield the options of storage for an S3 server with an empty bucket."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    options: dict[str, object] = {
        "endpoint_url": f"http://{host}:{port}",
        "key": "testing",
        "secret": "testing",
        "client_kwargs": {"region_name": "us-east-1"},
    }
    try:
        make = urllib.request.Request(f"{options['endpoint_url']}/{bucket}", method="PUT")
        urllib.request.urlopen(make).close()
        yield {"s3": options}
    finally:
        server.stop()
