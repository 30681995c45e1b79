"""The site, built once for all tests of a module, and served on this machine."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]

#: Filters whose canvas is tried by `make test`; `make test-long` tries all.
LIVE = ("sepia", "sharpen", "blend")


def build(folder: pathlib.Path, live: str = "all", version: str = "") -> str:
    """Build the site into a folder, as ``make docs`` does; returns what MkDocs warned of.

    Args:
        folder: where to.
        live: the filters that get a canvas, "all" or names with commas between.
        version: for a site of several versions, this one's name.
    """
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "DALA_DEVICE": "cpu",
            "DALA_SITE_LIVE": live,
            "SITE_VERSION": version,
        },
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if not line.startswith("INFO "))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: pathlib.Path) -> Iterator[str]:
    """Serve a folder on loopback; yields its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def opened(site: pathlib.Path) -> Iterator[str]:
    """Serve all versions of a site; yields the address of one."""
    with served(site.parent) as address:
        yield f"{address}{site.name}/"
