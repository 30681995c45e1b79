"""Make docs/images/studio/studio.webp: the studio in use, recorded from a screen.

    python -m scripts.studio_video     # needs Chromium, Xvfb, and the extras studio and media

Chromium has a window on a screen of Xvfb. ``screen.open`` records it while a script moves the
pointer and types; what only waits is cut. A scene adds the pointer, the window and captions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from dala.media import Scene, gpu, screen
from tests.studio.page.driver import Driver, Studio

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "images" / "studio" / "studio.webp"
FPS = 12
#: The size of the page, and that of the video around it.
PAGE = (1120, 700)
VIDEO = (960, 660)
WINDOW = (912, 570)

KERNEL = """def duotone(px: Pixel, *, amount: Within[float, 0.0, 1.0] = 0.9):
luma = dot(px.rgb, vec3(0.3, 0.6, 0.1))
tones = mix(vec3(0.1, 0.1, 0.4), vec3(1.2, 0.8, 0.4), luma)
return rgba(mix(px.rgb, tones, amount), px.a)"""


@contextmanager
def display() -> Iterator[str]:
    """A screen that is not seen."""
    ours, theirs = os.pipe()
    words = ["Xvfb", "-displayfd", str(theirs), "-screen", "0", "1400x1000x24", "-noreset"]
    xvfb = subprocess.Popen(words, pass_fds=[theirs], stderr=subprocess.DEVNULL)
    os.close(theirs)
    try:
        with os.fdopen(ours) as said:
            yield f":{said.readline().strip()}"
    finally:
        xvfb.terminate()
        xvfb.wait()


@contextmanager
def browser(shown: str) -> Iterator[Any]:
    """Chromium with a window on a screen."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            headless=False,
            env={**os.environ, "DISPLAY": shown},
            args=["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb",
                  "--window-position=0,0", "--disable-infobars"],
        )  # fmt: skip
        yield made
        made.close()


def found(shown: str, page: Page) -> tuple[int, int]:
    """Return where a page begins on the screen: it is magenta for a moment."""
    cover = page.evaluate_handle(
        """() => {
            const cover = document.body.appendChild(document.createElement("div"));
            const style = { position: "fixed", inset: 0, zIndex: 99, background: "#f0f" };
            Object.assign(cover.style, style);
            return cover;
        }"""
    )
    with screen.open(shown, fps=5, cursor=False, device="cpu") as source:
        for frame in source:
            off = np.abs(frame.numpy()[..., :3].astype(int) - (255, 0, 255)).max(-1)
            rows, columns = np.nonzero(off < 16)
            if rows.size > 0.98 * PAGE[0] * PAGE[1]:
                break
            page.wait_for_timeout(50)
    cover.evaluate("cover => cover.remove()")
    return int(columns.min()), int(rows.min())


class Recorder:
    """Pictures of a page on the screen, where the pointer was, and what the captions say."""

    def __init__(self, shown: str, driver: Driver) -> None:
        self.driver = driver
        self.frames: list[np.ndarray] = []
        self.pointer: list[tuple[float, float]] = []
        self.captions: list[tuple[int, str]] = []
        self.place = (PAGE[0] * 0.7, PAGE[1] * 0.75)
        self._on = self._closed = False
        self._taken = threading.Condition()
        region = *found(shown, driver.page), *PAGE
        self._thread = threading.Thread(target=self._record, args=(shown, region))
        self._thread.start()

    def _record(self, shown: str, region: tuple[int, int, int, int]) -> None:
        """Take the pictures of the screen at their rate, and keep those on the record."""
        with screen.open(shown, region=region, fps=FPS, cursor=False, device="cpu") as source:
            for frame in source:
                if self._closed:
                    return
                if not self._on:
                    continue
                whole = np.ascontiguousarray(frame.numpy()[..., :3])
                small = gpu.resize(whole, *WINDOW, method="area", device="cpu")
                with self._taken:
                    self.frames.append(np.asarray(small))
                    self.pointer.append(self.place)
                    self._taken.notify_all()

    def close(self) -> None:
        """End the recording."""
        self._closed = True
        self._thread.join()

    def caption(self, text: str) -> None:
        """Say something from now on."""
        self.captions.append((len(self.frames), text))

    def shoot(self, count: int = 1) -> None:
        """Record some pictures."""
        with self._taken:
            wanted = len(self.frames) + count
            self._on = True
            if not self._taken.wait_for(lambda: len(self.frames) >= wanted, 20):
                raise RuntimeError("the screen gives no pictures")
            self._on = False

    def settle(self, milliseconds: int = 500) -> None:
        """Let the page catch up, off the record."""
        self.driver.page.wait_for_timeout(milliseconds)

    def glide(self, x: float, y: float, count: int = 6) -> None:
        """Move the pointer, gently at both ends, while the screen is recorded."""
        x0, y0 = self.place
        for number in range(1, count + 1):
            t = number / count
            t = t * t * (3 - 2 * t)
            self.place = (x0 + (x - x0) * t, y0 + (y - y0) * t)
            self.driver.page.mouse.move(*self.place)
            self.shoot()

    def to(self, selector: str, count: int = 6, dx: float = 0.5, dy: float = 0.5) -> None:
        """Move the pointer to an element."""
        box = self.driver.page.locator(selector).first.bounding_box()
        assert box is not None, selector
        self.glide(box["x"] + box["width"] * dx, box["y"] + box["height"] * dy, count)

    def type(self, text: str, letters: int) -> None:
        """Type, some letters a picture."""
        for at in range(0, len(text), letters):
            self.driver.page.keyboard.type(text[at : at + letters])
            self.shoot()


def record(studio: Studio, shown: str, chromium: object) -> Recorder:
    """Use the studio."""
    options = {"viewport": {"width": PAGE[0], "height": PAGE[1]}, "color_scheme": "dark"}
    with Driver(studio, chromium, **options) as driver:  # type: ignore[arg-type]
        made = Recorder(shown, driver)
        page = driver.page
        studio.do("open", sample="coffee", kind="picture")
        driver.wait_frames()
        driver.until(lambda: driver.pictures[-1]["width"] == 600)
        made.settle()
        made.caption("Add filters from the palette")
        made.shoot(5)
        made.to("[data-testid=add]")
        page.mouse.down()
        page.mouse.up()
        made.settle()
        made.shoot(3)
        made.type("curves", 1)
        page.keyboard.press("Enter")
        made.settle(900)
        made.shoot(3)

        made.caption("Every change is live")
        curve = page.get_by_test_id("curve-master").bounding_box()
        assert curve is not None
        left, top, width, height = curve["x"], curve["y"], curve["width"], curve["height"]
        made.glide(left + width * 0.3, top + height * 0.7)
        page.mouse.down()
        made.glide(left + width * 0.3, top + height * 0.86, 8)
        page.mouse.up()
        made.glide(left + width * 0.7, top + height * 0.33)
        page.mouse.down()
        made.glide(left + width * 0.68, top + height * 0.1, 8)
        page.mouse.up()
        made.settle()
        made.shoot(3)

        made.caption("Before and after")
        page.keyboard.press("b")
        made.settle(700)
        made.shoot(3)
        made.glide(*driver.place(0.5, 0.5))
        page.mouse.down()
        made.glide(*driver.place(0.2, 0.5), 9)
        made.glide(*driver.place(0.8, 0.5), 12)
        page.mouse.up()
        page.keyboard.press("b")
        made.shoot(2)

        made.caption("Write a kernel: it runs as you type")
        driver.add("new kernel")
        made.settle(1200)
        page.get_by_test_id("editor").get_by_role("textbox").click()
        page.keyboard.press("Control+a")
        made.shoot(2)
        made.type(KERNEL, 7)
        page.keyboard.press("Escape")
        made.settle(900)
        made.shoot(6)
        slider = "[data-testid=control-amount] input[type=range]"
        made.to(slider, dx=0.9)
        page.mouse.down()
        made.to(slider, 9, dx=0.25)
        made.to(slider, 7, dx=0.95)
        page.mouse.up()
        made.shoot(3)

        made.caption("Scenes: drag nodes, set key frames")
        studio.do("open", path=str(ROOT / "examples" / "scene.json"))
        studio.do("seek", time=3.2)
        made.settle(2500)
        page.get_by_role("button", name="Key frames").click()
        made.settle(1500)
        made.shoot(4)
        made.glide(*driver.place(0.88, 0.21))
        page.mouse.down()
        made.glide(*driver.place(0.6, 0.6), 10)
        made.glide(*driver.place(0.8, 0.45), 8)
        page.mouse.up()
        made.settle()
        made.shoot(4)

        made.caption("Take the code home")
        made.to("[role=tab]:has-text('coffee')", 8)
        page.mouse.down()
        page.mouse.up()
        made.settle(1200)
        made.shoot(3)
        made.to("text=Take it home")
        page.mouse.down()
        page.mouse.up()
        made.settle()
        made.shoot(3)
        driver.context.grant_permissions(["clipboard-write"])
        made.to("text=Copy as Python", 4)
        page.mouse.down()
        page.mouse.up()
        made.settle(700)
        made.shoot(4)
        made.to("text=View", 5)
        page.mouse.down()
        page.mouse.up()
        made.settle(700)
        made.shoot(30)
        made.close()
    return made


def arrow() -> np.ndarray:
    """Return a pointer, white with a dark edge."""
    size = 4  # drawn large, then averaged
    y, x = np.mgrid[0 : 28 * size, 0 : 20 * size] / size
    head = (x >= 1) & (y >= 1 + 1.15 * (x - 1)) & (y <= 19 - 0.45 * (x - 1)) & (x <= 13)
    edge = np.zeros_like(head)
    for dy in range(-size, size + 1):
        for dx in range(-size, size + 1):
            edge |= np.roll(head, (dy, dx), (0, 1))
    picture = np.zeros((*head.shape, 4), np.float32)
    picture[edge] = (0, 0, 0, 1)
    picture[head] = (1, 1, 1, 1)
    small = picture.reshape(28, size, 20, size, 4).mean((1, 3))
    small[..., :3] /= np.maximum(small[..., 3:], 1e-6)
    return (small * 255 + 0.5).astype(np.uint8)


def compose(made: Recorder, path: Path) -> None:
    """Put the pictures into a window with a pointer and captions, and write the video."""
    left, top = (VIDEO[0] - WINDOW[0]) // 2, 20
    seconds = len(made.frames) / FPS
    with Scene(*VIDEO, background="#171c26", fps=FPS, device="cpu") as scene:

        def page(time: float) -> np.ndarray:
            return made.frames[min(int(time * FPS + 0.5), len(made.frames) - 1)]

        scene.add_video(
            page, size=WINDOW, position=(left, top), radius=12, border=(1, "#39414f"), shadow=True
        )
        share = WINDOW[0] / PAGE[0]
        pointer = scene.add_image(arrow(), position=(0, 0), size=(20, 28))
        for axis, origin in (("x", left), ("y", top)):
            at = 0 if axis == "x" else 1
            keys = [(n / FPS, origin + place[at] * share) for n, place in enumerate(made.pointer)]
            scene.add_animation(pointer, axis, keyframes=keys)
        ends = [start for start, _ in made.captions[1:]] + [len(made.frames)]
        for (start, text), end in zip(made.captions, ends, strict=True):
            begin, until = start / FPS, end / FPS
            words = scene.add_text(
                text, size=26, weight="bold", color="white", position=(VIDEO[0] / 2, 622),
                anchor="center", start=begin, end=until,
            )  # fmt: skip
            scene.add_animation(words, "opacity", keyframes=[(begin, 0.0), (begin + 0.3, 1.0)])
        options = {"quality": 62, "compression_level": 6}
        scene.render_to(path, seconds, fps=FPS, progress=False, options=options)


def main(target: str = str(OUT)) -> None:
    """Record, compose, and say how large it is."""
    with Studio(ROOT) as studio, display() as shown, browser(shown) as chromium:
        made = record(studio, shown, chromium)
    compose(made, Path(target))
    print(f"{target}: {len(made.frames)} pictures, {Path(target).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:2])
