"""Arcs of ellipses as cubic curves."""

from __future__ import annotations

import math

import numpy as np

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
