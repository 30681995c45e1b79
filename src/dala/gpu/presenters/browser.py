"""The browser presenter: a small local server that sends raw pixels to one page.

The page requests a frame newer than the one it has, and gets it when there is one. So a slow page
delays nothing, no frames pile up, and the page always shows the newest one. rendercanvas has a page
too, but it serves one canvas per process and needs a web server package; this presenter needs the
standard library only, and serves any number of surfaces.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import secrets
import socket
import sys
import threading
import time
import weakref
import webbrowser
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from dala import forks
from dala.errors import CommandError, DalaError, DeviceUnavailable
from dala.gpu.input.events import InputEvent, checked_event
from dala.gpu.presenters.base import POLL_SECONDS, Presenter, Steer, join
from dala.gpu.presenters.http import HttpResponse, PageServer, text_response
from dala.gpu.presenters.websocket import BROKEN, MessageRefused, WebSocket, accept
from dala.gpu.presenters.window_loop import has_display
from dala.trace.recorder import OFF, tracer
from dala.trace.strip import StripOnDemand
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer

#: Seconds without a page after which the last one counts as closed rather than reloaded.
RELOAD_SECONDS: Final = 1.5

#: Seconds after which a request for a frame is answered without one.
RESPONSE_SECONDS: Final = 10.0


#: Events in a message of a page at most.
MAX_EVENTS: Final = 256

#: Copies of frames at most that are sent at the same time. Pages that read slowly hold them.
MAX_COPIES: Final = 8


class BrowserPresenter(Presenter):
    """Serves the frames of a surface to browsers on this machine that know the address."""

    kind = "browser"

    def __init__(self, renderer: Renderer, title: str, vsync: bool, steer: Steer = "first") -> None:
        super().__init__(renderer)
        self._steer = steer
        #: The pages that are open, oldest first, and what the program wants of them.
        self._visitors: list[WebSocket] = []
        self._wishes: dict[str, object] = {}
        self._page = _page(title, vsync, renderer.canvas.nearest)
        self._changed = forks.condition()
        self._frame: NDArray | None = None
        self._copies: list[weakref.ref[NDArray]] = []
        self._number = 0
        self._left_at = 0.0
        self._pasted: str | None = None
        self._strip = StripOnDemand()
        self._opening: threading.Thread | None = None
        try:
            self._server = PageServer(
                self._respond, f"/{secrets.token_urlsafe(16)}/", failed=self.record,
                upgrade=self._open_input,
            )  # fmt: skip
        except OSError as error:
            raise DeviceUnavailable(
                f"create_surface: show='browser' cannot listen on 127.0.0.1: {error}."
            ) from None
        #: The address of the page. Every program that knows it can see the surface.
        self.address = self._server.address
        self._watcher = forks.thread(self._watch_pages, name="dala-browser")
        try:
            self._watcher.start()
        except BaseException:
            self._server.close()
            raise
        self.listen()
        if sys.stderr is not None:  # None in programs without a console
            sys.stderr.write(f"dala: {title} is shown at {self.address}\n")
            sys.stderr.flush()
        self._open()

    def wake(self) -> None:
        """Notify waiting pages of a frame."""
        with self._changed:
            self._number += 1
            self._frame = None
            self._changed.notify_all()

    def close(self) -> None:
        """End the server, its connections and threads."""
        self._end()
        join(10.0, self._watcher, self._opening)

    # responses, each on its connection's thread -------------------------------------------------
    def _respond(self, path: str, query: dict[str, str]) -> HttpResponse:
        if path == "":
            return HttpResponse(200, self._page, {"Content-Type": "text/html; charset=utf-8"})
        if path == "frame":
            return self._newer_frame(query.get("after", ""))
        if path == "strip":
            body = json.dumps(self._strip.json()).encode()
            return HttpResponse(200, body, {"Content-Type": "application/json"})
        return text_response(404, "Not found.")

    def _newer_frame(self, after: str) -> HttpResponse:
        if not after.isascii() or not after.isdigit() or len(after) > 15:
            return text_response(400, "after must be a number.")
        end = time.monotonic() + RESPONSE_SECONDS
        with self._changed:
            # A page of an earlier surface may send any number; only the current one waits.
            with tracer.wait("", "a new frame") if tracer.on else OFF as waited:
                while not self._number or self._number == int(after) or not self._may_copy():
                    if self.closed:
                        return text_response(410, "The surface was closed.")
                    if time.monotonic() > end:
                        return HttpResponse(204, b"", {})
                    self._changed.wait(POLL_SECONDS)
                waited.woken(self._waker)
            number, frame = self._number, self._frame
        if frame is None:
            with tracer.span("present", self.kind) if tracer.on else OFF:
                frame = self.take_frame()
                self.count_frame()
            with self._changed:
                if self._number == number:
                    self._frame = frame
                self._copies.append(weakref.ref(frame))
        height, width = frame.shape[:2]
        return HttpResponse(
            200,
            memoryview(frame).cast("B"),
            {
                "Content-Type": "application/octet-stream",
                "X-Frame": str(number),
                "X-Width": str(width),
                "X-Height": str(height),
            },
        )

    def _may_copy(self) -> bool:
        """Return whether the newest frame is copied already, or may be. Runs under the lock."""
        self._copies = [copy for copy in self._copies if copy() is not None]
        return self._frame is not None or len(self._copies) < MAX_COPIES

    # input, each page on its connection's thread ------------------------------------------------
    def _open_input(self, path: str, key: str) -> HttpResponse:
        return (
            accept(key, self._serve_page) if path == "input" else text_response(404, "Not found.")
        )

    def _serve_page(self, connection: socket.socket) -> None:
        """Take the events of a page until it, or the surface, is closed."""
        connection.settimeout(POLL_SECONDS)
        page = WebSocket(connection, lambda: self.closed)
        with self._changed:
            self._visitors.append(page)
        try:
            page.send(json.dumps(self._wishes))
            self._announce()
            while (message := page.receive()) is not None:
                for event in page_events(message):
                    self._take(page, event)
            page.close()
        except MessageRefused as refused:
            page.close(refused.status)
        except DalaError:
            page.close(BROKEN)  # our page sends no such event
        finally:
            with self._changed:
                steered = self._may_steer(page)
                self._visitors.remove(page)
                self._left_at = time.monotonic()
            if steered:
                self.put_event({"event_type": "blur"})  # its keys are no longer held
            self._announce()

    def _may_steer(self, page: WebSocket) -> bool:
        return self._steer == "all" or (self._steer == "first" and page is self._visitors[0])

    def _take(self, page: WebSocket, event: InputEvent | str) -> None:
        with self._changed:
            if not self._may_steer(page):
                return
        if isinstance(event, str):
            self._pasted = event
            return
        self.pixel_ratio = event.get("pixel_ratio", self.pixel_ratio)
        self.put_event(event)

    def _announce(self) -> None:
        """Tell each page whether it sends input."""
        with self._changed:
            pages = [(page, self._may_steer(page)) for page in self._visitors]
        for page, steers in pages:
            with contextlib.suppress(OSError):  # its own thread finds out
                page.send(json.dumps({"steer": steers}))

    def set_property(self, name: str, value: object) -> bool:
        """Tell the pages."""
        if name == "clipboard":
            self._pasted = str(value)
        else:
            self._wishes[name] = value  # for pages to come
        with self._changed:
            pages = list(self._visitors)
        for page in pages:
            with contextlib.suppress(OSError):
                page.send(json.dumps({name: value}))
        return True

    def clipboard_text(self) -> str | None:
        """Return the text that was pasted into the page, or set by the program, last."""
        return self._pasted

    # threads ------------------------------------------------------------------------------------
    def _watch_pages(self) -> None:
        """End the presenter when the surface or the last page is closed."""
        while not self._ended.wait(POLL_SECONDS):
            with self._changed:
                left = self._left_at and not self._visitors
                if left and time.monotonic() - self._left_at > RELOAD_SECONDS:
                    break
            self._strip.rest()
            if self.renderer.closed:
                break
        self._end()

    def _end(self) -> None:
        self.detach()
        with self._changed:
            self._changed.notify_all()
        self._server.close()
        self._strip.close()

    def _open(self) -> None:
        """Open a browser if there is a display."""
        if os.environ.get("DALA_BROWSER", "").lower() == "none":
            return
        if not has_display() and not os.environ.get("BROWSER"):
            return
        # Some launchers take seconds to return.
        self._opening = forks.thread(
            webbrowser.open, args=(self.address,), name="dala-browser-open"
        )
        self._opening.start()


def page_events(message: str) -> list[InputEvent | str]:
    """Return the events in a message of a page; a str is text that was pasted.

    Raises:
        CommandError: Something in it is wrong; none of its events counts.

    >>> page_events('[{"event_type": "key_up", "key": "a", "time_stamp": 1}]')
    [{'event_type': 'key_up', 'key': 'a', 'time_stamp': 1.0}]
    """
    try:
        given = json.loads(message)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, list) or len(given) > MAX_EVENTS:
        raise CommandError("show='browser': a message of a page must be a short list of events.")
    found: list[InputEvent | str] = []
    for event in given:
        if isinstance(event, dict) and event.get("event_type") == "clipboard":
            # As short as a dropped text.
            found.append(checked_event("page", {**event, "event_type": "drop"}).get("text", ""))
            continue
        checked = checked_event("page", event, strict=True)
        if checked["event_type"] == "close":
            raise CommandError("show='browser': a page cannot close the surface.")
        found.append(checked)
    return found


def _page(title: str, vsync: bool, nearest: bool) -> bytes:
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    values = {
        "vsync": "true" if vsync else "false",
        "rendering": "pixelated" if nearest else "auto",
        "title": html.escape(title),  # last: it may contain a placeholder
    }
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text.encode(errors="replace")
