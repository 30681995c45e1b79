"""Tracking: the same id for the same object, from frame to frame.

The method is that of ByteTrack. Each track predicts its box with a Kalman filter of constant
velocity. Sure detections are matched with the predictions first, by overlap; unsure ones, such as
of objects that are partly covered, only continue tracks that are left over. A track that is not
found is kept for some frames, and gets its id back if it is found again near its prediction.

>>> from dala.ml.results import Detection
>>> tracker = Tracker()
>>> for x in (0, 4, 8):
...     tracks = tracker.update([Detection((x, 0, x + 40, 30), "dog", 0.8)])
>>> print(tracks)
#1 dog 0.80 at x 7..47, y 0..30
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.arguments import Flag, Integer, Quantity
from dala.errors import ParameterError
from dala.ml.boxes import iou_matrix, nearest
from dala.ml.results import Box, Detection, Detections, Faces, TrackedObject, TrackedObjects
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.ml.stream import StreamResult

__all__ = ["Motion", "Tracker"]

#: The least overlap of an unsure detection with a track, and of the second sight of a new object.
_LOW_OVERLAP: Final = 0.5
_NEW_OVERLAP: Final = 0.3
#: Standard deviations in a frame, as fractions of the box: of its place, and of its velocity.
_PLACE: Final = 1 / 20
_VELOCITY: Final = 1 / 160


class Motion:
    """A Kalman filter of a box: center and size, each with a constant velocity.

    The four are independent, so that their covariances are four of 2 x 2: ``place``, ``mixed`` and
    ``speed`` hold their three values.

    >>> motion = Motion((0, 0, 10, 10))
    >>> motion.predict()
    >>> motion.correct((2, 0, 12, 10))
    >>> motion.velocity.round(2).tolist()
    [0.41, 0.0, 0.0, 0.0]
    """

    def __init__(self, box: Box) -> None:
        self.at = _center(box)
        self.velocity: NDArray = np.zeros(4)
        scale = self._scale()
        self.place: NDArray = (2 * _PLACE * scale) ** 2
        self.mixed: NDArray = np.zeros(4)
        self.speed: NDArray = (10 * _VELOCITY * scale) ** 2

    def predict(self, keep_size: bool = False) -> None:
        """Move on by one frame; ``keep_size`` for objects that are not seen."""
        if keep_size:
            self.velocity[2:] = 0
        scale = self._scale()
        self.at = self.at + self.velocity
        self.at[2:] = np.maximum(self.at[2:], 1e-3)
        self.place = self.place + 2 * self.mixed + self.speed + (_PLACE * scale) ** 2
        self.mixed = self.mixed + self.speed
        self.speed = self.speed + (_VELOCITY * scale) ** 2

    def correct(self, box: Box) -> None:
        """Take a measured box into account."""
        off = _center(box) - self.at
        total = self.place + (_PLACE * self._scale()) ** 2
        near, fast = self.place / total, self.mixed / total
        self.at = self.at + near * off
        self.at[2:] = np.maximum(self.at[2:], 1e-3)
        self.velocity = self.velocity + fast * off
        self.speed = self.speed - fast * self.mixed
        self.place, self.mixed = (1 - near) * self.place, (1 - near) * self.mixed

    @property
    def box(self) -> Box:
        """The box: x1, y1, x2, y2."""
        x, y, wide, high = self.at.tolist()
        return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2

    def _scale(self) -> NDArray:
        """The size that noise is relative to, for x, y, width and height."""
        return np.maximum(self.at[[2, 3, 2, 3]], 1e-3)


def _center(box: Box) -> NDArray:
    x1, y1, x2, y2 = box
    return np.array([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], np.float64)


@dataclass(eq=False)
class _State:
    """An object that is followed."""

    id: int
    found: Detection
    motion: Motion
    confirmed: bool
    age: int = 1
    missed: int = 0

    def predict(self) -> None:
        self.age += 1
        self.motion.predict(keep_size=self.missed > 0)

    def see(self, found: Detection) -> None:
        self.motion.correct(found.box)
        self.found, self.missed, self.confirmed = found, 0, True

    @property
    def track(self) -> TrackedObject:
        found, (vx, vy) = self.found, self.motion.velocity[:2].tolist()
        box = self.motion.box
        return TrackedObject(
            box, found.label, found.score, found.index, self.id, self.age, (vx, vy), self.missed
        )


class Tracker:
    """Follows objects over the frames of one video.

    Give it the detections of every frame, in order, also those without any. It works for
    ``Detections`` and ``Faces``. Detect with a low score (``model.predict(frame, score=0.1)``), so
    that objects which are partly covered continue their tracks.

    Args:
        high: the score from which a detection is sure. Only sure ones begin a track.
        low: the score from which an unsure detection continues a track.
        overlap: the least intersection over union of a sure detection and a track's prediction.
        keep: the number of frames that a track is kept without being found.
        by_class: whether a track keeps its class. If False, any box may continue any track.

    An object that appears later than in the first frame is reported from its second frame on, so
    that a single false detection is never reported. Ids begin at 1 and are not used again.

    Example::

        tracker = Tracker()
        for seen in tracker.stream(model.stream(video.open("street.mp4"), "every", score=0.1)):
            for track in seen.result:
                print(seen.time, track.id, track.label, track.box)

    >>> tracker = Tracker(keep=2)
    >>> dog = Detection((0, 0, 40, 30), "dog", 0.8)
    >>> [len(tracker.update(found)) for found in ([dog], [], [], [dog])]
    [1, 0, 0, 1]
    >>> tracker.update([dog])[0].id
    1
    """

    def __init__(
        self,
        *,
        high: float = 0.4,
        low: float = 0.1,
        overlap: float = 0.2,
        keep: int = 30,
        by_class: bool = True,
    ) -> None:
        for name, value in (("high", high), ("low", low), ("overlap", overlap)):
            Quantity(0, 1).check("Tracker", name, value)
        if low > high:
            raise ParameterError.invalid("Tracker", "low", f"at most high, {high}", low)
        Integer(0).check("Tracker", "keep", keep)
        Flag("a bool").check("Tracker", "by_class", by_class)
        self.high, self.low, self.overlap = float(high), float(low), float(overlap)
        self.keep, self.by_class = keep, by_class
        self.reset()

    def __repr__(self) -> str:
        return f"<Tracker of {len(self._states)} objects, frame {self._frames}>"

    def reset(self) -> None:
        """Forget all tracks, for another video or after a cut. Ids begin at 1 again.

        >>> tracker = Tracker()
        >>> tracker.reset()
        """
        self._states: list[_State] = []
        self._next = 1
        self._frames = 0

    @property
    def lost(self) -> TrackedObjects:
        """The tracks that were not found in the last frame, with their predicted boxes."""
        return TrackedObjects(s.track for s in self._states if s.confirmed and s.missed)

    def update(self, found: Iterable[Detection]) -> TrackedObjects:
        """Take the detections of the next frame, and return the tracks that are seen in it.

        Args:
            found: ``Detections`` or ``Faces``, or another iterable of their elements.

        >>> len(Tracker().update([]))
        0
        """
        given = _checked(found)
        raw = found.raw if isinstance(found, Detections | Faces) else {}
        sure = [d for d in given if d.score >= self.high]
        unsure = [d for d in given if self.low <= d.score < self.high]
        for state in self._states:
            state.predict()
        known = [s for s in self._states if s.confirmed]
        fresh = [s for s in self._states if not s.confirmed]
        known, sure = self._match(known, sure, self.overlap)
        active = [s for s in known if not s.missed]  # unsure ones do not bring back lost tracks
        missing = [s for s in known if s.missed]
        left, _ = self._match(active, unsure, _LOW_OVERLAP)
        fresh, sure = self._match(fresh, sure, _NEW_OVERLAP)
        for state in missing + left:
            state.missed += 1
        gone = {s.id for s in fresh} | {s.id for s in missing + left if s.missed > self.keep}
        self._states = [s for s in self._states if s.id not in gone]
        for one in sure:
            self._states.append(_State(self._next, one, Motion(one.box), self._frames == 0))
            self._next += 1
        self._frames += 1
        seen = [s.track for s in self._states if s.confirmed and not s.missed]
        return TrackedObjects(seen, raw)

    def stream(
        self, results: Iterable[StreamResult[Detections]] | Iterable[StreamResult[Faces]]
    ) -> Iterator[StreamResult[TrackedObjects]]:
        """Yield the frames of ``model.stream`` with tracks in place of detections.

        >>> list(Tracker().stream([]))
        []
        """
        from dala.ml.stream import StreamResult

        for seen in results:
            yield StreamResult(seen.frame, self.update(seen.result), seen.time)

    def _match(
        self, states: Sequence[_State], found: Sequence[Detection], least: float
    ) -> tuple[list[_State], list[Detection]]:
        """Match tracks with detections; return those of both that are left over."""
        if not states or not found:
            return list(states), list(found)
        overlaps = iou_matrix(
            np.array([s.motion.box for s in states], np.float64),
            np.array([d.box for d in found], np.float64),
        )
        worth = overlaps - least + 1e-9  # an overlap of exactly `least` counts
        if self.by_class:
            numbers: dict[tuple[int, str], int] = {}
            kinds = [
                np.array([numbers.setdefault((d.index, d.label), len(numbers)) for d in part])
                for part in ([s.found for s in states], found)
            ]
            worth[kinds[0][:, None] != kinds[1]] = 0
        worth[overlaps <= 0] = 0
        matched = nearest(-worth, 0)
        for i, j in matched:
            states[i].see(found[j])
        rows, columns = {i for i, _ in matched}, {j for _, j in matched}
        return (
            [s for k, s in enumerate(states) if k not in rows],
            [d for k, d in enumerate(found) if k not in columns],
        )


def _checked(found: Iterable[Detection]) -> list[Detection]:
    """Return detections as a list; raise ParameterError for others."""
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise ParameterError.invalid("Tracker.update", "found", "detections of one frame", found)
    made = list(found)
    for one in made:
        if not isinstance(one, Detection):
            expected = "Detections or Faces of one frame"
            raise ParameterError.invalid("Tracker.update", "found", expected, one)
        if len(one.box) != 4 or not all(map(math.isfinite, (*one.box, one.score))):
            raise ParameterError.invalid("Tracker.update", "box", "four finite numbers", one.box)
    return made
