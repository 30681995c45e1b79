"""Descriptions of points, bones and boxes that a model will find, such as ``face.point("nose")``.

They exist before there is a result, and find their part in each one. A scene moves a node by them.

>>> from dala.ml.results import Face, Faces, Keypoint
>>> nose = face.point("nose")
>>> found = Faces([Face((0, 0, 9, 9), "face", 0.9, keypoints=(Keypoint("nose", 4, 5, 0.9),))])
>>> nose.find(found).x, nose.find(Faces()), nose.model
(4, None, 'blazeface')
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from dala.arguments import Integer, Selection, Text
from dala.errors import ParameterError, did_you_mean
from dala.ml.results import (
    Bone,
    Box,
    Detection,
    Detections,
    Face,
    FaceMesh,
    Faces,
    Hand,
    Hands,
    Keypoint,
    Pose,
    Poses,
    TrackedObject,
    TrackedObjects,
)
from dala.ml.results.names import (
    BODY_POINTS,
    FACE_POINTS,
    HAND_POINTS,
    IRIS_MESH_SIZE,
    IRIS_POINTS,
    MESH_SIZE,
    NAMED,
)
from dala.ml.results.people import check_number

if TYPE_CHECKING:
    from dala.media.scene.follow.follower import FollowTarget
    from dala.media.scene.nodes.video import VideoNode

__all__ = ["BoneTarget", "BoxTarget", "PointTarget", "Subject", "Target", "face", "hand", "pose"]

#: One element of a result, or the results of a frame.
Found: TypeAlias = "Detection | Pose"
Results: TypeAlias = "Detections | Faces | Hands | Poses | TrackedObjects | Detection | Pose"

#: How many points have a number. The numbers of a person depend on the model, so there are none.
_NUMBERED: Final = {"face": IRIS_MESH_SIZE, "hand": len(HAND_POINTS)}
#: The smallest model that finds each kind, the points that it finds, and the model of the others.
_MODELS: Final = {
    "face": ("blazeface", FACE_POINTS, "facemesh"),
    "hand": ("hands", HAND_POINTS, "hands"),
    "pose": ("movenet", BODY_POINTS, "blazepose"),
    "object": ("nanodet", (), "nanodet"),
}
#: The element type of each kind; an object is any detection.
_TYPES: Final = {"face": Face, "hand": Hand, "pose": Pose, "object": Detection}


@dataclass(frozen=True)
class Subject:
    """One face, hand, person or object of the results of each frame.

    ``dala.ml.face``, ``dala.ml.hand`` and ``dala.ml.pose`` are the first of each frame: of a stream
    with ids the one that was found first, else the one with the highest score. ``numbered(2)`` is
    the one with the id 2, ``hand.sided("left")`` the left hand.

    >>> hand.sided("left").point("index_tip")
    PointTarget(subject=Subject(kind='hand', id=None, side='left', label=''), name='index_tip')
    """

    #: "face", "hand", "pose" or "object".
    kind: str
    id: int | None = None
    #: "left" or "right", of hands; "" for both.
    side: str = ""
    #: The class of an object; "" for any.
    label: str = ""

    def __post_init__(self) -> None:
        Selection(*_TYPES).check("Subject", "kind", self.kind)
        Integer(1).check_optional("Subject", "id", self.id)
        sides = Selection("", "left", "right", expected="'left' or 'right'")
        sides.check("Subject", "side", self.side)
        if self.side and self.kind != "hand":
            expected = f"left out for a {self.kind}"
            raise ParameterError.invalid("Subject", "side", expected, self.side)
        Text("a str").check("Subject", "label", self.label)

    def numbered(self, id: int) -> Subject:
        """Return the one with this id, such as of ``model.stream`` or ``dala.ml.track``.

        >>> face.numbered(2).id
        2
        """
        Integer(1).check_optional("Subject.numbered", "id", id)
        return replace(self, id=id)

    def sided(self, side: str) -> Subject:
        """Return the left or the right hand.

        >>> hand.sided("right").side
        'right'
        """
        return replace(self, side=side)

    def point(self, name: str | int) -> PointTarget:
        """Return the description of a point by its name; of the mesh of a face also by its number.

        >>> face.point(152).model
        'facemesh'
        """
        return PointTarget(self, name)

    def bone(self, start: str | int, end: str | int) -> BoneTarget:
        """Return the description of the line from one point to another.

        >>> pose.bone("left_wrist", "left_elbow").model
        'movenet'
        """
        return BoneTarget(self, start, end)

    @property
    def box(self) -> BoxTarget:
        """The description of the bounding box."""
        return BoxTarget(self)

    def select(self, result: Results) -> Found | None:
        """Return the face, hand, person or object in the results of a frame; None if not found.

        >>> pose.select(Poses()) is None
        True
        """
        if isinstance(result, Detection | Pose):
            given: list[Found] = [result]
        elif isinstance(result, Detections | Faces | Hands | Poses | TrackedObjects):
            given = list(result)
        else:
            expected = "Faces, Hands, Poses, Detections or TrackedObjects"
            raise ParameterError.invalid("find", "result", expected, result)
        for one in given:
            if isinstance(one, _TYPES[self.kind]) and self._fits(one):
                return one
        return None

    def _fits(self, one: Found) -> bool:
        if self.id is not None:
            own = one.id if isinstance(one, Face | Hand | Pose | TrackedObject) else 0
            if own != self.id:
                return False
        if self.side and not (isinstance(one, Hand) and one.side == self.side):
            return False
        return not self.label or (isinstance(one, Detection) and one.label == self.label)


@dataclass(frozen=True)
class _Described:
    """A description, which a scene finds in one of its videos."""

    subject: Subject

    def __post_init__(self) -> None:
        for name in self.points:
            _check_point("bone" if len(self.points) > 1 else "point", self.subject.kind, name)

    @property
    def points(self) -> tuple[str | int, ...]:
        """The names or numbers of its points."""
        return tuple(getattr(self, part.name) for part in fields(self) if part.name != "subject")

    @property
    def model(self) -> str:
        """The name of the smallest model that finds it, for ``load_model``."""
        small, known, large = _MODELS[self.subject.kind]
        return small if all(name in known for name in self.points) else large

    @property
    def options(self) -> dict[str, float]:
        """The options of ``predict`` that it needs."""
        iris = any(
            name in IRIS_POINTS if isinstance(name, str) else name >= MESH_SIZE
            for name in self.points
        )
        return {"iris": True} if iris and self.subject.kind == "face" else {}

    def on(self, video: VideoNode) -> FollowTarget:
        """Return its target in a video node of a scene, for ``scene.follow``.

        The models of ``dala.ml.watch(video, model)`` run with their own options there.
        """
        from dala.ml.follow.watch import described_on

        return described_on(video, cast("Target", self))


@dataclass(frozen=True)
class PointTarget(_Described):
    """A point to follow: made by ``dala.ml.face.point("nose")`` and the like.

    >>> hand.point("index_tip").model
    'hands'
    """

    name: str | int

    def find(self, result: Results, least: float = 0.3) -> Keypoint | None:
        """Return the point in the results of a frame.

        None if there is no such face, hand or person, or the point's score is below ``least``.
        """
        return _point(self.subject.select(result), self.name, least)


@dataclass(frozen=True)
class BoneTarget(_Described):
    """A line between two points to follow: made by ``dala.ml.pose.bone(...)`` and the like.

    >>> face.bone("right_eye", "left_eye").model
    'blazeface'
    """

    start: str | int
    end: str | int

    def find(self, result: Results, least: float = 0.3) -> Bone | None:
        """Return the bone in the results of a frame; None as for :meth:`PointTarget.find`."""
        one = self.subject.select(result)
        start, end = _point(one, self.start, least), _point(one, self.end, least)
        return None if start is None or end is None else Bone(start, end)


@dataclass(frozen=True)
class BoxTarget(_Described):
    """A bounding box to follow: ``dala.ml.face.box``, ``dala.ml.Subject("object").box``.

    >>> Subject("object", label="person").box.model
    'nanodet'
    """

    def find(self, result: Results, least: float = 0.0) -> Box | None:
        """Return x1, y1, x2, y2 in the results of a frame; None if it is not there."""
        one = self.subject.select(result)
        if one is None or one.score < least:
            return None
        box = one.box
        return box if all(map(math.isfinite, box)) else None


#: What a scene can follow.
Target: TypeAlias = "PointTarget | BoneTarget | BoxTarget"


def _check_point(call: str, kind: str, name: str | int) -> None:
    known = NAMED.get(kind)
    if known is None:
        raise ParameterError(f"{call}: an object has no points. Use its box: subject.box.")
    if isinstance(name, str):
        if name not in known:
            advice = did_you_mean(name, known) or f"Points: {', '.join(known)}."
            expected = f"the name of a point of a {kind}"
            raise ParameterError.invalid(call, "name", expected, name, advice)
    elif kind not in _NUMBERED:
        raise ParameterError.invalid(call, "name", f"the name of a point of a {kind}", name)
    else:
        check_number(call, name, _NUMBERED[kind])


def _point(one: Found | None, name: str | int, least: float) -> Keypoint | None:
    """Return a point of a result; None if the result does not have it, or it is not sure."""
    if not isinstance(one, Face | Hand | Pose):
        return None
    if isinstance(name, str):
        found = next((p for p in one.keypoints if p.name == name), None)
    else:
        count = len(one.mesh) if isinstance(one, FaceMesh) else len(one.keypoints)
        numbered = isinstance(one, FaceMesh | Hand) and name < count
        found = one.point(name) if numbered else None
    return None if found is None or found.score < least else found


#: The first face, hand and person of each frame.
face: Final = Subject("face")
hand: Final = Subject("hand")
pose: Final = Subject("pose")
