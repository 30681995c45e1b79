"""The base of all results: outputs, drawing, lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Unpack, overload

import numpy as np

from dala.ml.options import DrawOptions
from dala.notebook import html_table, html_text
from dala.options import takes
from dala.typing import ImageLike, NDArray

if TYPE_CHECKING:
    from dala.gpu.surface import Surface
    from dala.ml.keywords import DrawKeywords

#: A model's outputs by name.
Outputs: TypeAlias = Mapping[str, NDArray]
#: x1, y1, x2, y2 in pixels of the picture.
Box: TypeAlias = tuple[float, float, float, float]

_I = TypeVar("_I", bound="ImageLike")


class Listed(Protocol):
    """An element of a list of results."""

    def cells(self) -> tuple[str, str, str]:
        """Return the cells of a table: its label, its score, and its box."""


_T = TypeVar("_T", bound=Listed)


class Drawable:
    """A result that can be drawn."""

    @overload
    def draw(self, target: Surface, **options: Unpack[DrawKeywords]) -> Surface: ...
    @overload
    def draw(self, target: _I, **options: Unpack[DrawKeywords]) -> _I: ...
    @takes(DrawOptions)
    def draw(self, target: Surface | ImageLike, **options: Any) -> Surface | ImageLike:
        """Draw the result on a picture, and return a new picture of the same type.

        A Surface is drawn on and returned.

        Args:
            target: an array, Frame, Pillow image or Surface of the size of the picture.

        >>> from dala.ml.results import Detection, Detections
        >>> found = Detections([Detection((1, 1, 6, 6), "dog", 0.8)])
        >>> found.draw(np.zeros((8, 8, 3), np.uint8), color="red", labels=False).max()
        np.uint8(255)
        """
        from dala.ml.results.draw import draw

        return draw(self, target, DrawOptions.checked("draw", options))


class FoundList(list[_T], Drawable):
    """A list of results with the model's outputs."""

    def __init__(self, found: Iterable[_T] = (), raw: Outputs | None = None) -> None:
        super().__init__(found)
        self.raw: Outputs = raw or {}

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing found"

    def _repr_html_(self) -> str:
        if not self:
            return html_text("nothing found")
        return html_table(["found", "score", "box"], (one.cells() for one in self), len(self))


def name_of(labels: Sequence[str], index: int | np.integer) -> str:
    """Return the label of a class, or its number if it has none."""
    number = int(index)
    return labels[number] if number < len(labels) else str(number)


def box_cell(box: Box) -> str:
    """Return a box as the cell of a table."""
    return ", ".join(f"{n:.0f}" for n in box)
