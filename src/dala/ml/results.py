"""Results of models, with coordinates in pixels of the input picture.

Every result has ``raw``, the model's outputs by name, a readable ``str``, and ``draw``:
``result.draw(frame)`` returns the picture with the result drawn on it, as the same type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from dala.errors import ParameterError, did_you_mean
from dala.notebook import html_picture, html_table, html_text, picture_png, shrunk
from dala.typing import ColorLike, ImageLike, NDArray

if TYPE_CHECKING:
    from dala.gpu.surface import Surface

__all__ = [
    "Box",
    "Classification",
    "Detection",
    "Detections",
    "Face",
    "Faces",
    "Keypoint",
    "Matte",
    "Outputs",
    "Pose",
    "Poses",
    "Prediction",
    "Scores",
    "Segmentation",
    "Tensors",
    "TrackedObject",
    "TrackedObjects",
]

#: A model's outputs by name.
Outputs: TypeAlias = Mapping[str, NDArray]
#: x1, y1, x2, y2 in pixels of the picture.
Box: TypeAlias = tuple[float, float, float, float]

_T = TypeVar("_T")
_I = TypeVar("_I", bound="ImageLike")


@dataclass(frozen=True)
class Keypoint:
    """A named point of a face or a person, in pixels, with its score.

    >>> x, y = Keypoint("nose", 20.0, 30.0, 0.9)
    >>> x, y
    (20.0, 30.0)
    """

    name: str
    x: float
    y: float
    score: float = 1.0

    def __iter__(self) -> Iterator[float]:
        return iter((self.x, self.y))

    def __str__(self) -> str:
        return f"{self.name} ({self.x:.0f}, {self.y:.0f}) {self.score:.2f}"


@dataclass(frozen=True)
class Classification:
    """A class and its probability.

    >>> label, index, probability = Classification("Egyptian cat", 285, 0.9)
    >>> print(Classification(label, index, probability))
    Egyptian cat 0.900
    """

    label: str
    index: int
    probability: float

    def __iter__(self) -> Iterator[str | int | float]:
        return iter((self.label, self.index, self.probability))

    def __str__(self) -> str:
        return f"{self.label} {self.probability:.3f}"


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

    def __str__(self) -> str:
        x1, y1, x2, y2 = self.box
        return f"{self.label} {self.score:.2f} at x {x1:.0f}..{x2:.0f}, y {y1:.0f}..{y2:.0f}"


@dataclass(frozen=True)
class Face(Detection):
    """A face with six keypoints: eyes, nose, mouth and ears; left is the person's left.

    >>> face = Face((0, 0, 9, 9), "face", 0.9, keypoints=(Keypoint("nose", 4, 5),))
    >>> face.keypoints[0].name
    'nose'
    """

    keypoints: tuple[Keypoint, ...] = ()


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


@dataclass(frozen=True)
class Pose:
    """A person: keypoints, and their mean score.

    >>> pose = Pose((Keypoint("nose", 4, 5, 0.9), Keypoint("left_eye", 6, 3, 0.7)), 0.8)
    >>> pose["nose"].x, pose.box
    (4, (4, 3, 6, 5))
    """

    keypoints: tuple[Keypoint, ...]
    score: float

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

    def __str__(self) -> str:
        seen = sum(p.score >= 0.5 for p in self.keypoints)
        return f"person {self.score:.2f}, {seen} of {len(self.keypoints)} keypoints visible"


class _Drawable:
    """A result that can be drawn."""

    @overload
    def draw(
        self,
        target: Surface,
        *,
        color: ColorLike | None = None,
        width: int | None = None,
        labels: bool = True,
        opacity: float = 0.5,
        least: float = 0.3,
    ) -> Surface: ...
    @overload
    def draw(
        self,
        target: _I,
        *,
        color: ColorLike | None = None,
        width: int | None = None,
        labels: bool = True,
        opacity: float = 0.5,
        least: float = 0.3,
    ) -> _I: ...
    def draw(
        self,
        target: Surface | ImageLike,
        **options: ColorLike | float | None,
    ) -> Surface | ImageLike:
        """Draw the result on a picture, and return a new picture of the same type.

        A Surface is drawn on and returned.

        Args:
            target: an array, Frame, Pillow image or Surface of the size of the picture.
            **options: ``color`` of boxes and points; ``width`` of lines in pixels; ``labels=False``
                for no labels; ``opacity`` of masks, 0 to 1; ``least``, the minimum score of
                keypoints.

        >>> found = Detections([Detection((1, 1, 6, 6), "dog", 0.8)])
        >>> found.draw(np.zeros((8, 8, 3), np.uint8), color="red", labels=False).max()
        np.uint8(255)
        """
        from dala.ml.draw import draw

        return draw(self, target, **options)


class _FoundList(list[_T], _Drawable):
    """A list of results with the model's outputs."""

    def __init__(self, found: Iterable[_T] = (), raw: Outputs | None = None) -> None:
        super().__init__(found)
        self.raw: Outputs = raw or {}

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing found"

    def _repr_html_(self) -> str:
        if not self:
            return html_text("nothing found")
        return html_table(["found", "score", "box"], map(_cells, self), len(self))


class Detections(_FoundList[Detection]):
    """Objects, a list sorted by descending score.

    >>> print(Detections([Detection((10, 20, 50, 80), "dog", 0.8)]))
    dog 0.80 at x 10..50, y 20..80
    """


class Faces(_FoundList[Face]):
    """Faces, a list sorted by descending score.

    >>> print(Faces())
    nothing found
    """


class Poses(_FoundList[Pose]):
    """People, a list sorted by descending score.

    >>> print(Poses())
    nothing found
    """


class TrackedObjects(_FoundList[TrackedObject]):
    """Objects that are followed, a list sorted by id.

    >>> print(TrackedObjects([TrackedObject((10, 20, 50, 80), "dog", 0.8, id=3)]))
    #3 dog 0.80 at x 10..50, y 20..80
    """


class Scores(NDArray, _Drawable):
    """Probabilities of all classes: a one-dimensional array with labels.

    >>> scores = Scores([0.1, 0.7, 0.2], ["cat", "dog", "fox"])
    >>> scores.top(1)
    [Classification(label='dog', index=1, probability=0.699999988079071)]
    """

    labels: tuple[str, ...]
    raw: Outputs

    def __new__(
        cls, probabilities: npt.ArrayLike, labels: Sequence[str] = (), raw: Outputs | None = None
    ) -> Scores:
        made = np.asarray(probabilities, np.float32).view(cls)
        made.labels = tuple(labels)
        made.raw = raw or {}
        return made

    def __array_finalize__(self, source: NDArray | None) -> None:
        self.labels = getattr(source, "labels", ())
        self.raw = getattr(source, "raw", {})

    def __reduce__(self) -> tuple[object, ...]:
        return Scores, (np.array(self), self.labels, dict(self.raw))

    def top(self, k: int = 5) -> list[Classification]:
        """Return the k most likely classes, or all if there are fewer."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ParameterError.invalid("Scores.top", "k", "an int of at least 1", k)
        order = np.argsort(-np.asarray(self), kind="stable")[:k]
        return [Classification(name_of(self.labels, i), int(i), float(self[i])) for i in order]

    def __str__(self) -> str:
        if self.ndim != 1 or self.size < 2:
            return str(np.asarray(self))
        return "\n".join(map(str, self.top(5)))

    def _repr_html_(self) -> str | None:
        if self.ndim != 1 or self.size < 2:
            return None
        rows = [(c.label, str(c.index), f"{c.probability:.3f}") for c in self.top(5)]
        return html_table(["label", "index", "probability"], rows, len(rows))

    def __repr__(self) -> str:
        if self.ndim != 1 or self.size < 2:
            return repr(np.asarray(self))
        return f"<Scores of {self.size} classes, {self.top(1)[0]}>"


@dataclass(eq=False)
class Segmentation(_Drawable):
    """The class of each pixel: ``classes`` of shape (height, width).

    ``planes`` has the probabilities, 0 to 1, of each class that occurs.

    >>> classes = np.array([[0, 1], [1, 1]], np.uint8)
    >>> found = Segmentation(classes, ("background", "dog"), {1: classes.astype(np.float32)})
    >>> print(found)
    dog 75.0%, background 25.0%
    """

    classes: NDArray
    labels: tuple[str, ...]
    planes: Mapping[int, NDArray] = field(repr=False)
    raw: Outputs = field(default_factory=dict, repr=False)

    def mask(self, label: str | int) -> NDArray:
        """Return the probability of a class at each pixel, as f32 from 0 to 1."""
        index = self._index(label)
        plane = self.planes.get(index)
        return np.zeros(self.classes.shape, np.float32) if plane is None else plane

    def share(self, label: str | int) -> float:
        """Return the fraction of the picture that belongs to a class."""
        return float(np.mean(self.classes == self._index(label)))

    @property
    def found(self) -> dict[str, float]:
        """The classes that occur and their fractions of the picture, largest first."""
        numbers, counts = np.unique(self.classes, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        total = self.classes.size
        return {name_of(self.labels, numbers[i]): float(counts[i] / total) for i in order}

    def _index(self, label: str | int) -> int:
        if isinstance(label, str):
            if label in self.labels:
                return self.labels.index(label)
            listed = f"Classes: {', '.join(self.labels)}." if self.labels else "Use its number."
            advice = did_you_mean(label, self.labels) or listed
            raise ParameterError(f"Segmentation: no class {label!r}. {advice}")
        if isinstance(label, bool) or not isinstance(label, int | np.integer):
            raise ParameterError.invalid("Segmentation", "label", "a name or a number", label)
        count = max(len(self.labels), 1 + int(self.classes.max(initial=0)))
        if not 0 <= label < count:
            raise ParameterError.invalid(
                "Segmentation", "label", f"an int from 0 to {count - 1}", label
            )
        return int(label)

    def __str__(self) -> str:
        return ", ".join(f"{name} {share:.1%}" for name, share in self.found.items())

    def _repr_html_(self) -> str | None:
        from dala.ml.draw import palette

        if not self.classes.size:
            return None
        colors = np.array([(0, 0, 0), *map(palette, range(1, 256))], np.uint8)
        rows = [(name, f"{share:.1%}") for name, share in self.found.items()]
        picture = html_picture(shrunk(colors[self.classes.astype(np.uint8)]))
        return picture + html_table(["class", "share"], rows, len(rows))


@dataclass(eq=False)
class Matte(_Drawable):
    """The foreground: ``alpha`` of shape (height, width), 0 to 1.

    >>> print(Matte(np.full((2, 2), 0.5, np.float32)))
    foreground 50.0%
    """

    alpha: NDArray
    raw: Outputs = field(default_factory=dict, repr=False)

    def mask(self, label: str | int | None = None) -> NDArray:
        """Return ``alpha``. The label is ignored, as there is only one class."""
        return self.alpha

    def __str__(self) -> str:
        return f"foreground {float(self.alpha.mean()):.1%}"

    def _repr_png_(self) -> bytes | None:
        return picture_png(self.alpha) if self.alpha.size else None


class Tensors(dict[str, NDArray]):
    """The outputs of a model without a known task, by name.

    >>> print(Tensors(y=np.zeros((1, 3), np.float32)))
    y (1, 3) float32
    """

    @property
    def raw(self) -> Outputs:
        """The outputs."""
        return self

    def __str__(self) -> str:
        return "\n".join(f"{name} {a.shape} {a.dtype}" for name, a in self.items())

    def _repr_html_(self) -> str:
        rows = ((name, str(a.shape), str(a.dtype)) for name, a in self.items())
        return html_table(["output", "shape", "dtype"], rows, len(self))


#: What ``predict`` returns for one picture.
Prediction: TypeAlias = "Scores | Detections | Faces | Poses | Segmentation | Matte | Tensors"


def _cells(found: object) -> tuple[str, str, str]:
    """Return a result as cells of a table."""
    if isinstance(found, Pose):
        seen = sum(p.score >= 0.5 for p in found.keypoints)
        what = f"person, {seen} of {len(found.keypoints)} keypoints"
        box: Box | tuple[()] = found.box if found.keypoints else ()
        return what, f"{found.score:.2f}", ", ".join(f"{n:.0f}" for n in box)
    if isinstance(found, Detection):
        label = f"#{found.id} {found.label}" if isinstance(found, TrackedObject) else found.label
        return label, f"{found.score:.2f}", ", ".join(f"{n:.0f}" for n in found.box)
    return str(found), "", ""


def name_of(labels: Sequence[str], index: int | np.integer) -> str:
    """Return the label of a class, or its number if it has none."""
    number = int(index)
    return labels[number] if number < len(labels) else str(number)
