"""Objects: boxes with a label and a score."""

from __future__ import annotations

from dataclasses import dataclass

from dala.ml.results.base import Box, FoundList, box_cell


@dataclass(frozen=True)
class Detection:
    """An object; ``box`` is x1, y1, x2, y2 in pixels of the picture.

    >>> found = Detection((10, 20, 50, 80), "dog", 0.8)
    >>> print(found)
    dog 0.80 at x 10..50, y 20..80
    >>> found.size
    (40, 60)
    """

    box: Box
    label: str
    score: float
    index: int = 0

    @property
    def size(self) -> tuple[float, float]:
        """The width and height of the box."""
        return self.box[2] - self.box[0], self.box[3] - self.box[1]

    def cells(self) -> tuple[str, str, str]:
        """Return the cells of a table: label, score and box."""
        return self.label, f"{self.score:.2f}", box_cell(self.box)

    def __str__(self) -> str:
        x1, y1, x2, y2 = self.box
        return f"{self.label} {self.score:.2f} at x {x1:.0f}..{x2:.0f}, y {y1:.0f}..{y2:.0f}"


@dataclass(frozen=True)
class TrackedObject(Detection):
    """An object that is followed from frame to frame, as by ``dala.ml.track``.

    ``id`` is the same in all frames, ``age`` the number of frames since the first, ``velocity`` in
    pixels per frame, and ``missed`` the number of frames since it was last found.

    >>> print(TrackedObject((10, 20, 50, 80), "dog", 0.8, id=3))
    #3 dog 0.80 at x 10..50, y 20..80
    """

    id: int = 0
    age: int = 1
    velocity: tuple[float, float] = (0.0, 0.0)
    missed: int = 0

    def __str__(self) -> str:
        return f"#{self.id} {super().__str__()}"

    def cells(self) -> tuple[str, str, str]:
        """Return the cells of a table: number and label, score and box."""
        label, *others = super().cells()
        return f"#{self.id} {label}", others[0], others[1]


class Detections(FoundList[Detection]):
    """Objects, a list sorted by descending score.

    >>> print(Detections([Detection((10, 20, 50, 80), "dog", 0.8)]))
    dog 0.80 at x 10..50, y 20..80
    """


class TrackedObjects(FoundList[TrackedObject]):
    """Objects that are followed, a list sorted by id.

    >>> print(TrackedObjects([TrackedObject((10, 20, 50, 80), "dog", 0.8, id=3)]))
    #3 dog 0.80 at x 10..50, y 20..80
    """
