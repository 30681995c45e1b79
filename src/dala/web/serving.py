"""Serve an exported page to this machine or to phones in its network."""

from __future__ import annotations

import io
import json
import os
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from dala import forks
from dala.arguments import Flag, Integer, checked_path
from dala.errors import FreedError, ParameterError
from dala.resources import Closing
from dala.secure import local_addresses, qr_text, tls_context
from dala.typing import PathLike
from dala.untrusted.opened import Opened
from dala.untrusted.place import Place

_CALL: Final = "dala.web.serve"

#: Seconds in which a request must have arrived, all of it.
IDLE_SECONDS: Final = 20.0
#: Bytes of an answer that a client takes each second, at least, after as many seconds again.
LEAST_RATE: Final = 16 << 10
#: The largest document of a page.
MAX_BYTES: Final = 256 << 20
#: Connections at a time.
MAX_CONNECTIONS: Final = 64
#: Of these, those of one address, so that it leaves room for others.
MAX_OF_ADDRESS: Final = 32

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

#: The files of every exported folder; ``chain.json`` names the others.
_ALWAYS: Final = ("index.html", "chain.json", "dala.js", "dala.d.ts")

#: Files by the path of a request, unquoted.
_Files: TypeAlias = Mapping[bytes, Path]


class _Handler(SimpleHTTPRequestHandler):
    """The files of one page, and nothing else."""

    server: _HTTPServer
    timeout = IDLE_SECONDS
    server_version = "dala"
    sys_version = ""
    extensions_map: Final = {  # type: ignore[misc] # Python's own is a plain dict
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".json": "application/json",
        ".wgsl": "text/plain",
    }

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        super().end_headers()

    def __init__(self, *args: Any, files: _Files, place: Place) -> None:
        self._files, self._place = files, place
        self._opened: Opened | None = None
        super().__init__(*args)

    def setup(self) -> None:
        super().setup()
        self._deadline = self.server.clock() + IDLE_SECONDS
        self.rfile = io.BufferedReader(_Patient(self))

    def hurry(self) -> None:
        """Let the next step of the connection end with the time that it has in all.

        Raises:
            TimeoutError: there is none left.
        """
        left = self._deadline - self.server.clock()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file; a client that reads too slowly is dropped."""
        size = os.fstat(source.fileno()).st_size
        self._deadline = self.server.clock() + IDLE_SECONDS + size / LEAST_RATE
        while data := source.read(1 << 16):
            self.hurry()
            outputfile.write(data)

    def send_head(self) -> Any:  # a file, or None
        asked = unquote_to_bytes(self.path.partition("?")[0].partition("#")[0])
        path = self._files.get(asked)
        with suppress(ParameterError):
            self._opened = None if path is None else self._place.open(str(path), _CALL)
        # A file of the page that has become a link, or is behind one, is none of the page.
        if self._opened is None or self._opened.name != path:
            self.send_error(404)
            return None
        return super().send_head()

    def translate_path(self, path: str) -> str:
        """Return a path of the file that was opened for the request."""
        assert self._opened is not None
        return os.fspath(self._opened)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the command's output is for addresses."""


class _Patient(io.RawIOBase):
    """The bytes that a client sends, up to the deadline of its request."""

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._handler.hurry()
        return int(self._handler.connection.recv_into(buffer))


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name != "nt"

    #: Seconds of a clock.
    clock: Callable[[], float] = staticmethod(monotonic)

    def __init__(self, address: tuple[str, int], handler: Any, context: ssl.SSLContext | None):
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._context = context
        self._lock = forks.lock()
        self._open: Counter[str] = Counter()
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        connection.settimeout(IDLE_SECONDS)
        if self._context is not None:
            # The handshake is made by the connection's thread, so that none waits for a slow one.
            connection = self._context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            room = self._open.total() < MAX_CONNECTIONS
            room = room and self._open[client_address[0]] < MAX_OF_ADDRESS
            self._open[client_address[0]] += room
        if room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open[client_address[0]] -= 1
                self._open += Counter()  # without those that have none

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: browsers close connections, and refuse certificates, as they like."""


class Server(Closing):
    """A server of one exported page, running until it is closed.

    Only the files that :func:`dala.web.export` wrote are served: of a folder those that its
    ``chain.json`` names, of an HTML file that file alone.

    Args:
        folder: that :func:`dala.web.export` wrote, or its HTML file.
        host: the address to listen on: "127.0.0.1" for this machine, "0.0.0.0" for the network.
        port: the port; 0 chooses one.
        tls: whether to serve https, with a certificate made on the spot; by default unless only
            this machine is served.

    Raises:
        ParameterError: there is no such folder or file, or the folder is no exported one.
        OSError: the port is taken.

    >>> import tempfile, urllib.request
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder, "page.html")
    ...     _ = page.write_text("hello")
    ...     with Server(page) as server:
    ...         urllib.request.urlopen(server.address).read()
    b'hello'
    """

    _instead = "Start it there."

    def __init__(
        self,
        folder: PathLike,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool | None = None,
    ) -> None:
        self._closed = True
        path = checked_path(_CALL, "folder", folder)
        files = _files_of(path)
        place = Place([path if path.is_dir() else path.resolve().parent])
        Integer(0, 65535).check(_CALL, "port", port)
        Flag("True, False or None").check_optional(_CALL, "tls", tls)
        local = host in _LOOPBACK
        secure = not local if tls is None else tls
        hosts = [host] if local else [*local_addresses(), host]
        context = None
        if secure:
            names = {"localhost", "127.0.0.1", socket.gethostname(), *hosts} - {"0.0.0.0", "::"}
            context = tls_context(sorted(names), _CALL)
        self._http = _HTTPServer((host, port), partial(_Handler, files=files, place=place), context)
        number = self._http.server_address[1]
        shown = hosts[0] if hosts[0] not in ("0.0.0.0", "::") else "localhost"
        shown = f"[{shown}]" if ":" in shown else shown
        page = "" if path.is_dir() else quote(os.fsencode(path.name))
        #: The address of the page.
        self.address = f"{'https' if secure else 'http'}://{shown}:{number}/{page}"
        #: Whether other machines can open it.
        self.local = local
        self._thread = forks.thread(self._http.serve_forever, name="dala web")
        self._thread.start()
        self._closed = False

    def wait(self) -> None:
        """Wait until the server is closed, or a signal ends the process.

        Raises:
            FreedError: it is closed already.
        """
        if self._closed:
            raise FreedError(f"{_CALL}: the server was closed.")
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop serving. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            self._http.shutdown()
            self._http.server_close()
            self._thread.join()


def serve(
    folder: PathLike,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: bool | None = None,
) -> None:
    """Serve an exported page until Ctrl-C; print the address, and its QR code in a network.

    Args:
        folder: that :func:`dala.web.export` wrote, or its HTML file.
        host: as in :class:`Server`.
        port: as in :class:`Server`.
        tls: as in :class:`Server`.

    Example::

        dala.web.export(["sepia"], "page")
        dala.web.serve("page")  # this machine only
        dala.web.serve("page", host="0.0.0.0")  # phones in the network too
    """
    with Server(folder, host=host, port=port, tls=tls) as server:
        sys.stdout.write(announcement(server))
        sys.stdout.flush()
        server.wait()


def announcement(server: Server) -> str:
    """Return the text for a terminal: the address first, then its QR code and advice."""
    lines = [server.address]
    if not server.local:
        code = qr_text(server.address)
        if code:
            lines.append(code.rstrip("\n"))
        lines.append(
            "Open it on a phone in the same network. The certificate was made for this run: the "
            "browser warns about it once."
        )
    else:
        lines.append(
            "Only this machine can open it. For a phone, serve with --phone, or on host 0.0.0.0."
        )
    lines.append("Ctrl-C ends it.")
    return "\n".join(lines) + "\n"


def _files_of(path: Path) -> _Files:
    """Return the files of a page; each has its real path, also where links lead to the page."""
    if path.is_file():
        page = path.resolve()
        return {b"/": page, b"/" + os.fsencode(path.name): page}
    root = path.resolve()
    try:
        document = json.loads(Place([root]).open("chain.json", _CALL).content(MAX_BYTES, _CALL))
        if document["format"] != "dala-chain":
            raise ValueError
        parts = [*document["shaders"], *document["data"]]
        named = [p["file"] for p in parts if "file" in p] + [document["picture"], document["still"]]
        paths = {os.fsencode(name): root / name for name in (*_ALWAYS, *named)}
    except (ParameterError, OSError, ValueError, TypeError, LookupError, RecursionError):
        raise ParameterError.invalid(
            _CALL,
            "folder",
            "a folder or an HTML file that dala.web.export wrote",
            str(path),
            "Put other pages on a web server.",
        ) from None
    paths[b""] = paths[b"index.html"]
    return {b"/" + name: p for name, p in paths.items() if p.is_relative_to(root)}
