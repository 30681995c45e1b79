"""The NumPy definition of compositing. Other engines are tested against it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import numpy as np

from dala.gpu.compute.engines import compositing
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.engines.blending import FULL, LEAST, SOFT, VALUES, WHITE, share_of
from dala.gpu.compute.engines.sampling import draws as sampling
from dala.gpu.compute.engines.sampling.draws import Places
from dala.gpu.compute.engines.sampling.shadows import blurred, root
from dala.typing import NDArray


class HostComposer(compositing.Composer):
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

    def compose(self, frame: compositing.ComposedFrame) -> None:
        target, width, height, draws, rects, background = frame
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

    def _drawn(self, under: NDArray, draw: np.void, left: int, top: int) -> NDArray:
        height, width = under.shape[:2]
        x = np.arange(left, left + width, dtype=np.int64)[None, :]
        y = np.arange(top, top + height, dtype=np.int64)[:, None]
        places = sampling.places_of(np.array([draw], compositing.DRAW), compositing.NEAREST)
        source = np.broadcast_to(draw["color"].astype(np.int64), (height, width, 4)).copy()
        if draw["kind"] in (compositing.PICTURE, compositing.TINT):
            sampled = self._sampled(int(draw["picture"]), places, x, y)
            if draw["kind"] == compositing.PICTURE:
                source = sampled
            else:
                source[..., 3] = (source[..., 3] * sampled[..., 3] + 127) // 255
        u, v = (sampling.at(own, x, y) for own in places.steps[:2, :, 0])
        share = shares(draw, u, v)
        linear = bool(draw["flags"] & compositing.LINEAR)
        return blend(int(draw["blend"]), under, source, share, linear)

    def _sampled(self, picture: int, places: Places, x: NDArray, y: NDArray) -> NDArray:
        """Sample a picture at pixels: straight bytes."""
        pixels, nearest = self._pictures[picture][2], bool(places.nearest[0])
        axes = []
        for axis, size in enumerate(pixels.shape[1::-1]):
            place = sampling.at(places.steps[2 + axis, :, 0], x, y)
            scale, bits, first, last = (int(n[axis, 0]) for n in places[1:5])
            axes.append(sampling.taps(place, scale, bits, first, last, size, nearest))
        if nearest and not places.bits.any():
            column, row = np.broadcast_arrays(axes[0][0][0], axes[1][0][0])
            return np.asarray(pixels[row, column].astype(np.int64))
        return sampling.sample(pixels, axes[0], axes[1])


# shapes ------------------------------------------------------------------------------------------


def shares(draw: np.void, u: NDArray, v: NDArray) -> NDArray:
    """Return the coverage of each pixel times opacity, of 65536, for positions in 256ths."""
    opacity = int(share_of(draw["opacity"]))
    hw, hh, radius, width = (
        int(draw[n] * compositing.GRID) for n in ("hw", "hh", "radius", "width")
    )
    if draw["kind"] == compositing.SHADOW and width > 0:
        return (blurred(u, v, hw, hh, radius, width) * opacity + (1 << 14)) >> 15
    found = covered(u, v, hw, hh, radius)
    if draw["kind"] == compositing.RING:
        inner = covered(u, v, hw - width, hh - width, max(radius - width, 0))
        found = np.maximum(found - inner, 0)
    return (found * opacity + compositing.GRID // 2) // compositing.GRID


def covered(u: NDArray, v: NDArray, hw: int, hh: int, radius: int) -> NDArray:
    """Return the coverage of a rounded box around the origin, of 256."""
    if hw <= 0 or hh <= 0:
        return np.zeros(np.broadcast_shapes(u.shape, v.shape), np.int64)
    radius = min(radius, hw, hh)
    x, y = np.abs(u) - (hw - radius), np.abs(v) - (hh - radius)
    outside = root(np.maximum(x, 0) ** 2 + np.maximum(y, 0) ** 2)
    distance = outside + np.minimum(np.maximum(x, y), 0) - radius
    return np.asarray(np.clip(compositing.GRID // 2 - distance, 0, compositing.GRID))


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


def _soft(b: NDArray, s: NDArray, d: NDArray) -> NDArray:
    twice = 2 * s - WHITE
    less = b - quotient(-twice * quotient(b * (WHITE - b)))
    return np.where(twice <= 0, less, b + quotient(twice * (d - b)))


def _luminance(c: NDArray) -> NDArray:
    found: NDArray = (c @ np.array([[19661], [38666], [7209]]) + 32768) >> 16
    return found


def _spread(c: NDArray) -> NDArray:
    found: NDArray = c.max(axis=-1, keepdims=True) - c.min(axis=-1, keepdims=True)
    return found


def _saturated(c: NDArray, wanted: NDArray) -> NDArray:
    spread = np.maximum(_spread(c), 1)
    shares = ((c - c.min(axis=-1, keepdims=True)) * FULL + spread // 2) // spread
    found: NDArray = (shares * wanted + FULL // 2) // FULL
    return found


def _lit(c: NDArray, light: NDArray) -> NDArray:
    """Give colors a luminance; numbers out of range move toward it."""
    c = c + light - _luminance(c)
    least, most = c.min(axis=-1, keepdims=True), c.max(axis=-1, keepdims=True)
    below, above = least < 0, most > WHITE
    part = np.where(below, light, np.where(above, WHITE - light, 1))
    whole = np.where(below, light - least, np.where(above, most - light, 1))
    part = np.where(below | above, (part * FULL + whole // 2) // whole, FULL)
    near = (np.abs(c - light) * part + FULL // 2) // FULL
    found: NDArray = np.clip(light + np.sign(c - light) * near, 0, WHITE)
    return found


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
    lambda b, s: WHITE - _dodge(WHITE - b, WHITE - s),
    lambda b, s: _overlay(s, b),
    None,
    lambda b, s: np.abs(b - s),
    lambda b, s: b + s - 2 * quotient(b * s),
    lambda b, s: _lit(_saturated(s, _spread(b)), _luminance(b)),
    lambda b, s: _lit(_saturated(b, _spread(s)), _luminance(b)),
    lambda b, s: _lit(s, _luminance(b)),
    lambda b, s: _lit(b, _luminance(s)),
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
        if compositing.BLENDS[mode] == "add":
            found, result = _added(b, s, below, above, one)
        else:
            made = _soft(b, s, soft) if mix is None else mix(b, s)
            m = quotient(((255 - below) * s + below * made) * 257)
            w = (above * 255 * FULL + safe // 2) // safe
            found = (m * w + b * (FULL - w) + FULL // 2) // FULL
        colors = np.searchsorted(LEAST, found, side="right") if linear else quotient(found * 255)
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
