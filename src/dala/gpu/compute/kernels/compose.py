"""Filters that combine two pictures. Alpha is straight: colors are not multiplied by it.

Both pictures have the same height and width; each may be gray, RGB or RGBA. A picture without alpha
is opaque. Where the result is fully transparent, it has the first picture's color.
"""

from __future__ import annotations

from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.language import Pixel, Within, mix, rgba


@picture_filter("Two pictures", keeps_alpha=False, example="opacity=0.8")
def overlay_alpha(base: Pixel, over: Pixel, *, opacity: Within[float, 0.0, 1.0] = 1.0) -> Pixel:
    """Draw a second picture of the same size over the first.

    Source-over: with ``s = over.a * opacity``, alpha is ``a = s + base.a * (1 - s)`` and the color
    ``(over * s + base * base.a * (1 - s)) / a``. s = 0 gives exactly base, s = 1 exactly over.

    Sums of u8 colors with fixed weights are integers (as in ``contrast``), the rest is f32 on
    values of 0 to 255, in the order of the formula, none fused, and rounded once, halves up.

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

    Sums of u8 colors with fixed weights are integers (as in ``contrast``), the rest is f32 on
    values of 0 to 255, in the order of the formula, none fused, and rounded once, halves up.

    Args:
        second: the second picture.
        t: 0 is the first picture, 1 the second.
    """
    a = mix(first.a, second.a, t)
    share = second.a * t / a if a > 0.0 else 0.0
    return rgba(mix(first.rgb, second.rgb, share), a)
