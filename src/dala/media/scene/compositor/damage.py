"""Damage: the rectangles of a display list that changed."""

from __future__ import annotations

from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from dala.gpu.compute.composite import Rect
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.compositor.display_list import Draw

#: Up to this many rectangles are kept exact; more are rounded to tiles.
_MOST_EXACT: Final = 16
_TILE: Final = 32
#: Up to this many rectangles are drawn separately; more become their bounding rectangle.
_MOST_RECTANGLES: Final = 96
#: If this fraction of the picture is damaged, all of it is drawn.
_NEARLY_ALL: Final = 0.8
#: Two rectangles are merged if their bounding rectangle is at most this much larger than both.
_MERGE_LIMIT: Final = 1.2

#: Identifies a draw: the serial number of its node, and the part.
Key: TypeAlias = tuple[int, str]
#: The index of a changed draw (-1 if it was removed), and its rectangle.
Change: TypeAlias = tuple[int, Rect]


def rearranged(
    before: list[Key], old_draws: list[Draw], keys: list[Key], draws: list[Draw]
) -> list[Change]:
    """Return the changes between two lists: draws that were added, removed, moved or changed."""
    places = {key: i for i, key in enumerate(before)}
    found: list[Change] = []
    latest = -1
    for i, (key, draw) in enumerate(zip(keys, draws, strict=True)):
        j = places.pop(key, None)
        if j is None:
            found.append((i, draw.rect))
            continue
        old = old_draws[j]
        same = draw is old or (draw.record == old.record and draw.version == old.version)
        if not same or j < latest:  # it is above a draw now that was above it
            found += [(i, draw.rect), (i, old.rect)]
        latest = max(latest, j)
    found += [(-1, old_draws[j].rect) for j in places.values()]
    return found


def crossed(before: list[Key] | None, keys: list[Key], number: int) -> bool:
    """Return True if the set of draws below a draw changed by reordering."""
    if before is None:
        return False
    key = keys[number]
    if key not in before:
        return True
    below, now = set(before[: before.index(key)]), set(keys[:number])
    return bool((below ^ now) & set(keys) & set(before))


# rectangles ---------------------------------------------------------------------------------------
def area(rect: Rect) -> int:
    """Return the number of pixels in a rectangle."""
    return (rect[2] - rect[0]) * (rect[3] - rect[1])


def meet(a: Rect, b: Rect) -> bool:
    """Return True if two rectangles overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def common(a: Rect, b: Rect) -> Rect:
    """Return the rectangle that two have in common, which may be empty."""
    return max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])


def union(a: Rect, b: Rect) -> Rect:
    """Return the bounding rectangle of two."""
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def disjoint(rects: list[Rect], whole: Rect, *, coarse: bool = False) -> list[Rect]:
    """Return rectangles that do not overlap and cover the given ones inside ``whole``.

    With ``coarse``, many large rectangles become their bounding rectangle: a GPU draws it faster
    than the exact region can be computed.

    >>> disjoint([(0, 0, 4, 4), (2, 0, 6, 4)], (0, 0, 8, 8))
    [(0, 0, 6, 4)]
    """
    if whole in rects:
        return [whole]
    if len(rects) > _MOST_EXACT:
        corners = np.fromiter(chain.from_iterable(rects), np.int64, 4 * len(rects)).reshape(-1, 4)
        np.clip(corners, (*whole[:2], *whole[:2]), (*whole[2:], *whole[2:]), out=corners)
        sides = corners[:, 2:] - corners[:, :2]
        areas = sides[:, 0] * sides[:, 1]
        if coarse and areas.sum() >= area(whole):
            corners = corners[areas > 0]
            return [(*corners[:, :2].min(axis=0).tolist(), *corners[:, 2:].max(axis=0).tolist())]
        if np.count_nonzero(areas) > _MOST_EXACT:
            return _tiles(corners[areas > 0], whole)
    left, top, right, bottom = whole
    todo: list[Rect] = []
    for r in rects:
        x0, y0, x1, y1 = r
        if x0 < left or y0 < top or x1 > right or y1 > bottom:
            r = x0, y0, x1, y1 = max(x0, left), max(y0, top), min(x1, right), min(y1, bottom)
        if x0 < x1 and y0 < y1:
            todo.append(r)
    merged = _merged(todo) if len(todo) > 1 else todo
    if len(merged) < 2:
        return merged
    if sum(map(area, merged)) >= _NEARLY_ALL * area(whole):
        return [whole]
    found: list[Rect] = []
    for r in sorted(merged, key=area, reverse=True):
        pieces = [r]
        for taken in found:
            pieces = [rest for piece in pieces for rest in _without(piece, taken)]
        found += pieces
    return found


def _tiles(corners: NDArray, whole: Rect) -> list[Rect]:
    """Return the tiles that many rectangles touch, merged into horizontal and vertical runs."""
    size = _TILE if max(whole) < 3000 else 2 * _TILE
    columns, rows = -(-whole[2] // size), -(-whole[3] // size)
    pitch = columns + 1  # the last column stays empty, so that runs end with their rows
    x0, y0 = corners[:, 0] // size, corners[:, 1] // size * pitch
    x1, y1 = -(-corners[:, 2] // size), -(-corners[:, 3] // size) * pitch
    count = (rows + 1) * pitch
    steps = np.bincount(np.concatenate([y0 + x0, y1 + x1]), minlength=count)
    steps -= np.bincount(np.concatenate([y0 + x1, y1 + x0]), minlength=count)
    touched = (steps.reshape(-1, pitch).cumsum(0).cumsum(1) > 0).reshape(-1)
    if np.count_nonzero(touched) >= _NEARLY_ALL * rows * columns:
        return [whole]
    edges = (np.flatnonzero(touched[1:] != touched[:-1]) + 1).tolist()
    if touched[0]:
        edges.insert(0, 0)
    found: list[list[int]] = []
    above: dict[tuple[int, int], list[int]] = {}
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        row, left = divmod(start, pitch)
        run = left, end - row * pitch
        last = above.get(run)
        if last is not None and last[3] == row:
            last[3] = row + 1
        else:
            above[run] = last = [left, row, run[1], row + 1]
            found.append(last)
    made = [(a * size, b * size, c * size, d * size) for a, b, c, d in found]
    made = [(a, b, min(c, whole[2]), min(d, whole[3])) for a, b, c, d in made]
    return made if len(made) <= _MOST_RECTANGLES else [reduce(union, made)]


def _merged(rects: list[Rect]) -> list[Rect]:
    """Merge rectangles that overlap or nearly do."""
    kept: list[Rect] = []
    for r in rects:
        i = 0
        while i < len(kept):
            one = _joined(r, kept[i])
            i += 1
            if one is not None:
                r = one
                del kept[i - 1]
                i = 0  # it has grown and may overlap earlier ones
        kept.append(r)
    return kept


def _joined(a: Rect, b: Rect) -> Rect | None:
    """Return the bounding rectangle of two that touch, if it is hardly larger than both."""
    x0, y0, x1, y1 = a
    a0, b0, a1, b1 = b
    if x0 > a1 or a0 > x1 or y0 > b1 or b0 > y1:
        return None
    both = (x1 - x0) * (y1 - y0) + (a1 - a0) * (b1 - b0)
    if a0 < x0:
        x0 = a0
    if b0 < y0:
        y0 = b0
    if a1 > x1:
        x1 = a1
    if b1 > y1:
        y1 = b1
    return (x0, y0, x1, y1) if (x1 - x0) * (y1 - y0) <= _MERGE_LIMIT * both else None


def _without(r: Rect, taken: Rect) -> list[Rect]:
    """Return the parts of a rectangle outside another."""
    if not meet(r, taken):
        return [r]
    x0, y0, x1, y1 = r
    a0, b0, a1, b1 = taken
    top, bottom = max(y0, b0), min(y1, b1)
    pieces = [
        (x0, y0, x1, top), (x0, bottom, x1, y1), (x0, top, a0, bottom), (a1, top, x1, bottom),
    ]  # fmt: skip
    return [p for p in pieces if p[0] < p[2] and p[1] < p[3]]
