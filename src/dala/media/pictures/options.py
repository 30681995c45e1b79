"""The options of filtering picture files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dala.arguments import Fitting, Integer, Selection
from dala.options import Options, option

if TYPE_CHECKING:
    from dala.typing import ColorLike

COLORS: Final = Selection("srgb", "raw", expected="'srgb' or 'raw'")


@dataclass(frozen=True, kw_only=True)
class PictureOptions(Options):
    """How picture files are read and written, by ``dala filter`` and jobs.

    Args:
        quality: of JPEG, WebP and AVIF.
        max_pixels: the most pixels of a picture.
        color: "srgb" converts pictures with an ICC profile, "raw" keeps their values.
        background: below transparent pixels in formats without alpha.
    """

    quality: int | None = option(Integer(1, 100), None, "of JPEG and WebP (92)", command=True)
    max_pixels: int = option(
        Integer(1), 1 << 27, "refuse larger pictures (134217728)", command=True
    )
    color: str = option(
        COLORS, "srgb", "convert pictures with an ICC profile, or keep values (srgb)", command=True
    )
    background: ColorLike = option(
        Fitting(), "white", "below transparent pixels without alpha (white)", command=True
    )
