"""Pictures and videos of the stored scenes: generated, or from tests/photos."""

from __future__ import annotations

import pathlib
from functools import cache

import numpy as np

PHOTOS = pathlib.Path(__file__).parents[2] / "photos"


@cache
def photo(name: str) -> np.ndarray:
    """A photograph, (height, width, 3) u8."""
    from PIL import Image

    with Image.open(PHOTOS / f"{name}.png") as image:
        return np.asarray(image.convert("RGB"))


@cache
def small(name: str) -> np.ndarray:
    """The same, half as wide and high."""
    image = photo(name)
    height, width = (n // 2 for n in image.shape[:2])
    blocks = image[: 2 * height, : 2 * width].reshape(height, 2, width, 2, 3)
    return np.floor(blocks.mean(axis=(1, 3)) + 0.5).astype(np.uint8)


def _grid(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[:height, :width]
    return y + 0.5, x + 0.5


def _bytes(picture: np.ndarray) -> np.ndarray:
    return np.floor(np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8)


@cache
def chart(width: int = 120, height: int = 80) -> np.ndarray:
    """A test card that shows what was cut, turned, mirrored or stretched, (height, width, 3) u8."""
    y, x = _grid(height, width)
    card = np.full((height, width, 3), 0.86)
    card[((x // 10 + y // 10) % 2).astype(bool)] = 0.74
    corners = ((0, 0, (0.85, 0.2, 0.2)), (1, 0, (0.95, 0.7, 0.1)), (0, 1, (0.1, 0.5, 0.8)))
    for across, down, color in (*corners, (1, 1, (0.2, 0.65, 0.35))):
        near = (np.abs(x - across * width) < 20) & (np.abs(y - down * height) < 20)
        card[near] = color
    far = np.hypot(x - width / 2, y - height / 2)
    ring = np.clip(2.0 - np.abs(far - height * 0.36), 0, 1)[..., None]
    card = card * (1 - ring) + np.array([0.12, 0.14, 0.2]) * ring
    edge = np.minimum.reduce([x, y, width - x, height - y]) < 2
    card[edge] = (0.12, 0.14, 0.2)
    return _bytes(card)


@cache
def badge(size: int = 96) -> np.ndarray:
    """A star with soft edges on nothing; what is transparent is black, as in careless files."""
    y, x = _grid(size, size)
    u, v = x / size * 2 - 1, y / size * 2 - 1
    angle = np.arctan2(v, u) + np.pi / 2
    reach = 0.62 + 0.3 * np.cos(5 * angle)
    alpha = np.clip((reach - np.hypot(u, v)) * size / 8, 0, 1)
    made = np.zeros((size, size, 4))
    made[..., :3] = np.array([1.0, 0.78, 0.12]) - v[..., None] * np.array([0.0, 0.18, 0.05])
    made[alpha == 0, :3] = 0
    made[..., 3] = alpha
    return _bytes(made)


@cache
def swatch(width: int = 60, height: int = 60) -> np.ndarray:
    """Colors across, from full to clear downwards, (height, width, 4) u8."""
    y, x = _grid(height, width)
    turn = x / width * 6
    made = np.empty((height, width, 4))
    for channel, shift in enumerate((0, 4, 2)):
        made[..., channel] = np.clip(np.abs((turn + shift) % 6 - 3) - 1, 0, 1)
    made[..., 3] = np.clip(1.15 - y / height, 0, 1)
    return _bytes(made)


def waves(time: float, width: int = 320, height: int = 180) -> np.ndarray:
    """A video: a sun over a moving sea, the frame of a time, (height, width, 3) u8."""
    y, x = _grid(height, width)
    v = (y / height)[..., None]
    sky = np.array([0.16, 0.22, 0.5]) * (1 - v) + np.array([1.0, 0.62, 0.42]) * v
    far = np.hypot(x - width * 0.5, y - height * (0.42 + 0.04 * time)) / height
    sun = np.clip((0.16 - far) * height / 2, 0, 1)[..., None]
    picture = sky * (1 - sun) + np.array([1.0, 0.93, 0.7]) * sun
    for number in range(4):
        level = 0.58 + 0.11 * number
        swell = np.sin(x / width * (9 - number) + time * (1.2 + 0.4 * number) + 2 * number)
        crest = level + 0.018 * swell
        inside = np.clip((y / height - crest) * height, 0, 1)[..., None]
        water = np.array([0.3, 0.42, 0.62]) * (1 - 0.2 * number)
        picture = picture * (1 - inside) + water * inside
    return _bytes(picture)


def clock(time: float, size: int = 120) -> np.ndarray:
    """A video that says its time: a hand that turns once in four seconds, (size, size, 3) u8."""
    y, x = _grid(size, size)
    u, v = x / size * 2 - 1, y / size * 2 - 1
    angle = np.arctan2(u, -v) % (2 * np.pi)
    hand = (time / 4 % 1) * 2 * np.pi
    far = np.hypot(u, v)
    picture = np.full((size, size, 3), (0.1, 0.12, 0.18))
    face = np.clip((0.86 - far) * size / 2, 0, 1)[..., None]
    swept = np.where((angle <= hand)[..., None], (0.98, 0.45, 0.3), (0.93, 0.93, 0.9))
    picture = picture * (1 - face) + swept * face
    hub = np.clip((0.3 - far) * size / 2, 0, 1)[..., None]
    return _bytes(picture * (1 - hub) + np.array([0.1, 0.12, 0.18]) * hub)


def clip(seconds: float = 2.0, fps: int = 10) -> list[np.ndarray]:
    """The clock as a list of frames."""
    return [clock(number / fps) for number in range(round(seconds * fps))]
