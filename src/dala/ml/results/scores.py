"""Results for a whole picture: the scores of classes, and plain tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dala.arguments import Integer
from dala.ml.results.base import Drawable, Outputs, name_of
from dala.notebook import html_table
from dala.typing import NDArray


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


class Scores(NDArray, Drawable):
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
        Integer(1).check("Scores.top", "k", k)
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
