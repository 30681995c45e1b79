"""From an event to the pixel that it changes: in a window, and on a page.

A program fills its surface with another color at each press. The clock starts when the press is
sent to the X server (XTEST), or when the page's script sees it, and stops when the pixel has
changed on the screen, or on the page's canvas. Needs Xvfb, Chromium and a graphics driver.

    python -m benchmarks.latency
"""

from __future__ import annotations

import ctypes
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.harness import Machine, write
from dala.gpu import Surface, create_surface
from tests.gpu.presenters.chromium import chromium
from tests.gpu.presenters.screens import screen, until

WIDTH, HEIGHT, ROUNDS = 640, 360, 120
COLORS = ("#ff0000", "#0000ff")


class Screen:
    """The X server, on a connection of its own."""

    def __init__(self, name: str) -> None:
        self.x, self.test = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
        for function in ("XOpenDisplay", "XGetImage"):
            getattr(self.x, function).restype = ctypes.c_void_p
        self.x.XDefaultRootWindow.restype = self.x.XGetPixel.restype = ctypes.c_ulong
        self.display = ctypes.c_void_p(self.x.XOpenDisplay(name.encode()))
        self.root = ctypes.c_ulong(self.x.XDefaultRootWindow(self.display))

    def press(self) -> None:
        """Press and release the left button."""
        for down in (1, 0):
            self.test.XTestFakeButtonEvent(self.display, 1, down, 0)
        self.x.XFlush(self.display)

    def move(self, x: int, y: int) -> None:
        """Move the pointer."""
        self.test.XTestFakeMotionEvent(self.display, 0, x, y, 0)
        self.x.XFlush(self.display)

    def red(self) -> bool:
        """Return whether the pixel in the window's middle is red."""
        place = WIDTH // 2, HEIGHT // 2, 1, 1, ctypes.c_ulong(0xFFFFFF), 2
        image = ctypes.c_void_p(self.x.XGetImage(self.display, self.root, *place))
        pixel = self.x.XGetPixel(image, 0, 0)
        self.x.XDestroyImage(image)
        return bool(pixel >> 16 & 255 > 128)


def paint(s: Surface) -> Callable[[], None]:
    """Return a function that fills the surface with the other color."""
    count = 0

    def fill() -> None:
        nonlocal count
        count += 1
        s.clear(COLORS[count % 2])

    fill()
    s.present()
    return fill


@contextmanager
def program(s: Surface, fps: float) -> Iterator[None]:
    """Run a program on a thread: in ``run``, or, with 0, drawing as soon as an event arrives."""
    fill = paint(s)
    if fps:
        s.on("pointer_down", lambda event: fill())
        work = threading.Thread(target=s.run, args=(lambda s, dt: None, fps))
    else:

        def follow() -> None:
            while not s.presenter.closed:
                s.presenter.pause(0.2)
                if any(event["event_type"] == "pointer_down" for event in s.events()):
                    fill()
                    s.present()

        work = threading.Thread(target=follow)
    work.start()
    yield
    s.stop()
    if not fps:
        s.presenter.close()
    work.join()


def in_window(fps: float) -> list[float]:
    """Return the latencies in a window, in milliseconds."""
    dice, found = random.Random(1), []
    with create_surface(WIDTH, HEIGHT, show="window") as s:
        shown = Screen(os.environ["DISPLAY"])
        with program(s, fps):
            shown.move(WIDTH // 2 + 20, HEIGHT // 2)
            until(lambda: s.pointer.inside and s.presenter.shown, "the pointer and a frame", 30)
            time.sleep(1.0)
            for _ in range(ROUNDS):
                time.sleep(0.04 + 0.03 * dice.random())  # anywhere within a frame
                before, start = shown.red(), time.perf_counter()
                shown.press()
                while shown.red() == before:
                    assert time.perf_counter() < start + 5
                found.append((time.perf_counter() - start) * 1e3)
    return found


SCRIPT = """
window.times = [];
const put = context.putImageData.bind(context);
let pressed = 0;
canvas.addEventListener("pointerdown", () => { pressed = performance.now(); }, true);
context.putImageData = (image, x, y) => {
    put(image, x, y);
    if (pressed) { times.push(performance.now() - pressed); pressed = 0; }
};
0
"""


def on_page(fps: float) -> list[float]:
    """Return the latencies on a page, in milliseconds."""
    os.environ["DALA_BROWSER"] = "none"
    dice = random.Random(1)
    with (
        chromium() as browser,
        create_surface(WIDTH, HEIGHT, show="browser") as s,
        program(s, fps or 0),
    ):
        page = browser.open(s.presenter.address, WIDTH, HEIGHT)
        until(lambda: page.ask("canvas.dataset.frame && document.body.dataset.steers"), "a page")
        if fps:  # frames come all the time: only those with another color count
            page.ask(SCRIPT.replace("if (pressed)", "if (pressed && changed(image))") + CHANGED)
        else:
            page.ask(SCRIPT)
        for n in range(ROUNDS):
            time.sleep(0.04 + 0.03 * dice.random())
            for kind in ("Pressed", "Released"):
                page.tell(
                    "Input.dispatchMouseEvent", type=f"mouse{kind}", x=50, y=50, button="left",
                    buttons=int(kind == "Pressed"), clickCount=1,
                )  # fmt: skip
            until(lambda n=n: page.ask("times.length") == n + 1, "the frame")
        found: list[float] = page.ask("times")
    return found


CHANGED = """
let last = -1;
window.changed = (image) => { const is = image.data[0] !== last; last = image.data[0]; return is; };
changed(context.getImageData(0, 0, 1, 1));
0
"""


def summary(times: list[float]) -> dict[str, float]:
    """Return the minimum, the median and the 95th percentile."""
    ordered = sorted(times)
    found = {"min_ms": ordered[0], "median_ms": statistics.median(ordered)}
    return {**found, "p95_ms": ordered[int(0.95 * len(ordered))], "presses": len(ordered)}


def main() -> None:
    """Measure and write the results."""
    results: dict[str, Any] = {}
    # One screen: glfw keeps its connection for as long as the process lives.
    with screen(800, 600) as name:
        os.environ.update(DISPLAY=name, WAYLAND_DISPLAY="")
        for place, measure in (("window", in_window), ("page", on_page)):
            for fps in (0, 60, 240):
                title = f"{place}, {f'run at {fps} frames/s' if fps else 'drawn at once'}"
                with Machine() as machine:
                    found = summary(measure(fps))
                results[title] = {**found, "others": machine.others}
                print(
                    f"{title:32s} min {found['min_ms']:6.2f}  median {found['median_ms']:6.2f}  "
                    f"95% {found['p95_ms']:6.2f} ms"
                )
        write("latency", results, ("glfw", "rendercanvas"))


if __name__ == "__main__":
    main()
