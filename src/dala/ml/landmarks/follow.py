"""Faces, hands and people through a video: regions carried from frame to frame.

The points of a frame give the region of the next one, so the detector runs only where something is
new or was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, cast

import numpy as np

from dala.arguments import Integer
from dala.ml.boxes import nearest
from dala.ml.landmarks.steps import Landmarks, Region, RegionSource, same
from dala.ml.model import R
from dala.typing import ImageLike

if TYPE_CHECKING:
    from dala.ml.landmarks.steps import LandmarkModel

#: The farthest that something moves while it is lost, in sides of its region.
_FAR: Final = 1.0
#: A detected region that is this close to one that is followed, in its sides, is the same.
_NEAR: Final = 0.25


@dataclass
class _Track:
    """Something that is followed, or that was lost some frames ago."""

    id: int
    found: Landmarks
    region: Region
    missed: int = 0


class LandmarkTracker(Generic[R]):
    """Follows faces, hands or people through the frames of one video, made by ``model.tracker``.

    Each has the same ``id`` in all frames; ids begin at 1. The detector runs on the first frame,
    in frames where something was lost, while nothing is found, and every ``refresh`` frames to
    find those who come later; never while as many as the option ``most`` are followed. What is
    found again within ``keep`` frames, near the place where it was lost, has its id again.

    Args:
        model: of ``load_model("facemesh")``, "hands" or "blazepose".
        options: of ``model.predict``.
        refresh: the number of frames after which the detector looks for more.
        keep: the number of frames for which something that is lost keeps its id.

    Example::

        tracker = load_model("hands").tracker(most=2)
        for frame in video.open("wave.mp4"):
            for hand in tracker.update(frame):
                print(hand.id, hand.side, hand.point("index_tip"))
        print(tracker.frames, tracker.detections)
    """

    def __init__(
        self,
        model: LandmarkModel[R],
        options: Mapping[str, float] | None = None,
        *,
        refresh: int = 30,
        keep: int = 30,
    ) -> None:
        for name, value, least in (("refresh", refresh, 1), ("keep", keep, 0)):
            Integer(least).check("tracker", name, value)
        self.model = model
        self.refresh, self.keep = refresh, keep
        self.options = model.spec.chosen(options or {})
        self.reset()

    def __repr__(self) -> str:
        return f"<LandmarkTracker of {len(self._tracks)} {self.model.name}, frame {self.frames}>"

    def reset(self) -> None:
        """Forget all, for another video or after a cut. Ids begin at 1 again."""
        #: The frames so far, and those on which the detector ran.
        self.frames = 0
        self.detections = 0
        self._tracks: list[_Track] = []
        self._lost: list[_Track] = []
        self._next = 1
        self._size = (0, 0)
        self._searched = 0

    def update(self, frame: ImageLike) -> R:
        """Return the findings in the next frame, sorted by id."""
        picture = RegionSource(frame, "update")
        if (picture.width, picture.height) != self._size:  # places in another size say nothing
            self._lost, self._tracks = self._lost + self._tracks, []
            self._size = picture.width, picture.height
        self._follow(picture)
        if self._searching():
            self._search(picture)
        self.frames += 1
        self._tracks.sort(key=lambda track: track.id)
        found = [replace(track.found, id=track.id) for track in self._tracks]
        return cast(R, self.model.gathered(found))

    def _follow(self, picture: RegionSource) -> None:
        """Find everything where it was in the last frame."""
        kept: list[_Track] = []
        for track in self._tracks:
            seen = None
            if picture.holds(track.region):
                seen = self.model.find(picture, track.region, self.options)
            if seen is None:
                self._lost.append(track)
            elif not any(same(seen.found, other.found) for other in kept):
                kept.append(_Track(track.id, *seen))
        for track in self._lost:
            track.missed += 1
        self._lost = [track for track in self._lost if track.missed <= self.keep]
        self._tracks = kept

    def _searching(self) -> bool:
        """Return whether the detector runs on this frame."""
        if len(self._tracks) >= self.options["most"]:
            return False
        due = self.frames - self._searched >= self.refresh
        return not self._tracks or bool(self._lost) or due

    def _search(self, picture: RegionSource) -> None:
        """Run the detector, and begin to follow new findings."""
        self._searched = self.frames
        self.detections += 1
        fresh: list[_Track] = []
        for region in self.model.detect(picture, self.options):
            followed = self._tracks + fresh
            if len(followed) >= self.options["most"]:
                break
            if any(_apart(region, track.region) < _NEAR for track in followed):
                continue
            seen = self.model.find(picture, region, self.options, fresh=True)
            if seen is not None and not any(same(seen.found, t.found) for t in followed):
                fresh.append(_Track(0, *seen))
        self._identify(fresh)
        self._tracks += fresh

    def _identify(self, fresh: list[_Track]) -> None:
        """Give a new finding the id of a lost one that was near, or the next id."""
        if fresh and self._lost:
            far = np.array(
                [[_apart(new.region, old.region) for old in self._lost] for new in fresh]
            )
            for i, j in nearest(far, _FAR):
                fresh[i].id = self._lost[j].id
            again = {track.id for track in fresh}
            self._lost = [track for track in self._lost if track.id not in again]
        for track in fresh:
            if not track.id:
                track.id = self._next
                self._next += 1


def _apart(one: Region, other: Region) -> float:
    """Return the distance of two centers, relative to the larger side."""
    return float(np.hypot(one.x - other.x, one.y - other.y)) / max(one.side, other.side)
