"""Neighborhood filters of several steps, or with tables: edges, morphology, and blurs."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from dala.errors import ParameterError, ShapeError
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernels.blur import MAX_SIGMA, radius_for
from dala.gpu.compute.kernels.filter import BORDER_OPTIONS
from dala.gpu.compute.kernels.neighborhood import extreme_passes
from dala.gpu.compute.params import Parameter
from dala.media.filters.geometry import cos_sin
from dala.media.filters.plans import PICTURE, Steps, Values, recipe
from dala.media.kernels import kernel_from_text
from dala.typing import NDArray


@cache
def _gradient(dtype: str, l2: bool) -> Kernel:
    """Return the kernel of gx, gy and magnitude, in steps of 255, of the channel with the largest.

    Bytes are whole numbers again, so that equal magnitudes are equal.
    """
    whole = "round({})" if dtype == "u8" else "{}"
    reads = "\n".join(
        f"    {name} = {whole.format(f'img[{dx}, {dy}].rgb * 255.0')}"
        for name, dx, dy in (
            ("nw", -1, -1), ("n", 0, -1), ("ne", 1, -1), ("w", -1, 0),
            ("e", 1, 0), ("sw", -1, 1), ("s", 0, 1), ("se", 1, 1),
        )
    )  # fmt: skip
    size = "gx * gx + gy * gy" if l2 else "abs(gx) + abs(gy)"
    return kernel_from_text(f"""
def gradient(img: Image):
{reads}
    gx = (ne - nw) + 2.0 * (e - w) + (se - sw)
    gy = (sw - nw) + 2.0 * (s - n) + (se - ne)
    size = {size}
    x, y, most = gx.r, gy.r, size.r
    x, y, most = (gx.g, gy.g, size.g) if size.g > most else (x, y, most)
    x, y, most = (gx.b, gy.b, size.b) if size.b > most else (x, y, most)
    return rgba(x, y, most, 1.0)
""")


#: 1 on ridges above ``high``, 0.5 on those above ``low``. The direction is one of four; 0.4142 is
#: the tangent of 22.5 degrees. Magnitudes beyond the picture are 0.
_RIDGES = kernel_from_text("""
def ridges(img: Image, *, low: float, high: float):
    y, x = position()
    h, w = shape()
    center = img[0, 0]
    m = center.b
    gx, gy = abs(center.r), abs(center.g)
    dx, dy = 1, 0
    if gy >= gx * 0.4142143:
        dx, dy = 0, 1
        if gy <= gx * 2.4142143:
            dx, dy = (-1 if center.r * center.g < 0.0 else 1), 1
    before = img[-dx, -dy].b
    after = img[dx, dy].b
    inside = x - dx >= 0 and x - dx < w and y - dy >= 0
    before = before if inside else 0.0
    inside = x + dx >= 0 and x + dx < w and y + dy < h
    after = after if inside else 0.0
    # Of two equal neighbors one is kept, except along diagonals.
    ridge = m > before and (m > after or (m == after and dx * dy == 0))
    level = 0.0
    if m > low and ridge:
        level = 1.0 if m > high else 0.5
    return rgba(level, level, level, 1.0)
""")

_SHOWN = kernel_from_text("def shown(px: Pixel, edge: Pixel): return rgba(edge.rgb, px.a)")


@recipe(
    "Neighborhoods",
    options=(
        Parameter("low", "float", 0.4, 0.0, 1e6),
        Parameter("high", "float", 0.8, 0.0, 1e6),
        Parameter("sigma", "float", 0.0, 0.0, MAX_SIGMA),
        Parameter("l2", "bool", False),
    ),
    example="low=0.3, high=0.7, sigma=1.2",
)
def canny(steps: Steps, values: Values) -> None:
    """Find edges one pixel wide with Canny's detector, as ``cv2.Canny``.

    3x3 Sobel gradients of the channel with the largest one; ridges of their magnitude; of those the
    ones above ``high``, and the ones above ``low`` that are connected to such. Edges are white, the
    rest black.

    Gradients of u8 pictures are whole numbers, exact in f32.

    Args:
        low: the lower threshold of the magnitude, where a step from black to white has 4; OpenCV's
            / 255.
        high: the upper threshold.
        sigma (pixels): of a Gaussian blur before; 0 for none, as in OpenCV.
        l2: whether the magnitude is ``sqrt(gx**2 + gy**2)`` and not ``abs(gx) + abs(gy)``.
    """
    low, high = values["low"], values["high"]
    if low > high:
        raise ParameterError.invalid("canny", "low", f"at most high, {high:g}", low)
    before = PICTURE
    if values["sigma"] > 0.0:
        before = steps.add("gaussian_blur", sigma=values["sigma"])
    size = steps.shape[:2]
    # The decimals of 100 / 255 * 255 are rounding errors.
    limits = {n: round(values[n] * 255.0, 4) for n in ("low", "high")}
    if values["l2"]:
        limits = {name: limit * limit for name, limit in limits.items()}
    gradient = _gradient(steps.dtype, values["l2"])
    before = steps.add(gradient, before, shape=(*size, 3), dtype="f32")
    before = steps.add(_RIDGES, before, shape=size, dtype="u8", **limits)
    before = steps.add("hysteresis", before, shape=size, dtype="u8")
    steps.add(_SHOWN, PICTURE, before)


#: The longest side of a structuring element.
_MOST = 129

_LESS = kernel_from_text("def less(a: Pixel, b: Pixel): return rgba(a.rgb - b.rgb, a.a)")

OPERATIONS: Final = ("open", "close", "erode", "dilate", "gradient", "tophat", "blackhat")

#: The passes of each operation: "<" is an erosion, ">" a dilation.
_PASSES: Final = {
    "erode": "<", "dilate": ">", "open": "<>", "close": "><", "tophat": "<>", "blackhat": "><",
}  # fmt: skip


def structuring_element(shape: str, radius: int) -> NDArray:
    """Return an element of 2 * radius + 1 as 0 and 1, as ``cv2.getStructuringElement``.

    >>> structuring_element("cross", 1).tolist()
    [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
    """
    side = 2 * radius + 1
    if shape == "rect":
        return np.ones((side, side), np.uint8)
    y = np.arange(-radius, radius + 1)[:, None]
    x = np.arange(-radius, radius + 1)[None, :]
    if shape == "cross":
        return np.asarray((x == 0) | (y == 0), np.uint8)
    # OpenCV rounds the half width of each row, halves to even.
    half = np.rint(np.sqrt(np.maximum(radius * radius - y * y, 0)))
    return np.asarray(np.abs(x) <= half, np.uint8)


@recipe(
    "Neighborhoods",
    inputs={"element": "map"},
    options=(
        Parameter("operation", "choice", "open", choices=OPERATIONS),
        Parameter("radius", "int", 1, 0, _MOST // 2),
        Parameter("shape", "choice", "rect", choices=("rect", "cross", "ellipse")),
        Parameter("iterations", "int", 1, 1, 64),
        *BORDER_OPTIONS,
    ),
    example='operation="close", radius=3, shape="ellipse"',
)
def morphology(steps: Steps, values: Values) -> None:
    """Erode, dilate, open or close with any structuring element, as ``cv2.morphologyEx``.

    An erosion is the minimum of each channel over the element, a dilation the maximum; as in OpenCV
    the element is not mirrored. "open" is an erosion, then a dilation; "close" the reverse.
    "gradient" is dilation - erosion, "tophat" the picture - opening, "blackhat" closing - the
    picture.

    Values are copied: nothing is rounded.

    Args:
        element: a 2D array; pixels count where it is not 0. Its center is at (height // 2, width //
            2). Replaces radius and shape.
        operation: "erode", "dilate", "open", "close", "gradient", "tophat" or "blackhat".
        radius (pixels): the element has 2 * radius + 1 rows and columns.
        shape: of the element: "rect", "cross" or "ellipse".
        iterations: how often each erosion and dilation is repeated.
        border: values beyond the picture, for each erosion and dilation: "clamp" (the nearest
            pixel), "reflect" (mirrored, without repeating the edge), "wrap" (repeated) or
            "constant" (``fill``).
        fill: a color by name, or r, g, b, a of 0 to 1, for the border "constant".
    """
    element = values.get("element")
    if element is None and values["shape"] == "rect":
        places = None
        reach = values["radius"]
    else:
        if element is None:
            element = structuring_element(values["shape"], values["radius"])
        places = _places(element)
        reach = int(np.abs(places).max())
    border = {name: values[name] for name in ("border", "fill")}
    bordered = values["border"] != "clamp"

    def passed(passes: str) -> int:
        before = PICTURE
        for sign in passes:
            kind = "min" if sign == "<" else "max"
            if bordered:
                before = steps.pad(before, reach, border)
            shape = steps[before].shape if bordered else steps.shape
            if places is not None:
                before = steps.add("extremes", before, places, shape=shape, kind=kind, reach=reach)
            else:
                for kernel in extreme_passes("morphology", kind, _MOST // 2):
                    before = steps.add(kernel, before, shape=shape, radius=reach)
            before = steps.crop(before, reach) if bordered else before
        return before

    operation, repeat = values["operation"], values["iterations"]
    if operation == "gradient":
        steps.add(_LESS, passed(">" * repeat), passed("<" * repeat))
        return
    last = passed("".join(p * repeat for p in _PASSES[operation]))
    if operation == "tophat":
        steps.add(_LESS, PICTURE, last)
    elif operation == "blackhat":
        steps.add(_LESS, last, PICTURE)


def _places(element: object) -> NDArray:
    """Return the offsets (dx, dy) of an element's pixels from its center."""
    try:
        array = np.asarray(element)
        fits = array.ndim == 2 and array.size > 0 and max(array.shape) <= _MOST
        counted = array != 0 if fits else None
    except (TypeError, ValueError):
        counted = None
    if counted is None:
        raise ShapeError.invalid(
            "morphology",
            "element",
            f"a 2D array of 1 to {_MOST} rows and columns",
            getattr(element, "shape", element),
        )
    if not counted.any():
        raise ParameterError.invalid(
            "morphology", "element", "an array with a number other than 0", "only zeros"
        )
    y, x = np.nonzero(counted)
    center = counted.shape[0] // 2, counted.shape[1] // 2
    return np.stack([x - center[1], y - center[0]], axis=1).astype(np.int32)


# nodeco


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
