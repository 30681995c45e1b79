"""Paints of shapes besides colors: gradients, and patterns of pictures."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from dala.arguments import Flag, items_of
from dala.errors import ParameterError
from dala.gpu.color import rgba_of
from dala.gpu.command import encode_load_gradient
from dala.gpu.path.numbers import IDENTITY, Matrix, matrix_of, multiplied, numbers, turn
from dala.gpu.protocol import sampling as samplings
from dala.gpu.protocol import space as spaces
from dala.gpu.protocol import spread as spreads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dala.gpu.vector.pictures import Picture
    from dala.typing import ColorLike

#: Stops of a gradient at most.
MAX_STOPS: Final = 256

Point: TypeAlias = Sequence[float]
Stop: TypeAlias = "tuple[float, ColorLike]"


def _point(call: str, argument: str, value: Point) -> tuple[float, ...]:
    found: list[float] | None = items_of(value)
    if found is None or len(found) != 2:
        raise ParameterError.invalid(call, argument, "two numbers (x, y)", value)
    return numbers(call, f"{argument} {argument}", tuple(found))


class Gradient:
    """Colors that change over a shape. Its coordinates are those of the shape.

    Attributes:
        matrix: Maps coordinates to those of the gradient; see ``dala.gpu.command``.
        stops: Five numbers for each stop: its place, and red, green, blue and alpha up to 255.
        spread: What is outside of 0 to 1.
        space: The color space in which colors are interpolated.
        dither: Whether colors between those of 8 bits are patterns of both.
    """

    kind: ClassVar[str] = ""

    def __init__(
        self,
        matrix: Matrix,
        stops: Sequence[Stop],
        spread: str,
        space: str,
        dither: bool = False,
    ) -> None:
        call = type(self).__name__
        found: list[Stop] | None = items_of(stops)
        if not found or len(found) > MAX_STOPS:
            expected = f"1 to {MAX_STOPS} pairs (place, color)"
            raise ParameterError.invalid(call, "stops", expected, stops)
        flat: list[float] = []
        for n, each in enumerate(found):
            pair: list[object] | None = None if isinstance(each, str) else items_of(each)
            if pair is None or len(pair) != 2:
                raise ParameterError.invalid(call, f"stops[{n}]", "a pair (place, color)", each)
            place, color = each
            (place,) = numbers(call, f"stops[{n}]", (place,))
            if not (flat[-5] if flat else 0.0) <= place <= 1:
                expected = "places from 0 to 1 in ascending order"
                raise ParameterError.invalid(call, f"stops[{n}]", expected, place)
            flat += (place, *rgba_of(color, call, f"stops[{n}]"))
        self.matrix, self.stops = matrix, tuple(flat)
        spreads.place(call, "spread", spread, ParameterError)
        spaces.place(call, "space", space, ParameterError)
        self.spread, self.space = spread, space
        self.dither = Flag().check(call, "dither", dither)

    @property
    def key(self) -> Hashable:
        """The parts by which two gradients are equal."""
        return self.kind, self.matrix, self.stops, self.spread, self.space, self.dither

    def command(self, id: int) -> bytes:
        """Return the command that stores it by an id."""
        return encode_load_gradient(
            id, self.kind, self.spread, self.space, self.dither, *self.matrix, stops=self.stops
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.stops) // 5} colors>"


class LinearGradient(Gradient):
    """Colors along a line.

    >>> from dala import gpu
    >>> from dala.gpu import LinearGradient
    >>> with gpu.create_surface(4, 1) as s:
    ...     s.rect(0, 0, 4, 1, LinearGradient((0, 0), (4, 0), [(0, "black"), (1, "white")]))
    ...     s.to_array()[0, :, 0].tolist()
    [32, 96, 159, 223]

    Args:
        start: The point (x, y) of the first color.
        end: The point of the last color.
        stops: Pairs of a place from 0 to 1 and a color. Between them, colors are interpolated
            premultiplied by alpha.
        spread: Outside, "pad" the first and last color, "repeat" or "reflect" all of them.
        space: Interpolate in "srgb", in "linear" light or in "oklab", which keeps hues even.
        dither: Mix neighboring colors of 8 bits in a fine pattern, which hides bands.
    """

    kind = "linear"

    def __init__(
        self,
        start: Point,
        end: Point,
        stops: Sequence[Stop],
        spread: str = "pad",
        space: str = "srgb",
        dither: bool = False,
    ) -> None:
        x0, y0 = _point("LinearGradient", "start", start)
        x1, y1 = _point("LinearGradient", "end", end)
        dx, dy = x1 - x0, y1 - y0
        square = dx * dx + dy * dy
        if square == 0:
            raise ParameterError.invalid("LinearGradient", "end", "another point than start", end)
        a, c = dx / square, dy / square
        super().__init__((a, 0.0, c, 0.0, -(a * x0 + c * y0), 0.0), stops, spread, space, dither)


class RadialGradient(Gradient):
    """Colors from a center outward.

    >>> from dala.gpu import RadialGradient
    >>> RadialGradient((50, 50), 40, [(0, "white"), (1, "navy")])
    <RadialGradient of 2 colors>

    Args:
        center: The point (x, y) of the first color.
        radius: The distance of the last color.
        stops: See :class:`LinearGradient`.
        spread: See :class:`LinearGradient`.
        space: See :class:`LinearGradient`.
        dither: See :class:`LinearGradient`.
    """

    kind = "radial"

    def __init__(
        self,
        center: Point,
        radius: float,
        stops: Sequence[Stop],
        spread: str = "pad",
        space: str = "srgb",
        dither: bool = False,
    ) -> None:
        x, y = _point("RadialGradient", "center", center)
        (r,) = numbers("RadialGradient", "radius", (radius,))
        if r <= 0:
            raise ParameterError.invalid("RadialGradient", "radius", "a number above 0", radius)
        super().__init__((1 / r, 0.0, 0.0, 1 / r, -x / r, -y / r), stops, spread, space, dither)


class ConicGradient(Gradient):
    """Colors around a center, clockwise.

    >>> from dala.gpu import ConicGradient
    >>> ConicGradient((50, 50), [(0, "red"), (0.5, "lime"), (1, "red")], angle=-90)
    <ConicGradient of 3 colors>

    Args:
        center: The point (x, y) that the colors turn around.
        stops: See :class:`LinearGradient`; their places are parts of a turn.
        angle: Where the first color is: degrees, clockwise from the x axis.
        space: See :class:`LinearGradient`.
        dither: See :class:`LinearGradient`.
    """

    kind = "conic"

    def __init__(
        self,
        center: Point,
        stops: Sequence[Stop],
        angle: float = 0.0,
        space: str = "srgb",
        dither: bool = False,
    ) -> None:
        x, y = _point("ConicGradient", "center", center)
        c, d = turn(*numbers("ConicGradient", "angle", (angle,)))
        matrix = (c, -d, d, c, -(c * x + d * y), d * x - c * y)
        super().__init__(matrix, stops, "pad", space, dither)


class Pattern:
    """A picture that fills shapes, repeated by default.

    >>> import numpy as np
    >>> from dala import gpu
    >>> checks = np.array([[[255, 0, 0, 255], [0, 0, 255, 255]]], np.uint8)
    >>> with gpu.create_surface(4, 1) as s:
    ...     s.rect(0, 0, 4, 1, gpu.Pattern(checks, filter="nearest"))
    ...     s.get_pixels().hex(" ", 4)
    'ff0000ff 0000ffff ff0000ff 0000ffff'

    Args:
        image: A picture: a file's name, an array (h, w, 3) or (h, w, 4) of uint8, a Frame, or a
            Pillow image. It is copied when it is first drawn with.
        translate: Where the corner of the picture is.
        rotate: Degrees, clockwise on the screen, about the corner.
        scale: The size of a pixel of the picture: one number, or one for x and one for y.
        matrix: See ``Surface.transformed``.
        repeat: "repeat" or "reflect" the picture, or "pad" with its edges.
        filter: "linear", with smaller levels where the picture shrinks, or "nearest".
    """

    def __init__(
        self,
        image: Picture,
        translate: Sequence[float] = (0.0, 0.0),
        rotate: float = 0.0,
        scale: float | Sequence[float] = 1.0,
        matrix: ArrayLike | None = None,
        repeat: str = "repeat",
        filter: str = "linear",
    ) -> None:
        self.image = image
        a, b, c, d, e, f = matrix_of("Pattern", translate, rotate, scale, matrix)
        det = a * d - b * c
        if not abs(det) > 1e-12 or not math.isfinite(det):
            raise ParameterError.invalid("Pattern", "matrix", "one that can be undone", matrix)
        inverse = (d / det, -b / det, -c / det, a / det, 0.0, 0.0)
        self.matrix = multiplied(inverse, (*IDENTITY[:4], -e, -f))
        spreads.place("Pattern", "repeat", repeat, ParameterError)
        samplings.place("Pattern", "filter", filter, ParameterError)
        self.repeat, self.filter = repeat, filter


#: What shapes are drawn with.
Paint: TypeAlias = "ColorLike | Gradient | Pattern"
