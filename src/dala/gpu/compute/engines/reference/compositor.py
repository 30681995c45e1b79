"""The NumPy definition of compositing. Other engines are tested against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

import numpy as np

from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.engines.blending import FULL, LEAST, SOFT, VALUES, WHITE, share_of
from dala.gpu.compute.engines.compositing import (
    BLENDS,
    GRID,
    LINEAR,
    NEAREST,
    PICTURE,
    RING,
    SHADOW,
    SHADOW_STEPS,
    TINT,
    Composer,
    Rect,
)
from dala.typing import NDArray


class HostComposer(Composer):
    """A composer for engines whose memory is on the host."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._numbers = count()
        self._pictures: dict[int, tuple[int, int, NDArray]] = {}

    def picture(self, width: int, height: int) -> int:
        number = next(self._numbers)
        self._pictures[number] = width, height, np.zeros((height, width, 4), np.uint8)
        return number

    def put(self, picture: int, source: Storage | NDArray, channels: int) -> None:
        width, height, _ = self._pictures[picture]
        memory = self._host(source) if isinstance(source, Storage) else source
        pixels = np.frombuffer(memory, np.uint8).reshape(height, width, channels)
        if channels < 4:
            colors = np.broadcast_to(pixels, (height, width, 3))
            pixels = np.concatenate([colors, np.full((height, width, 1), 255, np.uint8)], axis=2)
        self._pictures[picture] = width, height, pixels

    def _host(self, storage: Storage) -> memoryview:
        view = self._engine.host_view(storage)
        assert view is not None, f"{self._engine.id} needs its own composer"
        return view

    def drop(self, picture: int) -> None:
        self._pictures.pop(picture, None)

    def compose(
        self,
        target: Storage,
        width: int,
        height: int,
        draws: NDArray,
        rects: Sequence[Rect],
        background: tuple[int, int, int, int] | None,
    ) -> None:
        pixels = np.frombuffer(self._host(target), np.uint8).reshape(height, width, 4)
        for x0, y0, x1, y1 in rects:
            if background is not None:
                pixels[y0:y1, x0:x1] = background
            for draw in draws:
                left, right = max(x0, int(draw["x0"])), min(x1, int(draw["x1"]))
                top, bottom = max(y0, int(draw["y0"])), min(y1, int(draw["y1"]))
                if left < right and top < bottom:
                    part = pixels[top:bottom, left:right]
                    part[...] = self._drawn(part, draw, left, top)

    @property
    def nbytes(self) -> int:
        return 0

    def _drawn(self, under: NDArray, draw: np.void, left: int, top: int) -> NDArray:
        height, width = under.shape[:2]
        dx = np.arange(left, left + width)[None, :] + 0.5 - float(draw["cx"])
        dy = np.arange(top, top + height)[:, None] + 0.5 - float(draw["cy"])
        cos, sin = float(draw["cos"]), float(draw["sin"])
        u, v = dx * cos + dy * sin, dy * cos - dx * sin
        source = np.broadcast_to(draw["color"].astype(np.int64), (height, width, 4)).copy()
        if draw["kind"] in (PICTURE, TINT):
            sampled = self._sampled(draw, u, v)
            if draw["kind"] == PICTURE:
                source = sampled
            else:
                source[..., 3] = (source[..., 3] * sampled[..., 3] + 127) // 255
        share = np.floor(coverage(draw, u, v) * int(share_of(draw["opacity"])) + 0.5)
        linear = bool(draw["flags"] & LINEAR)
        return blend(int(draw["blend"]), under, source, share.astype(np.int64), linear)

    def _sampled(self, draw: np.void, u: NDArray, v: NDArray) -> NDArray:
        """Sample the draw's picture at positions in its box: straight bytes."""
        pixels = self._pictures[int(draw["picture"])][2] / 255.0
        across, down = max(1, int(draw["taps_x"])), max(1, int(draw["taps_y"]))
        total = np.zeros((*u.shape, 4))
        for j in range(down):
            for i in range(across):
                at_u = u + (i + 0.5) / across - 0.5
                at_v = v + (j + 0.5) / down - 0.5
                s = (at_u + float(draw["hw"])) * float(draw["sx"]) + float(draw["ox"])
                t = (at_v + float(draw["hh"])) * float(draw["sy"]) + float(draw["oy"])
                total = total + texels(pixels, draw, s, t)
        total = total / (across * down)
        alpha = total[..., 3:]
        colors = np.divide(
            total[..., :3], alpha, out=np.zeros_like(total[..., :3]), where=alpha > 0
        )
        made = np.concatenate([colors, alpha], axis=2) * 255.0
        return np.floor(np.clip(made, 0.0, 255.0) + 0.5).astype(np.int64)


def texels(pixels: NDArray, draw: np.void, s: NDArray, t: NDArray) -> NDArray:
    """Sample at texel positions: premultiplied RGBA."""
    height, width = pixels.shape[:2]
    u0, u1 = float(draw["u0"]), float(draw["u1"])
    v0, v1 = float(draw["v0"]), float(draw["v1"])
    premultiplied = np.concatenate([pixels[..., :3] * pixels[..., 3:], pixels[..., 3:]], axis=2)

    def at(x: NDArray, y: NDArray) -> NDArray:
        x, y = np.broadcast_arrays(x, y)
        found: NDArray = premultiplied[
            np.clip(y, 0, height - 1).astype(int), np.clip(x, 0, width - 1).astype(int)
        ]
        return found

    if draw["flags"] & NEAREST:
        return at(
            np.clip(np.floor(s), np.floor(u0), np.ceil(u1) - 1),
            np.clip(np.floor(t), np.floor(v0), np.ceil(v1) - 1),
        )
    s = np.clip(s, u0 + 0.5, max(u0 + 0.5, u1 - 0.5)) - 0.5
    t = np.clip(t, v0 + 0.5, max(v0 + 0.5, v1 - 0.5)) - 0.5
    s, t = np.broadcast_arrays(s, t)
    x, y = np.floor(s), np.floor(t)
    fx, fy = (s - x)[..., None], (t - y)[..., None]
    upper = at(x, y) * (1 - fx) + at(x + 1, y) * fx
    lower = at(x, y + 1) * (1 - fx) + at(x + 1, y + 1) * fx
    return np.asarray(upper * (1 - fy) + lower * fy)


# shapes ------------------------------------------------------------------------------------------


def coverage(draw: np.void, u: NDArray, v: NDArray) -> NDArray:
    """Return the coverage of each pixel, 0 to 1."""
    hw, hh, radius = (float(draw[name]) for name in ("hw", "hh", "radius"))
    width = float(draw["width"])
    if draw["kind"] == SHADOW and width > 0:
        return shadow(u, v, hw, hh, radius, width)
    straight = draw["cos"] == 1 and draw["sin"] == 0
    outer = covered(u, v, hw, hh, radius, straight)
    if draw["kind"] != RING:
        return outer
    inner = covered(u, v, hw - width, hh - width, max(radius - width, 0.0), straight)
    return np.asarray(np.maximum(outer - inner, 0.0))


def covered(u: NDArray, v: NDArray, hw: float, hh: float, radius: float, straight: bool) -> NDArray:
    """Return the coverage of a rounded box around the origin."""
    if hw <= 0 or hh <= 0:
        return np.zeros(np.broadcast_shapes(u.shape, v.shape))
    radius = min(radius, hw, hh)
    x, y = np.abs(u) - (hw - radius), np.abs(v) - (hh - radius)
    outside = np.hypot(np.maximum(x, 0), np.maximum(y, 0))
    if straight:
        a, b = np.maximum(x, 0) * GRID, np.maximum(y, 0) * GRID
        outside = np.floor(np.sqrt(a * a + b * b)) / GRID
    distance = outside + np.minimum(np.maximum(x, y), 0) - radius
    return np.clip(0.5 - distance, 0.0, 1.0)


def erf(x: NDArray) -> NDArray:
    """Approximate the error function within 5e-4, as every engine does."""
    a = np.abs(x)
    q = 1 + a * (0.278393 + a * (0.230389 + a * (0.000972 + a * 0.078108)))
    return np.asarray(np.sign(x) * (1 - 1 / (q * q) ** 2))


def shadow(u: NDArray, v: NDArray, hw: float, hh: float, radius: float, sigma: float) -> NDArray:
    """Return the coverage of a rounded box blurred by a Gaussian.

    The integral is exact along x. Along y it is a sum over the part of the box within three
    standard deviations of the pixel, at the midpoints of SHADOW_STEPS equal steps; rounded corners
    narrow the box at each step.
    """
    radius = min(radius, hw, hh)
    u, v = np.broadcast_arrays(u, v)
    start = np.clip(-3 * sigma, v - hh, v + hh)
    end = np.clip(3 * sigma, v - hh, v + hh)
    step = (end - start) / SHADOW_STEPS
    total = np.zeros(u.shape)
    scale = np.sqrt(0.5) / sigma
    for k in range(SHADOW_STEPS):
        y = start + (k + 0.5) * step
        beyond = np.minimum(hh - radius - np.abs(v - y), 0)
        half = hw - radius + np.sqrt(np.maximum(radius * radius - beyond * beyond, 0))
        across = 0.5 * (erf((u + half) * scale) - erf((u - half) * scale))
        weight = np.exp(-(y * y) / (2 * sigma * sigma)) / (np.sqrt(2 * np.pi) * sigma)
        total += across * weight * step
    return np.clip(total, 0.0, 1.0)


# blending ----------------------------------------------------------------------------------------


def quotient(x: NDArray) -> NDArray:
    """Return x / 65535, rounded."""
    made: NDArray = (x + WHITE // 2) // WHITE
    return made


def _overlay(b: NDArray, s: NDArray) -> NDArray:
    light = WHITE - quotient(2 * (WHITE - b) * (WHITE - s))
    return np.where(2 * b <= WHITE, quotient(2 * b * s), light)


def _dodge(b: NDArray, s: NDArray) -> NDArray:
    rest = np.maximum(WHITE - s, 1)
    made = np.where(b >= WHITE - s, WHITE, (b * WHITE + rest // 2) // rest)
    return np.where(b == 0, 0, made)


def _burn(b: NDArray, s: NDArray) -> NDArray:
    return WHITE - _dodge(WHITE - b, WHITE - s)


def _soft(b: NDArray, s: NDArray, d: NDArray) -> NDArray:
    twice = 2 * s - WHITE
    less = b - quotient(-twice * quotient(b * (WHITE - b)))
    return np.where(twice <= 0, less, b + quotient(twice * (d - b)))


#: The function of each mode, of numbers of 16 bits; None for "add" and "soft-light".
MIXES: Final[tuple[Callable[[NDArray, NDArray], NDArray] | None, ...]] = (
    lambda b, s: s,
    None,
    lambda b, s: quotient(b * s),
    lambda b, s: b + s - quotient(b * s),
    _overlay,
    np.minimum,
    np.maximum,
    _dodge,
    _burn,
    lambda b, s: _overlay(s, b),
    None,
    lambda b, s: np.abs(b - s),
    lambda b, s: b + s - 2 * quotient(b * s),
)


def blend(mode: int, back: NDArray, source: NDArray, share: NDArray, linear: bool) -> NDArray:
    """Blend straight bytes over straight bytes; ``share`` is coverage times opacity."""
    back = back.astype(np.int64)
    below, alpha = back[..., 3:], source[..., 3:]
    full = share[..., None] == FULL
    one = np.where(full, 255, FULL)
    above = np.where(full, alpha, (alpha * share[..., None] + 127) // 255)
    total = above * 255 + below * (one - above)
    safe = np.maximum(total, 1)
    result = (total + one // 2) // one
    b, s = back[..., :3], source[..., :3]
    if mode == 0 and not linear:
        colors = (above * 255 * s + (one - above) * below * b + safe // 2) // safe
    else:
        soft = SOFT[linear][b].astype(np.int64)
        b, s = (VALUES[linear][x].astype(np.int64) for x in (b, s))
        mix = MIXES[mode]
        if BLENDS[mode] == "add":
            found, result = _added(b, s, below, above, one)
        else:
            made = _soft(b, s, soft) if mix is None else mix(b, s)
            m = quotient(((255 - below) * s + below * made) * 257)
            w = (above * 255 * FULL + safe // 2) // safe
            found = (m * w + b * (FULL - w) + FULL // 2) // FULL
        colors = _byte_of_light(found) if linear else quotient(found * 255)
    made = np.concatenate([colors, result], axis=2)
    return np.where(above == 0, back, made).astype(np.uint8)


def _added(
    b: NDArray, s: NDArray, below: NDArray, above: NDArray, one: NDArray
) -> tuple[NDArray, NDArray]:
    """Return colors of 16 bits and alphas of "add": both premultiplied are added."""
    over, under = (above * FULL + one // 2) // one, (below * FULL + 127) // 255
    total = over + under
    safe = np.maximum(total, 1)
    w = (over * FULL + safe // 2) // safe
    mean = (s * w + b * (FULL - w) + FULL // 2) // FULL
    summed = np.minimum(s * over // FULL + (b * under + FULL // 2) // FULL, WHITE)
    alpha = (np.minimum(total, FULL) * 255 + FULL // 2) // FULL
    return np.where(total > FULL, summed, mean), alpha


def _byte_of_light(x: NDArray) -> NDArray:
    return np.searchsorted(LEAST, x, side="right")
