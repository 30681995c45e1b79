"""Paths, masks and paints that commands store by ids, as words that native code reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from dala.errors import CommandError
from dala.gpu.compute.engines.blending import decoded
from dala.gpu.protocol import DrawCommand
from dala.gpu.protocol import gradient as kinds
from dala.gpu.protocol import spread as spreads
from dala.gpu.raster.images import StoredImage
from dala.gpu.vector.fields import encode_path
from dala.gpu.vector.paints import DITHERED, HEAD, LEVELS, MATRIX, MAX_LEVELS, PATTERN, TABLE
from dala.gpu.vector.prepare import MASK, MAX_ID, PAINT, PATH
from dala.typing import NDArray

#: The kind of what each command stores or removes.
KINDS: Final = {"path": PATH, "gradient": PAINT, "pattern": PAINT, "paint": PAINT, "mask": MASK}

#: OKLab: from linear light to cone responses, and from their cube roots to L, a, b.
_CONES: Final = np.array(
    [
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    ]
)
_LAB: Final = np.array(
    [
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    ]
)


def _encoded(light: NDArray) -> NDArray:
    """Convert linear light to sRGB values."""
    light = np.clip(light, 0, 1)
    high: NDArray = 1.055 * np.power(np.maximum(light, 1e-9), 1 / 2.4) - 0.055
    return np.where(light <= 0.0031308, light * 12.92, high)


def _to_lab(x: NDArray) -> NDArray:
    made: NDArray = np.cbrt(decoded(x) @ _CONES.T) @ _LAB.T
    return made


def _from_lab(x: NDArray) -> NDArray:
    return _encoded((x @ np.linalg.inv(_LAB).T) ** 3 @ np.linalg.inv(_CONES).T)


_SPACES: Final[dict[str, tuple[Callable[[NDArray], NDArray], Callable[[NDArray], NDArray]]]] = {
    "srgb": (lambda x: x, lambda x: x),
    "linear": (decoded, _encoded),
    "oklab": (_to_lab, _from_lab),
}


def colors_between(stops: NDArray, space: str, dither: bool) -> NDArray:
    """Return the straight colors of a gradient from 0 to 1, as TABLE words.

    Colors are interpolated premultiplied in a color space.

    Args:
        stops: Rows of a place from 0 to 1, and red, green, blue and alpha up to 255.
        space: "srgb", "linear" or "oklab".
        dither: Return 256 times as fine numbers: red and green, then TABLE words of blue and alpha.
    """
    to_space, from_space = _SPACES[space]
    at, alpha = stops[:, 0], stops[:, 4:] / 255
    values = np.concatenate([to_space(stops[:, 1:4] / 255) * alpha, alpha], axis=1)
    t = np.arange(TABLE) / (TABLE - 1)
    after = np.searchsorted(at, t, side="right")
    low, high = np.maximum(after - 1, 0), np.minimum(after, len(at) - 1)
    width = at[high] - at[low]
    share = np.where(width > 0, (t - at[low]) / np.where(width > 0, width, 1), 0)[:, None]
    mixed = values[low] * (1 - share) + values[high] * share
    a = mixed[:, 3:]
    straight = from_space(mixed[:, :3] / np.where(a > 0, a, 1))
    fine = 256 if dither else 1
    made = np.floor(np.concatenate([straight, a], axis=1) * (255 * fine) + 0.5)
    made = np.clip(made, 0, 255 * fine).astype(np.uint16 if dither else np.uint8)
    return made.view(np.uint32).T.ravel()


def _head(command: DrawCommand, kind: int) -> NDArray:
    words = np.zeros(HEAD, np.uint32)
    words[:2] = kind, spreads.names.index(command.spread)
    matrix = np.array([command.fields[name] for name in "abcdef"])
    words[MATRIX : MATRIX + 12] = matrix.view(np.uint32)
    return words


def _gradient(command: DrawCommand) -> NDArray:
    stops = np.array(command.stops)
    if not stops.size or stops.size % 5:
        raise CommandError.invalid("load_gradient", "stops", "five numbers each", stops.size)
    stops = stops.reshape(-1, 5)
    places, colors = stops[:, 0], stops[:, 1:]
    if not (places[0] >= 0 and places[-1] <= 1 and (np.diff(places) >= 0).all()):
        expected = "places from 0 to 1 in ascending order"
        raise CommandError.invalid("load_gradient", "stops", expected, places.tolist())
    if colors.min() < 0 or colors.max() > 255:
        raise CommandError.invalid("load_gradient", "stops", "colors from 0 to 255", colors)
    kind = kinds.names.index(command.kind)
    head = _head(command, kind)
    head[DITHERED] = command.dither
    return np.concatenate([head, colors_between(stops, command.space, command.dither)])


def halved(pixels: NDArray) -> NDArray:
    """Return a picture of half the size, (h, w, 4): means of four, colors weighted by alpha."""
    h, w = pixels.shape[0], pixels.shape[1]
    part = pixels[: h & ~1 if h > 1 else 1, : w & ~1 if w > 1 else 1].astype(np.uint32)
    sums = part * np.concatenate([[1, 1, 1], [0]]).astype(np.uint32)
    sums[..., :3] *= part[..., 3:]
    sums[..., 3] = part[..., 3]
    if h > 1:
        sums = sums[::2] + sums[1::2]
    if w > 1:
        sums = sums[:, ::2] + sums[:, 1::2]
    count, total = (1 + (h > 1)) * (1 + (w > 1)), np.maximum(sums[..., 3:], 1)
    sums[..., :3] = (sums[..., :3] + total // 2) // total
    sums[..., 3] = (sums[..., 3] + count // 2) // count
    return sums.astype(np.uint8)


def _pattern(command: DrawCommand, image: StoredImage) -> NDArray:
    pixels = image.words.view(np.uint8).reshape(image.height, image.width, 4)
    words, levels = _head(command, PATTERN), [pixels]
    nearest = command.sampling == "nearest"
    while not nearest and len(levels) < MAX_LEVELS and max(levels[-1].shape[:2]) > 1:
        levels.append(halved(levels[-1]))
    starts = np.cumsum([0, *(level.size // 4 for level in levels[:-1])])
    words[2:7] = image.width, image.height, len(levels), nearest, image.opaque
    words[LEVELS : LEVELS + len(levels)] = starts
    return np.concatenate(
        [words, *(np.ascontiguousarray(p).view(np.uint32).ravel() for p in levels)]
    )


def _mask(command: DrawCommand) -> NDArray:
    w, h, coverage = command.w, command.h, command.coverage
    if len(coverage) != w * h:
        expected = f"{w} x {h} bytes"
        raise CommandError.invalid("load_mask", "coverage", expected, len(coverage))
    return np.concatenate([np.array([w, h], np.uint32), _padded(coverage)])


def _padded(data: bytes) -> NDArray:
    return np.frombuffer(data.ljust(-(-len(data) // 4) * 4, b"\0"), np.uint32)


def key_of(name: str, id: int) -> int:
    """Return the key that a command stores or removes."""
    if id >= MAX_ID:
        raise CommandError.invalid(name, "id", f"an int below {MAX_ID}", id)
    return id << 2 | KINDS[name.partition("_")[2]]


def words_of(command: DrawCommand, images: dict[int, StoredImage]) -> NDArray:
    """Return the words that a command stores."""
    if command.name == "load_path":
        return _padded(encode_path("load_path", "path", command.path))
    if command.name == "load_mask":
        return _mask(command)
    if command.name == "load_gradient":
        return _gradient(command)
    image = images.get(command.image)
    if image is None or not image.words.size:
        raise CommandError.invalid("load_pattern", "image", "a loaded image", command.image)
    return _pattern(command, image)
