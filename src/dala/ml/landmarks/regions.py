"""Regions of interest: rotated squares of a picture, cut out on our device for a model's input."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala.errors import ModelError
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.compute.params import CheckedParams, PixelSize
from dala.ml.prepare import Placement, kernel, on_device
from dala.ml.results import Box, Face, Hand
from dala.typing import ImageLike, NDArray

#: Regions are cut out at up to this many times the input's size, and then scaled down by area.
_FINEST: Final = 4


#: Where a model's input is in a picture.
Placed: TypeAlias = "Placement | Region"


def unit(placed: Placed) -> float:
    """Return the pixels of the picture per pixel of the input."""
    return float(np.hypot(*np.subtract(*placed.back([(1, 0), (0, 0)]))))


@dataclass(frozen=True)
class Region:
    """A square of a picture: its center and side in pixels, rotated clockwise by radians.

    ``size`` is (width, height) of the model's input, and ``mirrored`` says that the input is
    flipped left to right.

    >>> region = Region(100.0, 50.0, 40.0, 0.0, (64, 64))
    >>> region.back([[0, 0], [64, 32]]).tolist(), region.box
    ([[80.0, 30.0], [120.0, 50.0]], (80.0, 30.0, 120.0, 70.0))
    """

    x: float
    y: float
    side: float
    angle: float
    size: tuple[int, int]
    mirrored: bool = False

    def back(self, points: npt.ArrayLike) -> NDArray:
        """Convert points (n, 2) from the input to the picture."""
        parts = np.asarray(points, np.float64) / self.size - 0.5
        return self._placed(parts)

    @property
    def scale(self) -> float:
        """Pixels of the picture per pixel of the input."""
        return self.side / self.size[0]

    @property
    def box(self) -> Box:
        """The bounding box: x1, y1, x2, y2."""
        corners = self._placed(np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]))
        (x1, y1), (x2, y2) = corners.min(0).tolist(), corners.max(0).tolist()
        return x1, y1, x2, y2

    def matrix(self, times: int = 1) -> tuple[float, ...]:
        """Return six numbers from pixels of the input, scaled by ``times``, to the picture."""
        wide, high = (n * times for n in self.size)
        corner, right, down = self._placed(
            np.array([(0.5, 0.5), (1.5, 0.5), (0.5, 1.5)]) / (wide, high) - 0.5
        )
        (a, d), (b, e), (c, f) = right - corner, down - corner, corner - 0.5
        return float(a), float(b), float(c), float(d), float(e), float(f)

    def _placed(self, parts: NDArray) -> NDArray:
        """Convert points from -0.5 to 0.5 in the square to the picture."""
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        x = -parts[..., 0] if self.mirrored else parts[..., 0]
        y = parts[..., 1]
        turned = np.stack([x * cos - y * sin, x * sin + y * cos], axis=-1) * self.side
        found: NDArray = np.add(turned, (self.x, self.y))
        return found


def around(
    points: NDArray,
    angle: float,
    size: tuple[int, int],
    *,
    scale: float,
    shift: float = 0.0,
    mirrored: bool = False,
) -> Region:
    """Return the square around points (n, 2), in the rotated frame.

    Args:
        points: in pixels of the picture.
        angle: of the square, in radians.
        size: (width, height) of the model's input.
        scale: the side, relative to the longer side of the points' bounding box.
        shift: along the rotated y axis, relative to the height of that box.
        mirrored: whether the input is flipped.
    """
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = points[:, 0] * cos + points[:, 1] * sin, points[:, 1] * cos - points[:, 0] * sin
    wide, high = float(np.ptp(x)), float(np.ptp(y))
    middle_x = float(x.min()) + wide / 2
    middle_y = float(y.min()) + high / 2 + shift * high
    side = max(wide, high, 1.0) * scale
    center = middle_x * cos - middle_y * sin, middle_x * sin + middle_y * cos
    return Region(*center, side, angle, size, mirrored)


def around_detections(
    found: Iterable[Face | Hand],
    bone: tuple[str, str],
    size: tuple[int, int],
    *,
    scale: float,
    turn: float = 0.0,
    shift: float = 0.0,
) -> list[Region]:
    """Return the squares around detected faces or palms, rotated by a bone.

    Args:
        found: with boxes and points.
        bone: the names of two points, whose direction is that of the square.
        size: (width, height) of the model's input.
        scale: the side, relative to the longer side of the box, which a border may have cut.
        turn: added to the angle of the bone, in radians.
        shift: along the rotated y axis, relative to the longer side of the box.
    """
    made = []
    for one in found:
        ends = one.bone(*bone)
        angle = direction(tuple(ends.start), tuple(ends.end)) + turn
        x1, y1, x2, y2 = one.box
        side = max(x2 - x1, y2 - y1, 1.0)
        x = (x1 + x2) / 2 - side * shift * np.sin(angle)
        y = (y1 + y2) / 2 + side * shift * np.cos(angle)
        made.append(Region(float(x), float(y), side * scale, angle, size))
    return made


def direction(start: npt.ArrayLike, end: npt.ArrayLike) -> float:
    """Return the angle in radians from one point to another; 0 is to the right, pi / 2 down."""
    x, y = np.subtract(end, start).tolist()
    return math.atan2(y, x)


class RegionSource:
    """A picture on a device, from which regions are cut out.

    >>> source = RegionSource(np.zeros((4, 6, 3), np.uint8), "predict")
    >>> source.width, source.height
    (6, 4)
    """

    def __init__(self, image: ImageLike, call: str) -> None:
        self.pixels = on_device(image, None, call)
        self.height, self.width = self.pixels.shape[:2]

    def tensor(self, region: Region, params: CheckedParams, border: str = "clamp") -> NDArray:
        """Return a model's input: the region, upright, prepared with the model's parameters.

        It is one affine warp, and where the picture is finer than the input a reduction by area.
        ``border`` is that of ``warp_affine``, for what is outside the picture.
        """
        times = max(1, min(_FINEST, math.ceil(region.scale - 0.5)))
        size = PixelSize(*(n * times for n in region.size))
        cut = get_kernel("warp_affine")(
            self.pixels, matrix=region.matrix(times), size=size, border=border
        )
        made = kernel().make(cut, params, None).numpy()
        if not np.isfinite(made.sum()):
            raise ModelError("predict: the picture contains NaN or infinity.")
        return made

    def holds(self, region: Region) -> bool:
        """Return whether the center of a region is in the picture, and its side is of some size."""
        finite = all(map(math.isfinite, (region.x, region.y, region.side, region.angle)))
        inside = finite and 0 <= region.x < self.width and 0 <= region.y < self.height
        return inside and 1 <= region.side <= 4 * max(self.width, self.height)
