"""Targets that nodes of scenes follow: points, bones and boxes that a model finds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

from dala.media.scene.follow.follower import ShownPicture, Sighting

if TYPE_CHECKING:
    from dala.media.scene.nodes.json_types import JsonData
    from dala.media.scene.nodes.video import VideoNode
    from dala.ml.follow.elements import Element
    from dala.ml.follow.watch import Watcher


@dataclass(frozen=True)
class WatchedTarget(ABC):
    """A target of a watched video: of the largest, the surest, or the one with an id."""

    watch: Watcher
    which: str | int = "largest"
    #: Whether it has an angle and a length of its own.
    turns: ClassVar[bool] = False

    @property
    def video(self) -> VideoNode:
        """The video node."""
        return self.watch.video

    def find(self, shown: ShownPicture, wait: bool) -> Sighting | None:
        """Return where it is in the picture; None if it is not there."""
        one = self.watch.seen(shown, wait).pick(self.which)
        return None if one is None else self.sighting(one)

    @abstractmethod
    def sighting(self, one: Element) -> Sighting | None:
        """Return the target's sighting among the findings."""

    def saved(self) -> Mapping[str, JsonData]:
        """Return its form in a scene file."""
        made = self.watch.saved() | self._own()
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("which", "at") and value != item.default:
                made[item.name] = list(value) if isinstance(value, tuple) else value
        return made

    @abstractmethod
    def _own(self) -> dict[str, JsonData]:
        """Return the facts of its kind for a scene file."""


@dataclass(frozen=True)
class WatchedPoint(WatchedTarget):
    """A named point, such as the nose; its size is that of the face, person or hand."""

    name: str = ""

    def sighting(self, one: Element) -> Sighting | None:
        """Return the point, unless its score is too low."""
        point = self.watch.point_of(one, self.name)
        if point is None:
            return None
        angle = one.angle(self.watch.least, self.name)
        wide, high = one.box[2] - one.box[0], one.box[3] - one.box[1]
        return Sighting(point[0], point[1], wide, high, angle)

    def _own(self) -> dict[str, JsonData]:
        return {"point": self.name}


@dataclass(frozen=True)
class WatchedBone(WatchedTarget):
    """The connection of two named points; its width is its length."""

    first: str = ""
    second: str = ""
    #: Where on the bone the target is, from 0 at the first point to 1 at the second.
    at: float = 0.5
    turns = True

    def sighting(self, one: Element) -> Sighting | None:
        """Return place, length and angle, unless the score of a point is too low."""
        a = self.watch.point_of(one, self.first)
        b = self.watch.point_of(one, self.second)
        if a is None or b is None:
            return None
        dx, dy = b[0] - a[0], b[1] - a[1]
        angle = math.degrees(math.atan2(dy, dx))
        return Sighting(a[0] + self.at * dx, a[1] + self.at * dy, math.hypot(dx, dy), 0.0, angle)

    def _own(self) -> dict[str, JsonData]:
        return {"bone": [self.first, self.second]}


@dataclass(frozen=True)
class WatchedBox(WatchedTarget):
    """A bounding box."""

    #: The point of the box where the target is, as fractions of its size.
    at: tuple[float, float] = (0.5, 0.5)

    def sighting(self, one: Element) -> Sighting:
        """Return the box."""
        x1, y1, x2, y2 = one.box
        across, down = self.at
        x, y = x1 + across * (x2 - x1), y1 + down * (y2 - y1)
        return Sighting(x, y, x2 - x1, y2 - y1, one.angle(self.watch.least))

    def _own(self) -> dict[str, JsonData]:
        return {"box": True}


@dataclass(frozen=True)
class WatchedEach:
    """The same target of everyone that is found, by id; for ``scene.follow_each``."""

    like: WatchedPoint | WatchedBone | WatchedBox

    @property
    def video(self) -> VideoNode:
        """The video node."""
        return self.like.video

    def ids(self, shown: ShownPicture, wait: bool) -> Sequence[int]:
        """Return the ids of those in the picture."""
        seen = self.like.watch.seen(shown, wait)
        return [e.id for e in seen.elements if e.id is not None]

    def one(self, id: int) -> WatchedPoint | WatchedBone | WatchedBox:
        """Return the target of an id."""
        return replace(self.like, which=id)
