"""Gaussian and box blurs: separable, clamped at the border, alpha kept."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.engines.sampling import gauss
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray

#: The largest sigma of ``gaussian_blur``.
MAX_SIGMA = 100.0

#: Smaller sigmas are raised to this: neighbors have no weight (exp(-5000)), and sigma**2 is not 0.
_MIN_SIGMA = 0.01


def radius_for(sigma: float) -> int:
    """Return the default radius for a sigma: 3 * sigma, rounded up."""
    return min(math.ceil(3 * sigma), gauss.MAX_RADIUS)


def _reach(values: dict[str, Any]) -> int:
    """Return the radius of a blur, which may follow from sigma."""
    radius: int | None = values["radius"]
    return radius_for(values["sigma"]) if radius is None else radius


@picture_filter("Neighborhoods", example="radius=8", reach=_reach)
class Blur(Operation):
    """Blur with a Gaussian of a given radius.

    The weighted mean over the square of 2 * radius + 1. A pixel at (dx, dy) has the weight
    ``exp(-dx**2 / (2 sigma**2)) * exp(-dy**2 / (2 sigma**2))``; the weights sum to 1. Reads beyond
    the border are clamped to the nearest pixel.

    u8 pictures have the same bytes on every device: weights are rounded to 1/65536 and sum to 1;
    columns are summed exactly and rounded to 1/64, then rows to the byte.

    Beyond a radius of 60 the Gaussian is summed on a coarse grid of pixels, so that the time does
    not grow with the radius. With the default sigma, results are within 0.6 / 255 of the exact
    value at straight edges, and within 2.4 / 255 for any picture of values from 0 to 1; with a
    sigma above the radius, within 1.6 / 255 and 5.5 / 255. They stay within the picture's range.
    Samples of u8 pictures are rounded to 1/128 when made and after each axis.

    Args:
        radius (pixels): 0 changes nothing.
        sigma (pixels): above 0; radius / 2 by default. From twice the radius it approaches a box.
    """

    title = "blur"
    takes = ("img",)
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("radius", "int", 3, 0, gauss.MAX_RADIUS),
        Parameter("sigma", "float"),
    )
    dtypes = ("f32", "u8")
    code: ClassVar[str] = "blur"

    def _radius_and_sigma(self, values: OperationValues) -> tuple[int, float]:
        """Return the checked radius and sigma; by default each is derived from the other."""
        radius, sigma = values["radius"], values["sigma"]
        if sigma is not None and not 0 < sigma < math.inf:
            raise self.wrong_value(
                "sigma", "a finite number above 0", sigma, "For no blur use radius=0."
            )
        if radius is None:
            radius = radius_for(sigma)
        if sigma is None:
            sigma = radius / 2 or 1.0
        return radius, max(sigma, _MIN_SIGMA)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        self.want_image(inputs)
        self._radius_and_sigma(values)
        return inputs[0]

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        radius, sigma = self._radius_and_sigma(values)
        if self.code == "blur":
            radius = gauss.used_radius(radius, sigma)
        return {"radius": radius, "sigma": sigma}

    def _weights(self, task: Task) -> NDArray:
        return gauss.gaussian_weights(task["radius"], task["sigma"])

    def define(self, task: Task, img: NDArray) -> NDArray:
        if task["radius"] == 0:
            return img
        colors = img[..., :3] if img.ndim == 3 else img
        blurred = (self._bytes if img.dtype == np.uint8 else self._floats)(task, colors)
        if img.ndim == 3 and img.shape[2] == 4:
            return np.concatenate([blurred, img[..., 3:].astype(blurred.dtype)], axis=2)
        return blurred

    def _floats(self, task: Task, img: NDArray) -> NDArray:
        """Return the blurred colors of an f32 picture, in f64."""
        numbers = img.astype(np.float64)
        if task.op == "blur" and task["radius"] > gauss.EXACT_RADIUS:
            coarse = gauss.coarse_blur(task["radius"], task["sigma"])
            return _coarsely(_coarsely(numbers, 0, coarse), 1, coarse)
        weights = self._weights(task)
        return _along(_along(numbers, 0, weights), 1, weights)

    def _bytes(self, task: Task, img: NDArray) -> NDArray:
        """Return the blurred colors of a u8 picture; all sums are exact."""
        numbers = img.astype(np.int64)
        if task["radius"] > gauss.EXACT_RADIUS:
            return _coarse_bytes(numbers, gauss.coarse_blur(task["radius"], task["sigma"]))
        steps = gauss.byte_steps(task["radius"], task["sigma"])
        weights = np.array([*steps[:0:-1], *steps])
        middle = gauss.shifted(_along(numbers, 0, weights), gauss.MIDDLE_SHIFT)
        return gauss.shifted(_along(middle, 1, weights), gauss.RESULT_SHIFT)


@picture_filter("Neighborhoods", example="sigma=2.5", reach=_reach)
class GaussianBlur(Blur):
    """Blur with a Gaussian of a given standard deviation.

    ``blur`` with a radius derived from sigma.

    Args:
        sigma (pixels): the standard deviation, above 0.
        radius (pixels): 3 * sigma rounded up by default, at most 200; 0 changes nothing.
    """

    title = "gaussian_blur"
    options = (
        Parameter("sigma", "float", 1.5, None, MAX_SIGMA),
        Parameter("radius", "int", None, 0, gauss.MAX_RADIUS),
    )


@picture_filter("Neighborhoods", example="radius=6", reach="radius")
class BoxBlur(Blur):
    """Blur with the plain mean over a square.

    The mean over the square of 2 * radius + 1, as ``cv2.blur`` with that size. The cost on the CPU
    does not grow with the radius. u8 pictures have the same bytes on every device: the exact sum,
    divided and rounded once, halves up.

    Args:
        radius (pixels): 0 changes nothing.
    """

    title = "box_blur"
    code = "box_blur"
    options = (Parameter("radius", "int", 3, 0, gauss.MAX_RADIUS),)

    def _radius_and_sigma(self, values: OperationValues) -> tuple[int, float]:
        return values["radius"], 0.0

    def _weights(self, task: Task) -> NDArray:
        return gauss.box_weights(task["radius"])

    def _bytes(self, task: Task, img: NDArray) -> NDArray:
        size = 2 * task["radius"] + 1
        ones = np.ones(size, np.int64)
        total = _along(_along(img.astype(np.int64), 0, ones), 1, ones)
        return np.asarray((2 * total + size**2) // (2 * size**2))


def _along(numbers: NDArray, axis: int, weights: NDArray) -> NDArray:
    """Convolve along an axis; reads beyond the border are clamped."""
    radius, size = len(weights) // 2, numbers.shape[axis]
    padding = [(0, 0)] * numbers.ndim
    padding[axis] = (radius, radius)
    wide = np.pad(numbers, padding, "edge")
    total = np.zeros_like(numbers)
    for k, weight in enumerate(weights):
        part = (slice(None),) * axis + (slice(k, k + size),)
        total += wide[part] * weight
    return total


def _coarsely(numbers: NDArray, axis: int, coarse: gauss.CoarseBlur) -> NDArray:
    """Blur along an axis on a coarse grid; see ``sampling.gauss``."""
    pixels = np.moveaxis(numbers, axis, 0)
    grid = _to_grid(pixels, 0, coarse) / (1 << coarse.share_bits)
    grid = _along(grid, 0, np.array([*coarse.weights[:0:-1], *coarse.weights]))
    places = [coarse.place(x) for x in range(len(pixels))]
    before = np.array([at for at, _ in places], np.intp)
    part = np.array([p for _, p in places]).reshape(-1, *(1,) * (grid.ndim - 1))
    return np.moveaxis(grid[before] * (1.0 - part) + grid[before + 1] * part, 0, axis)


def _coarse_bytes(numbers: NDArray, coarse: gauss.CoarseBlur) -> NDArray:
    """Blur bytes on a coarse grid, in integers; see ``sampling.gauss``."""
    height, width = numbers.shape[:2]
    grid = _to_grid(_to_grid(numbers, 0, coarse), 1, coarse)
    grid = gauss.shifted(grid << gauss.GRID_SHIFT, 2 * coarse.share_bits)
    steps = coarse.steps()
    weights = np.array([*steps[:0:-1], *steps])
    for axis in (0, 1):
        grid = gauss.shifted(_along(grid, axis, weights), 16)
    parts = 2 * coarse.factor
    for axis, size in ((0, height), (1, width)):
        places = [coarse.place(x) for x in range(size)]
        before = np.array([at for at, _ in places], np.intp)
        part = np.array([int(parts * p) for _, p in places])
        part = part.reshape(-1, *(1,) * (grid.ndim - axis - 1))
        near, far = (np.take(grid, before + k, axis=axis) for k in (0, 1))
        grid = near * (parts - part) + far * part
    return gauss.shifted(grid, gauss.GRID_SHIFT + 2 * (parts.bit_length() - 1))


def _to_grid(numbers: NDArray, axis: int, coarse: gauss.CoarseBlur) -> NDArray:
    """Return the sums of a grid's samples along an axis, in units of their smallest share."""
    pixels = np.moveaxis(numbers, axis, 0)
    last = len(pixels) - 1
    first = np.array([coarse.first_pixel(i) for i in range(coarse.samples(len(pixels)))])
    grid = np.zeros((len(first), *pixels.shape[1:]), pixels.dtype)
    for k, share in enumerate(coarse.shares()):
        grid += pixels[np.clip(first + k, 0, last)] * share
    return np.moveaxis(grid, 0, axis)
