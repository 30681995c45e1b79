"""What the tests of composing share."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.gpu.compute import buffer_zeros
from dala.gpu.compute.composite import DRAW, PICTURE, Compositor
from dala.gpu.compute.engines.webgpu.compose.composer import WebGPUComposer
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine


def composer_with(engine: WebGPUEngine, limit: int | None = None) -> WebGPUComposer:
    return WebGPUComposer(engine, limit)


def noise(seed: int, height: int, width: int, channels: int = 4) -> Any:
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def rgba(pixels: Any) -> Any:
    """Return a picture of one or three channels as RGBA, opaque, so that drawing it copies it."""
    full = np.full((*pixels.shape[:2], 4), 255, np.uint8)
    full[..., :3] = pixels[..., None] if pixels.ndim == 2 else pixels[..., :3]
    return full


def draw_at(
    x: float, y: float, width: float, height: float, *, number: int = 0, kind: int = PICTURE,
    **fields: Any,
) -> Any:  # fmt: skip
    """Return a draw that fills a rectangle from its top left corner."""
    draw = np.zeros((), DRAW)
    values = {
        "kind": kind, "picture": number, "cos": 1, "opacity": 1, "color": 255,
        "x0": np.floor(x), "y0": np.floor(y), "x1": np.ceil(x + width), "y1": np.ceil(y + height),
        "cx": x + width / 2, "cy": y + height / 2, "hw": width / 2, "hh": height / 2,
        "sx": 1, "sy": 1, "u1": width, "v1": height, "taps_x": 1, "taps_y": 1,
    }  # fmt: skip
    for name, value in (values | fields).items():
        draw[name] = value
    return draw


def shown(compositor: Compositor, picture: Any) -> Any:
    """Return the pixels of a picture."""
    target = buffer_zeros((picture.height, picture.width, 4), "u8", device=compositor.device)
    draw = draw_at(0, 0, picture.width, picture.height, number=picture.number)
    compositor.compose(target, np.stack([draw]))
    return target.numpy()
