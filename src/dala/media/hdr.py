"""The coding of high dynamic range in a video: transfer, mastering display and light levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dala.arguments import Selection

#: The peak of PQ videos that do not give one, and the nominal peak of HLG, in cd/m2.
DEFAULT_PEAK: Final = 1000.0
#: The most that PQ can code, in cd/m2.
MOST: Final = 10000.0
TRANSFERS: Final = ("hlg", "pq")


@dataclass(frozen=True)
class MasteringDisplay:
    """The display that a video was graded on (SMPTE ST 2086).

    Colors are chromaticities (x, y), luminances cd/m2.

    >>> MasteringDisplay.of("p3", 1000.0).red
    (0.68, 0.32)
    """

    red: tuple[float, float]
    green: tuple[float, float]
    blue: tuple[float, float]
    white: tuple[float, float]
    min_luminance: float
    max_luminance: float

    @classmethod
    def of(
        cls, primaries: str, max_luminance: float, min_luminance: float = 0.005
    ) -> MasteringDisplay:
        """Return a display with the primaries "bt2020", "p3" or "bt709" and white D65."""
        known = {
            "bt2020": ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046)),
            "p3": ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
            "bt709": ((0.640, 0.330), (0.300, 0.600), (0.150, 0.060)),
        }
        found = known[Selection(*known).check("MasteringDisplay.of", "primaries", primaries)]
        return cls(*found, (0.3127, 0.3290), min_luminance, max_luminance)


@dataclass(frozen=True)
class Hdr:
    """The coding of high dynamic range in a video.

    Args:
        transfer: "hlg" or "pq".
        mastering: the display it was graded on, if known.
        max_cll: the brightest pixel of the video in cd/m2; 0 if unknown.
        max_fall: the highest mean of a frame in cd/m2; 0 if unknown.

    >>> Hdr("pq", max_cll=600).peak
    600.0
    """

    transfer: str
    mastering: MasteringDisplay | None = None
    max_cll: int = 0
    max_fall: int = 0

    def __post_init__(self) -> None:
        Selection(*TRANSFERS).check("Hdr", "transfer", self.transfer)

    @property
    def peak(self) -> float:
        """The brightest value in cd/m2 that tone mapping must expect.

        That of HLG is 1,000. PQ videos have the brightest pixel, or else the peak of the mastering
        display, in their metadata; without either 1,000 is assumed.
        """
        if self.transfer == "hlg":
            return DEFAULT_PEAK
        found = float(self.max_cll)
        if found <= 0 and self.mastering is not None:
            found = self.mastering.max_luminance
        return min(found, MOST) if found > 0 else DEFAULT_PEAK
