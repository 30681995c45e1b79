"""Serve an exported page to this machine or to phones in its network."""

from __future__ import annotations

import json
import mimetypes
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from dala.arguments import Flag, Integer, checked_path
from dala.errors import FreedError, ParameterError
from dala.gpu.presenters.http import HttpResponse, PageServer, ServerLimits, text_response
from dala.resources import Closing
from dala.secure import local_addresses, qr_text, tls_context
from dala.typing import PathLike
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

_LIMITS: Final = ServerLimits(
    MAX_CONNECTIONS, MAX_OF_ADDRESS, IDLE_SECONDS, IDLE_SECONDS, LEAST_RATE
)

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

#: The files of every exported folder; ``chain.json`` names the others.
_ALWAYS: Final = ("index.html", "chain.json", "dala.js", "dala.d.ts")

#: Types that not every machine knows.
_KINDS: Final = {".js": "text/javascript", ".json": "application/json", ".wgsl": "text/plain"}

#: Files by the path of a request, unquoted, without its first slash.
_Files: TypeAlias = Mapping[bytes, Path]


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

        def respond(path: str, query: dict[str, str]) -> HttpResponse:
            found, opened = files.get(unquote_to_bytes(path)), None
            with suppress(ParameterError):
                opened = None if found is None else place.open(str(found), _CALL)
            # A file of the page that has become a link, or is behind one, is none of the page.
            if opened is None or opened.name != found:
                return text_response(404, "Not found.")
            kind = _KINDS.get(found.suffix) or mimetypes.guess_type(found.name)[0]
            headers = {"Content-Type": kind or "application/octet-stream"}
            return HttpResponse(200, memoryview(opened.mapped()), headers)

        self._http = PageServer(
            respond,
            "/",
            failed=lambda error: None,
            limits=_LIMITS,
            place=(host, port),
            hosts=None,
            headers={"Cache-Control": "no-cache"},
            context=context,
        )
        number = self._http.port
        shown = hosts[0] if hosts[0] not in ("0.0.0.0", "::") else "localhost"
        shown = f"[{shown}]" if ":" in shown else shown
        page = "" if path.is_dir() else quote(os.fsencode(path.name))
        #: The address of the page.
        self.address = f"{'https' if secure else 'http'}://{shown}:{number}/{page}"
        #: Whether other machines can open it.
        self.local = local
        self._closed = False

    def wait(self) -> None:
        """Wait until the server is closed, or a signal ends the process.

        Raises:
            FreedError: it is closed already.
        """
        if self._closed:
            raise FreedError(f"{_CALL}: the server was closed.")
        while not self._http.wait(0.5):
            pass

    def close(self) -> None:
        """Stop serving. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            self._http.close()


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
        return {b"": page, os.fsencode(path.name): page}
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
    return {name: p for name, p in paths.items() if p.is_relative_to(root)}
