"""Virtual backgrounds: a mask, scaled along the edges of the picture, selects the foreground.

The mask of a model is much smaller than the picture. A guided filter fits it, window by window, as
a linear function of the picture's luma at the size of the mask; the coefficients are scaled up and
applied to the luma of the full picture. So the mask gets the edges of the picture, at the cost of
work on the small picture and one resize (He and Sun, "Fast Guided Filter", 2015).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from dala.errors import ParameterError
from dala.gpu.color import unit_color
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Step, StepInput, Steps, Values, effect
from dala.media.images import Shape, dtype_of, second
from dala.media.kernels import kernel_from_text
from dala.typing import ImageLike

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


@effect(
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
def virtual_background(steps: Steps, values: Values) -> None:
    """Keep the masked part of a picture and blur or replace the rest.

    ``mix(background, c, smoothstep(low, high, mask))``, alpha alike. The mask's red (or gray)
    channel counts. It comes from a segmentation model, or is the alpha of a chroma key. Without a
    mask the model "selfie" keeps people; for videos use ``dala.ml.Background``, whose masks are
    steady over time.

    u8 pictures pass stages, each of bytes: the background and the mask by ``blur`` and ``resize``,
    then the mix in f32 on values of 0 to 255, rounded once, halves up.

    Args:
        mask: a picture that is 1 where the picture is kept, of any size; bools also work. None
            lets the model "selfie" find people (``dala-gpu[ml]``).
        background: None to blur the picture's own; a color by name, or (r, g, b) or (r, g, b, a)
            of 0 to 1; or a picture, which is stretched to the size.
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
    mask = _add_mask(steps, values)
    background = values.get("background")
    if isinstance(background, tuple | list | str):
        steps.add(_BEHIND_COLOR, PICTURE, mask, color=_background_color(background), **soft)
        return
    back: StepInput
    if background is None:
        back = steps.add("blur", radius=values["radius"])
    else:
        back = second(background, steps.shape, "virtual_background")
        if back.shape[:2] != steps.shape[:2]:
            made = (*steps.shape[:2], *back.shape[2:])
            back = steps.add("resize", back, shape=made, dtype=dtype_of(back))
    steps.add(_BEHIND, PICTURE, back, mask, **soft)


def _background_color(given: tuple[float, ...] | list[float] | str) -> tuple[float, ...]:
    color = (unit_color(given, 4) or ()) if isinstance(given, str) else given
    numbers = [c for c in color if isinstance(c, int | float) and math.isfinite(c)]
    if len(color) not in (3, 4) or len(numbers) != len(color):
        raise ParameterError.invalid(
            "virtual_background",
            "background",
            "a picture, or a color: its name, (r, g, b) or (r, g, b, a) of 0 to 1",
            given,
            "Open a picture first: Frame.open(path)." if isinstance(given, str) else "",
        )
    return tuple(float(c) for c in (*numbers, 1.0)[:4])


def _add_mask(steps: Steps, values: Values) -> StepInput:
    """Add the mask in the picture's size; return it as an input of later steps."""
    given: ImageLike | None = values.get("mask")
    held: StepInput
    size: Shape
    if given is None:
        held, size, kind = _add_people(steps), _MASK, "f32"
    else:
        held = second(given, steps.shape[:2], "virtual_background")
        size, kind = held.shape, dtype_of(held)
    if values["refine"]:
        held = _add_refined(steps, held, size[:2], values["refine"])
        size, kind = steps.shape[:2], "f32"
    elif size[:2] != steps.shape[:2]:
        size = (*steps.shape[:2], *size[2:])
        held = steps.add("resize", held, shape=size, dtype=kind)
    if values["feather"]:
        held = steps.add("blur", held, shape=size, dtype=kind, radius=values["feather"])
    return held


def _add_people(steps: Steps) -> int:
    """Add the mask of the picture's people, and return its number."""
    how = {"size": _MASK, "layout": "nhwc", "normalize": "unit"}
    made = steps.add("preprocess", shape=_INPUT, dtype="f32", **how)
    made = steps.add(_MODEL, made, shape=(*_INPUT[:3], 1), dtype="f32")
    steps.append(Step(find_kernel("reshape"), (made,), _MASK, "f32", {"shape": _MASK}))
    return made + 1


def _add_refined(steps: Steps, mask: StepInput, size: Shape, radius: int) -> int:
    """Add a mask scaled along the edges of the picture, and return its number."""
    add, three, small = partial(steps.add, dtype="f32"), (*size, 3), PICTURE
    if size != steps.shape[:2]:
        small = steps.add("resize", shape=(*size, *steps.shape[2:]))
    # A box blur keeps the alpha of four channels: three, and one.
    moments = add(_MOMENTS, small, mask, shape=three)
    square = add(_SQUARE, moments, shape=size)
    mean = add("box_blur", moments, shape=three, radius=radius)
    square = add("box_blur", square, shape=size, radius=radius)
    line = add(_SLOPE, mean, square, shape=three, flat=_FLAT)
    line = add("box_blur", line, shape=three, radius=radius)
    if size != steps.shape[:2]:
        line = add("resize", line, shape=(*steps.shape[:2], 3))
    return add(_ALONG_EDGES, PICTURE, line, shape=steps.shape[:2])
