"""Neighborhood filters of several steps, or with tables: motion blur, unsharp mask, bilateral."""

from __future__ import annotations

import math

from dala.gpu.compute.kernels.blur import MAX_SIGMA, radius_for
from dala.gpu.compute.params import Parameter
from dala.media.filters.geometry import cos_sin
from dala.media.filters.plans import PICTURE, Steps, Values, recipe
from dala.media.kernels import kernel_from_text

# motion blur ------------------------------------------------------------------------------------
_MOVED = kernel_from_text("""
def moved(img: Image, *, count: int, step: float, cos: float, sin: float):
    total = img[0, 0].rgb * 0.0
    for k in range(count):
        along = (float(k) - float(count - 1) * 0.5) * step
        x, y = along * cos, -along * sin
        left, top = floor(x), floor(y)
        u, v = x - left, y - top
        i, j = int(left), int(top)
        above = img[i, j].rgb * (1.0 - u) + img[i + 1, j].rgb * u
        below = img[i, j + 1].rgb * (1.0 - u) + img[i + 1, j + 1].rgb * u
        total += above * (1.0 - v) + below * v
    return rgba(total / float(count), img[0, 0].a)
""")

#: The same along a row or a column, where every sample of an odd length is a pixel.
_MOVED_STRAIGHT = kernel_from_text("""
def moved_straight(img: Image, *, half: int, x: int, y: int):
    total = img[0, 0].rgb * 0.0
    for k in range(-half, half + 1):
        total += img[k * x, k * y].rgb
    return rgba(total / float(2 * half + 1), img[0, 0].a)
""")


@recipe(
    "Neighborhoods",
    options=(
        Parameter("length", "float", 9.0, 1.0, 401.0),
        Parameter("angle", "float", 0.0, -1e6, 1e6),
    ),
    example="length=15, angle=30",
    reach=lambda values: math.ceil(float(values["length"]) / 2) + 1,
)
def motion_blur(steps: Steps, values: Values) -> None:
    """Blur along a line, as a moving camera does.

    The mean of ``length`` samples (rounded up), evenly spaced over a line of ``length`` pixels
    through each pixel. Samples between pixels are interpolated.

    u8 pictures are computed in f32 on values of 0 to 255, in the order of the formula, none fused,
    and rounded once, halves up.

    Args:
        length (pixels): 1 changes nothing.
        angle (degrees): of the line, counterclockwise; 0 is horizontal.
    """
    length, (cos, sin) = values["length"], cos_sin(values["angle"] % 180.0)
    if length % 2 == 1 and 0.0 in (cos, sin):
        steps.add(_MOVED_STRAIGHT, half=int(length) // 2, x=int(cos), y=int(sin))
        return
    count = math.ceil(length)
    steps.add(_MOVED, count=count, step=(length - 1) / max(count - 1, 1), cos=cos, sin=sin)


# unsharp mask -----------------------------------------------------------------------------------
_UNSHARP = kernel_from_text("""
def unsharp(px: Pixel, soft: Pixel, *, amount: float, threshold: float):
    off = px.rgb - soft.rgb
    r = off.r if abs(off.r) > threshold else 0.0
    g = off.g if abs(off.g) > threshold else 0.0
    b = off.b if abs(off.b) > threshold else 0.0
    return rgba(px.rgb + vec3(r, g, b) * amount, px.a)
""")


@recipe(
    "Neighborhoods",
    options=(
        Parameter("radius", "float", 2.0, 0.01, MAX_SIGMA),
        Parameter("amount", "float", 1.0, -1e6, 1e6),
        Parameter("threshold", "float", 0.0, 0.0, 1.0),
    ),
    example="radius=2, amount=1.5",
    reach=lambda values: radius_for(values["radius"]),
)
def unsharp_mask(steps: Steps, values: Values) -> None:
    """Sharpen by the difference from a blurred copy.

    ``c + amount * (c - blurred)`` where the difference is more than ``threshold``. As in Pillow and
    scikit-image, the radius is the standard deviation of the Gaussian.

    In u8 pictures the blurred copy is of bytes; the rest is f32 on values of 0 to 255, rounded
    once, halves up.

    Args:
        radius (pixels): the standard deviation of the blur.
        amount: 0 changes nothing; Pillow's percent / 100.
        threshold: smaller differences are left alone, such as noise; 1 is white.
    """
    soft = steps.add("gaussian_blur", sigma=values.pop("radius"))
    steps.add(_UNSHARP, PICTURE, soft, **values)


# bilateral --------------------------------------------------------------------------------------
_BILATERAL = kernel_from_text("""
def bilateral(img: Image, *, radius: int, by_place: float, by_color: float):
    center = img[0, 0]
    total = center.rgb * 0.0
    weights = 0.0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dx * dx + dy * dy <= radius * radius:
                c = img[dx, dy].rgb
                off = abs(c - center.rgb)
                d = off.r + off.g + off.b
                weight = exp(float(dx * dx + dy * dy) * by_place + d * d * by_color)
                total += c * weight
                weights += weight
    return rgba(total / weights, center.a)
""")


@recipe(
    "Neighborhoods",
    options=(
        Parameter("radius", "int", 4, 0, 32),
        Parameter("sigma_color", "float", 0.2, 0.001, 1000.0),
        Parameter("sigma_space", "float", 3.0, 0.001, 1000.0),
    ),
    example="radius=5, sigma_color=0.3",
    reach="radius",
)
def bilateral(steps: Steps, values: Values) -> None:
    """Smooth and keep edges, as ``cv2.bilateralFilter``.

    The weighted mean over a disk. A pixel at (dx, dy) has the weight ``exp(-(dx**2 + dy**2) / (2 *
    sigma_space**2) - d**2 / (2 * sigma_color**2))``, where d is the sum over the channels of the
    absolute difference from the center. ``denoise`` is alike over a square, with the mean squared
    difference. The cost grows with the square of the radius.

    u8 pictures are computed in f32 on values of 0 to 255, in the order of the formula, none fused,
    and rounded once, halves up.

    Args:
        radius (pixels): of the disk; OpenCV's diameter is 2 * radius + 1.
        sigma_color: the color standard deviation, where 1.0 is the full range of a channel;
            OpenCV's / 255.
        sigma_space (pixels): the spatial standard deviation.
    """
    # A gray picture is read as three equal channels.
    channels = 1 if len(steps.shape) == 3 and steps.shape[2] >= 3 else 3
    steps.add(
        _BILATERAL,
        radius=values["radius"],
        by_place=-0.5 / values["sigma_space"] ** 2,
        by_color=-0.5 / (values["sigma_color"] * channels) ** 2,
    )
