"""Geometry: crop, pad and flip; affine and perspective warps, and warps by a coordinate map."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from dala.errors import OutsidePicture, ParameterError
from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.engines.sampling import byte_samples, coordinates
from dala.gpu.compute.engines.sampling.coordinates import BORDERS, METHODS, stored_fill
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.operation import Inputs, Lowered, Operation, OperationValues
from dala.gpu.compute.params import Parameter, rows_first, size_parameter
from dala.typing import NDArray

#: Integer and fractional parts of x, then of y.
Coordinates: TypeAlias = tuple[NDArray, NDArray, NDArray, NDArray]

_SAMPLING = (
    Parameter("method", "choice", "bilinear", choices=METHODS),
    Parameter("border", "choice", "constant", choices=BORDERS),
    Parameter("fill", "floats", (0.0,) * 4, size=4, spread=True, low=-1e6, high=1e6),
)


def _by_matrix(size: int) -> tuple[Parameter, ...]:
    matrix = Parameter("matrix", "floats", size=size, required=True, low=-1e9, high=1e9)
    return matrix, size_parameter(), *_SAMPLING


class _Warp(Operation):
    """Base class of operations that sample a picture at computed coordinates."""

    takes: ClassVar[tuple[str, ...]] = ("image",)
    dtypes = ("f32", "u8")

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        image = inputs[0]
        self.want_image(inputs, empty=False)
        return Tensor((*self._size(inputs, values), *image.shape[2:]), image.dtype)

    def _size(self, inputs: Inputs, values: OperationValues) -> tuple[int, ...]:
        size = values["size"]
        return inputs[0].shape[:2] if size is None else rows_first(size)

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        if "size" in values and values["size"] is None and len(output.shape) >= 2:
            values = {**values, "size": output.shape[1::-1]}
        self.want(output, self.result(inputs, values))
        fitted = {name: values[name] for name in ("method", "border", "matrix") if name in values}
        return fitted | {"fill": stored_fill(values["fill"], output.dtype)}

    #: Returns the place of each output pixel in the picture, by a matrix.
    places: ClassVar[Callable[..., Coordinates]]

    def _coordinates(self, task: Task, arrays: tuple[NDArray, ...]) -> Coordinates:
        """Return the place of each output pixel in the picture."""
        return type(self).places(task["matrix"], *task.output.shape[:2])

    def define(self, task: Task, *arrays: NDArray) -> NDArray:
        image = arrays[0].reshape(*arrays[0].shape[:2], -1)
        at = [a.astype(np.int64) for a in self._coordinates(task, arrays)]
        x, part_x, y, part_y = at

        def read(rows: NDArray, columns: NDArray) -> NDArray:
            found = _read(image, rows, columns, task["border"], task["fill"])
            return found.astype(np.int64) if image.dtype == np.uint8 else found

        if image.dtype == np.uint8 and task["method"] != "nearest":
            is_cubic = task["method"] == "bicubic"
            sample = byte_samples.bicubic if is_cubic else byte_samples.bilinear
            return sample(read, y, part_y, x, part_x).reshape(task.output.shape)
        steps_x, weights_x = _weights(task["method"], part_x / 2.0**coordinates.BITS)
        steps_y, weights_y = _weights(task["method"], part_y / 2.0**coordinates.BITS)
        total = np.zeros((*x.shape, image.shape[2]))
        for dy, wy in zip(steps_y, weights_y, strict=True):
            for dx, wx in zip(steps_x, weights_x, strict=True):
                total += (wy * wx)[..., None] * read(y + dy, x + dx)
        return total.reshape(task.output.shape)


def _weights(method: str, part: NDArray) -> tuple[Sequence[int | NDArray], list[NDArray]]:
    """Return the taps' offsets from the integer coordinate, and their weights."""
    if method == "nearest":
        return [np.where(part >= 0.5, 1, 0)], [np.ones_like(part)]
    if method == "bilinear":
        return (0, 1), [1.0 - part, part]
    a = -0.75

    def near(d: NDArray) -> NDArray:
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0

    def far(d: NDArray) -> NDArray:
        return (((d - 5.0) * d + 8.0) * d - 4.0) * a

    return (-1, 0, 1, 2), [far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part)]


def _read(image: NDArray, y: NDArray, x: NDArray, border: str, fill: tuple[float, ...]) -> NDArray:
    height, width, channels = image.shape
    value = image[_inside(y, height, border), _inside(x, width, border)].astype(np.float64)
    if border == "constant":
        outside = (y < 0) | (y >= height) | (x < 0) | (x >= width)
        value[outside] = fill[:channels]
    return value


def _inside(i: NDArray, count: int, border: str) -> NDArray:
    if border == "wrap":
        return i % count
    if border == "reflect":
        period = max(2 * (count - 1), 1)
        i = i % period
        return np.minimum(i, np.maximum(period - i, 0)) if count > 1 else i * 0
    return np.clip(i, 0, count - 1)


@picture_filter("Geometry", keeps_alpha=False, resizes=True, example="matrix=(1, 0, 10, 0, 1, 5)")
class WarpAffine(_Warp):
    """Warp a picture with a 2x3 matrix that maps output coordinates to input coordinates.

    Output pixel (x, y) is the input at (a * x + b * y + c, d * x + e * y + f). Integer coordinates
    are pixel centers.

    Bytes are sampled in integers: positions are rounded to 1/32768 pixel, rows are mixed before
    columns with 6 or 7 bits of fraction, and the result is rounded once more.

    Args:
        matrix: a, b, c, d, e, f.
        size (pixels): (width, height) of the result; the picture's own by default.
        method: "nearest", "bilinear" or "bicubic" (with a = -0.75).
        border: values beyond the picture: "constant" (``fill``), "clamp" (the nearest pixel),
            "reflect" (mirrored) or "wrap" (repeated).
        fill: a color by name, or r, g, b, a of 0 to 1, for the border "constant".
    """

    title = "warp_affine"
    options = _by_matrix(6)
    places = staticmethod(coordinates.affine)


@picture_filter(
    "Geometry", keeps_alpha=False, resizes=True, example="matrix=(1, 0, 10, 0, 1, 5, 0, 0, 1)"
)
class WarpPerspective(_Warp):
    """Warp a picture with a 3x3 homography that maps output coordinates to input coordinates.

    With ``(u, v, w) = matrix * (x, y, 1)``, output pixel (x, y) is the input at (u / w, v / w), and
    at (0, 0) where w is 0.

    The matrix is rounded to integers of up to 62 bits, and the quotient down to 1/65536 pixel;
    bytes are sampled in integers as by ``warp_affine``.

    Args:
        matrix: nine numbers, row by row.
        size (pixels): (width, height) of the result; the picture's own by default.
        method: "nearest", "bilinear" or "bicubic" (with a = -0.75).
        border: values beyond the picture: "constant" (``fill``), "clamp" (the nearest pixel),
            "reflect" (mirrored) or "wrap" (repeated).
        fill: a color by name, or r, g, b, a of 0 to 1, for the border "constant".
    """

    title = "warp_perspective"
    options = _by_matrix(9)
    places = staticmethod(coordinates.perspective)


@picture_filter(
    "Geometry", keeps_alpha=False, resizes=True, inputs={"map": "map"}, example="map=coordinates"
)
class Remap(_Warp):
    """Sample a picture at given coordinates.

    Output pixel (x, y) is the input at (map[y, x, 0], map[y, x, 1]). NaN counts as far outside, to
    the left or above.

    Bytes are sampled in integers as by ``warp_affine``.

    Args:
        map: an f32 array of shape (height, width, 2): x and y in the input.
        method: "nearest", "bilinear" or "bicubic" (with a = -0.75).
        border: values beyond the picture: "constant" (``fill``), "clamp" (the nearest pixel),
            "reflect" (mirrored) or "wrap" (repeated).
        fill: a color by name, or r, g, b, a of 0 to 1, for the border "constant".
    """

    title = "remap"
    takes = ("image", "map")
    options = _SAMPLING

    def _size(self, inputs: Inputs, values: OperationValues) -> tuple[int, ...]:
        shape = self.want_rank(inputs, 1, 3)
        if shape[2] != 2:
            raise self.wrong_shape(
                "map", "of shape (height, width, 2): x and y of each pixel", shape
            )
        self.want_f32(inputs, 1)
        return shape[:2]

    def _coordinates(self, task: Task, arrays: tuple[NDArray, ...]) -> Coordinates:
        at = arrays[1]
        return (*coordinates.split_map(at[..., 0]), *coordinates.split_map(at[..., 1]))


# crop, pad, flip ----------------------------------------------------------------------------------
class _Placement(NamedTuple):
    """The source row of output row y is ``first[0] + step[0] * y``, and so for columns."""

    size: tuple[int, int]
    first: tuple[int, int]
    step: tuple[int, int] = (1, 1)


class _Placed(Operation):
    """Base class of operations that copy whole pixels from other rows and columns."""

    takes: ClassVar[tuple[str, ...]] = ("img",)
    dtypes = ("f32", "u8")
    code = "place"

    @abstractmethod
    def _place(self, height: int, width: int, values: OperationValues) -> _Placement:
        """Return which rows and columns of a picture the output has."""

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        height, width, _ = self.want_image(inputs, empty=False)
        size = self._place(height, width, values).size
        return Tensor((*size, *inputs[0].shape[2:]), inputs[0].dtype)

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        height, width = inputs[0].shape[:2]
        placed = self._place(height, width, values)
        fill = stored_fill(values.get("fill", (0.0,) * 4), output.dtype)
        border = values.get("border", "clamp")
        return {"first": placed.first, "step": placed.step, "border": border, "fill": fill}

    def lower(self, task: Task) -> Lowered:
        (top, left), (down, across) = task["first"], task["step"]
        kernel = _place_kernel(len(task.output.shape), task["border"], task.output.dtype)
        params = {"top": top, "left": left, "down": down, "across": across}
        if task["border"] == "constant":
            params["fill"] = task["fill"]
        return kernel, params


#: Statements that bring an index i into 0 to n - 1, by border.
_INDEX = {
    "constant": (),
    "clamp": (),
    "wrap": ("{i} = {i} % {n}",),
    "reflect": ("{i} = {i} % max(2 * {n} - 2, 1)", "{i} = min({i}, max(2 * {n} - 2, 1) - {i})"),
}


@cache
def _place_kernel(rank: int, border: str, dtype: str) -> Kernel:
    """Return the kernel that copies pixels; arrays of the language clamp their indexes."""
    channel = ", c" if rank == 3 else ""
    fill = ", fill: vec4" if border == "constant" else ""
    lines = [
        f"def place(a: Array, *, top: int, left: int, down: int, across: int{fill}):",
        f"    y, x{channel} = position()",
        "    h, w = a.shape[0], a.shape[1]",
        "    i = top + down * y",
        "    j = left + across * x",
    ]
    for index, count in (("i", "h"), ("j", "w")):
        lines += ["    " + line.format(i=index, n=count) for line in _INDEX[border]]
    if border == "constant":
        lines += ["    inside = i >= 0 and i < h and j >= 0 and j < w"]
        color = "fill.r"
        if rank == 3:
            color = "fill.r if c == 0 else fill.g if c == 1 else fill.b if c == 2 else fill.a"
        lines += [f"    color = {color}"]
        color = "int(color)" if dtype == "u8" else "color"
        lines += [f"    return a[i, j{channel}] if inside else {color}"]
    else:
        lines += [f"    return a[i, j{channel}]"]
    text = "\n".join(lines)
    return text_kernel("place", text)


@picture_filter("Geometry", keeps_alpha=False, resizes=True, example="box=(40, 20, 200, 140)")
class Crop(_Placed):
    """Cut a rectangle out of a picture.

    Give ``box``, or ``size`` for the center. Pixels are copied.

    Values are copied: nothing is rounded.

    Args:
        box (pixels): (left, top, right, bottom) as in Pillow; right and bottom are not included.
        size (pixels): (width, height) of the center; at most the picture's.
    """

    title = "crop"
    options = (Parameter("box", "ints", size=4, low=0, high=1 << 24), size_parameter(high=1 << 24))

    def _place(self, height: int, width: int, values: OperationValues) -> _Placement:
        box, size = values["box"], values["size"]
        if (box is None) == (size is None):
            raise ParameterError(
                "crop: give box=(left, top, right, bottom), or size=(width, height) for the center"
                f"; got {'neither' if box is None else 'both'}.",
                call="crop",
                argument="box",
            )
        if box is None:
            wide, high = size
            if high > height or wide > width:
                expected = f"(width, height) within {_whole(height, width)}"
                raise OutsidePicture.invalid("crop", "size", expected, size, "pad() adds pixels.")
            return _Placement(rows_first(size), ((height - high) // 2, (width - wide) // 2))
        left, top, right, bottom = box
        expected = "(left, top, right, bottom)"
        if not (left < right and top < bottom):
            ordered = f"{expected} with left < right and top < bottom"
            raise self.wrong_value("box", ordered, box)
        if right > width or bottom > height:
            expected = f"{expected} within {_whole(height, width)}"
            raise OutsidePicture.invalid("crop", "box", expected, box, "pad() adds pixels.")
        return _Placement((bottom - top, right - left), (top, left))


def _whole(height: int, width: int) -> str:
    return f"the picture of {width} x {height} pixels"


@picture_filter(
    "Geometry",
    keeps_alpha=False,
    resizes=True,
    needs=("padding",),
    example='padding=16, border="reflect"',
)
class Pad(_Placed):
    """Add pixels around a picture.

    Pixels are copied; in u8 pictures ``fill`` is rounded to bytes.

    Args:
        padding (pixels): one number for all sides, or (left, top, right, bottom).
        border: the new pixels: "constant" (``fill``), "clamp" (the nearest pixel), "reflect"
            (mirrored, without repeating the edge) or "wrap" (repeated). A small picture is mirrored
            or repeated as often as needed.
        fill: a color by name, or r, g, b, a of 0 to 1, for the border "constant".
    """

    title = "pad"
    options = (
        Parameter("padding", "ints", size=4, spread=True, low=0, high=1 << 20),
        *_SAMPLING[1:],
    )

    def _place(self, height: int, width: int, values: OperationValues) -> _Placement:
        left, top, right, bottom = values["padding"] or (0,) * 4
        return _Placement((top + height + bottom, left + width + right), (-top, -left))


@picture_filter("Geometry", keeps_alpha=False, example='direction="horizontal"')
class Flip(_Placed):
    """Mirror a picture.

    Values are copied: nothing is rounded.

    Args:
        direction: "horizontal" exchanges left and right; "vertical" exchanges top and bottom;
            "both" does both.
    """

    title = "flip"
    options = (
        Parameter("direction", "choice", "horizontal", choices=("horizontal", "vertical", "both")),
    )

    def _place(self, height: int, width: int, values: OperationValues) -> _Placement:
        down = values["direction"] != "horizontal"
        across = values["direction"] != "vertical"
        first = height - 1 if down else 0, width - 1 if across else 0
        return _Placement((height, width), first, (-1 if down else 1, -1 if across else 1))
