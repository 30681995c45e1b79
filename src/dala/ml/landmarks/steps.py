"""Models in steps: a detector, regions of interest, and a model that finds points in each.

A video needs the detector only now and then: see ``dala.ml.landmarks.follow``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dala import forks
from dala.errors import ModelError
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.compute.params import CheckedParams, PixelSize
from dala.ml.model import Model, ModelInput, R
from dala.ml.prepare import Placement, kernel, on_device
from dala.ml.results import Box, Face, Faces, Hand, Hands, Outputs, Pose, Poses, Prediction
from dala.ml.runtime.session import Session
from dala.ml.spec import ModelSpec, RawResult
from dala.typing import ImageLike, NDArray

if TYPE_CHECKING:
    from dala.ml.landmarks.follow import LandmarkTracker

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
        return np.add(turned, (self.x, self.y))


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


#: What such a model finds, and the list of them.
Landmarks: TypeAlias = "Face | Hand | Pose"
LandmarkResults: TypeAlias = "Faces | Hands | Poses"
#: Loads another model by name, with the provider of this one.
Load: TypeAlias = Callable[[str], "Model[Prediction]"]
#: Runs a part by name on a region, and returns its outputs.
RunPart: TypeAlias = Callable[[str, Region], Outputs]
#: Adds points of other parts to a result.
Refine: TypeAlias = Callable[[Landmarks, RunPart], Landmarks]

#: The mean distance of the points of two results of the same object, relative to its size.
_SAME: Final = 0.15
#: Regions that differ by less, in radians and relative to their sides, are the same to a model.
_STILL: Final = 0.05


@dataclass(frozen=True)
class LandmarkSteps:
    """The steps around a model of landmarks."""

    #: The name of the model that detects.
    detector: str
    #: The regions of what the detector found. The second argument is (width, height) of the input.
    regions: Callable[[Prediction, tuple[int, int]], list[Region]]
    #: The region of a result in the next frame, from its outputs and its region in this one.
    again: Callable[[Landmarks, Outputs, Region], Region]
    #: The type of the list of results.
    gather: type[Faces] | type[Hands] | type[Poses]
    #: An option that asks for ``refine``, which runs further parts.
    asked: str = ""
    refine: Refine | None = None
    #: What the model sees outside the picture: "clamp" repeats the border, "constant" is black.
    border: str = "clamp"
    #: The most looks at what was just detected, each where the one before found it. One is enough
    #: where detectors are as exact as the model.
    looks: int = 1


class RegionResult(NamedTuple):
    """A result in a region, and its region in the next frame."""

    found: Landmarks
    region: Region


class LandmarkModel(Model[R]):
    """A model that finds points in the regions that a detector finds, made by ``load_model``.

    A picture goes through all steps. A tensor is the input of the last step, and its points are in
    pixels of the tensor. ``stream`` follows what it found from frame to frame; so does a tracker.

    Example::

        with load_model("hands") as model:
            for hand in model.predict(photo):
                print(hand.side, hand.point("index_tip"))
    """

    def __init__(
        self, session: Session, spec: ModelSpec, path: str, size: tuple[int, int] | None, load: Load
    ) -> None:
        super().__init__(session, spec, spec.name, path, size)
        assert spec.steps is not None
        self.steps = spec.steps
        self._load = load
        self._lock = forks.lock()
        self._parts: dict[str, Model[Prediction]] = {}
        try:
            self.part(self.steps.detector)
        except BaseException:
            session.close()
            raise

    def part(self, name: str) -> Model[Prediction]:
        """Return the model of another step by its name; it is loaded on first use."""
        with self._lock:
            found = self._parts.get(name)
            if found is None:
                found = self._parts[name] = self._load(name)
            return found

    def _many(self, given: list[ModelInput], options: Mapping[str, float]) -> list[R]:
        return [cast(R, self._one(one, options)) for one in given]

    def _one(self, input: ModelInput, options: Mapping[str, float]) -> R | list[R]:
        """Run all steps on a picture; or the last step on a tensor."""
        if self._port is not None and self._as_tensor(input, self._port) is not None:
            return super()._one(input, options)
        picture = RegionSource(input, "predict")
        found: list[Landmarks] = []
        for region in self.detect(picture, options):
            seen = self.find(picture, region, options, fresh=True)
            if seen is not None and not any(same(seen.found, other) for other in found):
                found.append(seen.found)
        found.sort(key=lambda one: -one.score)
        return cast(R, self.gathered(found))

    def detect(self, picture: RegionSource, options: Mapping[str, float]) -> list[Region]:
        """Run the detector, and return the regions of its findings, best first."""
        detector = self.part(self.steps.detector)
        found = detector.predict(picture.pixels, score=options["detector_score"])
        assert self._size is not None
        regions = self.steps.regions(found, self._size[::-1])
        return [r for r in regions if picture.holds(r)][: int(options["most"])]

    def find(
        self,
        picture: RegionSource,
        region: Region,
        options: Mapping[str, float],
        *,
        fresh: bool = False,
    ) -> RegionResult | None:
        """Return the finding in a region, or None if its score is too low.

        A ``fresh`` region is that of a detector, which may be far off: the model looks again where
        its result is, until that changes little.
        """
        seen: RegionResult | None = None
        for _ in range(self.steps.looks if fresh else 1):
            rows = self._rows(self, picture, region)
            # A Region has what the decoders of these models use of a Placement.
            raw = RawResult(rows, region, self.labels, options)  # type: ignore[arg-type]
            made = self.spec.decode(raw)
            if not made:
                break
            found = cast("Landmarks", made[0])
            seen = RegionResult(found, self.steps.again(found, rows, region))
            if _settled(region, seen.region) or not picture.holds(seen.region):
                break
            region = seen.region
        if seen is not None and self.steps.refine is not None and options.get(self.steps.asked):
            found = self.steps.refine(
                seen.found, lambda name, at: self._rows(self.part(name), picture, at)
            )
            return RegionResult(found, seen.region)
        return seen

    def gathered(self, found: Sequence[Landmarks]) -> LandmarkResults:
        """Return results as the list of their type."""
        return self.steps.gather(found)  # type: ignore[arg-type]  # they are of its type

    def tracker(self, *, refresh: int = 30, keep: int = 30, **options: float) -> LandmarkTracker[R]:
        """Return a tracker for the frames of one video; ``stream`` makes one too.

        Args:
            refresh: the number of frames after which the detector looks for more.
            keep: the number of frames for which something that is lost keeps its id.
            **options: as for ``predict``.
        """
        from dala.ml.landmarks.follow import LandmarkTracker

        return LandmarkTracker(self, options, refresh=refresh, keep=keep)

    def follower(self, options: Mapping[str, float]) -> Callable[[ImageLike], R]:
        """Return the function from each frame of a video, in order, to its result."""
        from dala.ml.landmarks.follow import LandmarkTracker

        return LandmarkTracker(self, options).update

    def warmup(self) -> LandmarkModel[R]:
        """Run all steps once on zeros; see :meth:`dala.ml.Model.warmup`."""
        super().warmup()
        for part in list(self._parts.values()):
            part.warmup()
        return self

    def close(self) -> None:
        """Release the memory of all steps. Closing twice is allowed."""
        for part in list(self._parts.values()):
            part.close()
        super().close()

    def _rows(self, part: Model[Any], picture: RegionSource, region: Region) -> Outputs:
        """Return the outputs of a part for a region, without the batch axis."""
        outputs = part.run(picture.tensor(region, part._params, self.steps.border))
        return {name: array[0] for name, array in outputs.items()}


def same(one: Landmarks, other: Landmarks) -> bool:
    """Return whether two results are of the same object: their points are close to each other."""
    a, b = points_of(one), points_of(other)
    size = max(1.0, float(np.ptp(a, axis=0).max()), float(np.ptp(b, axis=0).max()))
    return bool(np.hypot(*(a - b).T).mean() < _SAME * size)


def _settled(one: Region, other: Region) -> bool:
    """Return whether two regions are nearly the same."""
    turned = math.remainder(one.angle - other.angle, 2 * math.pi)
    moved = math.hypot(one.x - other.x, one.y - other.y) / one.side
    return max(moved, abs(turned), abs(other.side / one.side - 1)) < _STILL


def points_of(one: Landmarks) -> NDArray:
    """Return the keypoints (n, 2)."""
    return np.array([(p.x, p.y) for p in one.keypoints], np.float64)
