"""What changed in a layer, as rectangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from dala.gpu.compute.composite import Rect

if TYPE_CHECKING:
    from dala.media.display import Draw

#: Rectangles that are fitted exactly, at most; of more, whole tiles are drawn.
_FEW: Final = 16
_TILE: Final = 32
#: Rectangles that are drawn apart, at most; more become the one around them.
_MOST: Final = 96
#: Two rectangles become one where that is at most this much larger than both together.
_LOOSE: Final = 1.2

#: What a draw is known by: its node's serial number, and which part of it it is.
Key: TypeAlias = tuple[int, str]


class Change(NamedTuple):
    """A draw (its number in the list; -1 if it is gone) that shows something else, and where."""

    number: int
    rect: Rect


def rearranged(
    before: list[Key], old_draws: list[Draw], keys: list[Key], draws: list[Draw]
) -> list[Change]:
    """Draws came, went or changed places in a list."""
    places = {key: i for i, key in enumerate(before)}
    found: list[Change] = []
    latest = -1
    for i, (key, draw) in enumerate(zip(keys, draws, strict=True)):
        j = places.pop(key, None)
        if j is None:
            found.append(Change(i, draw.rect))
            continue
        old = old_draws[j]
        same = draw is old or (draw.record == old.record and draw.version == old.version)
        if not same or j < latest:  # one that was below a draw that it is above now
            found += [Change(i, draw.rect), Change(i, old.rect)]
        latest = max(latest, j)
    found += [Change(-1, old_draws[j].rect) for j in places.values()]
    return found


def crossed(before: list[Key] | None, keys: list[Key], number: int) -> bool:
    """Whether a draw is above another now that was below it, or the other way round."""
    if before is None:
        return False
    key = keys[number]
    if key not in before:
        return True
    below, now = set(before[: before.index(key)]), set(keys[:number])
    return bool((below ^ now) & set(keys) & set(before))


# rectangles ---------------------------------------------------------------------------------------
def area(rect: Rect) -> int:
    """Pixels in a rectangle."""
    return (rect[2] - rect[0]) * (rect[3] - rect[1])


def meet(a: Rect, b: Rect) -> bool:
    """True where two rectangles share a pixel."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def around(a: Rect, b: Rect) -> Rect:
    """The rectangle around two."""
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def apart(rects: list[Rect], whole: Rect) -> list[Rect]:
    """Rectangles that do not overlap and cover the given ones, as far as they lie in the whole."""
    if whole in rects:
        return [whole]
    todo = []
    for r in rects:
        r = max(r[0], whole[0]), max(r[1], whole[1]), min(r[2], whole[2]), min(r[3], whole[3])
        if r[0] < r[2] and r[1] < r[3]:
            todo.append(r)
    if len(todo) > _FEW:
        return _tiles(todo, whole)
    merged = _merged(todo) if len(todo) > 1 else todo
    if sum(map(area, merged)) >= 0.8 * area(whole):
        return [whole]
    if len(merged) == 1:
        return merged
    found: list[Rect] = []
    for r in sorted(merged, key=area, reverse=True):
        pieces = [r]
        for taken in found:
            pieces = [rest for piece in pieces for rest in _without(piece, taken)]
        found += pieces
    return found


def _tiles(rects: list[Rect], whole: Rect) -> list[Rect]:
    """The tiles that many rectangles touch, in runs: across, and down where they are alike."""
    columns, rows = -(-whole[2] // _TILE), -(-whole[3] // _TILE)
    grid = np.zeros((rows, columns + 1), np.int8)
    for x0, y0, x1, y1 in rects:
        grid[y0 // _TILE : -(-y1 // _TILE), x0 // _TILE : -(-x1 // _TILE)] = 1
    if grid.sum() >= 0.8 * rows * columns:
        return [whole]
    edges = np.diff(grid, axis=1, prepend=0)
    found: list[Rect] = []
    open_runs: dict[tuple[int, int], int] = {}
    starts, ends = np.argwhere(edges == 1).tolist(), np.argwhere(edges == -1).tolist()
    runs: list[set[tuple[int, int]]] = [set() for _ in range(rows + 1)]
    for (row, start), (_, end) in zip(starts, ends, strict=True):
        runs[row].add((start, end))
    for row, now in enumerate(runs):
        for run in [run for run in open_runs if run not in now]:
            x0, x1 = run[0] * _TILE, min(run[1] * _TILE, whole[2])
            found.append((x0, open_runs.pop(run) * _TILE, x1, min(row * _TILE, whole[3])))
        for run in now:
            open_runs.setdefault(run, row)
    return found if len(found) <= _MOST else [_all_around(found)]


def _merged(rects: list[Rect]) -> list[Rect]:
    """The same with those joined that lie in each other, or nearly."""
    kept: list[Rect] = []
    for r in rects:
        grew = True
        while grew:
            grew = False
            for i, other in enumerate(kept):
                both = around(r, other)
                if area(both) <= _LOOSE * (area(r) + area(other)) and _near(r, other):
                    r = both
                    del kept[i]
                    grew = True
                    break
        kept.append(r)
    return kept


def _near(a: Rect, b: Rect) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def _without(r: Rect, taken: Rect) -> list[Rect]:
    """What is left of a rectangle beside another."""
    if not meet(r, taken):
        return [r]
    x0, y0, x1, y1 = r
    a0, b0, a1, b1 = taken
    top, bottom = max(y0, b0), min(y1, b1)
    pieces = [
        (x0, y0, x1, top), (x0, bottom, x1, y1), (x0, top, a0, bottom), (a1, top, x1, bottom),
    ]  # fmt: skip
    return [p for p in pieces if p[0] < p[2] and p[1] < p[3]]


def _all_around(rects: list[Rect]) -> Rect:
    found = rects[0]
    for r in rects[1:]:
        found = around(found, r)
    return found
