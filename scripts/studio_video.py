"""Make docs/images/studio/studio.webp: the studio in use, recorded and composed by a scene.

    python -m scripts.studio_video            # needs Chromium, and the extras studio and media

It moves the pointer and types in headless Chromium. Every picture of the video is a screenshot, so
that a slow machine makes the same video. A scene adds the pointer, the window and captions.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from dala.media import Scene, gpu
from tests.studio.page.driver import Driver, Studio, browser

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


class Recorder:
    """Pictures of a page, where the pointer was, and what the captions say."""

    def __init__(self) -> None:
        self.driver: Driver
        self.frames: list[np.ndarray] = []
        self.pointer: list[tuple[float, float]] = []
        self.captions: list[tuple[int, str]] = []
        self.place = (PAGE[0] * 0.7, PAGE[1] * 0.75)

    def caption(self, text: str) -> None:
        """Say something from now on."""
        self.captions.append((len(self.frames), text))

    def shoot(self, count: int = 1) -> None:
        """Take pictures of what is there."""
        for _ in range(count):
            data = self.driver.page.screenshot()
            whole = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            small = gpu.resize(whole, size=(WINDOW[1], WINDOW[0]), method="area", device="cpu")
            self.frames.append(np.asarray(small))
            self.pointer.append(self.place)

    def settle(self, milliseconds: int = 500) -> None:
        """Let the page catch up, off the record."""
        self.driver.page.wait_for_timeout(milliseconds)

    def glide(self, x: float, y: float, count: int = 6) -> None:
        """Move the pointer, gently at both ends."""
        x0, y0 = self.place
        for number in range(1, count + 1):
            t = number / count
            t = t * t * (3 - 2 * t)
            self.place = (x0 + (x - x0) * t, y0 + (y - y0) * t)
            self.driver.page.mouse.move(*self.place)
            self.settle(60)
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
            self.settle(90)
            self.shoot()


def record(studio: Studio, chromium: object) -> Recorder:
    """Use the studio."""
    made = Recorder()
    options = {"viewport": {"width": PAGE[0], "height": PAGE[1]}, "color_scheme": "dark"}
    with Driver(studio, chromium, **options) as driver:  # type: ignore[arg-type]
        made.driver = driver
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
        made.shoot(14)
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
    with Studio(ROOT) as studio, browser() as chromium:
        made = record(studio, chromium)
    compose(made, Path(target))
    print(f"{target}: {len(made.frames)} pictures, {Path(target).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:2])
