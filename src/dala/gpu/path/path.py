"""Paths of lines and curves, which cannot be changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.arguments import Integer
from dala.errors import ParameterError
from dala.errors.describing import KnownAttributes
from dala.gpu.path import curves, parts, shapes, svg
from dala.gpu.path.curves import CLOSE, CUBIC, MOVE, POINTS
from dala.gpu.path.numbers import fraction, matrix_of, numbers, point_array, size
from dala.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Commands that are not in the arrays yet: those before, the verbs, the coordinates.
_Tail = tuple["_Tail | None", bytes, tuple[float, ...]]

RULES: Final = ("nonzero", "evenodd")
_CONTOURS: Final = re.compile(rb"(?:\x00[\x00-\x03]*+\x04?)*+")
#: Longest path data in a repr.
_SHOWN: Final = 120


class Path(KnownAttributes):
    """Lines and curves to fill and stroke.

    Each call returns a new path, and the old one stays as it is. Adding to the end costs the same
    however long the path is.

    >>> from dala.gpu import Path
    >>> Path().move_to(0, 0).line_to(10, 0).quad_to(10, 10, 0, 10).close()
    Path.svg('M0 0L10 0Q10 10 0 10Z')
    >>> Path.rect(0, 0, 10, 5).contains(3, 3), Path.circle(0, 0, 1).bounds
    (True, (-1.0, -1.0, 1.0, 1.0))

    Coordinates are finite numbers from -1e9 to 1e9. Angles are in degrees, clockwise on the screen
    from the x axis. After :meth:`close`, the next line begins at the start of the closed contour.

    Args:
        verbs: One byte for each command: 0 move, 1 line, 2 quadratic curve, 3 cubic curve, 4 close.
        points: Their points, an array of shape (n, 2): 1, 1, 2, 3 and 0 for each.
    """

    __slots__ = ("__weakref__", "_data", "_last", "_lengths", "_start")

    #: Verbs, points, and what was added since; replaced as one, so that threads may read.
    _data: tuple[bytes, NDArray, _Tail | None]
    #: The start of the last contour, and the current point; None in an empty path.
    _start: tuple[float, ...] | None
    _last: tuple[float, ...] | None
    _lengths: NDArray | None

    def __init__(self, verbs: bytes = b"", points: ArrayLike = ()) -> None:
        if not isinstance(verbs, bytes) or not _CONTOURS.fullmatch(verbs):
            raise ParameterError.invalid(
                "Path", "verbs", "bytes from 0 to 4, a 0 first and after each 4", verbs
            )
        found = point_array("Path", "points", points)
        wanted = sum(count * verbs.count(verb) for verb, count in enumerate(POINTS))
        if len(found) != wanted:
            raise ParameterError.invalid("Path", "points", f"{wanted} points", len(found))
        self._set(verbs, found)

    def _set(self, verbs: bytes, points: NDArray) -> None:
        self._data, self._lengths = (verbs, points, None), None
        self._start = self._last = None
        if verbs:
            move = verbs.rfind(MOVE)
            after = sum(POINTS[verb] for verb in verbs[move:])
            self._start = tuple(points[len(points) - after].tolist())
            self._last = self._start if verbs[-1] == CLOSE else tuple(points[-1].tolist())

    @staticmethod
    def _made(verbs: bytes, points: ArrayLike, call: str) -> Path:
        """Return a path of verbs that are known to be right."""
        path = Path.__new__(Path)
        path._set(verbs, point_array(call, "points", points))
        return path

    def _settled(self) -> tuple[bytes, NDArray]:
        """Return verbs and points, and keep them as arrays."""
        first, points, tail = self._data
        if tail is not None:
            verbs: list[bytes] = []
            given: list[tuple[float, ...]] = []
            while tail is not None:
                tail, verb, coordinates = tail
                verbs.append(verb)
                given.append(coordinates)
            added = np.array([value for row in reversed(given) for value in row], np.float64)
            points = np.concatenate([points, added.reshape(-1, 2) + 0.0])
            points.setflags(write=False)
            first += b"".join(reversed(verbs))
            self._data = first, points, None
        return first, points

    # adding -----------------------------------------------------------------------------------
    def _added(self, call: str, verbs: bytes, given: tuple[float, ...]) -> Path:
        """Return the path with commands at its end."""
        if verbs[0] != MOVE:
            first, _, tail = self._data
            before = first if tail is None else tail[1]
            if self._start is None:
                raise ParameterError(f"{call}: the path must begin with move_to(x, y).", call=call)
            if before[-1] == CLOSE:
                verbs, given = bytes([MOVE]) + verbs, self._start + given
        path = Path.__new__(Path)
        first, points, tail = self._data
        path._data, path._lengths = (first, points, (tail, verbs, given)), None
        path._start = given[:2] if verbs[0] == MOVE else self._start
        path._last = path._start if verbs[-1] == CLOSE else given[-2:]
        return path

    def move_to(self, x: float, y: float) -> Path:
        """Begin a new contour at a point.

        >>> Path().move_to(1, 2)
        Path.svg('M1 2')
        """
        return self._added("Path.move_to", b"\0", numbers("Path.move_to", "x y", (x, y)))

    def line_to(self, x: float, y: float) -> Path:
        """Add a straight line.

        >>> Path().move_to(0, 0).line_to(10, 5)
        Path.svg('M0 0L10 5')
        """
        return self._added("Path.line_to", b"\1", numbers("Path.line_to", "x y", (x, y)))

    def quad_to(self, x1: float, y1: float, x: float, y: float) -> Path:
        """Add a quadratic Bezier curve with the control point (x1, y1).

        >>> Path().move_to(0, 0).quad_to(5, 0, 5, 5)
        Path.svg('M0 0Q5 0 5 5')
        """
        given = numbers("Path.quad_to", "x1 y1 x y", (x1, y1, x, y))
        return self._added("Path.quad_to", b"\2", given)

    def cubic_to(self, x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> Path:
        """Add a cubic Bezier curve with the control points (x1, y1) and (x2, y2).

        >>> Path().move_to(0, 0).cubic_to(5, 0, 5, 0, 5, 5)
        Path.svg('M0 0C5 0 5 0 5 5')
        """
        given = numbers("Path.cubic_to", "x1 y1 x2 y2 x y", (x1, y1, x2, y2, x, y))
        return self._added("Path.cubic_to", b"\3", given)

    def arc(self, cx: float, cy: float, r: float, start: float, end: float) -> Path:
        """Add an arc of a circle, with a line from the current point to its first point.

        It is clockwise where ``end`` is above ``start``, else counterclockwise, and at most a full
        turn. In an empty path it begins the contour.

        >>> path = Path().arc(0, 0, 10, 0, 90)
        >>> [round(value, 6) for value in path.point_at(1)]
        [0.0, 10.0]
        """
        call = "Path.arc"
        cx, cy, start, end = numbers(call, "cx cy start end", (cx, cy, start, end))
        r = size(call, "r", r)
        found = shapes.arc_points((cx, cy), (r, r), start, min(max(end - start, -360.0), 360.0))
        return self._joined(call, found)

    def arc_to(self, x1: float, y1: float, x2: float, y2: float, r: float) -> Path:
        """Add an arc that rounds the corner (x1, y1) on the way to (x2, y2), and a line to it.

        The path ends where the arc touches the line from the corner to (x2, y2), as on an HTML
        canvas.

        >>> Path().move_to(0, 0).arc_to(10, 0, 10, 10, 4).line_to(10, 10).bounds
        (0.0, 0.0, 10.0, 10.0)
        """
        call = "Path.arc_to"
        x1, y1, x2, y2 = numbers(call, "x1 y1 x2 y2", (x1, y1, x2, y2))
        r = size(call, "r", r)
        if self._last is None:
            raise ParameterError(f"{call}: the path must begin with move_to(x, y).", call=call)
        found = shapes.corner_arc(self._last, (x1, y1), (x2, y2), r)
        return self.line_to(x1, y1) if found is None else self._joined(call, found)

    def _joined(self, call: str, found: NDArray) -> Path:
        """Return the path with curves at its end, and the line to their first point."""
        rows = point_array(call, "points", found)
        first = tuple(rows[0].tolist())
        path = self
        if self._last is None:
            path = self.move_to(*first)
        elif max(abs(first[0] - self._last[0]), abs(first[1] - self._last[1])) > 1e-9:
            path = self.line_to(*first)
        return path._added(
            call, bytes([CUBIC]) * (len(rows) // 3), tuple(rows[1:].ravel().tolist())
        )

    def close(self) -> Path:
        """Close the contour with a line to its start.

        >>> Path().move_to(0, 0).line_to(4, 0).line_to(0, 4).close().length.__round__(3)
        13.657
        """
        first, _, tail = self._data
        if (first if tail is None else tail[1])[-1:] == bytes([CLOSE]):
            return self
        return self._added("Path.close", bytes([CLOSE]), ())

    def __add__(self, other: Path) -> Path:
        if not isinstance(other, Path):
            return NotImplemented
        (verbs, points), (more, added) = self._settled(), other._settled()
        return Path._made(verbs + more, np.concatenate([points, added]), "Path")

    # constructors -----------------------------------------------------------------------------
    @staticmethod
    def rect(x: float, y: float, w: float, h: float) -> Path:
        """Return a rectangle.

        >>> Path.rect(1, 2, 10, 5)
        Path.svg('M1 2L11 2L11 7L1 7Z')
        """
        x, y = numbers("Path.rect", "x y", (x, y))
        w, h = size("Path.rect", "w", w), size("Path.rect", "h", h)
        return _polygon("Path.rect", [(x, y), (x + w, y), (x + w, y + h), (x, y + h)], closed=True)

    @staticmethod
    def round_rect(x: float, y: float, w: float, h: float, radius: float | Sequence[float]) -> Path:
        """Return a rectangle with round corners.

        Args:
            x, y, w, h: The rectangle.
            radius: The radius of all corners, or four: top left, top right, bottom right, bottom
                left. Radii that do not fit are scaled down together, as CSS does.

        >>> Path.round_rect(0, 0, 20, 10, 4).bounds
        (0.0, 0.0, 20.0, 10.0)
        """
        call = "Path.round_rect"
        x, y = numbers(call, "x y", (x, y))
        w, h = size(call, "w", w), size(call, "h", h)
        given = [radius] * 4 if np.ndim(radius) == 0 else list(radius)  # type: ignore[arg-type]
        if len(given) != 4:
            raise ParameterError.invalid(call, "radius", "a number or four numbers", radius)
        radii = [size(call, "radius", one) for one in given]  # type: ignore[arg-type]
        return Path._made(*shapes.round_rect(x, y, w, h, radii), call)

    @staticmethod
    def circle(cx: float, cy: float, r: float) -> Path:
        """Return a circle.

        >>> Path.circle(5, 5, 5).length.__round__(3)
        31.416
        """
        cx, cy = numbers("Path.circle", "cx cy", (cx, cy))
        r = size("Path.circle", "r", r)
        return Path._made(*shapes.ellipse((cx, cy), (r, r), 0.0), "Path.circle")

    @staticmethod
    def ellipse(cx: float, cy: float, rx: float, ry: float, rotate: float = 0.0) -> Path:
        """Return an ellipse, rotated about its center by degrees.

        >>> Path.ellipse(0, 0, 20, 10).bounds
        (-20.0, -10.0, 20.0, 10.0)
        """
        call = "Path.ellipse"
        cx, cy, rotate = numbers(call, "cx cy rotate", (cx, cy, rotate))
        radii = size(call, "rx", rx), size(call, "ry", ry)
        return Path._made(*shapes.ellipse((cx, cy), radii, rotate), call)

    @staticmethod
    def polygon(points: ArrayLike) -> Path:
        """Return a closed contour through points (x, y), a list of pairs or an array (n, 2).

        >>> Path.polygon([(0, 0), (4, 0), (0, 4)])
        Path.svg('M0 0L4 0L0 4Z')
        """
        return _polygon("Path.polygon", points, closed=True)

    @staticmethod
    def polyline(points: ArrayLike) -> Path:
        """Return an open contour through points (x, y), a list of pairs or an array (n, 2).

        >>> Path.polyline([(0, 0), (4, 0), (0, 4)])
        Path.svg('M0 0L4 0L0 4')
        """
        return _polygon("Path.polyline", points, closed=False)

    @staticmethod
    def star(
        cx: float,
        cy: float,
        outer: float,
        inner: float | None = None,
        points: int = 5,
        rotate: float = 0.0,
    ) -> Path:
        """Return a star whose first point is at the top.

        Args:
            cx, cy: The center.
            outer: The radius of its points.
            inner: The radius between them; by default 0.382 of the outer one, which makes the edges
                of a star of five points straight.
            points: The number of points, from 2 to 100000.
            rotate: The rotation about the center in degrees.

        >>> len(Path.star(0, 0, 10).points)
        10
        """
        call = "Path.star"
        cx, cy, rotate = numbers(call, "cx cy rotate", (cx, cy, rotate))
        outer = size(call, "outer", outer)
        inner = outer * 0.3819660112501051 if inner is None else size(call, "inner", inner)
        points = Integer(2, 100_000).check(call, "points", points)
        return _polygon(call, shapes.star((cx, cy), outer, inner, points, rotate), closed=True)

    @staticmethod
    def svg(data: str) -> Path:
        """Return the path of SVG path data, the text of the attribute ``d``.

        The whole grammar is read: relative commands, repeated arguments, arcs. Arcs become cubic
        curves. A mistake is an error that names its position.

        >>> Path.svg("m10 10h5v5z").points.tolist()
        [[10.0, 10.0], [15.0, 10.0], [15.0, 15.0]]
        """
        verbs, points = svg.read(data)
        return Path._made(verbs, points, "Path.svg")

    # values -----------------------------------------------------------------------------------
    @property
    def verbs(self) -> bytes:
        """One byte for each command: 0 move, 1 line, 2 quadratic, 3 cubic curve, 4 close."""
        return self._settled()[0]

    @property
    def points(self) -> NDArray:
        """The points of the commands, a read-only float64 array of shape (n, 2)."""
        return self._settled()[1]

    def to_svg(self) -> str:
        """Return the path as SVG path data, which :meth:`svg` reads back exactly.

        >>> Path.circle(0, 0, 1).to_svg()[:4]
        'M1 0'
        """
        return svg.written(self)

    __str__ = to_svg

    def __repr__(self) -> str:
        if len(self.verbs) <= 40 and len(text := self.to_svg()) <= _SHOWN:
            return f"Path.svg({text!r})"
        return f"<Path of {len(self.verbs)} commands>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path):
            return NotImplemented
        return self.verbs == other.verbs and bool(np.array_equal(self.points, other.points))

    def __hash__(self) -> int:
        return hash((self.verbs, self.points.tobytes()))

    def __reduce__(self) -> tuple[type[Path], tuple[bytes, NDArray]]:
        return Path, self._settled()

    # geometry ---------------------------------------------------------------------------------
    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The box x0, y0, x1, y1 around the lines and curves; zeros if nothing is drawn.

        >>> Path.svg("M0 0Q10 20 20 0").bounds
        (0.0, 0.0, 20.0, 10.0)
        """
        return curves.bounds(curves.segments(*self._settled()))

    @property
    def length(self) -> float:
        """The length of all contours, with the lines that close them.

        >>> Path.rect(0, 0, 3, 4).length
        14.0
        """
        return float(self._measured().sum())

    def _measured(self) -> NDArray:
        if self._lengths is None:
            self._lengths = curves.lengths(curves.segments(*self._settled()))
        return self._lengths

    def point_at(self, t: float) -> tuple[float, float]:
        """Return the point at a fraction of the length: 0 is the start, 1 the end.

        >>> Path.polyline([(0, 0), (10, 0), (10, 30)]).point_at(0.5)
        (10.0, 10.0)
        """
        t = fraction("Path.point_at", "t", t)
        if self._last is None:
            raise ParameterError("Path.point_at: the path must have a point.", call="Path.point_at")
        found, measured = curves.segments(*self._settled()), self._measured()
        if not len(measured):
            x, y = self._last
            return x, y
        at, parameter = parts.spot(found, measured, t * float(measured.sum()))
        controls = found.cubics[at][[0, 3]] if found.straight[at] else found.cubics[at]
        x, y = curves.evaluate(controls[None], np.array([[parameter]]))[0].tolist()
        return x, y

    def trim(self, start: float, end: float) -> Path:
        """Return the part between two fractions of the length; empty if ``end <= start``.

        >>> Path.polyline([(0, 0), (10, 0), (10, 10)]).trim(0.25, 0.75)
        Path.svg('M5 0L10 0L10 5')
        """
        start = fraction("Path.trim", "start", start)
        end = fraction("Path.trim", "end", end)
        if (start, end) == (0, 1):
            return self
        verbs, points = self._settled()
        measured = self._measured()
        if end <= start or not measured.sum():
            return Path()
        found = curves.segments(verbs, points)
        return Path._made(*parts.trimmed(verbs, points, found, measured, start, end), "Path.trim")

    def contains(self, x: float, y: float, rule: str = "nonzero") -> bool:
        """Return True if filling the path covers a point. Open contours count as closed.

        A point exactly on the outline may be in or out.

        Args:
            x, y: The point.
            rule: "nonzero" or "evenodd".

        >>> ring = Path.circle(0, 0, 10) + Path.circle(0, 0, 5)
        >>> ring.contains(1, 1), ring.contains(1, 1, rule="evenodd"), ring.contains(0, 7)
        (True, False, True)
        """
        x, y = numbers("Path.contains", "x y", (x, y))
        if rule not in RULES:
            raise ParameterError.invalid("Path.contains", "rule", '"nonzero" or "evenodd"', rule)
        turns = curves.winding(*self._settled(), x, y)
        return bool(turns % 2 if rule == "evenodd" else turns)

    # other paths ------------------------------------------------------------------------------
    def reversed(self) -> Path:
        """Return the path in the other direction: its end is the start.

        >>> Path.polyline([(0, 0), (10, 0), (10, 10)]).reversed()
        Path.svg('M10 10L10 0L0 0')
        """
        return Path._made(*parts.backward(*self._settled()), "Path.reversed")

    def transform(
        self,
        translate: Sequence[float] = (0.0, 0.0),
        rotate: float = 0.0,
        scale: float | Sequence[float] = 1.0,
        matrix: ArrayLike | None = None,
    ) -> Path:
        """Return the path transformed: by ``matrix`` first, then scaled, rotated and translated.

        Args:
            translate: The distances along x and y.
            rotate: Degrees, clockwise on the screen, about the origin.
            scale: One factor, or one for x and one for y.
            matrix: Six numbers (a, b, c, d, e, f), as on an HTML canvas and in SVG: x becomes
                a*x + c*y + e, and y becomes b*x + d*y + f. Or an array of 2 x 3 or 3 x 3.

        >>> Path.rect(0, 0, 2, 1).transform(translate=(10, 0), scale=2)
        Path.svg('M10 0L14 0L14 2L10 2Z')
        """
        call = "Path.transform"
        a, b, c, d, e, f = matrix_of(call, translate, rotate, scale, matrix)
        verbs, points = self._settled()
        x, y = points[:, 0], points[:, 1]
        return Path._made(verbs, np.stack([a * x + c * y + e, b * x + d * y + f], axis=1), call)

    def morph(self, other: Path, t: float) -> Path:
        """Return the path between this one (t = 0) and another of the same commands (t = 1).

        >>> Path.rect(0, 0, 2, 2).morph(Path.rect(2, 0, 4, 4), 0.5)
        Path.svg('M1 0L4 0L4 3L1 3Z')
        """
        (t,) = numbers("Path.morph", "t", (t,))
        call, expected = "Path.morph", "a Path of the same commands"
        if not isinstance(other, Path) or other.verbs != self.verbs:
            raise ParameterError.invalid(call, "other", expected, other)
        return Path._made(self.verbs, self.points * (1 - t) + other.points * t, call)


def _polygon(call: str, given: ArrayLike, *, closed: bool) -> Path:
    points = point_array(call, "points", given)
    return Path._made(*shapes.polygon(points, closed=closed), call)
