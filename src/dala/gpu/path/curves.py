"""Geometry of paths: their segments as cubic curves, bounds, lengths, parts, windings."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from dala.budget import checked
from dala.typing import NDArray

MOVE, LINE, QUAD, CUBIC, CLOSE = range(5)
#: The number of points of each verb.
POINTS: Final = (1, 1, 2, 3, 0)
_POINTS: Final = np.array(POINTS)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NODES = (_NODES + 1) / 2
_WEIGHTS = _WEIGHTS / 2
#: Halvings of a curve until its length is taken as it is; cusps need some.
_DEPTH: Final = 24
#: The rounding of a length, for coordinates of 1, and curves that are measured at a time.
_NOISE: Final = 1e-14
_BLOCK: Final = 1024


class Segments(NamedTuple):
    """The lines and curves that a path draws, closing lines included."""

    #: (n, 4, 2): all as cubic curves.
    cubics: NDArray
    #: The index of each one's verb.
    verb: NDArray
    #: True for straight lines.
    straight: NDArray


def segments(verbs: bytes, points: NDArray) -> Segments:
    """Return the lines and curves of a path."""
    kinds = np.frombuffer(verbs, np.uint8)
    ends = np.cumsum(_POINTS[kinds])
    at = np.arange(len(kinds))
    starts = np.maximum.accumulate(np.where(kinds == MOVE, at, 0))
    drawn = np.nonzero(kinds != MOVE)[0]
    kind, end = kinds[drawn], ends[drawn]
    before = end - _POINTS[kind] - 1
    first = points[before]
    last = points[np.where(kind == CLOSE, ends[starts[drawn]], end) - 1]
    cubics = np.stack([first, first + (last - first) / 3, last + (first - last) / 3, last], axis=1)
    for degree in (QUAD, CUBIC):
        (rows,) = np.nonzero(kind == degree)
        controls = points[before[rows] + 1]
        if degree == QUAD:
            cubics[rows, 1] = first[rows] + (controls - first[rows]) * (2 / 3)
            cubics[rows, 2] = last[rows] + (controls - last[rows]) * (2 / 3)
        else:
            cubics[rows, 1], cubics[rows, 2] = controls, points[before[rows] + 2]
    return Segments(cubics, drawn, (kind != QUAD) & (kind != CUBIC))


def evaluate(cubics: NDArray, t: NDArray) -> NDArray:
    """Return the points of curves (..., 4, 2) at parameters (..., 1)."""
    while cubics.shape[-2] > 1:
        low, high = cubics[..., :-1, :], cubics[..., 1:, :]
        cubics = low + (high - low) * t[..., None]
    found: NDArray = cubics[..., 0, :]
    return found


def part(controls: NDArray, start: float, end: float) -> NDArray:
    """Return the control points of a part of one curve of any degree."""
    rows = [controls]
    while len(rows[-1]) > 1:
        rows.append(rows[-1][:-1] + (rows[-1][1:] - rows[-1][:-1]) * end)
    left = np.array([row[0] for row in rows])
    rows = [left]
    share = start / end if end else 0.0
    while len(rows[-1]) > 1:
        rows.append(rows[-1][:-1] + (rows[-1][1:] - rows[-1][:-1]) * share)
    return np.array([row[-1] for row in reversed(rows)])


def turning_points(cubics: NDArray) -> NDArray:
    """Return, for each curve and axis, two parameters where it turns back; 0 where it does not.

    The result has the shape (n, 2 parameters, 2 axes).
    """
    a, b, c, d = (cubics[:, n] for n in range(4))
    square, linear, constant = d - a + 3 * (b - c), 2 * (a - 2 * b + c), b - a
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(linear * linear - 4 * square * constant, 0))
        q = -(linear + np.where(linear < 0, -root, root)) / 2
        found = np.stack([q / square, constant / q], axis=1)
    return np.where((found > 0) & (found < 1), found, 0.0)


def bounds(found: Segments) -> tuple[float, float, float, float]:
    """Return x0, y0, x1, y1 of lines and curves, with the extremes of curves."""
    cubics = found.cubics
    if not len(cubics):
        return 0.0, 0.0, 0.0, 0.0
    curves = cubics[~found.straight]
    turns = turning_points(curves)
    spots = [cubics[:, 0], cubics[:, 3]]
    for n in range(2):
        # each axis turns elsewhere; evaluated at its own parameter, one axis at a time
        both = [evaluate(curves, turns[:, n, axis, None])[:, axis] for axis in range(2)]
        spots.append(np.stack(both, axis=1))
    every = np.concatenate(spots)
    (x0, y0), (x1, y1) = every.min(axis=0).tolist(), every.max(axis=0).tolist()
    return x0, y0, x1, y1


def lengths(found: Segments) -> NDArray:
    """Return the length of each line and curve."""
    straight = found.cubics[:, 3] - found.cubics[:, 0]
    result: NDArray = np.hypot(straight[:, 0], straight[:, 1])
    (rows,) = np.nonzero(~found.straight)
    if len(rows):
        blocks = [rows[at : at + _BLOCK] for at in range(0, len(rows), _BLOCK)]
        for block in checked(blocks, "Path"):
            result[block] = curve_lengths(found.cubics[block])
    return result


def curve_lengths(cubics: NDArray) -> NDArray:
    """Return the lengths of cubic curves by adaptive Gauss-Legendre quadrature."""
    total = np.zeros(len(cubics))
    owner = np.arange(len(cubics))
    # Far from 0, coordinates are too coarse for a short curve: halves would never agree.
    noise = _NOISE * np.abs(cubics).max(axis=(1, 2))
    whole = _quadrature(cubics)
    for depth in range(_DEPTH + 1):
        halves = np.concatenate(_halves(cubics))
        measured = _quadrature(halves)
        both = measured[: len(cubics)] + measured[len(cubics) :]
        rough = np.abs(both - whole) > 1e-11 * both + noise[owner]
        if depth == _DEPTH:
            rough[:] = False
        np.add.at(total, owner[~rough], both[~rough])
        if not rough.any():
            break
        twice = np.concatenate([rough, rough])
        cubics, whole, owner = halves[twice], measured[twice], np.tile(owner[rough], 2)
    return total


def _quadrature(cubics: NDArray) -> NDArray:
    slopes = 3 * np.diff(cubics, axis=1)
    speed = evaluate(slopes[:, None], _NODES[None, :, None])
    return np.asarray(np.hypot(speed[..., 0], speed[..., 1]) @ _WEIGHTS)


def _halves(cubics: NDArray) -> tuple[NDArray, NDArray]:
    a, b, c, d = (cubics[:, n] for n in range(4))
    ab, bc, cd = (a + b) / 2, (b + c) / 2, (c + d) / 2
    abc, bcd = (ab + bc) / 2, (bc + cd) / 2
    middle = (abc + bcd) / 2
    return np.stack([a, ab, abc, middle], axis=1), np.stack([middle, bcd, cd, d], axis=1)


def parameter_at(cubic: NDArray, distance: float, length: float) -> float:
    """Return the parameter of the point at a distance along one curve (Newton in a bracket)."""
    if distance <= 0 or distance >= length:
        return float(distance > 0)
    low, high, t = 0.0, 1.0, distance / length
    for _ in range(48):
        excess = float(curve_lengths(part(cubic, 0.0, t)[None])[0]) - distance
        if abs(excess) <= 1e-10 * length:
            break
        low, high = (low, t) if excess > 0 else (t, high)
        slope = evaluate(3 * np.diff(cubic, axis=0)[None], np.array([[t]]))[0]
        speed = float(np.hypot(*slope))
        t = t - excess / speed if speed else low
        if not low < t < high:
            t = (low + high) / 2
    return t


def winding(verbs: bytes, points: NDArray, x: float, y: float) -> int:
    """Return how often contours, closed, turn around a point, clockwise positive.

    A crossing counts where the contour passes the ray from the point to the right; the upper end of
    each monotone part belongs to it, the lower one does not.
    """
    found = segments(verbs, points)
    lines = found.cubics[found.straight]
    total = _crossings(lines[:, 0], lines[:, 3], x, y)
    total += _crossings(*_closing(verbs, points), x, y)
    curves = found.cubics[~found.straight]
    near = (curves[..., 1].min(axis=1) <= y) & (curves[..., 1].max(axis=1) > y)
    curves = curves[near]
    if not len(curves):
        return total
    turns = np.sort(turning_points(curves)[:, :, 1], axis=1)
    edges = np.stack([np.zeros(len(curves)), turns[:, 0], turns[:, 1], np.ones(len(curves))])
    spots = [evaluate(curves, edge[:, None]) for edge in edges]
    spots[0], spots[3] = curves[:, 0], curves[:, 3]
    for n in range(3):
        from_y, to_y = spots[n][:, 1], spots[n + 1][:, 1]
        rows = np.nonzero((np.minimum(from_y, to_y) <= y) & (np.maximum(from_y, to_y) > y))[0]
        low, high, rising = edges[n][rows], edges[n + 1][rows], (to_y > from_y)[rows]
        for _ in range(54):
            middle = (low + high) / 2
            above = (evaluate(curves[rows], middle[:, None])[:, 1] <= y) == rising
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        right = evaluate(curves[rows], low[:, None])[:, 0] > x
        total += int(np.where(rising, 1, -1)[right].sum())
    return total


def _crossings(first: NDArray, last: NDArray, x: float, y: float) -> int:
    """Return the winding that straight lines add."""
    down = (first[:, 1] <= y) & (last[:, 1] > y)
    up = (last[:, 1] <= y) & (first[:, 1] > y)
    side = (last[:, 0] - first[:, 0]) * (y - first[:, 1]) - (x - first[:, 0]) * (
        last[:, 1] - first[:, 1]
    )
    return int((down & (side > 0)).sum()) - int((up & (side < 0)).sum())


def _closing(verbs: bytes, points: NDArray) -> tuple[NDArray, NDArray]:
    """Return the ends and starts of the contours that are open."""
    kinds = np.frombuffer(verbs, np.uint8)
    ends = np.cumsum(_POINTS[kinds])
    (moves,) = np.nonzero(kinds == MOVE)
    stops = np.append(moves[1:], len(kinds))[: len(moves)] - 1
    moves = moves[kinds[stops] != CLOSE]
    stops = stops[kinds[stops] != CLOSE]
    return points[ends[stops] - 1], points[ends[moves] - 1]
