"""The scene of ``drawing``: ten thousand small primitives, the same for all contestants."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

WIDTH, HEIGHT = 1920, 1080
COUNT: Final = 10_000
BACKGROUND: Final = (24, 28, 36)

#: The number of colors of a scene: drawings have palettes, and converted colors are cached.
COLORS: Final = 256

#: The six kinds of primitives in the mix.
KINDS: Final = ("rect", "line", "circle", "disc", "triangle", "round rect")
OUTLINES: Final = ("triangle outline", "round outline")

Color = tuple[int, int, int, int]


class Primitive(NamedTuple):
    """A primitive. Its numbers by kind:

    rect x y w h, line x1 y1 x2 y2, circle and disc cx cy r, triangles six coordinates,
    round rectangles x y w h radius.
    """

    kind: str
    numbers: tuple[int, ...]
    color: Color


def scene(kinds: tuple[str, ...] = KINDS, count: int = COUNT, *, alpha: bool) -> list[Primitive]:
    """Return primitives of some kinds in turn, fully inside the frame."""
    rng = np.random.default_rng(7)
    palette: list[Color] = [
        (int(r), int(g), int(b), int(a) if alpha else 255)
        for r, g, b, a in zip(*rng.integers(40, 216, (4, COLORS)), strict=True)
    ]
    places = zip(
        rng.integers(60, WIDTH - 60, count).tolist(),
        rng.integers(60, HEIGHT - 60, count).tolist(),
        (rng.random(count) * math.tau).tolist(),
        rng.integers(0, COLORS, count).tolist(),
        strict=True,
    )
    return [
        Primitive(kinds[n % len(kinds)], _numbers(kinds[n % len(kinds)], x, y, turn), palette[c])
        for n, (x, y, turn, c) in enumerate(places)
    ]


def _numbers(kind: str, x: int, y: int, turn: float) -> tuple[int, ...]:
    if kind == "rect":
        return x, y, 20, 20
    if kind == "line":
        return x, y, x + round(50 * math.cos(turn)), y + round(50 * math.sin(turn))
    if kind in ("circle", "disc"):
        return x, y, 10
    if kind.startswith("round"):
        return x, y, 30, 20, 6
    corners = (turn + k * math.tau / 3 for k in range(3))
    return tuple(
        n for t in corners for n in (x + round(14 * math.cos(t)), y + round(14 * math.sin(t)))
    )
