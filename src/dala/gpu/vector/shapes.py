"""Shapes as bytes of paths, made without arrays: a call costs a few microseconds.

The calls of whole pixels are shapes too, where a call has fractions, or is under a transform.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from dala.errors import CommandError
from dala.gpu import command as command  # declares the opcodes
from dala.gpu.color import rgba_of
from dala.gpu.path.numbers import LIMIT, numbers, turn
from dala.gpu.protocol import OPCODES, DrawCommand, as_int
from dala.gpu.protocol import cap as caps
from dala.gpu.protocol import join as joins
from dala.gpu.vector.fields import MAX_NUMBERS

_HEAD: Final = struct.Struct("<II")
#: An ellipse is eight cubic curves, which differ from it by 5 millionths of its radius.
_REACH: Final = 4 / 3 * math.tan(math.pi / 16)
_TURNS: Final = tuple(turn(45.0 * n) for n in range(9))
_ELLIPSE: Final = bytes([0, *[3] * 8, 4])
#: The first of the eight curves of each corner of a round rectangle.
_CORNERS: Final = (6, 0, 2, 4)
_RECT: Final = b"\0\1\1\1\4"
#: The pen of calls that name nothing else.
_BUTT, _MITER, _LIMIT, _NONE = "butt", "miter", 10.0, ()
_PLAIN: Final = ((0, 0, _LIMIT, 0.0), ())

_FILL: Final = struct.Struct("<BBQ4s")
_STROKE: Final = struct.Struct("<BdBBddQ4sI")
_FILL_SHAPE, _STROKE_SHAPE = OPCODES["fill_shape"], OPCODES["stroke_shape"]


def pen(
    call: str,
    cap: str,
    join: str = "miter",
    dash: Sequence[float] = (),
    miter: float = _LIMIT,
    offset: float = 0.0,
) -> tuple[tuple[int, int, float, float], Sequence[float]]:
    """Return the style of a pen, for ``stroke_bytes``, and its dashes."""
    if cap is _BUTT and join is _MITER and miter is _LIMIT and dash is _NONE and not offset:
        return _PLAIN  # almost always: a call of a line costs a quarter less
    try:
        given = tuple(dash)
    except (TypeError, NotImplementedError):  # no list; a view of rows and columns
        given = (-1.0,)
    lengths = numbers(call, "dash " * len(given), given)
    if len(lengths) > MAX_NUMBERS or any(length < 0 for length in lengths):
        expected = f"at most {MAX_NUMBERS} lengths of at least 0"
        raise CommandError.invalid(call, "dash", expected, dash)
    miter, offset = numbers(call, "miter offset", (miter, offset))
    places = caps.place(call, "cap", cap), joins.place(call, "join", join)
    return (*places, miter, offset), lengths


def fill_bytes(path: bytes, paint: int, color: bytes, rule: int = 0) -> bytes:
    """Return the command that fills the bytes of a path."""
    return _FILL.pack(_FILL_SHAPE, rule, paint, color) + path


def stroke_bytes(
    path: bytes,
    paint: int,
    color: bytes,
    width: float,
    style: tuple[int, int, float, float] = (0, 0, 10.0, 0.0),
    dash: Sequence[float] = (),
) -> bytes:
    """Return the command that strokes the bytes of a path: cap, join, miter limit and offset."""
    head = _STROKE.pack(_STROKE_SHAPE, width, *style, paint, color, len(dash))
    return head + struct.pack(f"<{len(dash)}d", *dash) + path


def path_bytes(call: str, verbs: bytes, points: Sequence[float]) -> bytes:
    """Return the bytes of a path whose coordinates are checked here."""
    for value in points:
        if not -LIMIT <= value <= LIMIT:
            raise CommandError(f"{call}: coordinates must be from -1e9 to 1e9.", call=call)
    return _HEAD.pack(len(verbs), len(points) // 2) + verbs + struct.pack(
        f"<{len(points)}d", *points
    )  # fmt: skip


def _around(
    cx: float, cy: float, rx: float, ry: float, turns: Sequence[tuple[float, float]],
    reach: float = _REACH,
) -> list[float]:  # fmt: skip
    """Return the points of an ellipse, or a part of it, with a curve from each turn to the next."""
    a, b = turns[0]
    points = [cx + rx * a, cy + ry * b]
    for c, d in turns[1:]:
        points += (
            cx + rx * (a - reach * b), cy + ry * (b + reach * a),
            cx + rx * (c + reach * d), cy + ry * (d - reach * c), cx + rx * c, cy + ry * d,
        )  # fmt: skip
        a, b = c, d
    return points


def ellipse(call: str, cx: float, cy: float, rx: float, ry: float) -> bytes:
    """Return an ellipse."""
    for name, radius in (("rx", rx), ("ry", ry)):
        if radius < 0:
            raise CommandError.invalid(call, name, "a number of at least 0", radius)
    return path_bytes(call, _ELLIPSE, _around(cx, cy, rx, ry, _TURNS))


def rect(call: str, x: float, y: float, w: float, h: float, radius: float = 0.0) -> bytes:
    """Return a rectangle, with round corners if a radius is given."""
    x, right = min(x, x + w), max(x, x + w)
    y, bottom = min(y, y + h), max(y, y + h)
    r = min(max(radius, 0.0), (right - x) / 2, (bottom - y) / 2)
    if r <= 0:
        return path_bytes(call, _RECT, (x, y, right, y, right, bottom, x, bottom))
    points: list[float] = []
    for first in _CORNERS:
        cx = right - r if first in (6, 0) else x + r
        cy = bottom - r if first in (0, 2) else y + r
        points += _around(cx, cy, r, r, _TURNS[first : first + 3])
    return path_bytes(call, b"\0\3\3" + b"\1\3\3" * 3 + b"\4", points)


def arc(call: str, cx: float, cy: float, r: float, start: float, end: float) -> bytes:
    """Return an arc from an angle to another, in degrees, clockwise from the x axis."""
    if r < 0:
        raise CommandError.invalid(call, "r", "a number of at least 0", r)
    sweep = min(max(end - start, -360.0), 360.0)
    count = max(1, math.ceil(abs(sweep) / 45 - 1e-9))
    step = sweep / count
    turns = [turn(start + step * n) for n in range(count + 1)]
    points = _around(cx, cy, r, r, turns, 4 / 3 * math.tan(math.radians(step) / 4))
    return path_bytes(call, b"\0" + b"\3" * count, points)


def lines(call: str, points: Sequence[tuple[float, float]], closed: bool) -> bytes:
    """Return a line through points, or the polygon of them."""
    try:
        found = [float(v) for x, y in points for v in (x, y)]
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        raise CommandError.invalid(call, "points", "a list of (x, y)", points) from None
    count = len(found) // 2
    verbs = b"\0" + b"\1" * (count - 1) + b"\4" * closed if count else b""
    return path_bytes(call, verbs, found)


# calls of whole pixels ------------------------------------------------------------------------
Outline: TypeAlias = Callable[..., bytes]


def _circle(call: str, cx: float, cy: float, r: float) -> bytes:
    return ellipse(call, cx, cy, r, r)


def _triangle(call: str, *points: float) -> bytes:
    return path_bytes(call, b"\0\1\1\4", points)


def _line(call: str, *points: float) -> bytes:
    return path_bytes(call, b"\0\1", points)


#: The outlines of calls, from all their arguments but the color.
OUTLINES: Final[dict[str, Outline]] = {
    "fill_rect": rect,
    "draw_line": _line,
    "draw_circle": _circle,
    "fill_circle": _circle,
    "draw_triangle": _triangle,
    "fill_triangle": _triangle,
    "draw_round_rect": rect,
    "fill_round_rect": rect,
}
#: Calls that draw with a pen, and have ``width=``.
PENS: Final = tuple(name for name in OUTLINES if name.startswith("draw"))
#: Commands that are drawn as shapes under a transform or within a clip.
MOVED: Final = {
    OPCODES[command]: name
    for name in OUTLINES
    for command in (name, f"{name}_signed")
    if command in OPCODES
}


def as_shape(call: str, values: Sequence[object], width: float | None = None) -> bytes:
    """Return the command that draws the shape of a call; ``values`` end with its color."""
    *places, color = values
    names = " ".join("n" for _ in places)
    path = OUTLINES[call](call, *numbers(call, names, tuple(places)))  # type: ignore[arg-type]
    rgba = color if isinstance(color, bytes) else rgba_of(color, call, "color")  # type: ignore[arg-type]
    if call not in PENS:
        return fill_bytes(path, 0, rgba)
    (pen,) = numbers(call, "width", (1.0 if width is None else width,))
    return stroke_bytes(path, 0, rgba, abs(pen))


def has_fraction(call: str, values: Sequence[object]) -> bool:
    """Return whether a call has numbers that all are finite, and not all whole."""
    if call not in OUTLINES:
        return False
    places = values[:-1]
    try:
        if not all(not isinstance(value, bool) and math.isfinite(value) for value in places):  # type: ignore[arg-type]
            return False
    except (TypeError, ValueError, OverflowError):
        return False
    return any(as_int(value) is None for value in places)


def moved(command: DrawCommand) -> bytes:
    """Return the command of a shape for one of whole pixels."""
    fields = dict(command.fields)
    color = bytes(fields.pop("color"))  # type: ignore[arg-type]
    return as_shape(MOVED[command.opcode], [*fields.values(), color])
