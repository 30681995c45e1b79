"""Results for a frame in one form for all models: with ids, and smoothed over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from dala.ml.landmarks.targets import Found
from dala.ml.results import Box, Detection, FaceMesh, Hand, Keypoint
from dala.ml.smooth import OneEuro
from dala.ml.track import Tracker
from dala.typing import NDArray

#: Seconds without a frame after which the video counts as cut: everything is new then.
CUT: Final = 1.0
#: How much larger another one must be to take the place of the largest.
_LARGER: Final = 1.5
#: Points whose connection is level if a face, a head or a body is upright, in order of preference.
_LEVEL: Final = (
    ("right_eye", "left_eye"),
    ("right_ear", "left_ear"),
    ("right_shoulder", "left_shoulder"),
    ("right_hip", "left_hip"),
)
#: Points whose connection is upright if a hand points up.
_UPRIGHT: Final = (("wrist", "middle_mcp"),)
#: The points of a face that a model of bodies also finds.
_HEAD: Final = frozenset({"nose", "left_eye", "right_eye", "left_ear", "right_ear"})


@dataclass(frozen=True)
class Element:
    """A face, a person, a hand or a thing in a frame."""

    box: Box
    label: str
    score: float
    points: Mapping[str, Keypoint] = field(default_factory=dict)
    #: The same in all frames; None while it is not sure that it is one.
    id: int | None = None
    #: "left" or "right", of hands.
    side: str = ""

    @property
    def size(self) -> float:
        """The larger side of its box."""
        return max(self.box[2] - self.box[0], self.box[3] - self.box[1])

    @property
    def area(self) -> float:
        """The area of its box."""
        return max(self.box[2] - self.box[0], 0.0) * max(self.box[3] - self.box[1], 0.0)

    def angle(self, least: float, name: str = "") -> float:
        """Return its clockwise rotation in degrees, from points of at least a score; else 0.

        ``name`` is the point that asks: of a person, the head and the body turn on their own.
        """
        pairs = _LEVEL if name in _HEAD or "left_shoulder" not in self.points else _LEVEL[2:]
        for turn, found in ((0.0, pairs), (90.0, _UPRIGHT)):
            for first, second in found:
                a, b = self.points.get(first), self.points.get(second)
                if a is None or b is None or min(a.score, b.score) < least:
                    continue
                if (a.x, a.y) != (b.x, b.y):
                    return math.degrees(math.atan2(b.y - a.y, b.x - a.x)) + turn
        return 0.0


class Seen(NamedTuple):
    """The elements of a frame."""

    elements: tuple[Element, ...] = ()
    #: The largest, which stays the same one until another is much larger.
    largest: Element | None = None

    def pick(self, which: str | int) -> Element | None:
        """Return an element: the "largest", the "surest", a hand by its side, or by its id."""
        if which == "largest":
            return self.largest
        if which == "surest":
            return max(self.elements, key=lambda e: e.score, default=None)
        if isinstance(which, str):
            sided = (e for e in self.elements if e.side == which)
            return max(sided, key=lambda e: e.area, default=None)
        return next((e for e in self.elements if e.id == which), None)


def elements_of(
    result: Iterable[Found], label: str | None, numbers: Iterable[int] = ()
) -> list[Element]:
    """Return the elements of a result, of one label or of all.

    ``numbers`` are those of points of a mesh, which have the number as their name.
    """
    made = []
    for one in result:
        kind = getattr(one, "label", "person")
        if label is not None and kind != label:
            continue
        points: Sequence[Keypoint] = getattr(one, "keypoints", ())
        x1, y1, x2, y2 = map(float, one.box)
        if not all(map(math.isfinite, (x1, y1, x2, y2))):
            continue
        named = {p.name: p for p in points}
        if isinstance(one, FaceMesh | Hand):
            named |= {str(n): replace(one.point(n), name=str(n)) for n in numbers}
        side = one.side if isinstance(one, Hand) else ""
        made.append(Element((x1, y1, x2, y2), kind, float(one.score), named, side=side))
    return made


class Identities:
    """Gives elements ids from frame to frame, and smooths each of them over time."""

    def __init__(self, cutoff: float | None, beta: float) -> None:
        self._cutoff = cutoff
        self._beta = beta
        self._tracker = Tracker(by_class=False)
        self._filters: dict[int, OneEuro] = {}
        self._time = -math.inf
        #: Ids of earlier tracks, before a cut.
        self._used = 0
        self._last = 0
        self._largest: int | None = None

    def update(self, found: Sequence[Element], time: float) -> Seen:
        """Return the elements of the next frame with ids, smoothed."""
        if not self._time < time <= self._time + CUT and self._time > -math.inf:
            self._tracker.reset()
            self._filters.clear()
            self._used, self._largest = self._last, None
        self._time = time
        given = [Detection(e.box, e.label, 1.0, k) for k, e in enumerate(found)]
        ids = {track.index: track.id + self._used for track in self._tracker.update(given)}
        self._last = max((self._last, *ids.values()))
        made = tuple(self._smoothed(replace(e, id=ids.get(k))) for k, e in enumerate(found))
        known = {*ids.values(), *(t.id + self._used for t in self._tracker.lost)}
        self._filters = {id: f for id, f in self._filters.items() if id in known}
        return Seen(made, self._choose(made))

    def _choose(self, made: Sequence[Element]) -> Element | None:
        best = max(made, key=lambda e: e.area, default=None)
        held = next((e for e in made if e.id is not None and e.id == self._largest), None)
        if held is not None and best is not None and best.area < _LARGER * held.area:
            best = held
        if best is not None:
            self._largest = best.id
        return best

    def _smoothed(self, one: Element) -> Element:
        if self._cutoff is None or one.id is None:
            return one
        filter = self._filters.get(one.id)
        values = _values(one)
        if filter is None:
            filter = self._filters[one.id] = OneEuro(self._cutoff, self._beta)
        rows = filter(values, self._time, max(one.size, 1.0)).tolist()
        pairs = zip(one.points.values(), rows, strict=False)
        points = {p.name: replace(p, x=x, y=y) for p, (x, y) in pairs}
        return replace(one, points=points, box=(*rows[-2], *rows[-1]))


def _values(one: Element) -> NDArray:
    """Return the points and the corners of the box, (n, 2)."""
    corners = [one.box[:2], one.box[2:]]
    return np.array([*((p.x, p.y) for p in one.points.values()), *corners], np.float64)
