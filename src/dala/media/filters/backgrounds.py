"""Virtual backgrounds: a mask, scaled along the edges of the picture, decides what is kept.

The mask of a model is much smaller than the picture. A guided filter fits it, window by window, as
a linear function of the picture's luma at the size of the mask; the coefficients are scaled up and
applied to the luma of the full picture. So the mask gets the edges of the picture, at the cost of
work on the small picture and one resize (He and Sun, "Fast Guided Filter", 2015).
"""

from __future__ import annotations

import math
from typing import Final

from dala.errors import ParameterError
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Step, Values
from dala.media.images import Shape, dtype_of, second
from dala.media.kernels import kernel_from_text
from dala.typing import ImageLike, NDArray

#: The widest blur of masks and backgrounds, in pixels.
_MAX_RADIUS: Final = 200
#: The model that finds people where no mask is given, its input, and its mask.
_MODEL: Final = "selfie"
_INPUT: Final = (1, 256, 256, 3)
_MASK: Final = (256, 256)
#: The variance of the luma from which a window counts as an edge.
_FLAT: Final = 1e-3

_BEHIND = kernel_from_text("""
def behind(px: Pixel, back: Pixel, mask: Pixel, *, low: float, high: float):
    kept = smoothstep(low, high, mask.r)
    return rgba(mix(back.rgb, px.rgb, kept), mix(back.a, px.a, kept))
""")

_BEHIND_COLOR = kernel_from_text("""
def behind_color(px: Pixel, mask: Pixel, *, color: vec4, low: float, high: float):
    kept = smoothstep(low, high, mask.r)
    back = (color.r, color.g, color.b)
    return rgba(mix(back, px.rgb, kept), mix(color.a, px.a, kept))
""")

_MOMENTS = kernel_from_text("""
def moments(px: Pixel, mask: Pixel):
    luma = dot((px.r, px.g, px.b), (0.299, 0.587, 0.114))
    return (luma, mask.r, luma * mask.r)
""")

_SQUARE = kernel_from_text("""
def square(moments: Pixel):
    return moments.r * moments.r
""")

_SLOPE = kernel_from_text("""
def slope(mean: Pixel, square: Pixel, *, flat: float):
    a = (mean.b - mean.r * mean.g) / (square.r - mean.r * mean.r + flat)
    return (a, mean.g - a * mean.r, 0.0)
""")

_ALONG_EDGES = kernel_from_text("""
def along_edges(px: Pixel, line: Pixel):
    luma = dot((px.r, px.g, px.b), (0.299, 0.587, 0.114))
    return clamp(line.r * luma + line.g, 0.0, 1.0)
""")


@picture_filter(
    "Effects",
    kind="effect",
    is_recipe=True,
    inputs={"mask": "picture", "background": "background"},
    options=(
        Parameter("radius", "int", 16, 0, _MAX_RADIUS),
        Parameter("feather", "int", 2, 0, _MAX_RADIUS),
        Parameter("edge", "floats", (0.3, 0.7), size=2),
        Parameter("refine", "int", 0, 0, 32),
    ),
    keeps_alpha=False,
    example="radius=16",
)
def virtual_background(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Keep the masked part of a picture and blur or replace the rest.

    ``mix(background, c, smoothstep(low, high, mask))``, alpha alike. The mask's red (or gray)
    channel counts. It comes from a segmentation model, or is the alpha of a chroma key. Without a
    mask the model "selfie" keeps people; for videos use ``dala.ml.Background``, whose masks are
    steady over time.

    Args:
        mask: a picture that is 1 where the picture is kept, of any size; bools also work. None
            lets the model "selfie" find people (``dala-gpu[ml]``).
        background: None to blur the picture's own; a color (r, g, b) or (r, g, b, a) of 0 to 1; or
            a picture, which is stretched to the size.
        radius (pixels): of the background's blur.
        feather (pixels): radius of a blur of the mask; 0 for none.
        edge: (low, high): the mask counts as 0 below low, as 1 above high.
        refine (pixels of the mask): radius of a guided filter that moves the edges of the mask to
            those of the picture; 0 for none.
    """
    low, high = values["edge"]
    if not low < high:
        raise ParameterError.invalid(
            "virtual_background", "edge", "(low, high) with low below high", (low, high)
        )
    soft = {"low": low, "high": high}
    steps, mask = _mask_steps(values, shape, dtype)
    background = values.get("background")
    if isinstance(background, tuple | list):
        params = {"color": _background_color(background), **soft}
        return [*steps, Step(_BEHIND_COLOR, (PICTURE, mask), shape, dtype, params)]
    back: int | NDArray | Buffer
    if background is None:
        back = len(steps)
        steps.append(
            Step(find_kernel("blur"), (PICTURE,), shape, dtype, {"radius": values["radius"]})
        )
    else:
        back = second(background, shape, "virtual_background")
        if back.shape[:2] != shape[:2]:
            made = (*shape[:2], *back.shape[2:])
            steps.append(Step(find_kernel("resize"), (back,), made, _dtype(back)))
            back = len(steps) - 1
    return [*steps, Step(_BEHIND, (PICTURE, back, mask), shape, dtype, soft)]


def _background_color(color: tuple[float, ...] | list[float]) -> tuple[float, ...]:
    numbers = [c for c in color if isinstance(c, int | float) and math.isfinite(c)]
    if len(color) not in (3, 4) or len(numbers) != len(color):
        raise ParameterError.invalid(
            "virtual_background",
            "background",
            "a picture, or a color (r, g, b) or (r, g, b, a) of 0 to 1",
            color,
        )
    return tuple(float(c) for c in (*numbers, 1.0)[:4])


def _mask_steps(
    values: Values, shape: Shape, dtype: str
) -> tuple[list[Step], int | NDArray | Buffer]:
    """Return steps that make the mask of the picture's size, and it as an input of later steps."""
    given: ImageLike | None = values.get("mask")
    steps: list[Step] = []
    held: int | NDArray | Buffer
    size: Shape
    if given is None:
        steps += _people(shape)
        held, size, kind = len(steps) - 1, _MASK, "f32"
    else:
        held = second(given, shape[:2], "virtual_background")
        size, kind = held.shape, _dtype(held)
    if values["refine"]:
        steps += _refined(held, len(steps), size[:2], shape, dtype, values["refine"])
        held, size, kind = len(steps) - 1, shape[:2], "f32"
    elif size[:2] != shape[:2]:
        size = (*shape[:2], *size[2:])
        steps.append(Step(find_kernel("resize"), (held,), size, kind))
        held = len(steps) - 1
    if values["feather"]:
        params = {"radius": values["feather"]}
        steps.append(Step(find_kernel("blur"), (held,), size, kind, params))
        held = len(steps) - 1
    return steps, held


def _people(shape: Shape) -> list[Step]:
    """Return steps from the picture to the mask of its people."""
    how = {"size": _MASK, "layout": "nhwc", "normalize": "unit"}
    return [
        Step(find_kernel("preprocess"), (PICTURE,), _INPUT, "f32", how),
        Step(find_kernel(_MODEL), (0,), (*_INPUT[:3], 1), "f32"),
        Step(find_kernel("reshape"), (1,), _MASK, "f32", {"shape": _MASK}),
    ]


def _refined(
    mask: int | NDArray | Buffer, first: int, size: Shape, shape: Shape, dtype: str, radius: int
) -> list[Step]:
    """Return steps that scale a mask along the edges of the picture; the first is ``first``."""
    steps: list[Step] = []
    small = PICTURE
    if size != shape[:2]:
        steps.append(Step(find_kernel("resize"), (PICTURE,), (*size, *shape[2:]), dtype))
        small = first
    at = first + len(steps)
    wide = {"radius": radius}
    mean = find_kernel("box_blur")  # keeps the alpha of four channels: three, and one
    steps += [
        Step(_MOMENTS, (small, mask), (*size, 3), "f32"),
        Step(_SQUARE, (at,), size, "f32"),
        Step(mean, (at,), (*size, 3), "f32", wide),
        Step(mean, (at + 1,), size, "f32", wide),
        Step(_SLOPE, (at + 2, at + 3), (*size, 3), "f32", {"flat": _FLAT}),
        Step(mean, (at + 4,), (*size, 3), "f32", wide),
    ]
    line = at + 5
    if size != shape[:2]:
        steps.append(Step(find_kernel("resize"), (line,), (*shape[:2], 3), "f32"))
        line += 1
    return [*steps, Step(_ALONG_EDGES, (PICTURE, line), shape[:2], "f32")]


def _dtype(pixels: NDArray | Buffer) -> str:
    return pixels.dtype if isinstance(pixels, Buffer) else dtype_of(pixels)
