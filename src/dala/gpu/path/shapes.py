"""Points of shapes: arcs as cubic curves, round rectangles, stars, arcs that round a corner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dala.gpu.path.curves import CLOSE, CUBIC, LINE, MOVE
from dala.gpu.path.numbers import turn
from dala.typing import NDArray


def arc_points(
    center: tuple[float, float],
    radii: tuple[float, float],
    start: float,
    sweep: float,
    rotate: float = 0.0,
) -> NDArray:
    """Return the points of an arc as cubic curves: its first point, then three for each curve.

    Args:
        center: The center of the ellipse.
        radii: The radii along the axes of the ellipse.
        start: The angle of the first point in degrees, before the ellipse is rotated.
        sweep: The angle that the arc covers, at most 360 degrees; negative is counterclockwise.
        rotate: The rotation of the ellipse in degrees.
    """
    count = max(math.ceil(abs(sweep) / 45 - 1e-9), 1)
    step = math.radians(sweep / count)
    reach = 4 / 3 * math.tan(step / 4)
    unit = np.empty((3 * count + 1, 2))
    for n in range(count + 1):
        cosine, sine = turn(start + sweep * n / count)
        unit[3 * n] = cosine, sine
        tangent = reach * np.array((-sine, cosine))
        if n:
            unit[3 * n - 1] = unit[3 * n] - tangent
        if n < count:
            unit[3 * n + 1] = unit[3 * n] + tangent
    cosine, sine = turn(rotate)
    with np.errstate(all="ignore"):  # radii without bounds make places without, which are refused
        unit *= radii
    across, down = unit[:, 0].copy(), unit[:, 1].copy()
    unit[:, 0] = center[0] + (cosine * across - sine * down)
    unit[:, 1] = center[1] + (sine * across + cosine * down)
    return unit


def endpoint_arc(
    first: tuple[float, float],
    last: tuple[float, float],
    radii: tuple[float, float],
    rotate: float,
    large: bool,
    clockwise: bool,
) -> NDArray | None:
    """Return the points of an arc between two points, as SVG defines it; None for a straight line.

    Radii that are too small are scaled up.
    """
    rx, ry = abs(radii[0]), abs(radii[1])
    if first == last or not rx or not ry:
        return None
    cosine, sine = turn(rotate)
    half_x, half_y = (first[0] - last[0]) / 2, (first[1] - last[1]) / 2
    x, y = cosine * half_x + sine * half_y, cosine * half_y - sine * half_x
    excess = math.hypot(x / rx, y / ry)
    if excess > 1:
        rx, ry = rx * excess, ry * excess
    u, v = x / rx, y / ry
    square = u * u + v * v
    if not square or not math.isfinite(square):
        return None
    distance = math.sqrt(max(1 / square - 1, 0.0)) * (1 if large != clockwise else -1)
    cu, cv = distance * v, -distance * u
    start = math.degrees(math.atan2(v - cv, u - cu))
    sweep = (math.degrees(math.atan2(-v - cv, -u - cu)) - start) % 360
    if not clockwise:
        sweep -= 360
    cx, cy = cu * rx, cv * ry
    middle = (first[0] + last[0]) / 2, (first[1] + last[1]) / 2
    center = cosine * cx - sine * cy + middle[0], sine * cx + cosine * cy + middle[1]
    found = arc_points(center, (rx, ry), start, sweep, rotate)
    found[0], found[-1] = first, last
    return found


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
