"""The contract of compositing: draws onto a picture, back to front, each rounded to bytes.

A draw is a rounded box, anywhere and at any angle, filled from a picture or with a colour. What it
means, for the pixel whose centre is p = (x + 0.5, y + 0.5), inside the draw's bounds only:

- ``u``: p - (cx, cy) turned back: (dx cos + dy sin, dy cos - dx sin). The box is |u| <= (hw, hh).
- coverage: clamp(0.5 - distance, 0, 1), ``distance`` being that of u from the box with corners of
  ``radius``, below 0 inside.
- kind PICTURE: its texel ``((ux + hw) sx + ox, (uy + hh) sy + oy)``, bilinear between centres,
  weighted by alpha, clamped to the crop; with ``taps_x`` by ``taps_y`` such samples spread evenly
  over the pixel, averaged. TINT: as PICTURE, its alpha only, in the draw's colour. FILL: the
  colour. RING: the colour, coverage less that of the box ``width`` smaller all round. SHADOW: the
  colour, coverage being that of the box blurred by a Gaussian of deviation ``width``.
- source alpha: alpha of the sample or colour * opacity * coverage; then W3C compositing with the
  blend mode, in straight alpha, in sRGB or (flag LINEAR) with sRGB decoded; to the nearest byte,
  halves up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from dala.gpu.compute.engines.base import Storage

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
        ("own", "<i4", (4,)),  # for the engine
    ]
)  # fmt: skip

PICTURE, FILL, RING, SHADOW, TINT = range(5)
#: Flags of a draw.
NEAREST: Final = 1  # the texel the sample falls in, instead of four
OPAQUE: Final = 2  # the picture's alpha is known to be 255 everywhere
LINEAR: Final = 4  # blended in linear light

#: Blend modes in the order of their numbers.
BLENDS: Final = (
    "over", "add", "multiply", "screen", "overlay", "darken", "lighten", "color-dodge",
    "color-burn", "hard-light", "soft-light", "difference", "exclusion",
)  # fmt: skip

#: Steps of the integral that makes a shadow.
SHADOW_STEPS: Final = 12

#: Left, top, right, bottom; the last two excluded.
Rect: TypeAlias = tuple[int, int, int, int]


class Composer(ABC):
    """Holds pictures on one engine and draws them. Not thread-safe: one user at a time."""

    @abstractmethod
    def picture(self, width: int, height: int) -> int:
        """A place for a picture, its number. What it shows is not told until ``put``."""

    @abstractmethod
    def put(self, picture: int, source: Storage | Any, channels: int) -> None:
        """Gives a picture its pixels: u8, (height, width, channels), 1 (gray), 3 or 4 channels.

        ``source`` is storage of this engine, or a C-contiguous array on the host. It may be kept
        and read at each ``compose`` until the next ``put`` or ``drop``; whoever gave it leaves it
        alone till then.
        """

    @abstractmethod
    def drop(self, picture: int) -> None:
        """Forgets a picture. Safe from finalizers."""

    @abstractmethod
    def compose(
        self,
        target: Storage,
        width: int,
        height: int,
        draws: np.ndarray[Any, Any],
        rects: Sequence[Rect],
        background: tuple[int, int, int, int] | None,
    ) -> None:
        """Draws onto a target of (height, width, 4) u8, inside the rectangles only.

        The rectangles lie in the target and do not overlap. They are filled with ``background``
        first; None leaves what is there. Ordered with other work on the engine.
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held besides what was given to ``put`` and kept."""

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Gives everything back."""
