"""Whom ``dala faces`` has hidden, by the tracks of faces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dala.cli.common.chain import Json
from dala.errors import counted

if TYPE_CHECKING:
    from dala.ml.hide import HiddenFace
    from dala.ml.results import Box

#: Frames between the end of a track and the begin of another of the same person.
_GAP: Final = 90


@dataclass
class Person:
    """A face that was hidden: its tracks, and the frames with it."""

    ids: set[int]
    box: Box
    frames: list[int] = field(default_factory=list)


class Persons:
    """The persons in the frames of a video.

    A track that begins where another has ended a little earlier is taken for the same person.

    >>> from dala.ml.hide import HiddenFace
    >>> persons = Persons()
    >>> for number, id in enumerate([1, 1, None, 2]):
    ...     persons.add([HiddenFace((0, 0, 9, 9), 0.9, id)] if id else [])
    >>> len(persons.found), persons.text(25.0)
    (1, '1 person hidden in 0.1 of 0.2 s')
    """

    def __init__(self) -> None:
        self.found: list[Person] = []
        self.frames = self.covered = self.carried = 0
        self._by_id: dict[int, Person] = {}

    def add(self, faces: Iterable[HiddenFace]) -> None:
        """Count the faces of the next frame."""
        shown = list(faces)
        tracks = sorted(
            (face for face in shown if face.id is not None),
            key=lambda face: face.id not in self._by_id,
        )
        for face in tracks:  # those that are known first
            person = self._person(face)
            if person.frames[-1:] != [self.frames]:
                person.frames.append(self.frames)
        self.covered += bool(shown)
        self.carried += any(not face.found for face in shown)
        self.frames += 1

    def _person(self, face: HiddenFace) -> Person:
        assert face.id is not None
        person = self._by_id.get(face.id) or self._before(face.box) or Person(set(), face.box)
        if person not in self.found:
            self.found.append(person)
        self._by_id[face.id] = person
        person.ids.add(face.id)
        person.box = face.box
        return person

    def _before(self, box: Box) -> Person | None:
        """Return the person whose track has ended near a box, if there is one."""
        for person in self.found:
            gap = self.frames - person.frames[-1]
            if 0 < gap <= _GAP and _near(person.box, box):
                return person
        return None

    def text(self, fps: float) -> str:
        """Return who was hidden, and for how long."""
        if not self.found:
            return "no face found"
        of = f"{self.covered / fps:.1f} of {self.frames / fps:.1f} s"
        text = f"{counted(len(self.found), 'persons')} hidden in {of}"
        if self.carried:
            text += f", {self.carried / fps:.1f} s of it with a face that the model did not find"
        return text

    def facts(self, fps: float) -> list[Json]:
        """Return the persons as JSON."""
        return [
            {
                "ids": [*sorted(person.ids)],
                "from": round(person.frames[0] / fps, 3),
                "to": round((person.frames[-1] + 1) / fps, 3),
                "seconds": round(len(person.frames) / fps, 3),
            }
            for person in self.found
        ]


def _near(one: Box, other: Box) -> bool:
    """Return whether the centers of two boxes are less than a size apart, and their sizes alike."""
    wide, high = one[2] - one[0], other[2] - other[0]
    across = abs(one[0] + one[2] - other[0] - other[2]) / 2
    down = abs(one[1] + one[3] - other[1] - other[3]) / 2
    return max(across, down) < max(wide, high) < 2 * min(wide, high)
