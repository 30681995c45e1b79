"""Generated pictures for tests and for docs/media/filters.md: no file is read, seeds are fixed.

``python -m tests.support.pictures`` rewrites docs/images/filters on the cpu engine.
"""

from __future__ import annotations

import pathlib
from functools import lru_cache
from typing import Any

import numpy as np

import dala
from dala.gpu import compute
from dala.media import gpu

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "images" / "filters"

#: Three skin tones, for ``beauty``.
SKIN = ((0.93, 0.74, 0.63), (0.80, 0.58, 0.45), (0.55, 0.38, 0.29))


def noise(height: int, width: int, seed: int = 5) -> np.ndarray:
    """Return three channels of nearly Gaussian noise of deviation 1: sums of twelve uniforms."""
    random = np.random.default_rng(seed)
    return random.random((12, height, width, 3)).sum(axis=0) - 6.0


def _blend(image: np.ndarray, cover: np.ndarray, color: Any) -> None:
    image += (np.asarray(color, float) - image) * cover[..., None]


def _inside(distance: np.ndarray, soft: float) -> np.ndarray:
    """Return 1 inside and 0 outside the distance 1, with a transition of width ``soft``."""
    return np.clip((1.0 - distance) / soft + 0.5, 0.0, 1.0)


def _portrait(image: np.ndarray, x: np.ndarray, y: np.ndarray, skin: Any, grain: Any) -> None:
    """Draw a head of radius 1 at the origin, with shoulders and textured skin."""
    skin = np.asarray(skin)
    _blend(image, _inside(np.hypot(x / 1.45, (y - 2.3) / 1.1), 0.05), skin[::-1] * 0.8)
    _blend(image, _inside(np.hypot(x / 1.0, (y + 0.14) / 1.02), 0.05), (0.2, 0.12, 0.08))
    neck = _inside(np.maximum(np.abs(x) / 0.36, np.abs(y - 1.0) / 0.42), 0.1)
    _blend(image, neck, skin * 0.85)
    face = _inside(np.hypot(x / 0.76, (y - 0.1) / 0.9), 0.06)
    light = 1.0 - 0.16 * x - 0.1 * y + 0.035 * grain
    image += (skin * light[..., None] - image) * face[..., None]
    for spot in range(24):
        at = (spot * 0.618 % 1 * 1.1 - 0.55, spot * 0.414 % 1 * 1.2 - 0.4)
        _blend(image, 0.25 * _inside(np.hypot(x - at[0], y - at[1]) / 0.04, 0.5), (0.6, 0.32, 0.25))
    _blend(image, _inside(np.hypot(x / 0.09, (y - 0.3) / 0.07), 0.8), skin * 0.82)
    for side in (-0.3, 0.3):
        _blend(image, _inside(np.hypot((x - side) / 0.15, (y + 0.02) / 0.07), 0.3), (0.95,) * 3)
        _blend(image, _inside(np.hypot(x - side, y + 0.02) / 0.075, 0.3), (0.15, 0.17, 0.2))
        _blend(image, _inside(np.hypot((x - side) / 0.2, (y + 0.24) / 0.045), 0.5), skin * 0.4)
    _blend(image, _inside(np.hypot(x / 0.26, (y - 0.58) / 0.06), 0.4), skin * (0.85, 0.45, 0.5))


def photo(height: int = 200, width: int = 320, *, seed: int = 5) -> np.ndarray:
    """Return a synthetic photograph, (height, width, 4) u8: sky, hills, faces, patches, bars."""
    return _photo(height, width, seed).copy()


@lru_cache(maxsize=8)
def _photo(height: int, width: int, seed: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width].astype(float)
    u, v = (x + 0.5) / width * 1.6, (y + 0.5) / height
    image = np.empty((height, width, 3))
    image[:] = (0.36, 0.58, 0.86)
    _blend(image, v, (0.95, 0.86, 0.74))
    _blend(image, _inside(np.hypot(u - 1.38, v - 0.2) / 0.11, 0.1), (1.0, 0.96, 0.75))
    ridge = 0.62 - 0.1 * np.abs((u * 2.5) % 2 - 1) + 0.02 * np.abs((u * 19) % 2 - 1)
    _blend(image, np.clip((v - ridge) * height / 2, 0, 1), (0.28, 0.42, 0.26))
    grain = noise(height, width, seed)[..., 0]
    for number, skin in enumerate(SKIN):
        _portrait(image, (u - 0.3 - 0.46 * number) / 0.19, (v - 0.42) / 0.19, skin, grain)
    _blend(image, np.clip((v - 0.8) * height / 2, 0, 1), (0.36, 0.27, 0.2))
    for number in range(12):  # patches of saturated colors and grays, as on a test chart
        bits = (number & 1, number >> 1 & 1, number >> 2 & 1)
        color = bits if number < 8 else ((number - 8) / 3,) * 3
        left = 0.06 + number * 0.062
        patch = (u > left) & (u < left + 0.054) & (v > 0.85) & (v < 0.95)
        _blend(image, patch.astype(float), color)
    for number in range(40):  # bars of decreasing width
        left = 0.86 + number * 0.0165
        bar = (u > left) & (u < left + 0.011 - number * 0.0002) & (np.abs(v - 0.9) < 0.045)
        _blend(image, bar.astype(float), (0.96, 0.94, 0.9))
    opaque = np.ones((height, width, 1))
    return np.floor(np.clip(np.dstack([image, opaque]), 0, 1) * 255 + 0.5).astype("u1")


def noisy(image: np.ndarray, deviation: float = 16.0) -> np.ndarray:
    """Return the picture with noise of so many steps."""
    changed = image.astype(float)
    changed[..., :3] += deviation * noise(*image.shape[:2], seed=11)
    return np.floor(np.clip(changed, 0, 255) + 0.5).astype("u1")


def speckled(image: np.ndarray, share: float = 0.06) -> np.ndarray:
    """Return the picture with black and white specks."""
    changed = image.copy()
    dice = np.random.default_rng(12).random(image.shape[:2])
    changed[dice < share / 2, :3] = 0
    changed[dice > 1 - share / 2, :3] = 255
    return changed


def green_screen(height: int = 200, width: int = 320) -> np.ndarray:
    """Return a head with soft edges in front of an unevenly lit green screen."""
    y, x = np.mgrid[:height, :width].astype(float)
    u, v = (x + 0.5) / width * 1.6, (y + 0.5) / height
    image = (0.7 + 0.25 * u)[..., None] * np.array([0.16, 0.75, 0.24])
    _portrait(image, (u - 0.8) / 0.27, (v - 0.4) / 0.27, SKIN[1], noise(height, width)[..., 0])
    image = np.dstack([image, np.ones((height, width))])
    return np.floor(np.clip(image, 0, 1) * 255 + 0.5).astype("u1")


def title(height: int = 200, width: int = 320) -> np.ndarray:
    """Return a badge with a soft edge on a transparent background."""
    y, x = np.mgrid[:height, :width].astype(float)
    u, v = (x + 0.5) / width * 1.6 - 1.15, (y + 0.5) / height - 0.5
    image = np.zeros((height, width, 4))
    image[..., :3] = (0.85, 0.1, 0.35)
    _blend(image[..., :3], _inside(np.hypot(u, v) / 0.2, 0.05), (1.0, 0.9, 0.3))
    image[..., 3] = np.clip(1.6 - np.hypot(u, v) / 0.25, 0, 1)
    return np.floor(image * 255 + 0.5).astype("u1")


def on_checks(image: np.ndarray) -> np.ndarray:
    """Return the picture over a gray checkerboard, which shows its alpha."""
    y, x = np.indices(image.shape[:2])
    board = np.where((x // 10 + y // 10) % 2, 205, 160)[..., None]
    alpha = image[..., 3:] / 255.0
    shown = np.full_like(image, 255)
    shown[..., :3] = np.floor(image[..., :3] * alpha + board * (1 - alpha) + 0.5)
    return shown


#: The picture of each filter in docs/media/filters.md: its inputs and parameters.
FILTERS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "grayscale": (("photo",), {}),
    "brightness": (("photo",), {"value": 0.15}),
    "contrast": (("photo",), {"value": 0.5}),
    "saturation": (("photo",), {"value": 0.8}),
    "gamma": (("photo",), {"value": 2.0}),
    "hue": (("photo",), {"degrees": 120.0}),
    "sepia": (("photo",), {}),
    "invert": (("photo",), {}),
    "posterize": (("photo",), {"bits": 2}),
    "vignette": (("photo",), {"amount": 0.9}),
    "sharpen": (("photo",), {"amount": 1.0}),
    "edge_detect": (("photo",), {}),
    "denoise": (("noisy",), {"radius": 3, "sigma_space": 2.0, "sigma_color": 0.15}),
    "beauty": (("photo",), {"amount": 1.0}),
    "erode": (("photo",), {"radius": 2}),
    "dilate": (("photo",), {"radius": 2}),
    "median": (("speckled",), {}),
    "chroma_key": (
        ("green_screen",),
        {"key": (0.16, 0.75, 0.24), "threshold": 0.1, "softness": 0.12},
    ),
    "overlay_alpha": (("photo", "title"), {}),
    "video_mix": (("photo", "green_screen"), {"t": 0.5}),
}

#: The same for operations.
OPERATIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "blur": (("photo",), {"radius": 8}),
}


#: The same for filters of several steps and for those that change the size, as calls of
#: ``dala.media.gpu``.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "box_blur": ("photo", {"radius": 6}),
    "emboss": ("photo", {"amount": 2.0}),
    "motion_blur": ("photo", {"length": 21, "angle": 20}),
    "unsharp_mask": ("photo", {"radius": 2, "amount": 2.0}),
    "bilateral": ("noisy", {"radius": 5, "sigma_color": 0.4}),
    "morphology": ("photo", {"operation": "close", "radius": 3, "shape": "ellipse"}),
    "canny": ("photo", {"sigma": 1.0}),
    "crop": ("photo", {"box": (30, 50, 190, 150)}),
    "pad": ("photo", {"padding": (60, 0, 60, 0), "border": "reflect"}),
    "flip": ("photo", {}),
    "rotate": ("photo", {"angle": 20, "expand": True}),
    "thumbnail": ("photo", {"size": 96}),
    "pixelate": ("photo", {"block": 10}),
}


def sources() -> dict[str, np.ndarray]:
    """Return the input pictures by name."""
    image = photo()
    return {
        "photo": image,
        "noisy": noisy(image),
        "speckled": speckled(image),
        "green_screen": green_screen(),
        "title": title(),
    }


def show(name: str, given: dict[str, np.ndarray]) -> np.ndarray:
    """Return a filter's picture, (200, 320, 3) u8: left half original, right half filtered."""
    if name in CALLS:
        return _show_call(name, given)
    names, params = {**FILTERS, **OPERATIONS}[name]
    out = compute.buffer_zeros(given[names[0]].shape, "u8")
    compute.run_kernel(name, [compute.from_array(given[n]) for n in names], out, params)
    shown = on_checks(np.array(compute.to_array(out)))
    half = shown.shape[1] // 2
    shown[:, :half] = given[names[0]][:, :half]
    shown[:, half - 1 : half + 1] = 255
    return np.ascontiguousarray(shown[..., :3])


def _show_call(name: str, given: dict[str, np.ndarray]) -> np.ndarray:
    """Return both halves of a filter of the same size, else the whole result on a checkerboard."""
    source, params = CALLS[name]
    before = given[source]
    made = getattr(gpu, name)(before, **params)
    if made.shape == before.shape and name != "flip":
        half = made.shape[1] // 2
        made[:, :half] = before[:, :half]
        made[:, half - 1 : half + 1] = 255
    if made.shape[0] > 200 or made.shape[1] > 320:
        made = gpu.resize(made, size=(320, 200), fit="contain")
    left, top = 320 - made.shape[1], 200 - made.shape[0]
    around = (left // 2, top // 2, left - left // 2, top - top // 2)
    return np.ascontiguousarray(on_checks(gpu.pad(made, padding=around))[..., :3])


def main() -> None:
    from PIL import Image

    FOLDER.mkdir(parents=True, exist_ok=True)
    given = sources()
    with dala.device("cpu"):
        for name in (*FILTERS, *OPERATIONS, *CALLS):
            Image.fromarray(show(name, given)).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
