"""Results for each pixel: classes and mattes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dala.arguments import Integer
from dala.errors import ParameterError, did_you_mean
from dala.ml.results.base import Drawable, Outputs, name_of
from dala.notebook import html_picture, html_table, picture_png, shrunk
from dala.typing import NDArray


@dataclass(eq=False)
class Segmentation(Drawable):
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
        last = max(len(self.labels) - 1, int(self.classes.max(initial=0)))
        words = f"a name, or an int from 0 to {last}"
        return Integer(0, last, words).check("Segmentation", "label", label)

    def __str__(self) -> str:
        return ", ".join(f"{name} {share:.1%}" for name, share in self.found.items())

    def _repr_html_(self) -> str | None:
        from dala.ml.results.draw import palette

        if not self.classes.size:
            return None
        colors = np.array([(0, 0, 0), *map(palette, range(1, 256))], np.uint8)
        rows = [(name, f"{share:.1%}") for name, share in self.found.items()]
        picture = html_picture(shrunk(colors[self.classes.astype(np.uint8)]))
        return picture + html_table(["class", "share"], rows, len(rows))


@dataclass(eq=False)
class Enhanced:
    """A picture that a model made of a picture: ``picture`` of shape (height, width, 1 or 3).

    It is u8 for pictures of u8, else f32 from 0 to 1. ``scale`` is its height divided by that of
    the picture that was given.

    >>> print(Enhanced(np.zeros((4, 8, 3), np.uint8), 2.0))
    8x4, 2 times as large
    """

    picture: NDArray
    scale: float = 1.0
    raw: Outputs = field(default_factory=dict, repr=False)

    def __array__(
        self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None
    ) -> NDArray:
        return np.array(self.picture, dtype) if copy else np.asarray(self.picture, dtype)

    def __str__(self) -> str:
        return f"{self.picture.shape[1]}x{self.picture.shape[0]}, {self.scale:g} times as large"

    def _repr_png_(self) -> bytes | None:
        return picture_png(self.picture) if self.picture.size else None


@dataclass(eq=False)
class Matte(Drawable):
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
