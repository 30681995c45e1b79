"""Colour at each pixel by itself. Alpha is kept."""

from __future__ import annotations

from dala.gpu.compute.lang.markers import Pixel, Within

__all__ = [
    "brightness",
    "contrast",
    "gamma",
    "grayscale",
    "hue",
    "invert",
    "saturation",
    "sepia",
    "vignette",
]


def grayscale(px: Pixel):
    """BT.601 luma (0.299 r + 0.587 g + 0.114 b) in all three channels"""
    luma = dot(px.rgb, (0.299, 0.587, 0.114))
    return rgba(luma, luma, luma, px.a)


def brightness(px: Pixel, *, value: Within[float, -inf, inf] = 0.0):
    """Adds value, where 1.0 is the whole range"""
    return rgba(px.rgb + value, px.a)


def contrast(px: Pixel, *, value: Within[float, -inf, inf] = 0.0):
    """Scales by 1 + value around the middle gray 0.5"""
    return rgba((px.rgb - 0.5) * (1.0 + value) + 0.5, px.a)


def saturation(px: Pixel, *, value: Within[float, -1.0, inf] = 0.0):
    """Scales the distance from the pixel's BT.601 luma by 1 + value

    ``c + (c - luma) * value``. -1 is gray, 0 changes nothing, 1 doubles.
    """
    luma = dot(px.rgb, (0.299, 0.587, 0.114))
    return rgba(px.rgb + (px.rgb - luma) * value, px.a)


def gamma(px: Pixel, *, value: Within[float, 0.01, inf] = 1.0):
    """colour ** (1 / value): above 1 brightens the middle, below 1 darkens it

    Black and white stay. value at least 0.01; a colour below 0 is taken as 0.
    """
    return rgba(pow(max(px.rgb, 0.0), 1.0 / value), px.a)


def hue(px: Pixel, *, degrees: Within[float, -inf, inf] = 0.0):
    """Turns the colour around the gray axis, its BT.601 luma kept

    120 degrees take red to green, green to blue, blue to red; 360 change nothing. The turned colour
    ``c cos + (k x c) sin + k (k . c)(1 - cos)``, k = (1, 1, 1) / sqrt(3), is moved along the gray
    axis until its luma is that of c.
    """
    turn = fract(degrees / 360.0) * tau  # within one turn, where sin and cos are at their best
    c = cos(turn)
    gray = (px.r + px.g + px.b) * ((1.0 - c) / 3.0)
    across = (px.b - px.g, px.r - px.b, px.g - px.r)
    turned = px.rgb * c + across * (sin(turn) * 0.57735026919) + gray
    return rgba(turned + dot(px.rgb - turned, (0.299, 0.587, 0.114)), px.a)


def sepia(px: Pixel, *, amount: Within[float, 0.0, 1.0] = 1.0):
    """The brown of old prints, as in CSS: mix(c, M c, amount), amount within 0..1

    The rows of M are (0.393, 0.769, 0.189), (0.349, 0.686, 0.168) and (0.272, 0.534, 0.131). A gray
    output holds the first of them.
    """
    r = dot(px.rgb, (0.393, 0.769, 0.189))
    g = dot(px.rgb, (0.349, 0.686, 0.168))
    b = dot(px.rgb, (0.272, 0.534, 0.131))
    return rgba(mix(px.rgb, (r, g, b), amount), px.a)


def invert(px: Pixel):
    """1 - colour"""
    return rgba(1.0 - px.rgb, px.a)


def vignette(
    px: Pixel,
    *,
    amount: Within[float, -inf, inf] = 0.5,
    radius: Within[float, -inf, inf] = 0.75,
    softness: Within[float, 0.0001, inf] = 0.45,
):
    """Darkens towards the corners: from radius - softness outwards, by amount at most

    ``c * (1 - amount * smoothstep(radius - softness, radius + softness, far))``, far being 0 in the
    middle and 1 in the corners. softness at least 0.0001.
    """
    y, x = position()
    across = (x + 0.5) / px.width - 0.5
    down = (y + 0.5) / px.height - 0.5
    far = length(across, down) * 1.4142135
    return rgba(
        px.rgb * (1.0 - amount * smoothstep(radius - softness, radius + softness, far)), px.a
    )
