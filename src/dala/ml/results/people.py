"""Faces, hands and people: named points, and the bones between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from dala.errors import ParameterError, did_you_mean
from dala.ml.results.base import Box, FoundList, box_cell
from dala.ml.results.names import IRIS_POINTS, MESH_POINTS, MESH_SIZE
from dala.typing import NDArray


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


@dataclass(frozen=True)
class Keypoint:
    """A named point of a face, a hand or a person, in pixels, with its score.

    ``z`` is the depth in pixels, smaller toward the camera; 0 if the model does not give it.

    >>> x, y = Keypoint("nose", 20.0, 30.0, 0.9)
    >>> x, y
    (20.0, 30.0)
    """

    name: str
    x: float
    y: float
    score: float = 1.0
    z: float = 0.0

    def __iter__(self) -> Iterator[float]:
        return iter((self.x, self.y))

    def __str__(self) -> str:
        return f"{self.name} ({self.x:.0f}, {self.y:.0f}) {self.score:.2f}"


def keypoints(
    names: Iterable[str],
    places: NDArray,
    scores: Iterable[float],
    depths: Iterable[float] | None = None,
) -> tuple[Keypoint, ...]:
    """Return named points at places (n, 2) in pixels, with their scores and depths.

    >>> keypoints(["nose"], np.array([[4.0, 5.0]]), [0.9])
    (Keypoint(name='nose', x=4.0, y=5.0, score=0.9, z=0.0),)
    """
    placed = zip(names, places.tolist(), strict=True)
    rows = zip(placed, scores, depths or repeat(0.0), strict=False)
    return tuple(Keypoint(name, x, y, score, z) for (name, (x, y)), score, z in rows)


@dataclass(frozen=True)
class Bone:
    """A line from one keypoint to another, with its center, length and angle.

    >>> bone = Bone(Keypoint("left_wrist", 10.0, 10.0), Keypoint("left_elbow", 10.0, 30.0, 0.8))
    >>> bone.center, bone.length, bone.angle, bone.score
    ((10.0, 20.0), 20.0, 90.0, 0.8)
    """

    start: Keypoint
    end: Keypoint

    @property
    def center(self) -> tuple[float, float]:
        """The point in the middle: x, y."""
        return (self.start.x + self.end.x) / 2, (self.start.y + self.end.y) / 2

    @property
    def length(self) -> float:
        """The distance of the ends in pixels."""
        return math.hypot(self.end.x - self.start.x, self.end.y - self.start.y)

    @property
    def angle(self) -> float:
        """The direction from start to end in degrees: 0 is to the right, 90 is down."""
        return math.degrees(math.atan2(self.end.y - self.start.y, self.end.x - self.start.x))

    @property
    def score(self) -> float:
        """The lower score of the two ends."""
        return min(self.start.score, self.end.score)

    def __str__(self) -> str:
        return (
            f"{self.start.name} to {self.end.name}, {self.length:.0f} at {self.angle:.0f} degrees"
        )


class HasPoints:
    """A result with named points: a face, a hand or a person.

    >>> pose = Pose((Keypoint("nose", 4, 5, 0.9), Keypoint("left_eye", 6, 3, 0.7)), 0.8)
    >>> pose.point("nose").x, pose.bone("nose", "left_eye").score
    (4, 0.7)
    """

    keypoints: tuple[Keypoint, ...]

    def point(self, name: str | int) -> Keypoint:
        """Return a keypoint by its name, or by its number in ``keypoints``.

        Of a face with a mesh, the number is that of the point of the mesh.
        """
        return self._found(f"{type(self).__name__}.point", name)

    def bone(self, start: str | int, end: str | int) -> Bone:
        """Return the line from one keypoint to another."""
        call = f"{type(self).__name__}.bone"
        return Bone(self._found(call, start), self._found(call, end))

    def _found(self, call: str, name: str | int) -> Keypoint:
        if isinstance(name, str):
            for point in self.keypoints:
                if point.name == name:
                    return point
            known = [point.name for point in self.keypoints]
            advice = did_you_mean(name, known) or f"Points: {', '.join(known)}."
            raise ParameterError.invalid(call, "name", "the name of a point", name, advice)
        return self._numbered(call, name)

    def _numbered(self, call: str, number: int) -> Keypoint:
        check_number(call, number, len(self.keypoints))
        return self.keypoints[number]


def check_number(call: str, number: int, count: int) -> None:
    """Raise ParameterError unless a number is that of one of ``count`` points."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise ParameterError.invalid(call, "name", "the name or the number of a point", number)
    if not 0 <= number < count:
        expected = f"a number from 0 to {count - 1}" if count else "that of a point; it has none"
        raise ParameterError.invalid(call, "name", expected, number)


@dataclass(frozen=True)
class Face(Detection, HasPoints):
    """A face with keypoints, at least eyes, nose, mouth and ears; left is the person's left.

    ``id`` is the same in all frames of a stream of "facemesh"; 0 if faces are not followed.

    >>> face = Face((0, 0, 9, 9), "face", 0.9, keypoints=(Keypoint("nose", 4, 5),))
    >>> face.keypoints[0].name, face.point("nose").y
    ('nose', 5)
    """

    keypoints: tuple[Keypoint, ...] = ()
    id: int = 0

    def __str__(self) -> str:
        return _numbered_text(self.id, super().__str__())


@dataclass(frozen=True)
class FaceMesh(Face):
    """A face with a mesh of 468 points, or of 478 with the irises.

    ``mesh`` has x, y and z of each point in pixels; z is smaller toward the camera.
    ``point("chin")`` finds a named point, and ``point(152)`` any point of the mesh.

    >>> face = FaceMesh((0, 0, 9, 9), "face", 0.9, mesh=np.ones((468, 3)))
    >>> face.point(152)
    Keypoint(name='152', x=1.0, y=1.0, score=0.9, z=1.0)
    """

    mesh: NDArray = field(default_factory=lambda: np.zeros((0, 3)), repr=False, compare=False)

    @classmethod
    def of(cls, mesh: NDArray, score: float, id: int = 0) -> FaceMesh:
        """Return the face of a mesh of 468 or 478 points: named points, and the box around them.

        >>> FaceMesh.of(np.ones((468, 3)), 0.9).point("chin").y
        1.0
        """
        keypoints = []
        for name, numbers in {**MESH_POINTS, **IRIS_POINTS}.items():
            if max(numbers) < len(mesh):
                x, y, z = mesh[list(numbers)].mean(0).tolist()
                keypoints.append(Keypoint(name, x, y, score, z))
        outline = mesh[:MESH_SIZE, :2]
        (x1, y1), (x2, y2) = outline.min(0).tolist(), outline.max(0).tolist()
        return cls((x1, y1, x2, y2), "face", score, 0, tuple(keypoints), id, mesh)

    def _numbered(self, call: str, number: int) -> Keypoint:
        check_number(call, number, len(self.mesh))
        x, y, z = self.mesh[number].tolist()
        return Keypoint(str(int(number)), x, y, self.score, z)


@dataclass(frozen=True)
class Hand(Detection, HasPoints):
    """A hand with 21 keypoints, from "wrist" to "pinky_tip".

    ``side`` is "left" or "right", the person's own in a picture that is not mirrored, and
    ``side_score`` its probability. ``id`` is the same in all frames of a stream; 0 for pictures.

    >>> hand = Hand((0, 0, 9, 9), "hand", 0.9, keypoints=(Keypoint("wrist", 4, 5),), side="left")
    >>> print(hand)
    left hand 0.90 at x 0..9, y 0..9
    """

    keypoints: tuple[Keypoint, ...] = ()
    id: int = 0
    side: str = ""
    side_score: float = 0.0

    def __str__(self) -> str:
        return _numbered_text(self.id, f"{self.side} {super().__str__()}".lstrip())


@dataclass(frozen=True)
class Pose(HasPoints):
    """A person: keypoints, and their mean score.

    ``id`` is the same in all frames of a stream of "blazepose"; 0 if people are not followed.

    >>> pose = Pose((Keypoint("nose", 4, 5, 0.9), Keypoint("left_eye", 6, 3, 0.7)), 0.8)
    >>> pose["nose"].x, pose.box
    (4, (4, 3, 6, 5))
    """

    keypoints: tuple[Keypoint, ...]
    score: float
    id: int = 0

    def __getitem__(self, name: str) -> Keypoint:
        for point in self.keypoints:
            if point.name == name:
                return point
        hint = did_you_mean(str(name), [p.name for p in self.keypoints])
        raise KeyError(f"Pose: no keypoint {name!r}. {hint}".rstrip())

    @property
    def box(self) -> Box:
        """The bounding box of the keypoints with a score of at least 0.5, or of all if none has."""
        sure = [p for p in self.keypoints if p.score >= 0.5] or list(self.keypoints)
        xs, ys = [p.x for p in sure], [p.y for p in sure]
        return min(xs), min(ys), max(xs), max(ys)

    def cells(self) -> tuple[str, str, str]:
        """Return the cells of a table: points, score and box."""
        seen = sum(p.score >= 0.5 for p in self.keypoints)
        what = f"person, {seen} of {len(self.keypoints)} keypoints"
        return what, f"{self.score:.2f}", box_cell(self.box) if self.keypoints else ""

    def __str__(self) -> str:
        seen = sum(p.score >= 0.5 for p in self.keypoints)
        text = f"person {self.score:.2f}, {seen} of {len(self.keypoints)} keypoints visible"
        return _numbered_text(self.id, text)


def _numbered_text(id: int, text: str) -> str:
    return f"#{id} {text}" if id else text


class Faces(FoundList[Face]):
    """Faces, a list sorted by descending score; in a stream of "facemesh" by id.

    >>> print(Faces())
    nothing found
    """


class Hands(FoundList[Hand]):
    """Hands, a list sorted by descending score; in a stream by id.

    >>> print(Hands())
    nothing found
    """


class Poses(FoundList[Pose]):
    """People, a list sorted by descending score; in a stream of "blazepose" by id.

    >>> print(Poses())
    nothing found
    """
