"""Morphology with any structuring element."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.errors import ParameterError, ShapeError
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernels.filter import BORDER_OPTIONS, picture_filter
from dala.gpu.compute.kernels.neighborhood import extreme_passes
from dala.gpu.compute.params import Parameter
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.plans import PICTURE, Step, Values
from dala.media.images import Shape
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


@picture_filter(
    "Neighborhoods",
    is_recipe=True,
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
def morphology(shape: Shape, dtype: str, values: Values) -> list[Step]:
    """Erode, dilate, open or close with any structuring element, as ``cv2.morphologyEx``.

    An erosion is the minimum of each channel over the element, a dilation the maximum; as in OpenCV
    the element is not mirrored. "open" is an erosion, then a dilation; "close" the reverse.
    "gradient" is dilation - erosion, "tophat" the picture - opening, "blackhat" closing - the
    picture.

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
    made = _Passes(shape, dtype, values, places, reach)
    operation, repeat = values["operation"], values["iterations"]
    if operation == "gradient":
        most = made.add(">" * repeat, PICTURE)
        least = made.add("<" * repeat, PICTURE)
        made.subtract(most, least)
        return made.steps
    last = made.add("".join(p * repeat for p in _PASSES[operation]), PICTURE)
    if operation == "tophat":
        made.subtract(PICTURE, last)
    elif operation == "blackhat":
        made.subtract(last, PICTURE)
    return made.steps


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


class _Passes:
    """Collects the steps of erosions and dilations."""

    def __init__(
        self, shape: Shape, dtype: str, values: Values, places: NDArray | None, reach: int
    ) -> None:
        self.steps: list[Step] = []
        self._shape, self._dtype = shape, dtype
        self._places, self._reach = places, reach
        border = values["border"]
        self._border = {"border": border, "fill": values["fill"]} if border != "clamp" else None

    def add(self, passes: str, before: int) -> int:
        """Add erosions ("<") and dilations (">"); return the number of the last step."""
        for kind in passes:
            before = self._one(kind == "<", before)
        return before

    def subtract(self, a: int, b: int) -> None:
        """Add the difference of two steps' results."""
        self._step(_LESS, (a, b), self._shape)

    def _one(self, least: bool, before: int) -> int:
        shape, reach = self._shape, self._reach
        if self._border is not None:
            shape = (shape[0] + 2 * reach, shape[1] + 2 * reach, *shape[2:])
            params = {"padding": reach, **self._border}
            before = self._step(find_kernel("pad"), (before,), shape, params)
        if self._places is not None:
            params = {"kind": "min" if least else "max", "reach": reach}
            before = self._step(find_kernel("extremes"), (before, self._places), shape, params)
        else:
            across, down = extreme_passes("morphology", "min" if least else "max", _MOST // 2)
            before = self._step(across, (before,), shape, {"radius": reach})
            before = self._step(down, (before,), shape, {"radius": reach})
        if self._border is not None:
            box = (reach, reach, reach + self._shape[1], reach + self._shape[0])
            before = self._step(find_kernel("crop"), (before,), self._shape, {"box": box})
        return before

    def _step(
        self,
        kernel: Runnable,
        inputs: tuple[int | NDArray, ...],
        shape: Shape,
        params: Values | None = None,
    ) -> int:
        self.steps.append(Step(kernel, inputs, shape, self._dtype, params or {}))
        return len(self.steps) - 1
