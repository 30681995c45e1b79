"""Headless Chromium, controlled over a pipe with the DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from tests.gpu.presenters.screens import PATIENCE, needed, until

#: Chromium reads commands from descriptor 3 and writes to 4; this moves our pipes there.
BEGIN = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(commands, 3); os.dup2(answers, 4)
for n in (commands, answers): os.close(n)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Refused(Exception):
    """A command failed, for example while a page is loading."""


class Chromium:
    """A browser process."""

    def __init__(self, folder: str, *more: str) -> None:
        program = needed("chromium", "chromium")
        their_in, self._in = os.pipe()
        self._out, their_out = os.pipe()
        flags = [
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",  # containers run tests as root
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-extensions",
            "--force-device-scale-factor=1",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
            "--no-first-run",
            f"--user-data-dir={folder}",
            *more,
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, str(their_in), str(their_out), program, *flags],
            pass_fds=[their_in, their_out],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self._numbers = itertools.count(1)
        self._rest = b""

    def tell(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and return the response."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._next(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise Refused(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], max(end - time.monotonic(), 0))
            assert ready, "Chromium does not answer"
            more = os.read(self._out, 1 << 20)
            assert more, "Chromium ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def open(self, address: str, width: int, height: int) -> Page:
        """Open an address in a new page of this size."""
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        page.size(width, height)
        page.tell("Page.enable")
        page.tell("Page.navigate", url=address)
        page.loaded(address)
        return page

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(AssertionError, OSError, Refused):
            self.tell("Browser.close")
        for end in (self._in, self._out):
            os.close(end)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


class Page:
    """A page."""

    def __init__(self, browser: Chromium, target: str, session: str) -> None:
        self._browser, self._target, self._session = browser, target, session

    def tell(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to the page."""
        return self._browser.tell(method, self._session, **params)

    def size(self, width: int, height: int) -> None:
        """Resize the page."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def ask(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.tell("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def loaded(self, address: str) -> None:
        """Wait until the page is loaded."""

        def look() -> bool:
            with contextlib.suppress(Refused):
                return self.ask("location.href + document.readyState") == f"{address}complete"
            return False

        until(look, f"{address} in the browser")

    def screenshot(self) -> np.ndarray:
        """Return a screenshot of the page as RGB."""
        self.tell("Page.bringToFront")  # a page behind another may never draw, and so not answer
        data = self.tell("Page.captureScreenshot", format="png")["data"]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))

    def close(self) -> None:
        """Close the page as its close button does."""
        self._browser.tell("Target.closeTarget", targetId=self._target)


@contextlib.contextmanager
def chromium(*flags: str) -> Iterator[Chromium]:
    """A browser with its own profile, started with further flags."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Chromium(folder, *flags)
        try:
            yield browser
        finally:
            browser.close()
