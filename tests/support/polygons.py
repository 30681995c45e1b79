"""Exact areas of polygons in pixels, by clipping in f64, and the model of a stroke by distances."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dala.gpu import Path

Point = tuple[float, float]


def clipped(points: list[Point], axis: int, at: float, below: bool) -> list[Point]:
    """Return a polygon cut at a line (Sutherland-Hodgman)."""
    found = []
    for n, p in enumerate(points):
        q = points[(n + 1) % len(points)]
        inside, next_inside = ((v[axis] <= at) if below else (v[axis] >= at) for v in (p, q))
        if inside:
            found.append(p)
        if inside != next_inside:
            t = (at - p[axis]) / (q[axis] - p[axis])
            cut = [p[0] + (q[0] - p[0]) * t, p[1] + (q[1] - p[1]) * t]
            cut[axis] = at
            found.append((cut[0], cut[1]))
    return found


def area(points: list[Point]) -> float:
    """Return the signed area of a polygon."""
    pairs = zip(points, points[1:] + points[:1], strict=True)
    return sum(p[0] * q[1] - q[0] * p[1] for p, q in pairs) / 2


def shares(contours: list[list[Point]], width: int, height: int) -> np.ndarray:
    """Return the signed area of contours in each pixel: what a sum of windings is."""
    found = np.zeros((height, width))
    for points in contours:
        for y in range(height):
            row = clipped(clipped(points, 1, y, False), 1, y + 1, True)
            for x in range(width):
                cell = clipped(clipped(row, 0, x, False), 0, x + 1, True)
                found[y, x] += area(cell)
    return found


def flat(path: Path, steps: int = 256) -> list[list[Point]]:
    """Return the contours of a path as fine polygons."""
    contours: list[list[Point]] = []
    at = 0
    for verb in path.verbs:
        count = (1, 1, 2, 3, 0)[verb]
        points = [tuple(p) for p in path.points[at : at + count].tolist()]
        at += count
        if verb == 0:
            contours.append(points)
        elif verb in (1, 2, 3):
            line = [contours[-1][-1], *points]
            for k in range(1, steps + 1) if verb > 1 else (1,):
                t = k / steps if verb > 1 else 1.0
                level = line
                while len(level) > 1:
                    level = [
                        ((1 - t) * p[0] + t * q[0], (1 - t) * p[1] + t * q[1])
                        for p, q in pairwise(level)
                    ]
                contours[-1].append(level[0])
    return contours


def distance(x: np.ndarray, y: np.ndarray, points: list[Point]) -> np.ndarray:
    """Return the distances of places from a line through points."""
    best = np.full(np.shape(x), math.inf)
    for (ax, ay), (bx, by) in pairwise(points):
        dx, dy = bx - ax, by - ay
        square = dx * dx + dy * dy
        t = np.clip(((x - ax) * dx + (y - ay) * dy) / square, 0, 1) if square else np.zeros_like(x)
        best = np.minimum(best, np.hypot(x - ax - t * dx, y - ay - t * dy))
    return best


def round_stroke(points: list[Point], half: float, w: int, h: int, fine: int = 16) -> np.ndarray:
    """Return the coverage of a line with round ends and corners, by many samples a pixel."""
    x = (np.arange(w * fine) + 0.5) / fine
    y = (np.arange(h * fine) + 0.5) / fine
    inside = distance(*np.meshgrid(x, y), points) <= half
    return inside.reshape(h, fine, w, fine).mean(axis=(1, 3))


# overlaps -------------------------------------------------------------------------------------
Edge = tuple[float, float, float, float, int]


def _edges(contours: list[list[Point]]) -> list[Edge]:
    """Return the edges of contours, downward, with their winding."""
    found = []
    for points in contours:
        for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1], strict=True):
            if ay < by:
                found.append((ax, ay, bx, by, 1))
            elif ay > by:
                found.append((bx, by, ax, ay, -1))
    return found


def _crossings(edges: np.ndarray) -> list[float]:
    """Return the y where edges cross each other."""
    x, y = edges[:, 0], edges[:, 1]
    dx, dy = edges[:, 2] - x, edges[:, 3] - y
    slope = dx / dy
    zero = x - slope * y  # x at y = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (zero[None] - zero[:, None]) / (slope[:, None] - slope[None])
    low, high = np.maximum(y[:, None], y[None]), np.minimum(edges[:, 3, None], edges[None, :, 3])
    seen = at[np.isfinite(at) & (at > low) & (at < high)]
    return [*np.unique(np.round(seen, 9))]


def _left_of(sides: np.ndarray, x0: float, x1: float) -> np.ndarray:
    """Return the mean over a line from x0 to x1 of how far each side is right of it."""
    low, high = min(x0, x1), max(x0, x1)
    if high - low < 1e-9:
        return np.maximum(sides - (low + high) / 2, 0)
    squares = np.maximum(sides - low, 0) ** 2 - np.maximum(sides - high, 0) ** 2
    return squares / (2 * (high - low))


def coverage(
    contours: list[list[Point]], width: int, height: int, rule: str = "nonzero"
) -> np.ndarray:
    """Return the exact area inside contours in each pixel: all slabs between vertices, crossings
    and pixel rows are cut into trapezoids, in f64."""
    edges = np.array(_edges(contours), float).reshape(-1, 5)
    found, sides = np.zeros((height, width)), np.arange(width + 1.0)
    places = {*range(height + 1), *edges[:, 1], *edges[:, 3], *_crossings(edges)}
    for top, bottom in pairwise(sorted(y for y in places if 0 <= y <= height)):
        middle = (top + bottom) / 2
        live = edges[(edges[:, 1] < middle) & (edges[:, 3] > middle)]
        slope = (live[:, 2] - live[:, 0]) / (live[:, 3] - live[:, 1])
        ends = [live[:, 0] + slope * (y - live[:, 1]) for y in (top, middle, bottom)]
        order, winding, row = np.argsort(ends[1]), 0, found[int(middle)]
        for edge in order:
            before = winding
            winding += int(live[edge, 4])
            inside = [w & 1 if rule == "evenodd" else int(w != 0) for w in (before, winding)]
            if inside[0] != inside[1]:
                share = np.diff(_left_of(sides, ends[0][edge], ends[2][edge]))
                row += (inside[1] - inside[0]) * (bottom - top) * share
    return found


def signed_areas(contours: list[list[Point]], width: int, height: int) -> np.ndarray:
    """Return the signed area of contours in each pixel, as :func:`shares` does, only faster."""
    found, sides = np.zeros((height, width)), np.arange(width + 1.0)
    for ax, ay, bx, by, winding in _edges(contours):
        slope = (bx - ax) / (by - ay)
        for y in range(max(0, math.floor(ay)), min(height, math.ceil(by))):
            top, bottom = max(y, ay), min(y + 1, by)
            ends = (ax + slope * (top - ay), ax + slope * (bottom - ay))
            found[y] += winding * (bottom - top) * np.diff(_left_of(sides, *ends))
    return found
