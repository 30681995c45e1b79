"""Every mode of a Pillow image as one of four: L, RGB, RGBA, or I;16 for 16-bit gray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dala.notices import notify
from dala.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

#: Pillow modes of numbers that have no scale by themselves.
NUMBERS: Final = ("I", "F")
#: Formats whose mode "I" is gray from 0 to 65535.
_SCALED: Final = ("PNG", "PPM")
#: The largest value of a gray PNG file, by what Pillow calls its pixels.
_GRAY: Final = {"L": 255, "L;4": 15, "L;2": 3}
#: Modes with an alpha channel, and the color mode that holds the same values.
WITH_ALPHA: Final = {"LA": "RGBA", "La": "RGBA", "PA": "RGBA", "RGBa": "RGBA", "RGBA": "RGBA"}


def scaled(image: PillowImage, name: str) -> NDArray:
    """Return an image of numbers (I;16, I or F) as f32, with white at 1.

    I;16 and I count as x / 65535, as Pillow stores 16-bit gray in both; F counts as 0 to 1, as
    float arrays do. If the numbers look otherwise, a notice says so.

    >>> from PIL import Image
    >>> scaled(Image.new("I", (1, 1), 65535), "example").tolist()
    [[1.0]]
    """
    numbers = np.asarray(image)
    most = float(np.nanmax(numbers)) if numbers.size and not np.isnan(numbers).all() else 0.0
    if image.mode == "F":
        if most > 2.0:
            notify(
                f"{name}: an image of mode 'F' counts as 0 to 1, and it has values up to {most:g}. "
                "Divide it by its white first."
            )
        return np.ascontiguousarray(numbers, np.float32)
    if image.mode == "I" and (most > 65535 or 0 < most <= 255):
        notify(
            f"{name}: an image of mode 'I' counts as 0 to 65535, and its largest value is "
            f"{most:g}. Convert it to 'L' or 'I;16' first if it has another scale."
        )
    return (numbers / np.float64(65535)).astype(np.float32)


def is_scaled(image: PillowImage) -> bool:
    """Return whether mode "I" of an image is 16-bit gray: so Pillow reads 16-bit PGM."""
    return image.mode == "I" and image.format in _SCALED


def normalized(image: PillowImage) -> PillowImage:
    """Return an image as L, RGB, RGBA or I;16, with the color key as alpha.

    >>> from PIL import Image
    >>> gray = Image.new("L", (2, 1), 7)
    >>> gray.info["transparency"] = 7
    >>> normalized(gray).getpixel((0, 0))
    (7, 7, 7, 0)
    """
    mode = image.mode
    if mode.startswith("I;16"):
        return _with_key(image) if "transparency" in image.info else image
    if mode == "La":
        image = image.convert("LA")
    if mode in WITH_ALPHA:
        return image if mode == "RGBA" else image.convert("RGBA")
    if mode == "P":
        return image.convert("RGBA" if image.has_transparency_data else "RGB")
    if mode in ("1", "L", "RGB"):
        if "transparency" in image.info:
            return _with_key(image)
        return image.convert("L") if mode == "1" else image
    return image.convert("RGB")


def color_key(image: PillowImage) -> int | tuple[int, ...] | bytes:
    """Return the key of an image, in the values that its pixels have once it is loaded.

    PNG stores sixteen bits of it. Of a file with fewer, its specification has decoders use the low
    ones and mask the others; Pillow keeps them all, and scales gray of two and four bits but not
    its key. Only an image that is not loaded yet knows its bits.

    >>> from PIL import Image
    >>> gray = Image.new("L", (2, 1), 7)
    >>> gray.info["transparency"] = 7
    >>> color_key(gray)
    7
    """
    key: int | tuple[int, ...] | bytes = image.info["transparency"]
    tiles = getattr(image, "tile", None)
    if image.format != "PNG" or not tiles:
        return key
    if isinstance(key, tuple) and tiles[0][3] == "RGB":
        return tuple(value & 255 for value in key)
    most = _GRAY.get(tiles[0][3])
    return key if most is None or not isinstance(key, int) else (key & most) * (255 // most)


def _with_key(image: PillowImage) -> PillowImage:
    """Return RGBA in which the pixels of the key color are transparent."""
    from PIL import Image

    key = color_key(image)
    if image.mode.startswith("I;16"):
        gray = np.asarray(image)
        values, opaque = (gray / 257 + 0.5).astype(np.uint8), gray != key
    else:
        plain = image.convert("L") if image.mode == "1" else image
        values = np.asarray(plain)
        if image.mode == "1" and key == 1:
            key = 255
        if isinstance(key, bytes):  # one alpha value per level, as palettes have
            table = np.full(256, 255, np.uint8)
            table[: len(key)] = np.frombuffer(key[:256], np.uint8)
            return Image.fromarray(rgba(values, table[values] if values.ndim == 2 else None))
        same = values == np.asarray(key, np.int64)
        opaque = ~(same if values.ndim == 2 else same.all(-1))
    return Image.fromarray(rgba(values, opaque * np.uint8(255)))


def rgba(values: NDArray, alpha: NDArray | None) -> NDArray:
    """Return gray or RGB as RGBA; without alpha it is opaque.

    >>> rgba(np.array([[7]], np.uint8), np.array([[9]], np.uint8)).tolist()
    [[[7, 7, 7, 9]]]
    """
    top = np.iinfo(values.dtype).max if values.dtype.kind == "u" else 1
    made = np.full((*values.shape[:2], 4), top, values.dtype)
    made[..., :3] = values[..., None] if values.ndim == 2 else values[..., :3]
    if alpha is not None:
        made[..., 3] = alpha
    return made


def over(pixels: NDArray, background: tuple[int, int, int]) -> NDArray:
    """Return RGBA of u8 or u16 laid over a color, as RGB.

    >>> half = np.array([[[255, 0, 0, 128]]], np.uint8)
    >>> over(half, (255, 255, 255)).tolist()
    [[[255, 127, 127]]]
    """
    top = int(np.iinfo(pixels.dtype).max)
    alpha = pixels[..., 3:].astype(np.uint64)
    below = np.array(background, np.uint64) * np.uint64(top // 255)
    mixed = pixels[..., :3] * alpha + below * (np.uint64(top) - alpha)
    made: NDArray = ((mixed + np.uint64(top // 2)) // np.uint64(top)).astype(pixels.dtype)
    return made
