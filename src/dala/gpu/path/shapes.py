"""Points of shapes: the corners of round rectangles, stars, arcs that round a corner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dala.gpu.path.arcs import arc_points
from dala.gpu.path.curves import CLOSE, CUBIC, LINE, MOVE
from dala.gpu.path.numbers import turn
from dala.typing import NDArray


def polygon(points: NDArray, *, closed: bool) -> tuple[bytes, NDArray]:
    """Return the verbs and points of straight lines through points."""
    if not len(points):
        return b"", points
    return bytes([MOVE, *[LINE] * (len(points) - 1), *[CLOSE] * closed]), points


def ellipse(
    center: tuple[float, float], radii: tuple[float, float], rotate: float
) -> tuple[bytes, NDArray]:
    """Return the verbs and points of an ellipse."""
    rows = arc_points(center, radii, 0.0, 360.0, rotate)
    rows[-1] = rows[0]
    return bytes([MOVE, *[CUBIC] * (len(rows) // 3), CLOSE]), rows


def round_rect(
    x: float, y: float, w: float, h: float, radii: Sequence[float]
) -> tuple[bytes, NDArray]:
    """Return the verbs and points of a rectangle with round corners, clockwise from the top left.

    Radii that do not fit are scaled down together, as CSS does.
    """
    pairs = [(side, radii[n] + radii[(n + 1) % 4]) for n, side in enumerate((w, h, w, h))]
    fit = min((side / both for side, both in pairs if both > side), default=1.0)
    verbs = bytearray()
    rows: list[NDArray] = []
    for n, r in enumerate(radii):
        right, down = n in (1, 2), n in (2, 3)
        r *= fit
        cx, cy = (x + w - r if right else x + r), (y + h - r if down else y + r)
        arc = arc_points((cx, cy), (r, r), 180.0 + 90 * n, 90.0) if r else np.array([[cx, cy]])
        verbs += bytes([LINE if n else MOVE, *[CUBIC] * (len(arc) // 3)])
        rows.append(arc)
    return bytes([*verbs, CLOSE]), np.concatenate(rows)


def star(
    center: tuple[float, float], outer: float, inner: float, points: int, rotate: float
) -> NDArray:
    """Return the corners of a star, the first at the top."""
    directions = np.array([turn(rotate - 90 + 180 * n / points) for n in range(2 * points)])
    directions[::2] *= outer
    directions[1::2] *= inner
    directions += center
    return directions


def corner_arc(
    first: tuple[float, ...], corner: tuple[float, float], last: tuple[float, float], r: float
) -> NDArray | None:
    """Return the arc that rounds a corner; None where there is nothing to round."""
    if not r or first == corner or corner == last:
        return None
    before = math.atan2(first[1] - corner[1], first[0] - corner[0])
    after = math.atan2(last[1] - corner[1], last[0] - corner[0])
    angle = math.remainder(after - before, math.tau)
    half = abs(angle) / 2
    if min(half, math.pi / 2 - half) < 1e-9:
        return None
    reach, middle = r / math.sin(half), before + angle / 2
    center = corner[0] + reach * math.cos(middle), corner[1] + reach * math.sin(middle)
    side = math.copysign(90.0, angle)
    start, sweep = math.degrees(before) - side, math.degrees(angle) - 2 * side
    return arc_points(center, (r, r), start, sweep)
