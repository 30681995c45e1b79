"""Filters that compute each pixel's color from that pixel alone. Alpha is kept."""

from __future__ import annotations

from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.language import *
from dala.gpu.compute.language import max, pow


@picture_filter("Color")
def grayscale(px: Pixel) -> Pixel:
    """Replace each color with its luma.

    ``Y = 0.299 r + 0.587 g + 0.114 b`` (BT.601) in all three channels.

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.
    """
    luma = dot(px.rgb, (0.299, 0.587, 0.114))
    return rgba(luma, luma, luma, px.a)


@picture_filter("Color", example="value=0.15")
def brightness(px: Pixel, *, value: Within[float, -inf, inf] = 0.0) -> Pixel:
    """Add a constant to every channel.

    ``c + value``

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.

    Args:
        value: 1.0 is the full range; below 0 darkens.
    """
    return rgba(px.rgb + value, px.a)


@picture_filter("Color", example="value=0.5")
def contrast(px: Pixel, *, value: Within[float, -inf, inf] = 0.0) -> Pixel:
    """Scale the distance from middle gray.

    ``(c - 0.5) * (1 + value) + 0.5``

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.

    Args:
        value: -1 gives middle gray, 0 changes nothing; below -1 inverts.
    """
    return rgba((px.rgb - 0.5) * (1.0 + value) + 0.5, px.a)


@picture_filter("Color", example="value=0.8")
def saturation(px: Pixel, *, value: Within[float, -1.0, inf] = 0.0) -> Pixel:
    """Scale the distance from gray.

    ``c + (c - Y) * value``, where Y is the pixel's BT.601 luma.

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.

    Args:
        value: -1 gives gray, 0 changes nothing, 1 doubles the saturation.
    """
    luma = dot(px.rgb, (0.299, 0.587, 0.114))
    return rgba(px.rgb + (px.rgb - luma) * value, px.a)


@picture_filter("Color", example="value=2.0")
def gamma(px: Pixel, *, value: Within[float, 0.01, inf] = 1.0) -> Pixel:
    """Brighten or darken the midtones.

    ``max(c, 0) ** (1 / value)``. Black and white do not change.

    In u8 pictures each of 256 levels is computed in f32 and rounded once, halves up.

    Args:
        value: above 1 brightens, below 1 darkens.
    """
    return rgba(pow(max(px.rgb, 0.0), 1.0 / value), px.a)


@picture_filter("Color", example="degrees=120.0")
def hue(px: Pixel, *, degrees: Within[float, -inf, inf] = 0.0) -> Pixel:
    """Rotate the hue and keep the luma.

    ``c cos + (k x c) sin + k (k . c)(1 - cos)`` with ``k = (1, 1, 1) / sqrt(3)``, moved along the
    gray axis to the BT.601 luma of c. 120 degrees map red to green, green to blue and blue to red.

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.

    Args:
        degrees (degrees): 360 is a full turn.
    """
    turn = fract(degrees / 360.0) * tau  # within one turn, where sin and cos are most precise
    c = cos(turn)
    gray = (px.r + px.g + px.b) * ((1.0 - c) / 3.0)
    across = vec3(px.b - px.g, px.r - px.b, px.g - px.r)
    turned = px.rgb * c + across * (sin(turn) * 0.57735026919) + gray
    return rgba(turned + dot(px.rgb - turned, (0.299, 0.587, 0.114)), px.a)


@picture_filter("Color", example="amount=1.0")
def sepia(px: Pixel, *, amount: Within[float, 0.0, 1.0] = 1.0) -> Pixel:
    """Tone a picture brown, as CSS does.

    ``mix(c, M c, amount)``; the rows of M are (0.393, 0.769, 0.189), (0.349, 0.686, 0.168) and
    (0.272, 0.534, 0.131). White exceeds 1 in red and green. A gray output holds the red channel.

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/100 of a step, and the sum is rounded once, halves up.

    Args:
        amount: 0 changes nothing.
    """
    r = dot(px.rgb, (0.393, 0.769, 0.189))
    g = dot(px.rgb, (0.349, 0.686, 0.168))
    b = dot(px.rgb, (0.272, 0.534, 0.131))
    return rgba(mix(px.rgb, (r, g, b), amount), px.a)


@picture_filter("Color")
def invert(px: Pixel) -> Pixel:
    """Invert every color.

    ``1 - c``

    u8 pictures are exact: ``255 - c``.
    """
    return rgba(1.0 - px.rgb, px.a)


@picture_filter("Color", example="bits=3")
def posterize(px: Pixel, *, bits: Within[int, 1, 8] = 4, levels: Within[int, 0, 256] = 0) -> Pixel:
    """Reduce the number of levels per channel.

    The color is rounded to a level of 0 to 255, of which the upper ``bits`` bits are kept and the
    others are set to 0, as Pillow does: there are ``2 ** bits`` levels, and white becomes
    ``256 - 2 ** (8 - bits)``. With ``levels`` it becomes the nearest of that many levels, spread
    evenly from black to white, as GIMP and ImageMagick do.

    u8 pictures are exact.

    Args:
        bits: the bits that are kept; 8 changes nothing in a u8 picture.
        levels: 2 to 256 levels from black to white, instead of ``bits``; 0 leaves it to ``bits``.
    """
    step = 1 << (8 - bits)
    parts = float(max(levels - 1, 1))  # one level would be no picture: 1 counts as 2
    even = levels > 0
    factor = parts / 255.0 if even else 1.0 / float(step)
    nearest = 0.5 if even else 0.0
    unit = 1.0 if even else float(step)
    white = parts if even else 255.0
    level = floor(clamp(px.rgb, 0.0, 1.0) * 255.0 + 0.5)
    return rgba(floor(level * factor + nearest) * unit / white, px.a)


@picture_filter("Color", example="amount=0.9")
def vignette(
    px: Pixel,
    *,
    amount: Within[float, -inf, inf] = 0.5,
    radius: Within[float, -inf, inf] = 0.75,
    softness: Within[float, 0.0001, inf] = 0.45,
) -> Pixel:
    """Darken a picture toward its corners.

    ``c * (1 - amount * smoothstep(radius - softness, radius + softness, d))``, where the distance d
    is 0 in the center and 1 in the corners.

    u8 pictures are computed in f32 on values of 0 to 255, in the order of the formula, none fused,
    and rounded once, halves up.

    Args:
        amount: 1 makes the corners black, below 0 brightens them.
        radius: the distance at which half of the darkening is reached.
        softness: half the width of the transition.
    """
    y, x = position()
    across = (x + 0.5) * (1.0 / px.width) - 0.5
    down = (y + 0.5) * (1.0 / px.height) - 0.5
    far = length(across, down) * 1.4142135
    return rgba(
        px.rgb * (1.0 - amount * smoothstep(radius - softness, radius + softness, far)), px.a
    )
