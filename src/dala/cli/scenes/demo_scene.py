"""The video of ``dala demo``: a summer night, drawn on a surface, as a video in a scene.

The drawing is shown through changing filters, and unfiltered as a picture in picture, with text and
a progress bar above. Each frame depends only on its time.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dala.errors import MissingPackage
from dala.gpu import LinearGradient, Path, RadialGradient, create_surface
from dala.media import Frame, FramePipeline
from dala.media.scene.scene import Scene
from dala.resources import Closing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dala.cli.common.chain import Link
    from dala.gpu import Surface
    from dala.media.scene.nodes.text import TextNode

#: The sky: dusk and northern lights.
SKY: Final = """
def sky(px: Pixel, *, seconds=0.0):
    y, x = position()
    u, v = (x + 0.5) / px.width, (y + 0.5) / px.height
    dusk = mix((0.03, 0.04, 0.17), (0.36, 0.14, 0.40), smoothstep(0.0, 0.45, v))
    dusk = mix(dusk, (1.0, 0.55, 0.32), smoothstep(0.34, 0.64, v))
    fold = sin(u * 9.0 + seconds * 0.9) * 0.045 + sin(u * 23.0 - seconds * 1.7) * 0.018
    band = v - 0.20 - fold
    veil = exp(-band * band * (110.0 if band > 0.0 else 45.0))
    veil = veil * (0.7 + 0.3 * sin(u * 47.0 + seconds * 2.3))
    return rgba(dusk + (0.10, 0.62, 0.42) * (veil * (1.0 - smoothstep(0.3, 0.5, v))), 1.0)
"""

#: The reflection below the shore, distorted by waves.
LAKE: Final = """
def lake(img: Image, *, seconds=0.0, shore=0):
    y, x = position()
    made = img[0, 0]
    if y >= shore:
        deep = float(y - shore)
        swell = sin(deep * 0.31 - seconds * 2.6) + sin(deep * 0.11 + x * 0.021 + seconds * 1.7)
        aside = swell * (0.6 + 0.03 * deep)
        whole = floor(aside)
        up = 2 * (shore - y) - 1 + int(-0.3 * deep)
        near = mix(img[int(whole), up], img[int(whole) + 1, up], aside - whole)
        light = mix(near.rgb * 0.82, (0.04, 0.07, 0.18), min(deep * 0.0026, 0.6))
        made = rgba(light + 0.10 * smoothstep(1.3, 2.0, swell), 1.0)
    return made
"""

#: Parts of the drawing, of size 1.
BALLOON: Final = Path.svg("M0 1.6C-.2 1.1 -1 .8 -1 0A1 1 0 0 1 1 0C1 .8 .2 1.1 0 1.6Z")
STRIPE: Final = Path.svg("M0 -1C-.5 -.6 -.5 .8 0 1.6C.5 .8 .5 -.6 0 -1Z")
SAIL: Final = Path.svg("M.03 -.12V-1Q.4 -.6 .5 -.12Z")
JIB: Final = Path.svg("M-.04 -.12V-.9Q-.28 -.5 -.34 -.12Z")
HULL: Final = Path.svg("M-.5 0H.67Q.58 .2 .4 .2H-.25Q-.42 .2 -.5 0Z")

#: Chapters of equal length: the caption, and the filters at a position of 0 to 1.
CHAPTERS: Final[tuple[tuple[str, Callable[[float], list[Link]]], ...]] = (
    ("as it is drawn", lambda at: []),
    (
        "blur radius={radius}",
        lambda at: [("blur", {"radius": round(24 * math.sin(math.pi * at) ** 2)})],
    ),
    (
        "hue degrees={degrees}",
        lambda at: [("hue", {"degrees": round(360 * at)}), ("saturation", {"value": 0.4})],
    ),
    (
        "grade + temperature + vignette",
        lambda at: [
            ("grade", {"gain": 1.0 + 0.35 * _pulse(at), "saturation": 0.5 * _pulse(at)}),
            ("temperature", {"value": 0.9 * math.sin(math.tau * at)}),
            ("vignette", {"amount": 0.9 * _pulse(at)}),
        ],
    ),
    (
        "sharpen + edge_detect",
        lambda at: [
            ("sharpen", {"amount": 1.5 * _pulse(at)}),
            ("edge_detect", {"amount": _pulse(at)}),
        ],
    ),
)


def _pulse(at: float) -> float:
    """Return a smooth rise from 0 to 1 and fall back to 0."""
    return min(1.0, 3.0 * math.sin(math.pi * at)) ** 2 if 0 < at < 1 else 0.0


def filters(position: float) -> tuple[str, list[Link]]:
    """Return the caption and the filters at a position of the video, 0 to 1."""
    chapter = min(int(position * len(CHAPTERS)), len(CHAPTERS) - 1)
    caption, made = CHAPTERS[chapter]
    chain = made(position * len(CHAPTERS) - chapter)
    return caption.format(**(chain[0][1] if chain else {})), chain


# the scene ---------------------------------------------------------------------------------------
class DemoScene(Closing):
    """The scene of the video: ``frame(n)`` renders one frame of ``count``."""

    def __init__(self, width: int, height: int, count: int, fps: int) -> None:
        self.count, self.fps = count, fps
        self.drawing = Drawing(width, height)
        self._pipeline = FramePipeline(width, height)
        self._drawn: tuple[float, NDArray[np.uint8] | None] = (-1.0, None)
        self._begun = -1.0
        self.scene = Scene(width, height, fps=fps)
        margin, thin = max(height // 30, 2), max(height // 240, 1)
        self.scene.add_video(self._filtered, size=(width, height))
        small = self.scene.add_video(
            self._plain, pip=True, pip_size=(width // 4, height // 4), margin=margin,
            radius=4 * thin, border=(thin, "white"), shadow=(0, 2 * thin, 8 * thin, "#00000090"),
        )  # fmt: skip
        seconds = count / fps
        self.scene.add_animation(small, "opacity", 0, 1, min(0.4, seconds), "sine-out")
        line = self.scene.add_overlay(
            color=(255, 214, 128, 255), position=(0, height - 2 * thin), size=(width, 2 * thin)
        )
        self.scene.add_animation(line, "width", 0, width, seconds)
        self._caption = None
        if not why_no_text():
            _add_text("dala", self.scene, margin, margin, height / 16, "bold")
            place = (margin, height - margin)
            self._caption = _add_text(
                "", self.scene, *place, height / 20, "semibold", anchor="bottom-left"
            )

    def frame(self, number: int) -> Frame:
        """Render a frame by its number, from 0."""
        if self._caption is not None:
            self._caption.set("text", filters(number / self.count)[0])
        return self.scene.render(number / self.fps)

    def _plain(self, seconds: float) -> NDArray[np.uint8]:
        """Return the drawing of a time; the next frame is drawn while this one is processed."""
        drawn, made = self._drawn
        if made is None or drawn != seconds:
            if self._begun != seconds:
                self.drawing.start(seconds)
            made = self.drawing.take()
            self._drawn = seconds, made
            self._begun = seconds + 1 / self.fps
            self.drawing.start(self._begun)
        return made

    def _filtered(self, seconds: float) -> NDArray[np.uint8]:
        _, chain = filters(seconds * self.fps / self.count)
        made: NDArray[np.uint8] = self._pipeline.process(self._plain(seconds), chain)
        return made

    def close(self) -> None:
        """Close the scene, the pipeline and the surface."""
        self.scene.close()
        self._pipeline.close()
        self.drawing.close()


def _add_text(
    text: str, scene: Scene, x: float, y: float, size: float, weight: str, anchor: str = "top-left"
) -> TextNode:
    """Add text on a dark plate."""
    return scene.add_text(
        text, position=(x, y), size=max(round(size), 6), weight=weight, color="#fff6e2",
        background=(8, 10, 30, 170), padding=(round(size * 0.45), round(size * 0.2)),
        radius=round(size * 0.3), anchor=anchor,
    )  # fmt: skip


def why_no_text() -> str:
    """Return the reason why text cannot be drawn here and a package to install, or ""."""
    from dala.media.text import set_text

    try:
        set_text("dala")
    except MissingPackage as error:
        return str(error)
    return ""


def labeled(picture: NDArray[np.uint8], names: Sequence[str]) -> NDArray[np.uint8]:
    """Return a picture of bands with their names at the bottom and a title at the top."""
    import numpy as np

    height, width = picture.shape[:2]
    margin, size = max(height // 30, 2), height / 20
    with Scene(width, height) as scene:
        scene.add_image(picture)
        y = height - margin
        lean = (y - size / 2 - height / 2) * 0.22  # the bands are slanted
        if not why_no_text():
            _add_text("dala", scene, margin, margin, height / 16, "bold")
            for number, name in enumerate(names):
                x = max((number + 0.5) * width / len(names) - lean, margin + size * 1.8)
                _add_text(name, scene, x, y, size, "semibold", anchor="bottom")
        return np.asarray(scene.render()).copy()


# drawing ----------------------------------------------------------------------------------------
class Drawing(Closing):
    """A surface with the drawing of a night."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.shore = height * 66 // 100
        self._surface = create_surface(width, height)
        self._surface.load_shader("sky", SKY)
        self._surface.load_shader("lake", LAKE)

    def close(self) -> None:
        """Close the surface."""
        self._surface.close()

    def start(self, seconds: float) -> None:
        """Start drawing the night at a time, on the surface's thread."""
        s, w, h = self._surface, self.width, self.height
        s.clear("black")
        s.dispatch_compute("sky", struct.pack("<f", seconds))
        _stars(s, w, self.shore, seconds)
        _sun(s, w * 0.7, self.shore - h / 14, h / 9, seconds)
        _hills(s, w, self.shore, seconds)
        _balloons(s, w, h, seconds)
        s.dispatch_compute("lake", struct.pack("<fi", seconds, self.shore))
        _boat(s, w * (0.16 + 0.075 * seconds), h * 0.86, h / 7, seconds)

    def take(self) -> NDArray[np.uint8]:
        """Wait for the drawing that was started last and return it, (height, width, 4)."""
        return self._surface.to_array()


def _stars(s: Surface, width: int, shore: int, t: float) -> None:
    dice = random.Random(7)
    for _ in range(90):
        x, y, phase = dice.random() * width, dice.random() ** 1.5 * shore * 0.6, dice.random()
        shine = 0.5 + 0.5 * math.sin(math.tau * (phase + t * (0.3 + phase)))
        light = 255, 248, 230, round(60 + 190 * shine)
        s.circle(x, y, (0.4 + 1.8 * phase) * width / 1280, light)


def _sun(s: Surface, x: float, y: float, r: float, t: float) -> None:
    glow = RadialGradient((x, y), r * 3, [(0.3, "#ffbe7870"), (1, "#ffbe7800")])
    s.circle(x, y, r * 3, glow)
    for n in range(4):
        grown = (t * 0.25 + n / 4) % 1.0
        ring = 255, 230, 180, round(110 * (1 - grown))
        s.circle(x, y, r * (1.1 + 2.4 * grown), ring, width=r / 50)
    s.circle(x, y, r, LinearGradient((0, y - r), (0, y + r), [(0, "#fff0b4"), (1, "#ffb45a")]))


def _hills(s: Surface, width: int, shore: int, t: float) -> None:
    """Draw three rows of hills; nearer rows move faster."""
    rows = ((0.34, 0.010, (92, 58, 116)), (0.24, 0.024, (60, 42, 92)), (0.15, 0.05, (26, 28, 58)))
    for row, (tall, speed, color) in enumerate(rows):
        dice = random.Random(row)
        step = width / (5 + 3 * row)
        for n in range(-2, 10 + 4 * row):
            x = n * step - speed * width * t + dice.random() * step * 0.5
            top = shore - shore * tall * (0.55 + 0.45 * dice.random())
            peak, low = (x + step / 8, top), (x + step, shore)
            s.polygon([(x - step, shore), peak, low], color)
            s.polygon([peak, low, (x + step * 0.3, shore)], (255, 190, 150, 22))


def _balloons(s: Surface, width: int, height: int, t: float) -> None:
    colors = ((214, 48, 49), (253, 203, 110), (9, 132, 227), (0, 184, 148))
    for n, color in enumerate(colors):
        x = width * ((0.10 + 0.21 * n + 0.03 * t) % 1.0)
        y = height * (0.25 + 0.07 * math.sin(0.9 * t + 1.7 * n) + 0.03 * n)
        with s.transformed(translate=(x, y), scale=height / (15 + 3 * n)):
            for side in (-1, 1):
                s.line(side * 0.5, 0.9, side * 0.16, 1.6, "#faf0dc", width=0.05)
            s.fill(BALLOON, color)
            s.fill(STRIPE, (255, 255, 255, 50))
            s.fill(
                BALLOON,
                RadialGradient((-0.35, -0.4), 1.6, [(0, "#fff4"), (0.5, "#fff0"), (1, "#2004")]),
            )
            s.rect(-0.2, 1.55, 0.4, 0.36, (120, 72, 48), radius=0.1)


def _boat(s: Surface, x: float, y: float, size: float, t: float) -> None:
    y += size * 0.04 * math.sin(2.1 * t)
    with s.transformed(translate=(x, y), rotate=3 * math.sin(1.3 * t), scale=size):
        s.fill(SAIL, "#fff4e2")
        s.fill(JIB, (236, 196, 172))
        s.line(0, 0, 0, -1, (70, 40, 40), width=0.02)
        s.fill(HULL, LinearGradient((0, 0), (0, 0.2), [(0, "#b5312a"), (1, "#7a1a18")]))
        s.line(-0.5, 0, 0.67, 0, (250, 240, 220), width=0.025)
