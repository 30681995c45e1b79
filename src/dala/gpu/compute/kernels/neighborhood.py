"""Filters that read neighboring pixels.

Kernels clamp reads beyond the border to the nearest pixel; filters have other borders by their
``reach``. Alpha is kept. Colors are not weighted by
alpha: transparent pixels count like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.kernel import Kernel, declare_function, text_kernel
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.language import *
from dala.gpu.compute.language import max, min
from dala.gpu.compute.operation import Inputs, Lowered, Operation, OperationValues
from dala.gpu.compute.params import Parameter


def _emboss_reach(values: dict[str, Any]) -> int:
    return int(np.maximum(np.abs(values["dx"]), np.abs(values["dy"])))


@picture_filter("Neighborhoods", example="amount=1.0", reach=1)
def sharpen(img: Image, *, amount: Within[float, -inf, inf] = 0.5) -> Pixel:
    """Amplify the difference between a pixel and its four neighbors.

    ``center * (1 + 4 * amount) - amount * (sum of the four neighbors)``

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/32 of a step, and the sum is rounded once, halves up.

    Args:
        amount: 0 changes nothing; below 0 softens.
    """
    center = img[0, 0]
    around = img[-1, 0].rgb + img[1, 0].rgb + img[0, -1].rgb + img[0, 1].rgb
    return rgba(center.rgb * (1.0 + 4.0 * amount) - around * amount, center.a)


@picture_filter("Neighborhoods", example="amount=1.0", reach=1)
def edge_detect(img: Image, *, amount: Within[float, -inf, inf] = 1.0) -> Pixel:
    """Compute the Sobel magnitude of luma.

    ``amount * sqrt(gx**2 + gy**2)`` in all three channels. gx is the 3x3 Sobel sum ``(-1 0 1; -2 0
    2; -1 0 1)`` of BT.601 luma, gy its transpose. Neither is divided: a step from black to white
    gives 4, which is stored as white.

    Luma of u8 colors is an integer of 14 fraction bits, the rest is f32 on values of 0 to 255, in
    the order of the formula, none fused, and rounded once, halves up.

    Args:
        amount: 0.25 keeps horizontal and vertical edges within 0..1.
    """

    def luma(px: Vector) -> float:
        return dot(px.rgb, (0.299, 0.587, 0.114))

    nw, n, ne = luma(img[-1, -1]), luma(img[0, -1]), luma(img[1, -1])
    w, e = luma(img[-1, 0]), luma(img[1, 0])
    sw, s, se = luma(img[-1, 1]), luma(img[0, 1]), luma(img[1, 1])
    # Both sums contain the corners: as the sum and as the difference of two diagonals.
    down, up = se - nw, ne - sw
    gx = (down + up) + 2.0 * (e - w)
    gy = (down - up) + 2.0 * (s - n)
    edge = sqrt(gx * gx + gy * gy) * amount
    return rgba(edge, edge, edge, img[0, 0].a)


@picture_filter("Neighborhoods", example="radius=3, sigma_color=0.15", reach="radius")
def denoise(
    img: Image,
    *,
    radius: Within[int, 0, 16] = 2,
    sigma_space: Within[float, 0.001, 1000.0] = 2.0,
    sigma_color: Within[float, 0.001, 1000.0] = 0.1,
) -> Pixel:
    """Smooth noise and keep edges with a bilateral filter.

    The weighted mean over the square of 2 * radius + 1. A pixel at (dx, dy) has the weight
    ``exp(-(dx**2 + dy**2) / (2 * sigma_space**2) - d / (2 * sigma_color**2))``, where d is the mean
    over r, g and b of the squared difference from the center. The cost grows with the square of the
    radius.

    u8 pictures are computed in f32 on values of 0 to 255, in the order of the formula, none fused,
    and rounded once, halves up.

    Args:
        radius (pixels): 0 changes nothing.
        sigma_space (pixels): the spatial standard deviation.
        sigma_color: the color standard deviation, where 1.0 is the full range; about twice the
            noise.
    """
    by_place = -0.5 / (sigma_space * sigma_space)
    by_color = -0.5 / (sigma_color * sigma_color * 3.0)
    center = img[0, 0]
    total = center.rgb * 0.0
    weights = 0.0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            c = img[dx, dy].rgb
            off = c - center.rgb
            weight = exp(float(dx * dx + dy * dy) * by_place + dot(off, off) * by_color)
            total += c * weight
            weights += weight
    return rgba(total / weights, center.a)


@picture_filter("Neighborhoods", example="amount=1.0", reach="radius")
def beauty(
    img: Image, *, amount: Within[float, 0.0, 1.0] = 0.7, radius: Within[int, 0, 32] = 5
) -> Pixel:
    """Smooth skin and keep edges.

    ``mix(c, smooth, amount * skin)``. smooth is a bilateral mean as in ``denoise``, with
    sigma_space = (radius + 1) / 2 and sigma_color = 0.08. From a radius of 3 it is sampled at 7x7
    pixels spread over the square (nearest to i * radius / 3, i from -3 to 3), so that the cost does
    not grow with the radius. skin is computed from smooth: 1 where BT.601 Cb is within -0.19..-0.03
    and Cr within 0.035..0.17, falling smoothly to 0 over 0.03. Other objects of such colors, like
    wood and sand, are smoothed too; gray pictures do not change.

    u8 pictures are computed in f32 on values of 0 to 255, in the order of the formula, none fused,
    and rounded once, halves up.

    Args:
        amount: 0 changes nothing.
        radius (pixels): 0 changes nothing.
    """

    def window(low: IntOrFloat, high: IntOrFloat, v: IntOrFloat) -> float:
        return smoothstep(low - 0.03, low, v) * (1.0 - smoothstep(high, high + 0.03, v))

    near = (float(radius) + 1.0) * 0.5
    by_place = -0.5 / (near * near)
    by_color = -0.5 / (0.08 * 0.08 * 3.0)
    center = img[0, 0]
    total = center.rgb * 0.0
    weights = 0.0
    side = min(radius, 3)
    spread = max(radius, 3)
    for j in range(-side, side + 1):
        dy = (j * spread + 1) // 3
        for i in range(-side, side + 1):
            dx = (i * spread + 1) // 3
            c = img[dx, dy].rgb
            off = c - center.rgb
            weight = exp(float(dx * dx + dy * dy) * by_place + dot(off, off) * by_color)
            total += c * weight
            weights += weight
    smooth = total / weights
    luma = dot(smooth, (0.299, 0.587, 0.114))
    cb = (smooth.b - luma) / 1.772
    cr = (smooth.r - luma) / 1.402
    skin = window(-0.19, -0.03, cb) * window(0.035, 0.17, cr)
    return rgba(mix(center.rgb, smooth, amount * skin), center.a)


#: The largest radius of ``erode`` and ``dilate``.
MAX_EXTREME_RADIUS: Final = 32


@cache
def extreme_passes(name: str, kind: str, most: int) -> tuple[Kernel, Kernel]:
    """Return the kernels of a minimum or maximum over a square, across and then down.

    Args:
        name: of the kernels, for errors.
        kind: "min" or "max".
        most: the largest radius.
    """

    def one(offset: str) -> Kernel:
        text = f"""
def {name}(img: Image, *, radius: Within[int, 0, {most}] = 1):
    found = img[0, 0].rgb
    for d in range(-radius, radius + 1):
        found = {kind}(found, img[{offset}].rgb)
    return rgba(found, img[0, 0].a)
"""
        return text_kernel(name, text)

    return one("d, 0"), one("0, d")


def _separate(name: str, kind: str) -> Callable[[dict[str, Any]], tuple[Kernel, ...]]:
    """Return the passes of ``erode`` or ``dilate``: one up to radius 1, two above."""

    def passes(values: dict[str, Any]) -> tuple[Kernel, ...]:
        radius = values["radius"]
        wide = isinstance(radius, int | float) and radius >= 2
        return extreme_passes(name, kind, MAX_EXTREME_RADIUS) if wide else ()

    return passes


@picture_filter(
    "Neighborhoods", example="radius=2", reach="radius", passes=_separate("erode", "min")
)
def erode(img: Image, *, radius: Within[int, 0, 32] = 1) -> Pixel:
    """Compute the minimum of each channel over a square of 2 * radius + 1.

    Values are copied: nothing is rounded.

    Args:
        radius (pixels): 0 changes nothing.
    """
    # By rows: engines compute the extremes of a row once for several pixels of a column.
    least = img[0, 0].rgb
    for dy in range(-radius, radius + 1):
        row = img[-radius, dy].rgb
        for dx in range(1 - radius, radius + 1):
            row = min(row, img[dx, dy].rgb)
        least = min(least, row)
    return rgba(least, img[0, 0].a)


@picture_filter(
    "Neighborhoods", example="radius=2", reach="radius", passes=_separate("dilate", "max")
)
def dilate(img: Image, *, radius: Within[int, 0, 32] = 1) -> Pixel:
    """Compute the maximum of each channel over a square of 2 * radius + 1.

    Values are copied: nothing is rounded.

    Args:
        radius (pixels): 0 changes nothing.
    """
    # By rows: engines compute the extremes of a row once for several pixels of a column.
    most = img[0, 0].rgb
    for dy in range(-radius, radius + 1):
        row = img[-radius, dy].rgb
        for dx in range(1 - radius, radius + 1):
            row = max(row, img[dx, dy].rgb)
        most = max(most, row)
    return rgba(most, img[0, 0].a)


@picture_filter("Neighborhoods", example="amount=1.5", reach=_emboss_reach)
def emboss(
    img: Image,
    *,
    amount: Within[float, -inf, inf] = 1.0,
    dx: Within[int, -32, 32] = -1,
    dy: Within[int, -32, 32] = -1,
) -> Pixel:
    """Show a picture as a relief, lit from one side.

    ``0.5 + amount * (c - c at (dx, dy))`` for each channel. Pillow's ``EMBOSS`` has dy = 1.

    u8 pictures are summed in integers: weights of 15 bits, or of up to 20 where those would move a
    result by 1/32 of a step, and the sum is rounded once, halves up.

    Args:
        amount: the depth; below 0 exchanges light and shadow.
        dx (pixels): where the light is, to the right.
        dy (pixels): where the light is, downward.
    """
    center = img[0, 0]
    return rgba((center.rgb - img[dx, dy].rgb) * amount + 0.5, center.a)


# medians ------------------------------------------------------------------------------------------
def median_of_nine(img: Image) -> Pixel:
    """Return the median of each channel over a 3x3 square: the fifth of the nine sorted values."""

    def middle(a: vec3, b: vec3, c: vec3) -> vec3:
        return max(min(a, b), min(max(a, b), c))

    a = img[-1, -1].rgb
    b = img[0, -1].rgb
    c = img[1, -1].rgb
    d = img[-1, 0].rgb
    e = img[0, 0].rgb
    f = img[1, 0].rgb
    g = img[-1, 1].rgb
    h = img[0, 1].rgb
    i = img[1, 1].rgb
    # Sort each row of three. The median of all nine is the median of: the largest of the lows, the
    # median of the middles, and the smallest of the highs. Pixels of a column share sorted rows.
    lows = max(min(a, b, c), min(d, e, f), min(g, h, i))
    middles = middle(middle(a, b, c), middle(d, e, f), middle(g, h, i))
    highs = min(max(a, b, c), max(d, e, f), max(g, h, i))
    return rgba(middle(lows, middles, highs), img[0, 0].a)


#: The median over a wider square of bytes: its bits from the highest, by counting lower values.
_OF_BYTES = """
def median_of_bytes(img: Image, *, radius: int):
    half = float((2 * radius + 1) * (2 * radius + 1) // 2)
    found = vec3(0.0)
    bit = 128.0
    for k in range(8):
        limit = (found + bit - 0.5) / 255.0
        below = vec3(0.0)
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                c = img[dx, dy].rgb
                below += vec3(1.0 if c.r < limit.r else 0.0, 1.0 if c.g < limit.g else 0.0,
                              1.0 if c.b < limit.b else 0.0)
        found += vec3(bit if below.r <= half else 0.0, bit if below.g <= half else 0.0,
                      bit if below.b <= half else 0.0)
        bit *= 0.5
    return rgba(found / 255.0, img[0, 0].a)
"""

#: The same of floats: halve the range that holds the median until it holds only one value.
_OF_FLOATS = """
def median_of_floats(img: Image, *, radius: int):
    half = float((2 * radius + 1) * (2 * radius + 1) // 2)
    low = img[0, 0].rgb
    high = low
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            low = min(low, img[dx, dy].rgb)
            high = max(high, img[dx, dy].rgb)
    for k in range(32):
        middle = low * 0.5 + high * 0.5
        upto = vec3(0.0)
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                c = img[dx, dy].rgb
                upto += vec3(1.0 if c.r <= middle.r else 0.0, 1.0 if c.g <= middle.g else 0.0,
                             1.0 if c.b <= middle.b else 0.0)
        is_r, is_g, is_b = upto.r > half, upto.g > half, upto.b > half
        low = vec3(low.r if is_r else middle.r, low.g if is_g else middle.g,
                   low.b if is_b else middle.b)
        high = vec3(middle.r if is_r else high.r, middle.g if is_g else high.g,
                    middle.b if is_b else high.b)
    found = vec3(-inf)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            c = img[dx, dy].rgb
            found = max(found, vec3(c.r if c.r <= high.r else -inf, c.g if c.g <= high.g else -inf,
                                    c.b if c.b <= high.b else -inf))
    return rgba(found, img[0, 0].a)
"""


@cache
def _median_kernel(radius: int, dtype: str) -> Kernel:
    if radius == 1:
        return Kernel("median", partial(declare_function, median_of_nine, "median"))
    text = _OF_BYTES if dtype == "u8" else _OF_FLOATS
    return text_kernel("median", text)


@picture_filter("Neighborhoods", example="radius=2", reach="radius")
class Median(Operation):
    """Compute the median of each channel over a square of 2 * radius + 1.

    Exact: the middle one of the sorted values, as ``cv2.medianBlur``.

    Values are copied: nothing is rounded.

    Args:
        radius (pixels): 0 changes nothing.
    """

    title = "median"
    takes = ("img",)
    options = (Parameter("radius", "int", 1, 0, 7),)
    dtypes = ("f32", "u8")

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        self.want_image(inputs)
        return inputs[0]

    def lower(self, task: Task) -> Lowered:
        radius = task["radius"]
        if radius == 0:
            return text_kernel("median", "def median(px: Pixel): return px"), {}
        kernel = _median_kernel(radius, task.output.dtype)
        return kernel, {"radius": radius} if radius > 1 else {}


# any places ---------------------------------------------------------------------------------------
_EXTREME = """
def extremes(img: Image, places: Array, *, reach: int):
    found = img[clamp(places[0, 0], -reach, reach), clamp(places[0, 1], -reach, reach)].rgb
    for k in range(1, len(places)):
        x, y = clamp(places[k, 0], -reach, reach), clamp(places[k, 1], -reach, reach)
        found = {kind}(found, img[x, y].rgb)
    return rgba(found, img[0, 0].a)
"""


class Extremes(Operation):
    """Compute the minimum or maximum of each channel over given places.

    ``places`` are offsets (dx, dy) as an s32 array (count, 2); they are limited to ``reach``.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> img = np.array([[1, 5, 2, 8]], np.uint8)
    >>> places = np.array([[-1, 0], [0, 0], [1, 0]], np.int32)      # left, here, right
    >>> get("extremes")(img, places, kind="max", reach=1).tolist()
    [[5, 5, 8, 8]]
    """

    title = "extremes"
    takes = ("img", "places")
    dtypes = ("f32", "s32", "u8")
    options = (
        Parameter("kind", "choice", "min", choices=("min", "max")),
        Parameter("reach", "int", required=True, low=0, high=1 << 12),
    )

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        self.want_image(inputs)
        shape = self.want_rank(inputs, 1, 2)
        if inputs[1].dtype != "s32" or not shape[0] or shape[1] != 2:
            raise self.wrong_shape(
                "places", "an s32 array of shape (count, 2)", f"{inputs[1].dtype} {shape}"
            )
        return inputs[0]

    def lower(self, task: Task) -> Lowered:
        return text_kernel("extremes", _EXTREME.format(kind=task["kind"])), {"reach": task["reach"]}
