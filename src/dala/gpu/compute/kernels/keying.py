"""Keying: alpha computed from color."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.language import *
from dala.gpu.compute.language import abs, max

#: Cb and Cr of BT.601, (b - luma) / 1.772 and (r - luma) / 1.402, as sums of r, g and b.
_CB: Final = (-0.299 / 1.772, -0.587 / 1.772, 0.886 / 1.772)
_CR: Final = (0.701 / 1.402, -0.587 / 1.402, -0.114 / 1.402)


@picture_filter(
    "Color", keeps_alpha=False, channels=4, example="key=(0.16, 0.75, 0.24), threshold=0.1"
)
def chroma_key(
    px: Pixel,
    *,
    key: Within[vec3, -inf, inf] = (0.0, 1.0, 0.0),  # type: ignore[assignment]
    threshold: Within[float, 0.0, inf] = 0.3,
    softness: Within[float, 0.0001, inf] = 0.1,
    despill: Within[float, 0.0, 1.0] = 1.0,
) -> Pixel:
    """Make pixels of the key color transparent and remove its spill.

    The distance d between pixel and key is measured in BT.601 (Cb, Cr), so shading of the screen
    matters little. Alpha is multiplied by ``smoothstep(threshold, threshold + softness, d)``. Spill
    is the extent of a pixel's chroma along the key's, minus 0.6 times its extent across, where
    positive; ``despill`` is the share of it that is removed. Luma is kept, and so are yellow and
    cyan in front of a green screen. The result has four channels.

    u8 colors are computed in f32 on values of 0 to 255, in the order of the formula, none fused,
    and rounded once, halves up.

    Args:
        key: a color by name, or r, g, b of 0 to 1, best taken from the screen; a gray key
            has no spill.
        threshold: pixels closer than this are transparent; pure green is 0.53 away from gray.
        softness: the width of the transition.
        despill: 0 leaves colors unchanged.
    """
    cb, cr = dot(px.rgb, _CB), dot(px.rgb, _CR)
    key_cb, key_cr = dot(key, _CB), dot(key, _CR)

    kept = smoothstep(threshold, threshold + softness, length(cb - key_cb, cr - key_cr))

    reach = max(length(key_cb, key_cr), 0.000001)  # a gray key has no direction, and no spill
    u, v = key_cb / reach, key_cr / reach
    spill = max(cb * u + cr * v - abs(cb * (0.6 * v) - cr * (0.6 * u)), 0.0)
    # Adding the opposite of the spill to r, g and b keeps luma.
    red, blue = 1.402 * v * despill, 1.772 * u * despill
    green = (0.299 / 0.587) * red + (0.114 / 0.587) * blue
    return rgba(px.r - red * spill, px.g + green * spill, px.b - blue * spill, px.a * kept)
