"""What models find, typed, in pixels of the picture they were given.

Every result has ``raw``, the model's own outputs by name, prints well, and draws itself:
``result.draw(frame)`` gives the picture with it, of the kind that was given; a Surface gets
commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dala.errors import ParameterError, did_you_mean

Raw: TypeAlias = Mapping[str, np.ndarray[Any, Any]]
Box: TypeAlias = tuple[float, float, float, float]
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Keypoint:
    """A named point, how sure the model is of it, and where it is."""

    name: str
    x: float
    y: float
    score: float = 1.0

    def __iter__(self) -> Any:
        return iter((self.x, self.y))

    def __str__(self) -> str:
        return f"{self.name} ({self.x:.0f}, {self.y:.0f}) {self.score:.2f}"


@dataclass(frozen=True)
class Classification:
    """One class that a classifier thinks of."""

    label: str
    index: int
    probability: float

    def __iter__(self) -> Any:
        return iter((self.label, self.index, self.probability))

    def __str__(self) -> str:
        return f"{self.label} {self.probability:.3f}"


@dataclass(frozen=True)
class Detection:
    """A thing: ``box`` is x1, y1, x2, y2 in pixels of the picture."""

    box: Box
    label: str
    score: float
    index: int = 0

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the box."""
        return self.box[2] - self.box[0], self.box[3] - self.box[1]

    def __str__(self) -> str:
        x1, y1, x2, y2 = self.box
        return f"{self.label} {self.score:.2f} at x {x1:.0f}..{x2:.0f}, y {y1:.0f}..{y2:.0f}"


@dataclass(frozen=True)
class Face(Detection):
    """A face with its six points: eyes, nose, mouth, ears (as the person has them)."""

    keypoints: tuple[Keypoint, ...] = ()


@dataclass(frozen=True)
class Pose:
    """A person as seventeen points; ``score`` is their mean."""

    keypoints: tuple[Keypoint, ...]
    score: float

    def __getitem__(self, name: str) -> Keypoint:
        for point in self.keypoints:
            if point.name == name:
                return point
        hint = did_you_mean(str(name), [p.name for p in self.keypoints])
        raise KeyError(f"Pose: there is no keypoint {name!r}. {hint}".rstrip())

    @property
    def box(self) -> Box:
        """Around all keypoints that are more likely than not, or all where none is."""
        sure = [p for p in self.keypoints if p.score >= 0.5] or list(self.keypoints)
        xs, ys = [p.x for p in sure], [p.y for p in sure]
        return min(xs), min(ys), max(xs), max(ys)

    def __str__(self) -> str:
        seen = sum(p.score >= 0.5 for p in self.keypoints)
        return f"person {self.score:.2f}, {seen} of {len(self.keypoints)} points seen"


class _Drawn:
    """Results draw themselves."""

    def draw(self, target: Any, **options: Any) -> Any:
        """The picture with the result on it, of the kind given; a Surface is drawn on.

        Args:
            target: an array, Frame, Pillow image or Surface of the size of the picture.
            **options: ``color`` of boxes and points, ``width`` of lines, ``labels=False`` for
                none, ``opacity`` of masks.
        """
        from dala.ml.draw import draw

        return draw(self, target, **options)


class _Found(list[Any], _Drawn):
    """A list with the model's own outputs."""

    def __init__(self, found: Iterable[Any] = (), raw: Raw | None = None) -> None:
        super().__init__(found)
        self.raw: Raw = raw or {}

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing found"


class Detections(_Found):
    """Things found, the surest first."""


class Faces(_Found):
    """Faces found, the surest first."""


class Poses(_Found):
    """People found, the surest first."""


class Scores(np.ndarray[Any, Any], _Drawn):
    """Probabilities of all classes: an array of one axis that knows the labels."""

    labels: tuple[str, ...]
    raw: Raw

    def __new__(
        cls, probabilities: Any, labels: Sequence[str] = (), raw: Raw | None = None
    ) -> Scores:
        made = np.asarray(probabilities, np.float32).view(cls)
        made.labels = tuple(labels)
        made.raw = raw or {}
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.labels = getattr(source, "labels", ())
        self.raw = getattr(source, "raw", {})

    def __reduce__(self) -> Any:
        return Scores, (np.array(self), self.labels, dict(self.raw))

    def top(self, k: int = 5) -> list[Classification]:
        """The k most likely classes, or all where there are fewer."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ParameterError(f"Scores.top: k is 1 or more; {k!r} came.")
        order = np.argsort(-np.asarray(self), kind="stable")[:k]
        return [Classification(name_of(self.labels, i), int(i), float(self[i])) for i in order]

    def __str__(self) -> str:
        if self.ndim != 1 or self.size < 2:
            return str(np.asarray(self))
        return "\n".join(map(str, self.top(5)))

    def __repr__(self) -> str:
        if self.ndim != 1 or self.size < 2:
            return repr(np.asarray(self))
        return f"<Scores of {self.size} classes, {self.top(1)[0]}>"


@dataclass(eq=False)
class Segmentation(_Drawn):
    """What each pixel belongs to: ``classes`` (height, width) of class numbers.

    ``planes`` are the probabilities, 0..1, of the classes that occur.
    """

    classes: np.ndarray[Any, Any]
    labels: tuple[str, ...]
    planes: Mapping[int, np.ndarray[Any, Any]] = field(repr=False)
    raw: Raw = field(default_factory=dict, repr=False)

    def mask(self, label: str | int) -> np.ndarray[Any, Any]:
        """How much each pixel belongs to a class, 0..1 f32, soft at the edges."""
        index = self._index(label)
        plane = self.planes.get(index)
        return np.zeros(self.classes.shape, np.float32) if plane is None else plane

    def share(self, label: str | int) -> float:
        """The part of the picture that belongs to a class, 0..1."""
        return float(np.mean(self.classes == self._index(label)))

    @property
    def found(self) -> dict[str, float]:
        """The classes that occur and their shares of the picture, the largest first."""
        numbers, counts = np.unique(self.classes, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        total = self.classes.size
        return {name_of(self.labels, numbers[i]): float(counts[i] / total) for i in order}

    def _index(self, label: str | int) -> int:
        if isinstance(label, str):
            if label in self.labels:
                return self.labels.index(label)
            listed = f"There are: {', '.join(self.labels)}." if self.labels else "It has numbers."
            hint = did_you_mean(label, self.labels) or listed
            raise ParameterError(f"Segmentation: there is no class {label!r}. {hint}")
        if isinstance(label, bool) or not isinstance(label, int | np.integer):
            raise ParameterError(
                f"Segmentation: a class is a name or a number; {type(label).__name__} came."
            )
        count = max(len(self.labels), 1 + int(self.classes.max(initial=0)))
        if not 0 <= label < count:
            raise ParameterError(f"Segmentation: classes are 0..{count - 1}, {label!r} came.")
        return int(label)

    def __str__(self) -> str:
        return ", ".join(f"{name} {share:.1%}" for name, share in self.found.items())


@dataclass(eq=False)
class Matte(_Drawn):
    """How much each pixel belongs to what stands in front: ``alpha`` (height, width), 0..1."""

    alpha: np.ndarray[Any, Any]
    raw: Raw = field(default_factory=dict, repr=False)

    def mask(self, label: str | int | None = None) -> np.ndarray[Any, Any]:
        """The alpha; there is one class only."""
        return self.alpha

    def __str__(self) -> str:
        return f"foreground {float(self.alpha.mean()):.1%}"


class Tensors(dict[str, np.ndarray[Any, Any]]):
    """Outputs of a model that nothing is known of, by name."""

    @property
    def raw(self) -> Raw:
        """The outputs themselves."""
        return self

    def __str__(self) -> str:
        return "\n".join(f"{name} {a.shape} {a.dtype}" for name, a in self.items())


def name_of(labels: Sequence[str], index: Any) -> str:
    """The label of a class, its number where it has none."""
    return labels[index] if index < len(labels) else str(int(index))
