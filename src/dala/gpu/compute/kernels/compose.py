"""Filters that combine two pictures. Alpha is straight: colors are not multiplied by it.

Both pictures have the same height and width; each may be gray, RGB or RGBA. A picture without alpha
is opaque. Where the result is fully transparent, it has the first picture's color.
"""

from __future__ import annotations

from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.language import Pixel, Within, floor, mix, rgba

__all__ = ["overlay_alpha", "video_mix"]


def _overlay_bytes(base: Pixel, over: Pixel, *, opacity: Within[float, 0.0, 1.0] = 1.0) -> Pixel:
    """Draw bytes over bytes, in floats that are integers below 2**24.

    Quotients are estimated, and corrected by their remainders.
    """
    share = floor(opacity * 65536.0 + 0.5)
    above = floor(over.a * 255.0 + 0.5)
    below = floor(base.a * 255.0 + 0.5)
    # The alpha of the source, and 1, with 16 fractional bits; bytes if the opacity is full.
    one = 255.0
    if share < 65536.0:
        one = 65536.0
        x = above * share + 127.0
        above = floor(x * (1.0 / 255.0))
        rest = x - above * 255.0
        above += 1.0 if rest >= 255.0 else (-1.0 if rest < 0.0 else 0.0)
    hidden = below * (one - above)
    alpha = floor((above * 255.0 + hidden + 32768.0) * (1.0 / 65536.0))
    front = above
    if one < 256.0:
        front = above * 255.0
        x = front + hidden + 127.0
        alpha = floor(x * (1.0 / 255.0))
        rest = x - alpha * 255.0
        alpha += 1.0 if rest >= 255.0 else (-1.0 if rest < 0.0 else 0.0)
    else:
        x = hidden + 127.0
        hidden = floor(x * (1.0 / 255.0))
        rest = x - hidden * 255.0
        hidden += 1.0 if rest >= 255.0 else (-1.0 if rest < 0.0 else 0.0)
    # The share of the source in the color, of 65536: a quotient of two digits of 8 bits.
    total = max(front + hidden, 1.0)
    inverse = 256.0 / total
    high = floor(front * inverse)
    rest = front * 256.0 - high * total
    high += 1.0 if rest >= total else (-1.0 if rest < 0.0 else 0.0)
    rest = front * 256.0 - high * total
    low = floor(rest * inverse)
    rest = rest * 256.0 - low * total
    low += 1.0 if rest * 2.0 >= total else 0.0
    low += 1.0 if rest * 2.0 >= total * 3.0 else (-1.0 if rest * 2.0 < -total else 0.0)
    weight = high * 256.0 + low
    r, g, b = floor(base.r * 255.0 + 0.5), floor(base.g * 255.0 + 0.5), floor(base.b * 255.0 + 0.5)
    r = floor(
        (r * 65536.0 + (floor(over.r * 255.0 + 0.5) - r) * weight + 32768.0) * (1.0 / 65536.0)
    )
    g = floor(
        (g * 65536.0 + (floor(over.g * 255.0 + 0.5) - g) * weight + 32768.0) * (1.0 / 65536.0)
    )
    b = floor(
        (b * 65536.0 + (floor(over.b * 255.0 + 0.5) - b) * weight + 32768.0) * (1.0 / 65536.0)
    )
    return rgba(r * (1.0 / 255.0), g * (1.0 / 255.0), b * (1.0 / 255.0), alpha * (1.0 / 255.0))


@picture_filter("Two pictures", keeps_alpha=False, example="opacity=0.8", for_bytes=_overlay_bytes)
def overlay_alpha(base: Pixel, over: Pixel, *, opacity: Within[float, 0.0, 1.0] = 1.0) -> Pixel:
    """Draw a second picture of the same size over the first.

    Source-over: with ``s = over.a * opacity``, alpha is ``a = s + base.a * (1 - s)`` and the color
    ``(over * s + base * base.a * (1 - s)) / a``. s = 0 gives exactly base, s = 1 exactly over. Of
    bytes, s and the share s / a have 16 fractional bits; s is a byte if ``opacity`` is 1.

    Args:
        over: the second picture.
        opacity: multiplies the alpha of ``over``; 0 changes nothing.
    """
    s = over.a * opacity
    a = s + base.a * (1.0 - s)
    # As a mix, so that s = 0 is exactly base and s = 1 exactly over.
    share = s / a if a > 0.0 else 0.0
    return rgba(mix(base.rgb, over.rgb, share), a)


@picture_filter("Two pictures", keeps_alpha=False, example="t=0.5")
def video_mix(first: Pixel, second: Pixel, *, t: Within[float, 0.0, 1.0] = 0.5) -> Pixel:
    """Cross-fade between two pictures.

    Alpha is ``a = mix(first.a, second.a, t)``, and colors are weighted by alpha:
    ``(first * first.a * (1 - t) + second * second.a * t) / a``.

    Args:
        second: the second picture.
        t: 0 is the first picture, 1 the second.
    """
    a = mix(first.a, second.a, t)
    share = second.a * t / a if a > 0.0 else 0.0
    return rgba(mix(first.rgb, second.rgb, share), a)
