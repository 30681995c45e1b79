"""Frames on a web page: a small server on this machine, one page, raw pixels.

The page asks for a frame newer than the one it has, and is answered when there is one. So a slow
page holds nothing up, nothing piles up on the way, and what it shows is always the newest.
rendercanvas's own page serves one canvas a process and needs a web server installed; this needs
the standard library alone, and serves any number of surfaces.
"""

from __future__ import annotations

import contextlib
import html
import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import DeviceUnavailable
from dala.gpu.presenters.base import LOOK, Presenter
from dala.gpu.presenters.http import Answer, Server
from dala.gpu.presenters.window_loop import has_display

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer

#: Seconds without any page after which the last one counts as closed, and not as reloaded.
GRACE: Final = 1.5

#: Seconds after which a page that asked for a frame is told to ask again.
PATIENCE: Final = 10.0


class BrowserPresenter(Presenter):
    """Serves the frames of a surface to any browser on this machine that knows the address."""

    kind = "browser"

    def __init__(self, renderer: Renderer, title: str, vsync: bool) -> None:
        super().__init__(renderer)
        self._page = _page(title, vsync, renderer.canvas.nearest)
        self._news = threading.Condition()
        self._frame: np.ndarray[Any, Any] | None = None
        self._number = 0
        self._pages = 0
        self._left_at = 0.0
        self._opening: threading.Thread | None = None
        try:
            self._server = Server(self._answer, f"/{secrets.token_urlsafe(16)}/")
        except OSError as error:
            raise DeviceUnavailable(
                f"create_surface: show='browser' could not listen on 127.0.0.1: {error}."
            ) from None
        #: Where the page is. Whoever knows it can see the surface.
        self.address = self._server.address
        self._watch = threading.Thread(target=self._look, name="dala-browser", daemon=True)
        self._watch.start()
        self.listen()
        if sys.stderr is not None:  # as in a program without a console
            sys.stderr.write(f"dala: {title} is shown at {self.address}\n")
            sys.stderr.flush()
        self._open()

    def wake(self) -> None:
        """Tells the pages that wait of a frame."""
        with self._news:
            self._number += 1
            self._frame = None
            self._news.notify_all()

    def close(self) -> None:
        """Ends the server, its connections and threads."""
        self.leave()
        with self._news:
            self._news.notify_all()
        self._server.close()
        for thread in (self._watch, self._opening):
            if thread is not None and thread is not threading.current_thread():
                thread.join(timeout=10.0)

    # answers, each on a thread of its connection ------------------------------------------------
    def _answer(self, path: str, query: dict[str, str]) -> Answer:
        if path == "":
            return Answer(200, self._page, {"Content-Type": "text/html; charset=utf-8"})
        if path == "alive":
            return Answer(200, b"", {"Content-Type": "text/plain"}, keep=self._visit)
        if path == "frame":
            return self._newer(query.get("after", ""))
        return Answer(404, b"There is nothing here.\n", {"Content-Type": "text/plain"})

    def _newer(self, after: str) -> Answer:
        if not after.isascii() or not after.isdigit() or len(after) > 15:
            return Answer(400, b"after must be a number.\n", {"Content-Type": "text/plain"})
        end = time.monotonic() + PATIENCE
        with self._news:
            # A number from before this surface (a page that was left open) is no reason to wait.
            while not self._number or self._number == int(after):
                if self.closed:
                    return Answer(410, b"The surface was closed.\n", {"Content-Type": "text/plain"})
                if time.monotonic() > end:
                    return Answer(204, b"", {})
                self._news.wait(LOOK)
            number, frame = self._number, self._frame
        if frame is None:
            frame = self.take()
            with self._news:
                if self._number == number:
                    self._frame = frame
                    self.shown += 1
        height, width = frame.shape[:2]
        return Answer(
            200,
            memoryview(frame).cast("B"),
            {
                "Content-Type": "application/octet-stream",
                "X-Frame": str(number),
                "X-Width": str(width),
                "X-Height": str(height),
            },
        )

    def _visit(self, connection: socket.socket) -> None:
        """Stays with a page until it, or the surface, is closed."""
        with self._news:
            self._pages += 1
        try:
            connection.settimeout(LOOK)
            while not self.closed:
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(1):
                        return
        except OSError:
            pass  # the page is gone
        finally:
            with self._news:
                self._pages -= 1
                self._left_at = time.monotonic()

    # threads ------------------------------------------------------------------------------------
    def _look(self) -> None:
        """Ends the presenter when the surface is gone, or the last page was closed."""
        while not self._gone.wait(LOOK):
            with self._news:
                left = self._left_at and not self._pages
                if left and time.monotonic() - self._left_at > GRACE:
                    break
            if self.renderer.closed:
                break
        self.leave()
        with self._news:
            self._news.notify_all()
        self._server.close()

    def _open(self) -> None:
        """Opens a browser, where somebody could see it."""
        if os.environ.get("DALA_BROWSER", "").lower() == "none":
            return
        if not has_display() and not os.environ.get("BROWSER"):
            return
        # Some browsers' launchers take seconds to return.
        self._opening = threading.Thread(
            target=webbrowser.open, args=(self.address,), name="dala-browser-open", daemon=True
        )
        self._opening.start()


def _page(title: str, vsync: bool, nearest: bool) -> bytes:
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    facts = {
        "vsync": "true" if vsync else "false",
        "rendering": "pixelated" if nearest else "auto",
        "title": html.escape(title),  # last, for it may look like one of the others
    }
    for name, value in facts.items():
        text = text.replace("{{" + name + "}}", value)
    return text.encode(errors="replace")
