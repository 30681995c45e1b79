"""Shape nodes: paths, filled and stroked."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dala.budget import check_deadline
from dala.errors import ParameterError
from dala.gpu import command
from dala.gpu.paint import Gradient
from dala.gpu.path import Path
from dala.gpu.path.numbers import Matrix, matrix_of, multiplied
from dala.gpu.raster.canvas import Canvas
from dala.gpu.vector.fields import PathData
from dala.media.scene.boxes import PlacedBox, container_size
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.json_types import JsonNumber, ListOf, ParsedString
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.paints import PaintType
from dala.media.scene.nodes.properties import Property

RULES: Final = ("nonzero", "evenodd")
CAPS: Final = ("butt", "round", "square")
JOINS: Final = ("miter", "round", "bevel")
#: Pixels around the scene that are drawn too, for shadows and filters that reach into it.
_AROUND: Final = 64
_LARGEST: Final = 16384


class ShapePathType(t.PropertyType):
    """A path; in scene files SVG path data."""

    expected = "a Path or SVG path data"

    def __init__(self) -> None:
        json = ParsedString("SVG path data", ("M0 0L10 0L5 8Z",), Path.svg)
        super().__init__(json, "Path | str", animatable=True)

    def check_value(self, call: str, argument: str, value: t.Value) -> Path:
        """Return the path."""
        if isinstance(value, str):
            try:
                return Path.svg(value)
            except ParameterError as error:
                raise error.within(call) from None
        if not isinstance(value, Path):
            raise ParameterError.invalid(call, argument, self.expected, value)
        return value

    def dump_value(self, value: Path) -> str:
        """Return SVG path data."""
        return value.to_svg()


class DashType(t.PropertyType):
    """Lengths of dashes and gaps."""

    expected = "a list of lengths of at least 0"

    def __init__(self) -> None:
        json = ListOf(JsonNumber(0, 1e6), "a list of lengths")
        super().__init__(json, "Sequence[float]", animatable=True)

    def accept(self, value: t.Value) -> tuple[float, ...]:
        """Return the lengths."""
        lengths = tuple(float(length) for length in value)
        if isinstance(value, str) or not all(0 <= length <= 1e6 for length in lengths):
            raise ValueError
        return lengths


class ShapeNode(Node):
    """A path, filled with a color, stroked with another, or both.

    The position is that of the path's (0, 0), so a path in the coordinates of the scene needs
    none; ``rotation`` and ``scale`` are about it. With an ``anchor``, it is that point of the box
    around the path. ``trim`` draws only a part of the path, between two fractions of its length: a
    line grows by ``scene.add_animation(line, "trim", (0, 0), (0, 1), 2)``. Paths of the same
    commands can be animated from one to the other.

    It is drawn as surfaces draw paths, in the size and at the place that it is shown at.

    >>> import dala
    >>> from dala.gpu import Path
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     scene.add_shape(Path.circle(30, 20, 10), fill="gold", stroke="white", width=2).box
    (19.0, 9.0, 22.0, 22.0)
    """

    type = "shape"
    WITHOUT = ("height", "size", "fit", "crop", "radius", "border", "border_width", "border_color")
    POSITIONAL = ("path",)
    __slots__ = ("_canvas", "_drawn", "_live", "_place")

    path = Property(Path(), ShapePathType(), "The path.", required=True)
    fill = Property(None, PaintType(), "Color or gradient inside the path; none by default.")
    stroke = Property(None, PaintType(), "Color or gradient of the line; none by default.")
    width = Property(1.0, t.NumberType(0.0, 10_000.0), "Width of the line.", unit="pixels")
    trim = Property(
        (0.0, 1.0),
        t.TupleType("start, end", t.NumberType(0.0, 1.0), t.NumberType(0.0, 1.0)),
        "The part of the path to draw: fractions of its length.",
    )
    rule = Property(
        "nonzero", t.ChoiceType(RULES), "What is inside where contours overlap.", animatable=True
    )
    cap = Property("butt", t.ChoiceType(CAPS), "Ends of the line.", animatable=True)
    join = Property("miter", t.ChoiceType(JOINS), "Corners of the line.", animatable=True)
    miter = Property(
        10.0, t.NumberType(0.0, 1e6), "Corners longer than so many widths are beveled."
    )
    dash = Property((), DashType(), "Lengths of dashes and gaps in turn.", unit="pixels")
    offset = Property(
        0.0, t.NumberType(-1e6, 1e6), "Where in the dashes the line begins.", unit="pixels"
    )
    anchor = Property(
        None, t.AnchorType(optional=True),
        "The point of the box that is at the position; by default the path's (0, 0).",
    )  # fmt: skip

    def prepare(self, given: t.Values) -> None:
        """Fill the path if no color was given."""
        if given.get("fill") is None and given.get("stroke") is None:
            given["fill"] = "white"
        self._live = LivePicture(self.scene._compositor)
        self._drawn: tuple[object, ...] | None = None
        self._place: tuple[int, int] = (0, 0)

    def changed(self, item: Property | None = None) -> None:
        """Mark the node as changed; one that moves is drawn again, unless by whole pixels."""
        super().changed(None if item is not None and item.moves else item)

    def natural(self) -> tuple[float, float]:
        """Return the size of the box around the path and its line."""
        x0, y0, x1, y1 = self._bounds()
        return x1 - x0, y1 - y0

    def box_size(self, width: float, height: float) -> tuple[float, float]:
        """Return the size of the box, scaled."""
        scale = self.property_values["scale"]
        return width * scale, height * scale

    @property
    def anchor_point(self) -> tuple[float, float]:
        """The anchor as fractions of the box: by default the path's (0, 0)."""
        if self.property_values["anchor"] is not None:
            return super().anchor_point
        x0, y0, x1, y1 = self._bounds()
        return (-x0 / (x1 - x0) if x1 > x0 else 0.0, -y0 / (y1 - y0) if y1 > y0 else 0.0)

    def place(self, left: float, top: float, width: float, height: float) -> None:
        """Fit the box into a rectangle; layouts use this."""
        x0, y0, x1, y1 = self._bounds()
        scale = min(width / max(x1 - x0, 1e-6), height / max(y1 - y0, 1e-6))
        self.update(scale=max(scale, 0.0), anchor=(0.5, 0.5))
        self.update(position=(left + width / 2, top + height / 2))

    def _bounds(self) -> tuple[float, float, float, float]:
        """Return the box around the path and half of its line."""
        values = self.property_values
        x0, y0, x1, y1 = values["path"].bounds
        half = 0.0 if values["stroke"] is None else values["width"] / 2
        return x0 - half, y0 - half, x1 + half, y1 + half

    def _matrix(self) -> Matrix:
        """Return the matrix from the path to the container."""
        values = self.property_values
        shift = (0.0, 0.0)
        if values["anchor"] is not None:
            x0, y0, x1, y1 = self._bounds()
            across, down = values["anchor"]
            shift = (-x0 - across * (x1 - x0), -y0 - down * (y1 - y0))
        place = values["x"], values["y"]
        outer = matrix_of(self.id, place, values["rotation"], values["scale"])
        return multiplied(outer, (1.0, 0.0, 0.0, 1.0, *shift))

    def content(self) -> Content | None:
        """Return the picture of the shape, drawn again when its looks changed."""
        values = self.property_values
        a, b, c, d, e, f = self._matrix()
        path: Path = values["path"]
        if values["trim"] != (0.0, 1.0):
            path = path.trim(*values["trim"])
        if not a * d - b * c or not path.verbs:
            return None
        left, top, right, bottom = self._extent(path, (a, b, c, d, e, f))
        if right <= left or bottom <= top:
            return None
        matrix = a, b, c, d, e - left, f - top
        size = min(right - left, _LARGEST), min(bottom - top, _LARGEST)
        names = ("fill", "stroke", "width", "rule", "cap", "join", "miter", "dash", "offset")
        key = (path, matrix, size, *(values[name] for name in names))
        self._place = left, top
        if key != self._drawn:
            self._live.show(self._painted(path, matrix, size), opaque=False)
            self._drawn = key
        return self._live.content()

    def placed(self, content: Content) -> PlacedBox:
        """Return the place of the picture, in which scale and rotation are drawn already."""
        left, top = self._place
        return PlacedBox.flat(content.width, content.height, None, left, top)

    def _extent(self, path: Path, matrix: Matrix) -> tuple[int, int, int, int]:
        """Return the pixels of the container that the shape may touch."""
        values = self.property_values
        x0, y0, x1, y1 = path.transform(matrix=matrix).bounds
        grow = 1.0
        if values["stroke"] is not None:
            longest = max(values["miter"] * (values["join"] == "miter"), math.sqrt(2))
            grow += max(values["width"] * values["scale"] / 2 * longest, 1.0)
        width, height = container_size(self)
        return (
            max(math.floor(x0 - grow), -_AROUND),
            max(math.floor(y0 - grow), -_AROUND),
            min(math.ceil(x1 + grow), math.ceil(width) + _AROUND),
            min(math.ceil(y1 + grow), math.ceil(height) + _AROUND),
        )

    def _painted(self, path: Path, matrix: Matrix, size: tuple[int, int]) -> np.ndarray:
        """Return the shape as a picture of straight RGBA."""
        values = self.property_values
        data = command.encode_transform(*matrix)
        shape = PathData(path.verbs, path.points.tobytes())
        canvas = Canvas(*size)
        canvas.check_work = check_deadline
        if values["fill"] is not None:
            paint = _paint(canvas, 1, values["fill"])
            data += command.encode_fill_shape(values["rule"], *paint, shape)
        if values["stroke"] is not None:
            data += command.encode_stroke_shape(
                values["width"], values["cap"], values["join"], values["miter"],
                values["offset"], *_paint(canvas, 2, values["stroke"]), values["dash"], shape,
            )  # fmt: skip
        canvas.run(data)
        for fault in canvas.take_faults():
            raise fault.error
        return canvas.pixels


def _paint(canvas: Canvas, id: int, paint: t.Value) -> tuple[int, t.Rgba]:
    """Return the id of a gradient, which is loaded, or 0; and a color."""
    if not isinstance(paint, Gradient):
        return 0, paint
    canvas.store(command.decode(paint.command(id))[0])
    return id, (0, 0, 0, 255)
