"""Two pictures into one. Alpha is straight: colours are not multiplied by it.

The pictures have the same height and width; each may be gray, RGB or RGBA. One without alpha is
opaque. Where the result is wholly transparent, the first picture's colour stays.
"""

from __future__ import annotations

from dala.gpu.compute.lang.markers import Pixel, Within

__all__ = ["overlay_alpha", "video_mix"]


def overlay_alpha(base: Pixel, over: Pixel, *, opacity: Within[float, 0.0, 1.0] = 1.0):
    """over on top of base (source-over); opacity, within 0..1, multiplies over's alpha

    With s = over.a * opacity, alpha is ``a = s + base.a * (1 - s)`` and the colour
    ``(over * s + base * base.a * (1 - s)) / a``.
    """
    s = over.a * opacity
    a = s + base.a * (1.0 - s)
    # As a mix, so that s = 0 is exactly base and s = 1 exactly over.
    share = s / a if a > 0.0 else 0.0
    return rgba(mix(base.rgb, over.rgb, share), a)


def video_mix(first: Pixel, second: Pixel, *, t: Within[float, 0.0, 1.0] = 0.5):
    """Cross-fade: 0 is the first picture, 1 the second; t within 0..1

    Alpha is ``a = mix(first.a, second.a, t)``, colours count by their alpha:
    ``(first * first.a * (1 - t) + second * second.a * t) / a``; opaque pictures just mix.
    """
    a = mix(first.a, second.a, t)
    share = second.a * t / a if a > 0.0 else 0.0
    return rgba(mix(first.rgb, second.rgb, share), a)
