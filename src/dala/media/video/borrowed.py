"""Frames of a decoder: converted, or over its own memory for callers that take one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dala.gpu.compute import Buffer


@dataclass(frozen=True, slots=True)
class BorrowedFrame:
    """A read-only 4:2:0 frame in the decoder's own planes, with the metadata of a ``Frame``.

    The decoder reuses the memory once the last reference is gone.
    """

    #: Y, Cb and Cr ("i420"), or Y and interleaved CbCr ("nv12").
    planes: tuple[Buffer, ...]
    #: "i420" or "nv12".
    format: str
    pts: int
    time_base: Fraction
    range: str
    matrix: str
    primaries: str
    transfer: str
    siting: str
    tags: tuple[int, int] | None = None

    @property
    def pixels(self) -> Buffer:
        """The luma plane."""
        return self.planes[0]

    @property
    def width(self) -> int:
        """Width in pixels."""
        return self.planes[0].shape[1]

    @property
    def height(self) -> int:
        """Height in pixels."""
        return self.planes[0].shape[0]
