"""Realtime effects: grading, virtual backgrounds, overlays. They take and give what filters do.

All of them are filters too, by the same names, in lists for ``process_frame``. ``beauty``, look-up
tables and chroma keys are plain filters: ``dala.media.gpu``.
"""

from __future__ import annotations

from typing import Any

from dala.media.filters.plans import apply

__all__ = ["curves", "grade", "overlay", "temperature", "virtual_background"]


def grade(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    lift: Any = 0.0,
    gamma: Any = 1.0,
    gain: Any = 1.0,
    saturation: float = 0.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Lift for the shadows, gamma for the middle tones, gain for the lights, then saturation.

    ``max((c + lift * (1 - c)) * gain, 0) ** (1 / gamma)``, then as ``saturation``. Each of the
    three is a number or one for red, green and blue.

    Args:
        img: the picture.
        width: of bytes.
        height: of bytes.
        lift: within -1..1; black becomes lift, white stays.
        gamma: 0.01 or more; above 1 brightens the middle.
        gain: 0 or more; white becomes gain, black stays.
        saturation: -1 or more; 0 changes nothing.
        out: an array to write.
        device: where to work.
    """
    params = {"lift": lift, "gamma": gamma, "gain": gain, "saturation": saturation}
    return apply(img, width, height, "grade", params, out, device)


def temperature(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    value: float = 0.0,
    tint: float = 0.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Warmer (value above 0) or cooler light, and a tint from green (below 0) to magenta.

    Red times 1 + 0.3 value, green times 1 - 0.3 tint, blue times 1 - 0.3 value, then scaled until
    the pixel has its BT.601 luma back. Both within -1..1.
    """
    params = {"value": value, "tint": tint}
    return apply(img, width, height, "temperature", params, out, device)


def curves(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    master: Any = None,
    red: Any = None,
    green: Any = None,
    blue: Any = None,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Tone curves through points (x, y) of 0 to 1: each channel's own, then the master's.

    The curve is smooth, goes through every point, stays between neighbouring ones, and is level
    beyond the first and the last.

    >>> import numpy as np
    >>> picture = np.array([[0, 128, 255]], np.uint8)
    >>> curves(picture, master=[(0, 0.2), (1, 0.8)], device="cpu").tolist()
    [[51, 128, 204]]
    """
    params = {"master": master, "red": red, "green": green, "blue": blue}
    return apply(img, width, height, "curves", params, out, device)


def virtual_background(
    img: Any,
    mask: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    background: Any = None,
    radius: int = 16,
    feather: int = 2,
    edge: tuple[float, float] = (0.3, 0.7),
    out: Any = None,
    device: str | None = None,
) -> Any:
    """What the mask shows stays, the rest is blurred or replaced.

    Args:
        img: the picture.
        mask: a picture whose red (or gray) is 1 where ``img`` stays: from a segmentation model, or
            the alpha of a chroma key. Of any size; it is scaled to that of ``img``. Bools will do.
        width: of bytes.
        height: of bytes.
        background: None to blur what is there; a colour (r, g, b) or (r, g, b, a) of 0 to 1; or a
            picture, which is stretched to the size of ``img``.
        radius: of the blur.
        feather: a blur of the mask by this radius first; 0 for none.
        edge: below the first number a mask counts as 0, above the second as 1, between them softly.
        out: an array to write.
        device: where to work.
    """
    params = {
        "mask": mask,
        "background": background,
        "radius": radius,
        "feather": feather,
        "edge": edge,
    }
    return apply(img, width, height, "virtual_background", params, out, device)


def overlay(
    img: Any,
    picture: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    matrix: Any = None,
    position: tuple[float, float] = (0.0, 0.0),
    scale: Any = 1.0,
    angle: float = 0.0,
    anchor: tuple[float, float] = (0.0, 0.0),
    opacity: float = 1.0,
    method: str = "bilinear",
    out: Any = None,
    device: str | None = None,
) -> Any:
    """A second picture laid over the first, moved, scaled and turned; edges without dark fringes.

    Args:
        img: the picture.
        picture: what is laid over it, of any size.
        width: of bytes.
        height: of bytes.
        matrix: (a, b, c, d, e, f): pixel (x, y) of the overlay comes to lie at
            (a x + b y + c, d x + e y + f); instead of position, scale, angle and anchor.
        position: where in ``img`` the anchor comes to lie, (x, y) in pixels from the top left.
        scale: one factor, or one across and one down.
        angle: degrees, clockwise, around the anchor.
        anchor: of the overlay, as shares of its size: (0, 0) top left, (0.5, 0.5) its middle.
        opacity: 0 to 1.
        method: "nearest", "bilinear" or "bicubic". Resize first what gets less than half as large.
        out: an array to write.
        device: where to work.
    """
    params = {
        "picture": picture,
        "matrix": matrix,
        "position": position,
        "scale": scale,
        "angle": angle,
        "anchor": anchor,
        "opacity": opacity,
        "method": method,
    }
    return apply(img, width, height, "overlay", params, out, device)
