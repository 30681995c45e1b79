"""A studio in a thread, and a page of it in Chromium."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from playwright.sync_api import Page, WebSocket, expect, sync_playwright

import dala.studio
from dala.studio import StudioApp

#: What JSON or an untyped library gives.
Anything = Any
#: Milliseconds that something may take on a machine where ten others compile.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)


class Studio:
    """A studio that listens on a free port; `restart` ends its server and starts another."""

    def __init__(
        self,
        folder: Path,
        mount: Callable[[StudioApp], Anything] | None = None,
        port: int | None = None,
    ) -> None:
        self.folder = folder
        self.app = dala.studio.app(folders=[folder], secret="open sesame", device="cpu")
        self._asgi = mount(self.app) if mount else self.app
        with socket.create_server(("127.0.0.1", port or 0)) as found:
            self.port = found.getsockname()[1]
        self._start()

    def _start(self) -> None:
        config = uvicorn.Config(
            self._asgi, host="127.0.0.1", port=self.port, log_level="error",
            lifespan="off", ws="websockets-sansio", timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="studio of tests")
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.01)

    def stop(self) -> None:
        """End the server; the document stays."""
        self._server.should_exit = True
        self._thread.join()

    def restart(self) -> None:
        """Serve the same document again, at the same address."""
        self._start()

    def clear(self) -> None:
        """Close all tabs."""
        session = self.app.session
        for tab in list(session.tabs):
            session.do({"do": "close", "tab": tab if isinstance(tab, str) else tab.id})

    def do(self, what: str, **values: Anything) -> Anything:
        """Do what a page could ask for."""
        return self.app.session.do({"do": what, **values})

    @property
    def address(self) -> str:
        """Where pages find it."""
        return f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self.app.close()


@contextmanager
def browser() -> Iterator[Anything]:
    """Headless Chromium."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
        )
        yield made
        made.close()


class Driver:
    """A page of a studio, what it sent and got, and what it logged."""

    def __init__(
        self,
        studio: Studio,
        chromium: Anything,
        path: str = "",
        script: str = "",
        **options: Anything,
    ) -> None:
        self.studio = studio
        options.setdefault("viewport", {"width": 1280, "height": 800})
        self.context = chromium.new_context(accept_downloads=True, **options)
        self.context.set_default_timeout(PATIENCE)
        self.page: Page = self.context.new_page()
        #: Errors of the console, and refusals of the Content-Security-Policy.
        self.logged: list[str] = []
        #: Headers of pictures, and messages that the page sent.
        self.pictures: list[dict[str, Anything]] = []
        self.sent: list[dict[str, Anything]] = []
        self.got: list[dict[str, Anything]] = []
        #: Errors that a test expects.
        self.expected: tuple[str, ...] = ()
        if script:
            self.page.add_init_script(script)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))
        self.page.on("websocket", self._socket)
        self.address = f"{studio.address}{path}?secret=open%20sesame"
        self.load()

    def load(self) -> None:
        """Load the page, as a first visit does."""
        for kept in (self.logged, self.pictures, self.sent, self.got):
            kept.clear()
        self.expected = ()
        self.page.goto(self.address, wait_until="commit")
        self.page.get_by_test_id("stage").wait_for()
        expect(self.page.get_by_test_id("link")).to_have_count(0)

    def _console(self, message: Anything) -> None:
        if message.type == "error":
            self.logged.append(message.text)

    def _socket(self, found: WebSocket) -> None:
        found.on("framesent", lambda data: self.sent.append(json.loads(data)))
        found.on("framereceived", self._received)

    def _received(self, data: str | bytes) -> None:
        if isinstance(data, str):
            self.got.append(json.loads(data))
            return
        length = int.from_bytes(data[:4], "little")
        self.pictures.append(json.loads(data[4 : 4 + length]))

    def check(self) -> None:
        """Fail if the page logged an error."""
        found = [text for text in self.logged if not any(e in text for e in self.expected)]
        assert not found, found

    def open(self, name: str) -> None:
        """Open a file of the studio's folder, and wait for its picture."""
        self.studio.do("open", path=str(self.studio.folder / name))
        self.wait_frames()

    def frames(self) -> int:
        """How many pictures the page has shown."""
        return int(self.page.get_by_test_id("canvas").get_attribute("data-frames") or 0)

    def wait_frames(self, more_than: int = 0) -> None:
        """Wait until the page has shown more pictures."""
        self.page.wait_for_function(
            "n => Number(document.querySelector('[data-testid=canvas]').dataset.frames) > n",
            arg=more_than,
        )

    def pixel(self, x: float, y: float) -> tuple[int, int, int]:
        """The color on the stage at shares of the shown picture; it is fitted into the stage."""
        found = self.page.evaluate(
            """([x, y]) => {
                const canvas = document.querySelector('[data-testid=canvas]');
                const [w, h] = [canvas.width, canvas.height];
                const data = canvas.getContext('2d').getImageData(0, 0, w, h).data;
                let [x0, y0, x1, y1] = [w, h, 0, 0];
                for (let j = 0; j < h; j += 4) for (let i = 0; i < w; i += 4)
                    if (data[4 * (j * w + i) + 3]) {
                        x0 = Math.min(x0, i); x1 = Math.max(x1, i);
                        y0 = Math.min(y0, j); y1 = Math.max(y1, j);
                    }
                const i = Math.round(x0 + (x1 - x0) * x), j = Math.round(y0 + (y1 - y0) * y);
                return [...data.slice(4 * (j * w + i), 4 * (j * w + i) + 3)];
            }""",
            [x, y],
        )
        return tuple(found)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; what the page sends and gets is taken in meanwhile."""
        for _ in range(PATIENCE // 20):
            if holds():
                return
            self.page.wait_for_timeout(20)
        assert holds()

    def last(self, name: str) -> dict[str, Anything]:
        """The last message of a name that the page sent; an empty one if there is none."""
        return next((message for message in reversed(self.sent) if message["do"] == name), {})

    def wait_pixel(self, x: float, y: float, color: tuple[int, int, int], near: int = 12) -> None:
        """Wait until the stage shows a color."""
        for _ in range(PATIENCE // 50):
            found = self.pixel(x, y)
            if all(abs(a - b) <= near for a, b in zip(found, color, strict=True)):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"at {x}, {y} is {self.pixel(x, y)}, not {color}")

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The place on the page of a place on the fitted picture, in shares of it."""
        stage = self.page.get_by_test_id("stage").bounding_box()
        assert stage is not None
        size = self.page.locator(".dimensions").inner_text().split(" × ")
        w, h = int(size[0]), int(size[1])
        scale = min((stage["width"] - 40) / w, (stage["height"] - 40) / h)
        left = stage["x"] + (stage["width"] - w * scale) / 2
        top = stage["y"] + (stage["height"] - h * scale) / 2
        return left + w * scale * x, top + h * scale * y

    def add(self, text: str) -> None:
        """Add a card by the palette."""
        count = self.page.locator("[data-card]").count()
        self.page.keyboard.press("Control+k")
        self.page.get_by_test_id("palette-search").fill(text)
        self.page.keyboard.press("Enter")
        expect(self.page.locator("[data-card]")).to_have_count(count + 1)

    def cards(self) -> list[str]:
        """The titles of the chain's cards."""
        return self.page.locator(".card-title span:last-child").all_inner_texts()

    def close(self) -> None:
        """Close the page."""
        self.context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
