"""Neighborhood filters of several steps, or with tables: motion blur, unsharp mask, bilateral."""

from __future__ import annotations

import math
from typing import Any

from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernels.blur import MAX_SIGMA, radius_for
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.params import Parameter
from dala.media.filters.geometry import cos_sin
from dala.media.filters.plans import PICTURE, Step, Values
from dala.media.images import Shape
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


def _motion_reach(values: dict[str, Any]) -> int:
    return math.ceil(float(values["length"]) / 2) + 1  # samples between pixels read four


@picture_filter(
    "Neighborhoods",
    is_recipe=True,
    options=(
        Parameter("length", "float", 9.0, 1.0, 401.0),
        Parameter("angle", "float", 0.0, -1e6, 1e6),
    ),
    example="length=15, angle=30",
    reach=_motion_reach,
)
def motion_blur(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Blur along a line, as a moving camera does.

    The mean of ``length`` samples (rounded up), evenly spaced over a line of ``length`` pixels
    through each pixel. Samples between pixels are interpolated.

    Args:
        length (pixels): 1 changes nothing.
        angle (degrees): of the line, counterclockwise; 0 is horizontal.
    """
    length, (cos, sin) = values["length"], cos_sin(values["angle"] % 180.0)
    if length % 2 == 1 and 0.0 in (cos, sin):
        straight = {"half": int(length) // 2, "x": int(cos), "y": int(sin)}
        return [Step(_MOVED_STRAIGHT, (PICTURE,), shape, dtype, straight)]
    count = math.ceil(length)
    params = {"count": count, "step": (length - 1) / max(count - 1, 1), "cos": cos, "sin": sin}
    return [Step(_MOVED, (PICTURE,), shape, dtype, params)]


# unsharp mask -----------------------------------------------------------------------------------
_UNSHARP = kernel_from_text("""
def unsharp(px: Pixel, soft: Pixel, *, amount: float, threshold: float):
    off = px.rgb - soft.rgb
    r = off.r if abs(off.r) > threshold else 0.0
    g = off.g if abs(off.g) > threshold else 0.0
    b = off.b if abs(off.b) > threshold else 0.0
    return rgba(px.rgb + vec3(r, g, b) * amount, px.a)
""")


def _unsharp_reach(values: dict[str, Any]) -> int:
    return radius_for(values["radius"])


@picture_filter(
    "Neighborhoods",
    is_recipe=True,
    options=(
        Parameter("radius", "float", 2.0, 0.01, MAX_SIGMA),
        Parameter("amount", "float", 1.0, -1e6, 1e6),
        Parameter("threshold", "float", 0.0, 0.0, 1.0),
    ),
    example="radius=2, amount=1.5",
    reach=_unsharp_reach,
)
def unsharp_mask(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Sharpen by the difference from a blurred copy.

    ``c + amount * (c - blurred)`` where the difference is more than ``threshold``. As in Pillow and
    scikit-image, the radius is the standard deviation of the Gaussian.

    Args:
        radius (pixels): the standard deviation of the blur.
        amount: 0 changes nothing; Pillow's percent / 100.
        threshold: smaller differences are left alone, such as noise; 1 is white.
    """
    blur = Step(find_kernel("gaussian_blur"), (PICTURE,), shape, dtype, {"sigma": values["radius"]})
    params = {name: values[name] for name in ("amount", "threshold")}
    return [blur, Step(_UNSHARP, (PICTURE, 0), shape, dtype, params)]


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


@picture_filter(
    "Neighborhoods",
    is_recipe=True,
    options=(
        Parameter("radius", "int", 4, 0, 32),
        Parameter("sigma_color", "float", 0.2, 0.001, 1000.0),
        Parameter("sigma_space", "float", 3.0, 0.001, 1000.0),
    ),
    example="radius=5, sigma_color=0.3",
    reach="radius",
)
def bilateral(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Smooth and keep edges, as ``cv2.bilateralFilter``.

    The weighted mean over a disk. A pixel at (dx, dy) has the weight ``exp(-(dx**2 + dy**2) / (2 *
    sigma_space**2) - d**2 / (2 * sigma_color**2))``, where d is the sum over the channels of the
    absolute difference from the center. ``denoise`` is alike over a square, with the mean squared
    difference. The cost grows with the square of the radius.

    Args:
        radius (pixels): of the disk; OpenCV's diameter is 2 * radius + 1.
        sigma_color: the color standard deviation, where 1.0 is the full range of a channel;
            OpenCV's / 255.
        sigma_space (pixels): the spatial standard deviation.
    """
    # A gray picture is read as three equal channels.
    channels = 1 if len(shape) == 3 and shape[2] >= 3 else 3
    params = {
        "radius": values["radius"],
        "by_place": -0.5 / values["sigma_space"] ** 2,
        "by_color": -0.5 / (values["sigma_color"] * channels) ** 2,
    }
    return [Step(_BILATERAL, (PICTURE,), shape, dtype, params)]
