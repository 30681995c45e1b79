"""The definition of compositing: draws are blended back to front, each result rounded to bytes.

A draw is a rounded box at any position and angle, filled from a picture or with a color. It
changes the pixels inside its bounds. For the pixel with center p = (x + 0.5, y + 0.5):

- ``u`` is p - (cx, cy) rotated back: (dx cos + dy sin, dy cos - dx sin), rounded to multiples of
  1/256, as positions and sizes of boxes are (``on_grid``). The box is |u| <= (hw, hh).
- The coverage is clamp(0.5 - distance, 0, 1), where ``distance`` is the signed distance of u from
  the box with corners of ``radius``, negative inside, rounded down to a multiple of 1/256.
- PICTURE samples the texel ``((ux + hw) sx + ox, (uy + hh) sy + oy)``, bilinearly, weighted by
  alpha, clamped to the crop. With ``taps_x`` by ``taps_y`` taps, rounded up to powers of two, it
  averages samples spread evenly over the pixel. ``sampling/draws.py`` has the integers. TINT uses
  the alpha of that sample with the draw's color. FILL uses the color.
  RING uses the color, and subtracts the coverage of the box that is ``width`` smaller on each
  side. SHADOW uses the color, and the coverage of the box blurred by a Gaussian with the standard
  deviation ``width``: see ``sampling/shadows.py``.
- A sample is rounded to straight bytes. Coverage times opacity is a share of 65536, rounded. The
  source's alpha is that of the sample or color times the share, with 16 fractional bits; where the
  share is full, it is the byte.
- W3C compositing with the blend mode follows, with straight alpha, in sRGB or (flag LINEAR) in
  linear light. Source-over in sRGB is exactly rounded, halves up. Others are in integers of 16
  bits: see ``blending.py``. Where the source's alpha is 0, the pixel stays as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from dala.gpu.compute.engines.base import Storage
from dala.memory import Accounts
from dala.typing import NDArray

#: One draw: 32 words.
DRAW: Final = np.dtype(
    [
        ("kind", "<i4"), ("blend", "<i4"), ("flags", "<i4"), ("picture", "<i4"),
        ("x0", "<i4"), ("y0", "<i4"), ("x1", "<i4"), ("y1", "<i4"),  # bounds, end excluded
        ("cx", "<f4"), ("cy", "<f4"), ("cos", "<f4"), ("sin", "<f4"),
        ("hw", "<f4"), ("hh", "<f4"), ("radius", "<f4"), ("width", "<f4"),
        ("sx", "<f4"), ("sy", "<f4"), ("ox", "<f4"), ("oy", "<f4"),
        ("u0", "<f4"), ("v0", "<f4"), ("u1", "<f4"), ("v1", "<f4"),  # crop in texels
        ("taps_x", "<i4"), ("taps_y", "<i4"),
        ("color", "u1", (4,)), ("opacity", "<f4"),
        ("own", "<i4", (4,)),  # private to the engine
    ]
)  # fmt: skip

PICTURE, FILL, RING, SHADOW, TINT = range(5)
#: Flags of a draw.
NEAREST: Final = 1  # sample one texel instead of four
OPAQUE: Final = 2  # the picture's alpha is 255 everywhere
LINEAR: Final = 4  # blend in linear light

#: Blend modes by number.
BLENDS: Final = (
    "over", "add", "multiply", "screen", "overlay", "darken", "lighten", "color-dodge",
    "color-burn", "hard-light", "soft-light", "difference", "exclusion", "hue", "saturation",
    "color", "luminosity",
)  # fmt: skip

#: The words of a draw that are rounded to multiples of 1/GRID: center, half size, radius and width.
_ROUNDED: Final = (8, 9, 12, 13, 14, 15)
GRID: Final = 256


def on_grid(draws: NDArray) -> NDArray:
    """Return draws with positions and sizes of their boxes rounded, for every engine."""
    made = np.array(draws, DRAW, ndmin=1)
    words = made.view("<f4").reshape(-1, DRAW.itemsize // 4)
    with np.errstate(all="ignore"):
        words[:, _ROUNDED] = np.floor(words[:, _ROUNDED] * GRID + 0.5) / GRID
    return made


#: Left, top, right, bottom; right and bottom are excluded.
Rect: TypeAlias = tuple[int, int, int, int]


class ComposedFrame(NamedTuple):
    """Draws onto a target of (height, width, 4) u8, inside the rectangles only.

    The rectangles are inside the target and do not overlap. They are filled with ``background``
    first, unless it is None.
    """

    target: Storage
    width: int
    height: int
    draws: NDArray
    rects: Sequence[Rect]
    background: tuple[int, int, int, int] | None


class Composer(ABC):
    """Pictures on one engine, and draws of them onto a target. Not thread-safe."""

    @abstractmethod
    def picture(self, width: int, height: int) -> int:
        """Return the number of a new picture. Its pixels are undefined until ``put``."""

    @abstractmethod
    def put(self, picture: int, source: Storage | NDArray, channels: int) -> None:
        """Set a picture's pixels: u8, (height, width, channels) with 1 (gray), 3 or 4 channels.

        ``source`` is storage of this engine or a C-contiguous array on the host. The composer may
        keep it and read it in each ``compose`` until the next ``put`` or ``drop``; the caller must
        not change it until then.
        """

    @abstractmethod
    def drop(self, picture: int) -> None:
        """Delete a picture. Safe from finalizers."""

    @abstractmethod
    def compose(self, frame: ComposedFrame) -> None:
        """Draw a frame. Ordered with other work on the engine."""

    @property
    def nbytes(self) -> int:
        """Bytes that the composer allocated itself."""
        return 0

    def count_for(self, accounts: Accounts) -> None:  # noqa: B027 - some hold no memory
        """Count its own memory beside pictures against these budgets, too."""

    def close(self) -> None:  # noqa: B027 - some hold no memory
        """Release all memory."""
