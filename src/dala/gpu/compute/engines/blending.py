"""The numbers of blending bytes in integers, for every engine.

Colors are blended as numbers of 16 bits: 257 times a byte, or ``LIGHT`` of a byte in linear light.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.typing import NDArray

#: Full coverage: coverage times opacity has 16 fractional bits.
FULL: Final = 1 << 16
#: White.
WHITE: Final = 65535

_SHARES: Final = np.arange(256) / 255.0


def _soft(b: NDArray) -> NDArray:
    """Return W3C's D(b) for soft light."""
    return np.where(b <= 0.25, ((16 * b - 12) * b + 4) * b, np.sqrt(b))


def decoded(x: NDArray) -> NDArray:
    """Convert sRGB values to linear light."""
    return np.where(x <= 0.04045, x / 12.92, ((np.maximum(x, 0) + 0.055) / 1.055) ** 2.4)


def _sixteen(x: NDArray) -> NDArray:
    return np.floor(x * WHITE + 0.5).astype("<u4")


#: Bytes as numbers of 16 bits, and soft light's D of them: in sRGB and in linear light.
VALUES: Final = (_sixteen(_SHARES), _sixteen(decoded(_SHARES)))
SOFT: Final = (_sixteen(_soft(_SHARES)), _sixteen(_soft(decoded(_SHARES))))
#: The least linear light of each byte but 0.
LEAST: Final = np.ceil(decoded((np.arange(1, 256) - 0.5) / 255.0) * WHITE).astype("<u4")
#: The tables as numbers of 16 bits, 256 each: LIGHT, SOFT in sRGB and in light, LEAST.
TABLES: Final = np.concatenate([VALUES[1], *SOFT, LEAST, [WHITE]]).astype("<u2")


def share_of(opacity: NDArray) -> NDArray:
    """Return opacities of 0..1 with 16 fractional bits."""
    made: NDArray = np.floor(opacity.astype(np.float64) * FULL + 0.5).astype(np.int64)
    return made
