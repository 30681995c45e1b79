"""Neighborhood filters of several steps, or with tables: motion blur, unsharp mask, bilateral."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernels.blur import MAX_SIGMA, radius_for
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.params import Parameter
from dala.media.filters.geometry import cos_sin
from dala.media.filters.plans import PICTURE, Step, Values
from dala.media.images import Shape
from dala.media.kernels import kernel_from_text
from dala.typing import NDArray

# motion blur ------------------------------------------------------------------------------------
_WEIGHTED = kernel_from_text("""
def weighted(img: Image, taps: Array):
    total = img[0, 0].rgb * 0.0
    for k in range(len(taps)):
        total += img[int(taps[k, 0]), int(taps[k, 1])].rgb * taps[k, 2]
    return rgba(total, img[0, 0].a)
""")


@lru_cache(64)
def motion_taps(length: float, angle: float) -> NDArray:
    """Return dx, dy and weight of the pixels that a line through the center covers.

    >>> motion_taps(3, 0.0).tolist()[0]
    [-1.0, 0.0, 0.3333333432674408]
    """
    cos, sin = cos_sin(angle)
    count = math.ceil(length)
    found: dict[tuple[int, int], float] = {}
    for k in range(count):
        along = (k - (count - 1) / 2) * (length - 1) / max(count - 1, 1)
        x, y = round(along * cos, 9), round(-along * sin, 9)
        left, top = math.floor(x), math.floor(y)
        for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
            weight = abs(1 - dx - (x - left)) * abs(1 - dy - (y - top)) / count
            if weight > 1e-9:
                at = left + dx, top + dy
                found[at] = found.get(at, 0.0) + weight
    rows = [(dx, dy, weight) for (dx, dy), weight in sorted(found.items(), key=_row_first)]
    table: NDArray = np.array(rows, np.float32)
    table.flags.writeable = False
    return table


def _row_first(item: tuple[tuple[int, int], float]) -> tuple[int, int]:
    return item[0][1], item[0][0]


def _motion_reach(values: dict[str, Any]) -> int:
    return math.ceil(float(values["length"]) / 2)


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
    taps = motion_taps(values["length"], values["angle"] % 180.0)
    return [Step(_WEIGHTED, (PICTURE, taps), shape, dtype)]


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
