"""Canny's edge detector: gradients, thin ridges, hysteresis."""

from __future__ import annotations

from functools import cache

from dala.errors import ParameterError
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernels.blur import MAX_SIGMA
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Steps, Values, recipe
from dala.media.kernels import kernel_from_text


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
