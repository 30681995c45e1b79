"""Smoothing over time: the One-Euro filter, for points of a video that do not jitter.

The filter is a low-pass whose cutoff grows with the speed: what rests is steady, and what moves
fast does not lag.

>>> smooth = OneEuro(min_cutoff=1.0, beta=0.0)
>>> [round(float(smooth([x], k / 30)[0]), 3) for k, x in enumerate((0.0, 1.0, 1.0))]
[0.0, 0.173, 0.316]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from dala.arguments import Quantity
from dala.errors import ParameterError, ShapeMismatch
from dala.ml.boxes import nearest
from dala.ml.results import Face, FaceMesh, Faces, Hand, Hands, Pose, Poses
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.ml.stream import StreamResult

__all__ = ["OneEuro", "Smoother"]

_R = TypeVar("_R", bound="Poses | Faces | Hands")
#: What is smoothed.
_Found: TypeAlias = "Pose | Face | Hand"
#: The farthest mean distance of the points of one person in two frames, in sizes of the person.
_FAR: Final = 0.5
#: Seconds after which a person who is not seen is forgotten.
_FORGET: Final = 0.5


class OneEuro:
    """The One-Euro filter of Casiez, Roussel and Vogel, for arrays of values.

    Each value x with the speed v is smoothed with the cutoff ``min_cutoff + beta * abs(v)``, where
    v is itself smoothed with ``derivative_cutoff``.

    Args:
        min_cutoff: the cutoff at rest, in Hz. Lower values jitter less.
        beta: the growth of the cutoff, in Hz per unit of speed. Higher values lag less.
        derivative_cutoff: the cutoff of the speed, in Hz.

    >>> smooth = OneEuro()
    >>> smooth([[3.0, 4.0]], 0.0)
    array([[3., 4.]])
    """

    def __init__(
        self, min_cutoff: float = 1.0, beta: float = 0.0, derivative_cutoff: float = 1.0
    ) -> None:
        self.min_cutoff = _positive("OneEuro", "min_cutoff", min_cutoff)
        self.beta = _positive("OneEuro", "beta", beta, zero=True)
        self.derivative_cutoff = _positive("OneEuro", "derivative_cutoff", derivative_cutoff)
        self.reset()

    def reset(self) -> None:
        """Forget the past; the next values are returned as they are.

        >>> OneEuro().reset()
        """
        self._time = -math.inf
        self._values: NDArray = np.zeros(0)
        self._speed: NDArray = np.zeros(0)

    def __call__(
        self, values: npt.ArrayLike, time: float | Fraction, scale: float = 1.0
    ) -> NDArray:
        """Return the smoothed values, f64, of the same shape.

        Args:
            values: numbers, an array of any shape, the same in each call.
            time: in seconds, later than in the last call.
            scale: the unit of speed, such as the size of a person in pixels, so that ``beta`` does
                not depend on it.
        """
        given = np.array(values, np.float64)
        if not np.isfinite(given).all():
            raise ParameterError("OneEuro: values must be finite.")
        scale = _positive("OneEuro", "scale", scale)
        at = Quantity(unit="seconds").check("OneEuro", "time", time)
        if at <= self._time:
            expected = f"later than in the last call, {self._time:g}"
            advice = "Call reset() to begin afresh."
            raise ParameterError.invalid("OneEuro", "time", expected, time, advice)
        if self._time == -math.inf:
            self._time, self._values, self._speed = at, given, np.zeros_like(given)
            return given.copy()
        if given.shape != self._values.shape:
            raise ShapeMismatch(
                f"OneEuro: values must have the shape {self._values.shape} as in the last call, "
                f"got {given.shape}."
            )
        step = at - self._time
        speed = (given - self._values) / step
        self._speed = self._speed + _share(self.derivative_cutoff, step) * (speed - self._speed)
        cutoff = self.min_cutoff + self.beta * np.abs(self._speed) / scale
        self._values = self._values + _share(cutoff, step) * (given - self._values)
        self._time = at
        return self._values.copy()


def _share(cutoff: float | NDArray, step: float) -> NDArray:
    """The share of a new value in a low-pass of a cutoff in Hz, after a step in seconds."""
    turns = 2 * math.pi * np.asarray(cutoff) * step
    return turns / (turns + 1)


def _positive(call: str, name: str, value: float, zero: bool = False) -> float:
    return Quantity(0, above=not zero).check(call, name, value)


@dataclass(eq=False)
class _Person:
    """A person, face or hand that is smoothed. Its id is 0 if it is not followed."""

    id: int
    points: NDArray
    filter: OneEuro
    time: float = -math.inf


class Smoother(Generic[_R]):
    """Smooths the points of people, faces or hands over the frames of one video.

    Each person has a filter of their own. The people of a frame are matched with those of the last
    one by their ids, or by the distance of their points if they have none. Meshes and boxes are
    smoothed too; scores are not changed.

    Args:
        min_cutoff: the cutoff of a point at rest, in Hz.
        beta: the growth of the cutoff, in Hz per speed of one size of the person a second.

    Example::

        smoother = Smoother()
        for seen in smoother.stream(model.stream(video.open("dance.mp4"), "every")):
            seen.result.draw(seen.frame)

    >>> from dala.ml.results import Keypoint
    >>> smoother = Smoother()
    >>> rest = Poses([Pose((Keypoint("nose", 10.0, 10.0), Keypoint("hip", 10.0, 90.0)), 0.9)])
    >>> moved = Poses([Pose((Keypoint("nose", 12.0, 10.0), Keypoint("hip", 10.0, 90.0)), 0.9)])
    >>> first, then = smoother.update(rest, 0.0), smoother.update(moved, 1 / 30)
    >>> 10 < then[0]["nose"].x < 12
    True
    """

    def __init__(self, *, min_cutoff: float = 1.0, beta: float = 10.0) -> None:
        self.min_cutoff = _positive("Smoother", "min_cutoff", min_cutoff)
        self.beta = _positive("Smoother", "beta", beta, zero=True)
        self.reset()

    def reset(self) -> None:
        """Forget all people, for another video or after a cut.

        >>> Smoother().reset()
        """
        self._people: list[_Person] = []
        self._time = -math.inf

    def update(self, found: _R, time: float | Fraction) -> _R:
        """Return the people, faces or hands of the next frame with smoothed points.

        Args:
            found: ``Poses``, ``Faces`` or ``Hands``.
            time: of the frame, in seconds. A time before that of the last frame begins afresh.

        >>> Smoother().update(Poses(), 0)
        []
        """
        if not isinstance(found, Poses | Faces | Hands):
            expected = "Poses, Faces or Hands"
            raise ParameterError.invalid("Smoother.update", "found", expected, found)
        at = Quantity(unit="seconds").check("Smoother.update", "time", time)
        if at <= self._time:
            self.reset()
        self._time = at
        self._people = [p for p in self._people if at - p.time <= _FORGET]
        elements = cast("list[_Found]", found)
        given = [_points(one) for one in elements]
        matched = self._matched([one.id for one in elements], given)
        made = []
        for one, points, person in zip(elements, given, matched, strict=True):
            if person is None:
                person = _Person(one.id, points, OneEuro(self.min_cutoff, self.beta))
                self._people.append(person)
            person.points, person.time = points, at
            smoothed = person.filter(points, at, _size(points))
            made.append(_moved(one, smoothed))
        return type(found)(made, found.raw)  # type: ignore[arg-type]  # the elements are its own

    def stream(
        self, results: Iterable[StreamResult[_R]], fps: float = 30.0
    ) -> Iterator[StreamResult[_R]]:
        """Yield the frames of ``model.stream`` with smoothed points.

        Args:
            results: of ``model.stream``.
            fps: the frames a second of a stream whose frames have no time.

        >>> list(Smoother().stream([]))
        []
        """
        from dala.ml.stream import StreamResult

        rate = _positive("Smoother.stream", "fps", fps)
        for k, seen in enumerate(results):
            time = k / rate if seen.time is None else seen.time
            yield StreamResult(seen.frame, self.update(seen.result, time), seen.time)

    def _matched(self, ids: Sequence[int], given: Sequence[NDArray]) -> list[_Person | None]:
        """Return the known person of each set of points, or None."""
        found: list[_Person | None] = [None] * len(given)
        if not self._people or not given:
            return found
        far = np.full((len(given), len(self._people)), _FAR)
        for i, points in enumerate(given):
            for j, person in enumerate(self._people):
                if person.points.shape == points.shape and person.id == ids[i]:
                    off = (person.points - points)[:, :2]
                    apart = np.hypot(*off.T).mean() / _size(points)
                    far[i, j] = 0 if person.id else apart
        for i, j in nearest(far, _FAR):
            found[i] = self._people[j]
        return found


def _points(one: _Found) -> NDArray:
    """Return the points (n, 3); of a face and a hand also the corners of its box."""
    if isinstance(one, FaceMesh):
        return np.array(one.mesh, np.float64)
    points = [(p.x, p.y, p.z) for p in one.keypoints]
    if not isinstance(one, Pose):
        x1, y1, x2, y2 = one.box
        points += [(x1, y1, 0), (x2, y2, 0)]
    return np.array(points, np.float64).reshape(-1, 3)


def _size(points: NDArray) -> float:
    """Return the larger side of the bounding box of points, at least one pixel."""
    return max(1.0, float(np.ptp(points[:, :2], axis=0).max())) if len(points) else 1.0


def _moved(one: _Found, points: NDArray) -> _Found:
    """Return a person, face or hand with other points."""
    if isinstance(one, FaceMesh):
        return FaceMesh.of(points, one.score, one.id)
    rows = points.tolist()
    moved = tuple(
        replace(p, x=x, y=y, z=z) for p, (x, y, z) in zip(one.keypoints, rows, strict=False)
    )
    if isinstance(one, Pose):
        return replace(one, keypoints=moved)
    return replace(one, keypoints=moved, box=(*rows[-2][:2], *rows[-1][:2]))
