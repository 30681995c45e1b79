"""Filters that look at neighbouring pixels. Borders are clamped, alpha is kept."""

from __future__ import annotations

from dala.gpu.compute.lang.markers import Image

__all__ = ["sharpen"]


def sharpen(img: Image, *, amount=0.5):
    """centre * (1 + 4 * amount) - amount * (sum of the four neighbours)"""
    centre = img[0, 0]
    around = img[-1, 0].rgb + img[1, 0].rgb + img[0, -1].rgb + img[0, 1].rgb
    return rgba(centre.rgb * (1.0 + 4.0 * amount) - around * amount, centre.a)
