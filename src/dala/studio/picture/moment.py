"""A rendered moment: the picture before and after the chain, scaled for views when asked for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Final, TypeAlias

import numpy as np

from dala import forks
from dala.gpu.compute import kernel
from dala.gpu.compute.kernel import Kernel
from dala.media import gpu
from dala.media.pictures.pixels import as_bytes, rgba
from dala.studio.cards.chain import pixels_of
from dala.studio.catalogue.parameters import Json
from dala.typing import ImageLike, NDArray

#: Left, top, width and height in pixels.
Region: TypeAlias = tuple[int, int, int, int]

#: What transparent pixels are shown on.
_BOARD: Final = '''
def studio_board(px: Pixel):
    """Draw a picture over a checkerboard."""
    odd = fract((floor(position(0) / 8.0) + floor(position(1) / 8.0)) * 0.5) * 2.0
    below = 0.42 + 0.16 * odd
    return rgba(px.rgb * px.a + below * (1.0 - px.a), 1.0)
'''


@cache
def _board() -> Kernel:
    return kernel(_BOARD)


@dataclass
class RenderedMoment:
    """The pictures of a time. Arrays are made when they are first asked for.

    >>> small, large = np.zeros((2, 2), np.uint8), np.zeros((4, 2, 3), np.uint8)
    >>> moment = RenderedMoment(1, "t1", Fraction(0), small, large)
    >>> moment.size, moment.pixels("before").shape
    ((2, 4), (2, 2, 4))
    """

    number: int
    tab: str
    time: Fraction
    before: ImageLike
    after: ImageLike
    device: str | None = None
    #: When it had to be shown, by ``monotonic``, and its number in a trace.
    due: float = 0.0
    frame: int | None = None
    _made: dict[str, NDArray] = field(default_factory=dict)
    _scaled: dict[tuple[str, Region, int, int, bool], NDArray] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=forks.lock)

    def pixels(self, which: str) -> NDArray:
        """Return the picture "before" or "after" as RGBA bytes."""
        with self._lock:
            key = "after" if self.before is self.after else which
            if key not in self._made:
                self._made[key] = rgba8(pixels_of(getattr(self, key)))
            return self._made[key]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the result."""
        height, width = self.pixels("after").shape[:2]
        return width, height

    def shown(
        self, which: str, region: Region, width: int, height: int, *, opaque: bool
    ) -> NDArray:
        """Return a region of a picture at a size; for "before" the same part of it.

        With ``opaque``, transparent pixels show a checkerboard.
        """
        key = which, region, width, height, opaque
        if key not in self._scaled:
            self._scaled[key] = self._show(*key)
        return self._scaled[key]

    def _show(self, which: str, region: Region, width: int, height: int, opaque: bool) -> NDArray:
        pixels = self.pixels(which)
        if which == "before":
            region = _same_part(region, self.size, (pixels.shape[1], pixels.shape[0]))
        left, top, wide, high = region
        part = pixels[top : top + high, left : left + wide]
        if part.shape[:2] != (height, width):
            part = np.asarray(
                gpu.resize(np.ascontiguousarray(part), width, height, device=self.device)
            )
        part = np.ascontiguousarray(part)
        if opaque and part[..., 3].min() < 255:
            part = np.asarray(gpu.apply(part, _board(), device=self.device))
        return part

    def at(self, x: int, y: int) -> tuple[Json, Json]:
        """Return the pixels before and after the chain at a position of the result."""
        after, before = self.pixels("after"), self.pixels("before")
        height, width = after.shape[:2]
        if not (0 <= x < width and 0 <= y < height):
            return None, None
        rows, columns = before.shape[:2]
        return before[y * rows // height, x * columns // width].tolist(), after[y, x].tolist()


def _same_part(region: Region, size: tuple[int, int], other: tuple[int, int]) -> Region:
    """Return the part of a picture of another size that corresponds to a region."""
    if size == other:
        return region
    fx, fy = other[0] / size[0], other[1] / size[1]
    left, top = int(region[0] * fx), int(region[1] * fy)
    wide = max(min(round(region[2] * fx), other[0] - left), 1)
    high = max(min(round(region[3] * fy), other[1] - top), 1)
    return min(left, other[0] - 1), min(top, other[1] - 1), wide, high


def rgba8(pixels: NDArray) -> NDArray:
    """Return pixels of any kind as RGBA bytes; RGBA bytes are returned as they are.

    >>> rgba8(np.full((1, 1), 0.5, np.float32)).tolist()
    [[[128, 128, 128, 255]]]
    """
    pixels = as_bytes(pixels)
    if pixels.shape[2:] == (2,):
        return rgba(pixels[..., 0], pixels[..., 1])
    return pixels if pixels.shape[2:] == (4,) else rgba(pixels, None)
