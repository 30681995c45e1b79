"""Draws, and what the reference makes of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dala
from dala.gpu import compute
from dala.gpu.compute.composite import (
    BLENDS,
    DRAW,
    PICTURE,
    SHADOW,
    TINT,
    Compositor,
)

Array = np.ndarray[Any, Any]


CLEAR = (0, 0, 0, 0)


def box(
    kind: int,
    x: float,
    y: float,
    w: float,
    h: float,
    *,
    picture: Array | None = None,
    number: int = 0,
    crop: tuple[float, float, float, float] | None = None,
    angle: float = 0.0,
    radius: float = 0.0,
    width: float = 0.0,
    color: tuple[int, int, int, int] = (255, 255, 255, 255),
    opacity: float = 1.0,
    blend: str = "over",
    flags: int = 0,
    taps: tuple[int, int] | None = None,
) -> Array:
    """Return a record of a box from (x, y) on, rotated around its center."""
    draw = np.zeros(1, DRAW)
    d: Any = draw[0]
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    if angle == 0:
        cos, sin = 1.0, 0.0
    d["kind"], d["blend"], d["flags"], d["picture"] = kind, BLENDS.index(blend), flags, number
    d["cx"], d["cy"], d["cos"], d["sin"] = x + w / 2, y + h / 2, cos, sin
    d["hw"], d["hh"], d["radius"], d["width"] = w / 2, h / 2, radius, width
    reach = 3 * width if kind == SHADOW else 0.0
    ax = abs(cos) * w / 2 + abs(sin) * h / 2 + reach + 1
    ay = abs(sin) * w / 2 + abs(cos) * h / 2 + reach + 1
    d["x0"], d["y0"] = math.floor(x + w / 2 - ax), math.floor(y + h / 2 - ay)
    d["x1"], d["y1"] = math.ceil(x + w / 2 + ax), math.ceil(y + h / 2 + ay)
    d["color"], d["opacity"] = color, opacity
    d["taps_x"] = d["taps_y"] = 1
    if picture is not None:
        u0, v0, u1, v1 = crop or (0, 0, picture.shape[1], picture.shape[0])
        sx, sy = (u1 - u0) / w, (v1 - v0) / h
        d["sx"], d["sy"], d["ox"], d["oy"] = sx, sy, u0, v0
        d["u0"], d["v0"], d["u1"], d["v1"] = u0, v0, u1, v1
        d["taps_x"], d["taps_y"] = taps or (
            max(1, math.ceil(sx / 2 - 1e-6)),
            max(1, math.ceil(sy / 2 - 1e-6)),
        )
    return draw


def render(
    device: str,
    draws: Array,
    pictures: list[Array],
    *,
    size: tuple[int, int] = (96, 64),
    background: tuple[int, int, int, int] | None = CLEAR,
    start: Array | None = None,
    rects: list[tuple[int, int, int, int]] | None = None,
) -> Array:
    """Draw on a device; the field "picture" is an index into the list."""
    w, h = size
    before = np.zeros((h, w, 4), np.uint8) if start is None else start
    with Compositor(device) as compositor:
        made = [compositor.picture(p) for p in pictures]
        draws = draws.copy()
        for draw in draws:
            if draw["kind"] in (PICTURE, TINT):
                draw["picture"] = made[int(draw["picture"])].number
        with dala.device(device):
            target = compute.from_array(before)
        compositor.compose(target, draws, rects, background=background)
        return np.array(target.numpy())


_known: dict[Any, Array] = {}


def expected(draws: Array, pictures: list[Array], given: dict[str, Any]) -> Array:
    """Draw with the definition; cached, because all engines are compared with it."""
    words = repr(sorted(given.items())) if "start" not in given else None
    key = (draws.tobytes(), *(p.tobytes() for p in pictures), words)
    if words is None:
        return render("reference", draws, pictures, **given)
    if len(_known) > 2000:
        _known.clear()
    if key not in _known:
        _known[key] = render("reference", draws, pictures, **given)
    return _known[key]


def assert_same(
    device: str, draws: Array | list[Array], pictures: list[Array], **given: Any
) -> None:
    """Assert that a device draws the same bytes as the definition."""
    all_of_them = np.concatenate(draws) if isinstance(draws, list) else draws
    want = expected(all_of_them, pictures, given)
    got = render(device, all_of_them, pictures, **given)
    wrong = np.argwhere((got != want).any(axis=2))
    assert not len(wrong), (
        f"{len(wrong)} pixels differ; at (y, x) {wrong[0].tolist()}: {got[tuple(wrong[0])]}, "
        f"must be {want[tuple(wrong[0])]}"
    )


def noise(seed: int, w: int, h: int, channels: int = 4) -> Array:
    """Return a picture with smooth parts, noise, transparent and opaque regions."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, (h, w, channels)).astype(np.uint8)
    yy, xx = np.mgrid[:h, :w]
    made[: h // 2, :, 0] = (255 * xx / max(w - 1, 1))[: h // 2]
    if channels == 4:
        kind = (xx * 3 // max(w, 1) + yy * 2 // max(h, 1)) % 3
        made[..., 3] = np.where(kind == 0, 255, np.where(kind == 1, 0, made[..., 3]))
    return made


def opaque(seed: int, w: int, h: int) -> Array:
    """Return an opaque picture."""
    made = noise(seed, w, h)
    made[..., 3] = 255
    return made
