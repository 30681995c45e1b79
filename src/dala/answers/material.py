"""The pictures, tables and maps of the cases, the same on every machine.

All is integer arithmetic, except the photograph, a part of "chelsea" of ``dala.samples`` that is
stored as bytes: decoders of JPEG differ.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Final

import numpy as np

from dala.typing import NDArray

#: Width and height of each picture, all odd in one way or the other.
SIZES: Final = {
    "random": (37, 23),
    "gradient": (64, 41),
    "constant": (19, 7),
    "photo": (61, 43),
    "wide": (541, 7),  # for code that works in blocks of many pixels
}
PICTURES: Final = tuple(SIZES)


def number(text: str, count: int) -> int:
    """Return an int from 0 to ``count - 1`` that depends on a text only.

    >>> number("blur", 10) == number("blur", 10) < 10
    True
    """
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count


def noise(shape: tuple[int, ...], seed: str) -> NDArray:
    """Return random bytes: a hash of each position.

    >>> noise((2, 3), "a").shape
    (2, 3)
    """
    size = int(np.prod(shape))
    x = np.arange(size, dtype=np.uint64) + np.uint64(number(seed, 1 << 32))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x >> np.uint64(33)) & np.uint64(255)).astype(np.uint8).reshape(shape)


@cache
def picture(name: str, channels: int) -> NDArray:
    """Return a picture: (height, width) of one channel, else (height, width, channels), bytes.

    >>> picture("photo", 3).shape, picture("random", 1).shape
    ((43, 61, 3), (23, 37))
    """
    width, height = SIZES[name]
    rgba = np.zeros((height, width, 4), np.uint8)
    y, x = np.mgrid[:height, :width]
    if name == "random":
        rgba[:] = noise((height, width, 4), "picture")
        rgba[::5, ::3, 3] = 255  # many pixels of real pictures are opaque, and some are clear
        rgba[1::7, ::2, 3] = 0
    elif name == "gradient":
        rgba[:] = np.stack([4 * x, 6 * y, 255 - 2 * x - 3 * y, 255 - x - 2 * y], -1).clip(0, 255)
    elif name == "constant":
        rgba[:] = (131, 64, 201, 170)
    elif name == "wide":
        ramp = np.stack([x // 3, 255 - x // 2, 4 * y + x // 4, 80 + x // 5], -1) & 255
        rgba[:] = (ramp + noise(ramp.shape, name) // 16).clip(0, 255)
    else:
        rgba[..., :3] = _photo()
        rgba[..., 3] = (x * 5 + y).clip(0, 255)
    made = rgba[..., 1] if channels == 1 else rgba[..., :channels]
    made = np.ascontiguousarray(made)
    made.flags.writeable = False
    return made


def _photo() -> NDArray:
    data = resources.files(__package__).joinpath("photo.rgb").read_bytes()
    width, height = SIZES["photo"]
    return np.frombuffer(data, np.uint8).reshape(height, width, 3)


def second(height: int, width: int, channels: int) -> NDArray:
    """Return another picture, to lay over the first one."""
    made = noise((height, width, 4), "second")
    made[: height // 2, :, 3] = 255
    return np.ascontiguousarray(made[..., 0] if channels == 1 else made[..., :channels])


def mask(height: int, width: int) -> NDArray:
    """Return a soft disc, of 0 to 255."""
    y, x = np.mgrid[:height, :width]
    far = (2 * x - width) ** 2 * height + (2 * y - height) ** 2 * width
    made: NDArray = 384 - far * 384 // (width * width * height)
    return made.clip(0, 255).astype(np.uint8)


def lut() -> NDArray:
    """Return a color table of 5 x 5 x 5, of multiples of 1/256."""
    return noise((5, 5, 5, 3), "lut").astype(np.float32) / np.float32(256)


def coordinates(height: int, width: int) -> NDArray:
    """Return a map for ``remap``: positions in multiples of 1/64, some outside the picture."""
    y, x = np.mgrid[: height + 3, : width - 5]
    across = 58 * x + 3 * y - 100
    down = 70 * y - 5 * x + 40
    made: NDArray = np.stack([across, down], -1) / 64
    return made.astype(np.float32)


def element() -> NDArray:
    """Return a structuring element of 3 x 5."""
    return np.array([[0, 1, 0, 1, 1], [1, 1, 1, 1, 0], [0, 0, 1, 0, 1]], np.float32)
