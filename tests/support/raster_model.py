"""A model of the rasterizer in plain Python, pixel by pixel.

Small shapes use the textbook loops. Huge ones cannot be looped over, so each pixel of the canvas is
tested with exact integers; the tests also compare the two methods with each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import floor, isqrt

import numpy as np

Point = tuple[int, int]


def rounded(x: Fraction) -> int:
    """Round to nearest, halves up."""
    return floor(x + Fraction(1, 2))


def blend(d: tuple[int, ...], s: tuple[int, ...]) -> tuple[int, ...]:
    """Return source-over of straight alpha, from exact fractions."""
    a, da = s[3], d[3]
    if a in (0, 255):
        return tuple(s) if a else tuple(d)
    if da == 255:
        mixed = (rounded(Fraction(s[c] * a + d[c] * (255 - a), 255)) for c in range(3))
        return (*mixed, 255)
    alpha = a + Fraction(da * (255 - a), 255)
    mixed = (rounded((s[c] * a + Fraction(d[c] * da * (255 - a), 255)) / alpha) for c in range(3))
    return (*mixed, rounded(alpha))


# the textbook ---------------------------------------------------------------------------------
def bresenham(x1: int, y1: int, x2: int, y2: int) -> list[Point]:
    dx, dy = abs(x2 - x1), -abs(y2 - y1)
    sx, sy = (1 if x1 < x2 else -1), (1 if y1 < y2 else -1)
    error = dx + dy
    found = []
    while True:
        found.append((x1, y1))
        if (x1, y1) == (x2, y2):
            return found
        e2 = 2 * error
        if e2 >= dy:
            error += dy
            x1 += sx
        if e2 <= dx:
            error += dx
            y1 += sy


def midpoint(r: int) -> set[Point]:
    """Return the outline around (0, 0)."""
    x, y, d = 0, r, 1 - r
    found = set()
    while x <= y:
        for a, b in ((x, y), (y, x)):
            found |= {(a, b), (-a, b), (a, -b), (-a, -b)}
        if d < 0:
            d += 2 * x + 3
        else:
            d += 2 * (x - y) + 5
            y -= 1
        x += 1
    return found


def disc(r: int) -> set[Point]:
    """Return the outline and, on each row, all pixels between its ends."""
    outline = midpoint(r)
    found = set()
    for y in range(-r, r + 1):
        half = max(x for x, row in outline if row == y)
        found |= {(x, y) for x in range(-half, half + 1)}
    return found


def wire(a: Point, b: Point, c: Point) -> list[Point]:
    if a == b == c:
        return [a]
    return [p for f, t in ((a, b), (b, c), (c, a)) for p in bresenham(*f, *t)[:-1]]


def round_rect(x: int, y: int, w: int, h: int, radius: int, filled: bool) -> set[Point]:
    if not w or not h:
        return set()
    r = min(radius, (min(w, h) - 1) // 2)
    quarter = disc(r) if filled else midpoint(r)
    found = set()
    for px, py in quarter:
        for cx, side in ((x + r, -1), (x + w - 1 - r, 1)):
            for cy, up in ((y + r, -1), (y + h - 1 - r, 1)):
                if px * side >= 0 and py * up >= 0:
                    found.add((cx + px, cy + py))
    for column in range(x + r, x + w - r):
        found |= {(column, y), (column, y + h - 1)}
        if filled:
            found |= {(column, row) for row in range(y, y + h)}
    for row in range(y + r, y + h - r):
        found |= {(x, row), (x + w - 1, row)}
        if filled:
            found |= {(column, row) for column in range(x, x + w)}
    return found


# any size -------------------------------------------------------------------------------------
def on_line(p: Point, x1: int, y1: int, x2: int, y2: int) -> bool:
    """Return True if a pixel is on a line, by the closed form."""
    along, across = (p[0] - x1, p[1] - y1)
    dx, dy = x2 - x1, y2 - y1
    if abs(dx) < abs(dy):
        along, across, dx, dy = across, along, dy, dx
    along, dx = (along, dx) if dx >= 0 else (-along, -dx)
    across, dy = (across, dy) if dy >= 0 else (-across, -dy)
    if not 0 <= along <= dx:
        return False
    return across == ((2 * dy * along + dx) // (2 * dx) if dx else 0)


def row_of(r: int, x: int) -> int:
    """Return the largest y with y * (y - 1) < r * r - x * x."""
    left = r * r - x * x
    y = isqrt(left)
    return y + ((y + 1) * y < left)


def on_circle(x: int, y: int, r: int) -> bool:
    x, y = sorted((abs(x), abs(y)))
    if r == 0:
        return (x, y) == (0, 0)
    return x < r and y == row_of(r, x) and x <= y


def in_disc(x: int, y: int, r: int) -> bool:
    """Return True on the outline, or between two of its pixels in a row."""
    x, y = abs(x), abs(y)
    if x > r or y > r or r == 0:
        return (x, y, r) == (0, 0, 0)
    knee = isqrt(r * r // 2) + 1
    while knee * (knee - 1) >= r * r - knee * knee:
        knee -= 1
    if y <= knee:
        return x <= row_of(r, y)
    return x <= min(knee, isqrt(r * r - y * (y - 1) - 1))


def in_triangle(p: Point, a: Point, b: Point, c: Point) -> bool:
    """Return True if the center is inside, or on a top or left edge."""

    def side(f: Point, t: Point) -> int:
        return (t[0] - f[0]) * (p[1] - f[1]) - (t[1] - f[1]) * (p[0] - f[0])

    area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    if area == 0:
        return False
    if area < 0:
        b, c = c, b
    for f, t in ((a, b), (b, c), (c, a)):
        s = side(f, t)
        top_left = t[1] < f[1] or (t[1] == f[1] and t[0] > f[0])
        if s < 0 or (s == 0 and not top_left):
            return False
    return True


# a canvas -------------------------------------------------------------------------------------
class Model:
    """A picture with a clip."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels.copy()
        self.height, self.width = pixels.shape[:2]
        self.reset()

    def reset(self) -> None:
        self.x0, self.y0, self.x1, self.y1 = 0, 0, self.width, self.height

    def clip(self, x: int, y: int, w: int, h: int) -> None:
        self.x0, self.y0 = min(x, self.width), min(y, self.height)
        self.x1, self.y1 = min(x + w, self.width), min(y + h, self.height)

    def seen(self) -> list[Point]:
        return [(x, y) for y in range(self.y0, self.y1) for x in range(self.x0, self.x1)]

    def dots(self, points: Iterable[Point], color: tuple[int, ...]) -> None:
        for x, y in points:
            if self.x0 <= x < self.x1 and self.y0 <= y < self.y1:
                old = tuple(int(v) for v in self.pixels[y, x])
                self.pixels[y, x] = blend(old, color)

    def clear(self, color: tuple[int, ...]) -> None:
        self.pixels[self.y0 : self.y1, self.x0 : self.x1] = color
