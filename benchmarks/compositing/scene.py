"""What ``compositing`` draws: a 1080p video frame, a PiP of 720p video, three overlays, a caption.

The same pictures and places for everybody. Sources have four bytes a pixel, as the result has.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

WIDTH, HEIGHT = 1920, 1080
PIP: Final = (640, 360)
#: Frames that the two videos go round in: more than a core's own cache holds.
FRAMES: Final = 4
#: Frames after which places repeat.
PERIOD: Final = 60


class Places(NamedTuple):
    """Which frame of the videos shows, and the corner of everything else."""

    frame: int
    pip: tuple[int, int]
    overlays: tuple[tuple[int, int], ...]
    caption: tuple[int, int]


class Material:
    """The pictures."""

    def __init__(self) -> None:
        rng = np.random.default_rng(6)
        self.background = [_video(rng, WIDTH, HEIGHT) for _ in range(FRAMES)]
        self.pip = [_video(rng, 1280, 720) for _ in range(FRAMES)]
        self.overlays = [_disc(rng, 256), _band(rng, 640, 120), _veil(rng, 320, 180)]
        self.caption = _caption(720, 56)


def places(step: int, *, only_pip: bool = False) -> Places:
    """Where everything is in a frame: on whole pixels, as peers can do no other."""
    t = step % PERIOD
    still = 0 if only_pip else t
    pip = (1200 + 3 * (t % 20), 60 + 2 * (t % 15))
    overlays = ((90 + 4 * (still % 25), 70), (300, 820 - 2 * (still % 30)), (1500, 640 + still))
    return Places(t % FRAMES, pip, overlays, (600 - 2 * still, 980))


def _video(rng: Any, width: int, height: int) -> Array:
    """Smooth colours with grain, opaque."""
    yy, xx = np.mgrid[:height, :width].astype(np.float32)
    made = np.full((height, width, 4), 255, np.uint8)
    for c in range(3):
        fx, fy, phase = rng.uniform(2, 9, 3)
        wave = np.sin(xx * fx / width + phase) * np.cos(yy * fy / height)
        made[..., c] = np.clip(128 + 90 * wave + rng.normal(0, 8, (height, width)), 0, 255)
    return made


def _disc(rng: Any, size: int) -> Array:
    """A logo: a disc with a soft edge, clear around it."""
    yy, xx = np.mgrid[:size, :size] - size / 2 + 0.5
    made = rng.integers(0, 256, (size, size, 4)).astype(np.uint8)
    made[..., 3] = np.clip((size / 2 - np.hypot(xx, yy)) * 8, 0, 230)
    return made


def _band(rng: Any, width: int, height: int) -> Array:
    """A lower third: a colour that fades out to the right."""
    made = np.empty((height, width, 4), np.uint8)
    made[..., :3] = rng.integers(0, 256, 3)
    made[..., 3] = np.linspace(220, 20, width).astype(np.uint8)[None, :]
    return made


def _veil(rng: Any, width: int, height: int) -> Array:
    """Alpha everywhere, different at each pixel."""
    return np.asarray(rng.integers(1, 255, (height, width, 4)).astype(np.uint8))


def _caption(width: int, height: int) -> Array:
    """A line of white letters with a soft edge, most of it clear."""
    from PIL import Image, ImageDraw, ImageFont

    mask = Image.new("L", (width, height))
    font = ImageFont.load_default(36)
    ImageDraw.Draw(mask).text((8, 4), "Now: the quick brown fox jumps over it", 255, font)
    made = np.full((height, width, 4), 255, np.uint8)
    made[..., 3] = np.asarray(mask)
    return made
