"""Geometric filters of several steps: rotate, thumbnail, pixelate."""

from __future__ import annotations

import math

from dala.gpu.compute.kernels.resize import FITS, METHODS
from dala.gpu.compute.params import Parameter, size_parameter
from dala.media.filters.plans import PICTURE, Steps, Values, recipe

_FAR = 1e6


# rotation ---------------------------------------------------------------------------------------
@recipe(
    "Geometry",
    keeps_alpha=False,
    resizes=True,
    options=(
        Parameter("angle", "float", required=True, low=-_FAR, high=_FAR),
        Parameter("expand", "bool", False),
        Parameter("center", "floats", size=2, low=-_FAR, high=_FAR),
        Parameter("method", "choice", "bilinear", choices=("nearest", "bilinear", "bicubic")),
        Parameter("border", "choice", "constant", choices=("constant", "clamp", "reflect", "wrap")),
        Parameter("fill", "floats", (0.0,) * 4, size=4, spread=True, low=-_FAR, high=_FAR),
    ),
    example="angle=30, expand=True",
)
def rotate(steps: Steps, values: Values) -> None:
    """Rotate a picture by any angle, counterclockwise as in Pillow and OpenCV.

    Each pixel is the input at its position rotated back around the center. Multiples of 90 degrees
    are exact, where the center allows it. Note that ``overlay`` and scenes rotate clockwise.

    u8 pictures are sampled in integers as by ``warp_affine``.

    Args:
        angle (degrees): counterclockwise.
        expand: enlarge the result so that it holds the whole rotated picture; otherwise it has the
            picture's size.
        center (pixels): (x, y) from the top left corner; the middle by default. With ``expand`` it
            does not matter.
        method: "nearest", "bilinear" or "bicubic" (with a = -0.75).
        border: values beyond the picture: "constant" (``fill``), "clamp" (the nearest pixel),
            "reflect" (mirrored) or "wrap" (repeated).
        fill: a color by name, or r, g, b, a of 0 to 1, for the border "constant".
    """
    height, width = shape = steps.shape[:2]
    rest = steps.shape[2:]
    cos, sin = cos_sin(values["angle"])
    around_middle = values["expand"] or values["center"] is None
    if sin == 0.0 and around_middle:
        if cos > 0:
            steps.add("crop", box=(0, 0, width, height))
        else:
            steps.add("flip", direction="both")
        return
    if cos == 0.0 and around_middle and (values["expand"] or width == height):
        axes = (1, 0, 2)[: len(steps.shape)]
        reverse = (0 if sin > 0 else 1,)
        steps.add("transpose", shape=(width, height, *rest), axes=axes, reverse=reverse)
        return
    size = shape
    x, y = values["center"] or (width / 2, height / 2)
    if values["expand"]:
        # Edges of exact angles are whole numbers but for rounding errors.
        wide = width * abs(cos) + height * abs(sin)
        high = width * abs(sin) + height * abs(cos)
        size = max(1, math.ceil(high - 1e-6)), max(1, math.ceil(wide - 1e-6))
        x, y = width / 2, height / 2
    to_x, to_y = (size[1] / 2, size[0] / 2) if values["expand"] else (x, y)
    # From the middle of an output pixel to the middle of an input pixel.
    left = x - 0.5 - cos * (to_x - 0.5) + sin * (to_y - 0.5)
    top = y - 0.5 - sin * (to_x - 0.5) - cos * (to_y - 0.5)
    matrix = (cos, -sin, left, sin, cos, top)
    coding = {name: values[name] for name in ("method", "border", "fill")}
    steps.add("warp_affine", shape=(*size, *rest), matrix=matrix, **coding)


def cos_sin(degrees: float) -> tuple[float, float]:
    """Return cosine and sine, exact at right angles.

    >>> cos_sin(270.0)
    (0.0, -1.0)
    """
    quarters, rest = divmod(degrees, 90.0)
    if rest == 0:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(quarters) % 4]
    angle = degrees * (math.pi / 180.0)
    if type(angle) is not float:
        from dala.gpu.compute.recording import cos, sin

        return cos(angle), sin(angle)
    return math.cos(angle), math.sin(angle)


# thumbnails -------------------------------------------------------------------------------------
@recipe(
    "Geometry",
    keeps_alpha=False,
    resizes=True,
    options=(
        size_parameter(spread=True),
        Parameter("fit", "choice", "contain", choices=FITS),
        Parameter("method", "choice", "bicubic", choices=METHODS),
        Parameter("fill", "floats", (0.0,) * 4, size=4, spread=True, low=-_FAR, high=_FAR),
    ),
    example="size=128",
)
def thumbnail(steps: Steps, values: Values) -> None:
    """Make a small copy of a picture, as Pillow's ``thumbnail``.

    ``resize`` with antialiasing. With the default fit the aspect is kept, and a picture that is
    already small enough is not enlarged. With the other fits the result has exactly the size.

    Args:
        size (pixels): the most (width, height) of the result, or one number for both.
        fit: as in ``resize``.
        method: as in ``resize``.
        fill: as in ``resize``.
    """
    width, height = values["size"]
    params = {name: values[name] for name in ("fit", "method", "fill")}
    shape = steps.shape
    if values["fit"] == "contain" and 0 not in shape:
        height, width = min(height, shape[0]), min(width, shape[1])
        if (height, width) == shape[:2]:
            params["method"] = "nearest"  # the same pixels
        height, width = _within(shape[0], shape[1], height, width)
        params["fit"] = "stretch"
    steps.add("resize", shape=(height, width, *shape[2:]), **params)


def _within(height: int, width: int, most_high: int, most_wide: int) -> tuple[int, int]:
    """Return the size within another one whose aspect is nearest to the picture's, as in Pillow."""
    aspect = width / height
    if most_wide / most_high >= aspect:
        wide = most_high * aspect
        around = (max(1, math.floor(wide)), max(1, math.ceil(wide)))
        return most_high, min(around, key=lambda n: abs(aspect - n / most_high))
    high = most_wide / aspect
    around = (max(1, math.floor(high)), max(1, math.ceil(high)))
    return min(around, key=lambda n: abs(aspect - most_wide / n)), most_wide


# pixelation -------------------------------------------------------------------------------------
@recipe(
    "Geometry",
    keeps_alpha=False,
    options=(Parameter("block", "int", 8, 1, 4096),),
    example="block=12",
)
def pixelate(steps: Steps, values: Values) -> None:
    """Replace square blocks of a picture by their mean.

    Blocks begin at the top left. Those that are cut off at the right and at the bottom continue
    with the border's pixels.

    u8 pictures are reduced and enlarged in integers as by ``resize``.

    Args:
        block (pixels): the side of a block; 1 changes nothing.
    """
    shape, rest, side = steps.shape[:2], steps.shape[2:], values["block"]
    blocks = -(-shape[0] // side), -(-shape[1] // side)
    whole = blocks[0] * side, blocks[1] * side
    before = PICTURE
    if whole != shape:
        padding = (0, 0, whole[1] - shape[1], whole[0] - shape[0])
        before = steps.add("pad", shape=(*whole, *rest), padding=padding, border="clamp")
    for size, method in ((blocks, "area"), (whole, "nearest")):
        before = steps.add("resize", before, shape=(*size, *rest), method=method)
    if whole != shape:
        steps.add("crop", before, box=(0, 0, shape[1], shape[0]))
