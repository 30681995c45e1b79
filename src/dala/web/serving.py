"""Serve an exported page to this machine or to phones in its network."""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from dala import forks
from dala.arguments import Flag, Integer, checked_path
from dala.errors import FreedError, ParameterError
from dala.resources import Closing
from dala.secure import local_addresses, qr_text, tls_context
from dala.typing import PathLike

_CALL: Final = "dala.web.serve"

#: Seconds after which a connection that says nothing is closed.
IDLE_SECONDS: Final = 20.0
#: Connections at a time.
MAX_CONNECTIONS: Final = 64

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

#: The files of every exported folder; ``chain.json`` names the others.
_ALWAYS: Final = ("index.html", "chain.json", "dala.js", "dala.d.ts")

#: Files by the path of a request, unquoted.
_Files: TypeAlias = Mapping[bytes, Path]


class _Handler(SimpleHTTPRequestHandler):
    """The files of one page, and nothing else."""

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

    def __init__(self, *args: Any, files: _Files) -> None:
        self._files = files
        super().__init__(*args)

    def send_head(self) -> Any:  # a file, or None
        path = Path(self.translate_path(self.path))
        # A file of the page that has become a link, or is behind one, is none of the page.
        if path.resolve() != path or not path.is_file():
            self.send_error(404)
            return None
        return super().send_head()

    def translate_path(self, path: str) -> str:
        """Return the file of a request; an empty text if it is not part of the page."""
        asked = unquote_to_bytes(path.partition("?")[0].partition("#")[0])
        found = self._files.get(asked)
        return "" if found is None else str(found)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the command's output is for addresses."""


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name != "nt"

    def __init__(self, address: tuple[str, int], handler: Any, context: ssl.SSLContext | None):
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._context = context
        self._room = forks.semaphore(MAX_CONNECTIONS)
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
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

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
        Integer(0, 65535).check(_CALL, "port", port)
        Flag("True, False or None").check_optional(_CALL, "tls", tls)
        local = host in _LOOPBACK
        secure = not local if tls is None else tls
        hosts = [host] if local else [*local_addresses(), host]
        context = None
        if secure:
            names = {"localhost", "127.0.0.1", socket.gethostname(), *hosts} - {"0.0.0.0", "::"}
            context = tls_context(sorted(names), _CALL)
        self._http = _HTTPServer((host, port), partial(_Handler, files=files), context)
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
    """Return what a terminal shows: the address first, then its QR code and advice."""
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
        lines.append("Only this machine can open it. For a phone, serve on host 0.0.0.0.")
    lines.append("Ctrl-C ends it.")
    return "\n".join(lines) + "\n"


def _files_of(path: Path) -> _Files:
    """Return the files of a page; each has its real path, whatever links lead to the page."""
    if path.is_file():
        page = path.resolve()
        return {b"/": page, b"/" + os.fsencode(path.name): page}
    root = path.resolve()
    try:
        document = json.loads((root / "chain.json").read_bytes())
        if document["format"] != "dala-chain":
            raise ValueError
        parts = [*document["shaders"], *document["data"]]
        named = [p["file"] for p in parts if "file" in p] + [document["picture"], document["still"]]
        paths = {os.fsencode(name): root / name for name in (*_ALWAYS, *named)}
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        raise ParameterError.invalid(
            _CALL,
            "folder",
            "a folder or an HTML file that dala.web.export wrote",
            str(path),
            "Put other pages on a web server.",
        ) from None
    paths[b""] = paths[b"index.html"]
    return {b"/" + name: p for name, p in paths.items() if p.is_relative_to(root)}
