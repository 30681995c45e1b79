"""Keying: alpha from colour."""

from __future__ import annotations

from dala.gpu.compute.lang.markers import Pixel, Within, vec3

__all__ = ["chroma_key"]


def chroma_key(
    px: Pixel,
    *,
    key: Within[vec3, -inf, inf] = (0.0, 1.0, 0.0),  # type: ignore[assignment]
    threshold: Within[float, 0.0, inf] = 0.3,
    softness: Within[float, 0.0001, inf] = 0.1,
    despill: Within[float, 0.0, 1.0] = 1.0,
):
    """Makes pixels of the key's colour transparent, softly, and takes its spill off the others

    The distance d between pixel and key is that of their BT.601 (Cb, Cr), so light and shadow on
    the screen do not matter; alpha is multiplied by smoothstep(threshold, threshold + softness, d).
    Spill is how far a pixel's chroma reaches along the key's, less 0.6 times how far it reaches
    across (so yellow and cyan keep their green), where above 0; despill is the share of it taken
    away, luma kept. threshold of 0 or more (pure green is 0.53 away from gray), softness at least
    0.0001, despill within 0..1.

    An output without alpha shows the despilled colours alone; a gray one holds red.
    """
    luma = dot(px.rgb, (0.299, 0.587, 0.114))
    cb = (px.b - luma) / 1.772
    cr = (px.r - luma) / 1.402
    key_luma = dot(key, (0.299, 0.587, 0.114))
    key_cb = (key.b - key_luma) / 1.772
    key_cr = (key.r - key_luma) / 1.402

    kept = smoothstep(threshold, threshold + softness, length(cb - key_cb, cr - key_cr))

    reach = max(length(key_cb, key_cr), 0.000001)  # a gray key has no direction, and no spill
    u, v = key_cb / reach, key_cr / reach
    spill = max(cb * u + cr * v - 0.6 * abs(cb * v - cr * u), 0.0) * despill
    red = 1.402 * spill * v
    blue = 1.772 * spill * u
    green = -(0.299 * red + 0.114 * blue) / 0.587
    return rgba(px.r - red, px.g - green, px.b - blue, px.a * kept)
