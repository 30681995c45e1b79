"""Intersection over union, non-maximum suppression, assignment, sigmoid and softmax."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.typing import NDArray

#: Boxes compared at once.
_BLOCK: Final = 64


def iou(box: NDArray, others: NDArray) -> NDArray:
    """Return the intersection over union of a box (4,) with others (n, 4), x1 y1 x2 y2."""
    found: NDArray = iou_matrix(np.asarray(box)[None], np.asarray(others))[0]
    return found


def iou_matrix(some: NDArray, others: NDArray) -> NDArray:
    """Return the intersection over union (m, n) of boxes (m, 4) with others (n, 4)."""
    ax1, ay1, ax2, ay2 = (c[:, None] for c in np.ascontiguousarray(some.T))
    bx1, by1, bx2, by2 = np.ascontiguousarray(others.T)
    wide = np.minimum(ax2, bx2)
    wide -= np.maximum(ax1, bx1)
    high = np.minimum(ay2, by2)
    high -= np.maximum(ay1, by1)
    common = np.maximum(wide, 0)
    common *= np.maximum(high, 0)
    whole = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1)
    found: NDArray = common / np.maximum(whole - common, 1e-9)
    return found


def non_max_suppression(
    boxes: NDArray, scores: NDArray, classes: NDArray, limit: float, most: int
) -> NDArray:
    """Return the indexes of boxes without a better box of their class.

    Args:
        boxes: shape (n, 4), x1 y1 x2 y2.
        scores: shape (n,).
        classes: shape (n,).
        limit: the intersection over union above which the lower score is dropped.
        most: the number of boxes to keep at most.
    """
    order = np.argsort(-scores, kind="stable")
    # Boxes are offset by class, so that those of different classes never overlap.
    span = float(np.max(np.abs(boxes), initial=0)) * 2 + 1
    apart = np.asarray(boxes, np.float64) + np.asarray(classes, np.float64)[:, None] * span
    kept: list[int] = []
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        alive: NDArray = np.ones(len(block), bool)
        if kept:
            alive = np.all(iou_matrix(apart[block], apart[kept]) <= limit, axis=1)
        clash: NDArray = np.triu(iou_matrix(apart[block], apart[block]) > limit, 1)
        hits: list[bool] = np.any(clash, axis=1).tolist()
        for k, number in enumerate(block.tolist()):
            if alive[k]:
                kept.append(number)
                if len(kept) == most:
                    return np.array(kept, np.int64)
                if hits[k]:
                    alive &= ~clash[k]
    return np.array(kept, np.int64)


def assign(cost: NDArray) -> list[tuple[int, int]]:
    """Return pairs (row, column) of the least total cost; each row and column is in at most one.

    All rows are paired, or all columns where these are fewer. This is the Hungarian method with
    shortest augmenting paths: for each row, the cheapest way to make room for it.

    >>> assign(np.array([[1.0, 2.0], [1.0, 5.0]]))
    [(0, 1), (1, 0)]
    """
    if cost.shape[0] > cost.shape[1]:
        return sorted((row, column) for column, row in assign(cost.T))
    rows, columns = cost.shape
    # Column 0 is a placeholder for the row that is being placed.
    cost = np.concatenate([np.zeros((rows, 1)), np.asarray(cost, np.float64)], axis=1)
    row_price, column_price = np.zeros(rows), np.zeros(columns + 1)
    owner: NDArray = np.full(columns + 1, -1)
    for row in range(rows):
        owner[0], at = row, 0
        best: NDArray = np.full(columns + 1, np.inf)
        before: NDArray = np.zeros(columns + 1, np.int64)
        used: NDArray = np.zeros(columns + 1, bool)
        while owner[at] >= 0:
            used[at] = True
            through = cost[owner[at]] - row_price[owner[at]] - column_price
            closer = ~used & (through < best)
            best[closer], before[closer] = through[closer], at
            at = int(np.argmin(np.where(used, np.inf, best)))
            step = best[at]
            row_price[owner[used]] += step
            column_price[used] -= step
            best[~used] -= step
        while at:
            owner[at], at = owner[before[at]], int(before[at])
    return sorted((int(owner[k]), k - 1) for k in range(1, columns + 1) if owner[k] >= 0)


def nearest(far: NDArray, limit: float) -> list[tuple[int, int]]:
    """Return pairs (row, column) of the least total distance that are nearer than a limit.

    >>> nearest(np.array([[0.1, 0.4], [0.9, 2.0]]), 1.0)
    [(0, 0)]
    """
    pairs = assign(np.minimum(far, limit))
    return [(row, column) for row, column in pairs if far[row, column] < limit]


def sigmoid(x: NDArray) -> NDArray:
    """Return 1 / (1 + exp(-x)), without overflow."""
    made: NDArray = 1.0 / (1.0 + np.exp(-np.clip(x, -80, 80)))
    return made


def softmax(x: NDArray, axis: int = -1) -> NDArray:
    """Return the probabilities of logits."""
    e: NDArray = x - np.maximum.reduce(x, axis=axis, keepdims=True)
    e = np.exp(e, out=e if e.dtype.kind == "f" else None)
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e
