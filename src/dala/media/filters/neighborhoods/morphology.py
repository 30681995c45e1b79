"""Morphology with any structuring element."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.errors import ParameterError, ShapeError
from dala.gpu.compute.kernels.filter import BORDER_OPTIONS
from dala.gpu.compute.kernels.neighborhood import extreme_passes
from dala.gpu.compute.params import Parameter
from dala.media.filters.plans import PICTURE, Steps, Values, recipe
from dala.media.kernels import kernel_from_text
from dala.typing import NDArray

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
        fill: r, g, b, a of 0 to 1 for the border "constant".
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
