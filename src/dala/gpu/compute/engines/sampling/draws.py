"""Positions and samples of the compositor's draws, in integers.

A position is ``(a x + b y + c) >> 16``: in a box with 8 bits of fraction, in a picture with 14, in
32 bits, which wrap. The coefficients have 16 bits more; those of the pixel's column and row are
multiplied, so every engine has the same positions wherever it begins.

A sample takes two texels along each axis. Their weights are integers that, with those of the other
samples along the axis, add up to 2**14. Bytes are summed down, colors times alpha, and rounded to 7
bits of fraction: ``(sum(w a c) + 16320) // 32640``, and alpha ``(sum(w a) + 64) >> 7``. These are
summed across, and their lowest 13 bits dropped. With p of a color and q of alpha, the color is
``(255 p + q // 2) // q`` and alpha ``(q + 128) >> 8``. Of opaque texels that is
``(sum(w c) + 64) >> 7`` down and ``(sum + 2**20) >> 21`` across. A single nearest sample is its
texel.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dala.typing import NDArray

#: Bits of fraction of a position in a box and of one in a picture, and the bits that are dropped.
BOX_BITS: Final = 8
TEXEL_BITS: Final = 14
DROPPED: Final = 16
#: The unit of texels and weights.
TEXEL: Final = 1 << TEXEL_BITS
#: The most samples of a pixel along an axis, as a power of two, and texels per pixel.
MOST_TAPS: Final = 6
MOST_SCALE: Final = 1024.0
#: Coefficients are clamped to these, and crops to the first.
_STEEP: Final = 65536.0
_FAR: Final = float(1 << 31)
_LIMITS: Final = np.array([_STEEP, _STEEP, _FAR])[:, None]
_UNITS: Final = np.exp2([BOX_BITS + DROPPED] * 2 + [TEXEL_BITS + DROPPED] * 2)[:, None, None]
#: What is added before the lowest bits are dropped.
_ROUND: Final = np.array([0, 0, 1 << (DROPPED - 1)])[:, None]
#: The coefficients of x and y in a picture with a texel per pixel.
_PLAIN: Final = np.array([[1, 0], [0, 1]])[:, :, None] << (TEXEL_BITS + DROPPED)

Whole = npt.NDArray[np.int64]


class Places(NamedTuple):
    """The integers that positions of draws are computed with; arrays end with an axis of draws."""

    #: (4, 3): factors of x and y and a constant, for u and v in the box, s and t in the picture.
    steps: Whole
    #: (2,): texels per pixel, with 14 bits of fraction.
    scale: Whole
    #: (2,): the number of samples along an axis, as a power of two.
    bits: Whole
    #: (2,): the first and the last position of a crop, or texel if nearest.
    first: Whole
    last: Whole
    #: Whether samples are texels; also where texels are on pixels.
    nearest: npt.NDArray[np.bool_]


def places_of(draws: NDArray, nearest: int) -> Places:
    """Return the integers of draws; ``nearest`` is that flag of a draw."""
    rows = np.ascontiguousarray(draws).view("<f4").reshape(len(draws), -1).T
    cos, sin, hw, hh = rows[10:14].astype(np.float64)
    dx, dy = 0.5 - rows[8:10].astype(np.float64)
    sx, sy, ox, oy = rows[16:20].astype(np.float64)
    u, v = dx * cos + dy * sin, dy * cos - dx * sin
    made = np.array([
        [cos, sin, u],
        [-sin, cos, v],
        [sx * cos, sx * sin, (u + hw) * sx + ox],
        [-(sy * sin), sy * cos, (v + hh) * sy + oy],
    ])  # fmt: skip
    steps = _rounded(made, _LIMITS, _UNITS) + _ROUND
    taps = np.ascontiguousarray(draws).view("<i4").reshape(len(draws), -1).T[24:26]
    bits = np.frexp(np.minimum(np.maximum(taps, 1), 1 << MOST_TAPS) - 1)[1]
    centers = ((steps[2:, 2] >> DROPPED) - TEXEL // 2) & (TEXEL - 1)
    unscaled = (steps[2:, :2] == _PLAIN).all(axis=(0, 1)) & ~(centers | bits).any(axis=0)
    flagged = unscaled | ((draws["flags"] & nearest) != 0)
    crop = np.minimum(np.maximum(rows[20:24].astype(np.float64), -_STEEP), _STEEP)
    ends = np.floor(crop * TEXEL + 0.5)
    first = np.where(flagged, np.floor(crop[:2]), ends[:2] + TEXEL // 2)
    last = np.where(flagged, np.ceil(crop[2:]) - 1, ends[2:] - TEXEL // 2)
    scale = _rounded(np.array([sx, sy]), MOST_SCALE, TEXEL)
    last = np.maximum(first, last)
    return Places(steps, scale, bits, first.astype(np.int64), last.astype(np.int64), flagged)


def _rounded(values: NDArray, limit: NDArray | float, unit: NDArray | float) -> Whole:
    inside = np.minimum(np.maximum(values, -limit), limit)
    return np.floor(inside * unit + 0.5).astype(np.int64)


def at(steps: Whole, x: Whole, y: Whole) -> Whole:
    """Return positions of pixels; they wrap as in 32 bits."""
    found: Whole = (steps[0] * x + steps[1] * y + steps[2]) >> DROPPED
    return found.astype(np.int32).astype(np.int64)


def taps(
    place: Whole, scale: int, bits: int, low: int, high: int, size: int, nearest: bool
) -> list[tuple[Whole, Whole]]:
    """Return the texels and the weights of the samples at positions, along one axis."""
    found: list[tuple[Whole, Whole]] = []
    step = abs(scale)
    for k in range(1 << bits):
        off = (((2 * k + 1) * step) >> (bits + 1)) - (step >> 1)
        s = place + (off if scale >= 0 else -off)
        if nearest:
            texel, part = np.clip(s >> TEXEL_BITS, low, high), np.zeros_like(s)
        else:
            s = np.clip(s, low, high) - TEXEL // 2 + (1 << bits >> 1)
            texel, part = s >> TEXEL_BITS, (s & (TEXEL - 1)) >> bits
        found.append((np.clip(texel, 0, size - 1), (TEXEL >> bits) - part))
        found.append((np.clip(texel + 1, 0, size - 1), part))
    return found


def sample(
    pixels: NDArray, across: list[tuple[Whole, Whole]], down: list[tuple[Whole, Whole]]
) -> Whole:
    """Return straight bytes, (height, width, 4), of RGBA at texels with weights."""
    total: Whole = np.zeros(4, np.int64)
    for x, weight_x in across:
        colors, alphas = np.zeros(3, np.int64), np.zeros(1, np.int64)
        for y, weight_y in down:
            x, y = np.broadcast_arrays(x, y)
            texel = pixels[y, x].astype(np.int64)
            own = weight_y[..., None] * texel[..., 3:]
            colors, alphas = colors + own * texel[..., :3], alphas + own
        line = np.concatenate([(colors + 16320) // 32640, (alphas + 64) >> 7], axis=-1)
        total = total + weight_x[..., None] * line
    p = total >> 13
    q = p[..., 3:]
    straight = (255 * p[..., :3] + (q >> 1)) // np.maximum(q, 1)
    made: Whole = np.concatenate([straight, (q + 128) >> 8], axis=-1)
    return made
