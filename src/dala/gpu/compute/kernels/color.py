"""Colour at each pixel by itself. Alpha is kept."""

from __future__ import annotations

from dala.gpu.compute.lang.markers import Pixel

__all__ = ["brightness", "contrast", "grayscale", "invert", "vignette"]


def grayscale(px: Pixel):
    """BT.601 luma (0.299 r + 0.587 g + 0.114 b) in all three channels"""
    luma = dot(px.rgb, (0.299, 0.587, 0.114))
    return rgba(luma, luma, luma, px.a)


def brightness(px: Pixel, *, value=0.0):
    """Adds value, where 1.0 is the whole range"""
    return rgba(px.rgb + value, px.a)


def contrast(px: Pixel, *, value=0.0):
    """Scales by 1 + value around the middle gray 0.5"""
    return rgba((px.rgb - 0.5) * (1.0 + value) + 0.5, px.a)


def invert(px: Pixel):
    """1 - colour"""
    return rgba(1.0 - px.rgb, px.a)


def vignette(px: Pixel, *, amount=0.5, radius=0.75, softness=0.45):
    """Darkens towards the corners: from radius - softness outwards, by amount at most"""
    y, x = position()
    across = (x + 0.5) / px.width - 0.5
    down = (y + 0.5) / px.height - 0.5
    far = length(across, down) * 1.4142135
    return rgba(
        px.rgb * (1.0 - amount * smoothstep(radius - softness, radius + softness, far)), px.a
    )
