"""Pictures over a decoder's own memory, for whoever is done with one before the next."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dala.gpu.compute import Buffer


@dataclass(frozen=True, slots=True)
class Lent:
    """A 4:2:0 picture in the decoder's planes, which are not to be written, with a frame's facts.

    The decoder has the memory back when the last reference to this is gone.
    """

    #: Y, Cb and Cr, or Y and both side by side.
    parts: tuple[Buffer, ...]
    #: "i420" or "nv12".
    format: str
    pts: int
    time_base: Fraction
    range: str
    matrix: str
    primaries: str
    transfer: str
    siting: str

    @property
    def pixels(self) -> Buffer:
        """Luma."""
        return self.parts[0]

    @property
    def width(self) -> int:
        """Columns."""
        return self.parts[0].shape[1]

    @property
    def height(self) -> int:
        """Rows."""
        return self.parts[0].shape[0]
