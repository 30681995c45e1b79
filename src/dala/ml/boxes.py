"""Boxes: how much two overlap, and which of many to keep."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: Boxes that are compared with each other at once.
_BLOCK: Final = 64


def overlaps(box: Any, others: Any) -> Any:
    """Intersection over union of a box (4,) with others (n, 4), x1 y1 x2 y2."""
    return crossed(np.asarray(box)[None], np.asarray(others))[0]


def crossed(some: Any, others: Any) -> Any:
    """Intersection over union (m, n) of boxes (m, 4) with others (n, 4)."""
    ax1, ay1, ax2, ay2 = (c[:, None] for c in np.ascontiguousarray(some.T))
    bx1, by1, bx2, by2 = np.ascontiguousarray(others.T)
    wide = np.minimum(ax2, bx2)
    wide -= np.maximum(ax1, bx1)
    high = np.minimum(ay2, by2)
    high -= np.maximum(ay1, by1)
    common = np.maximum(wide, 0)
    common *= np.maximum(high, 0)
    whole = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1)
    return common / np.maximum(whole - common, 1e-9)


def keep_best(boxes: Any, scores: Any, classes: Any, limit: float, most: int) -> Any:
    """Numbers of boxes that no better one of their class overlaps by more than ``limit``."""
    order = np.argsort(-scores, kind="stable")
    # Boxes of each class are moved to a place of their own, so that classes never overlap.
    span = float(np.max(np.abs(boxes), initial=0)) * 2 + 1
    apart = np.asarray(boxes, np.float64) + np.asarray(classes, np.float64)[:, None] * span
    kept: list[int] = []
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        alive = np.ones(len(block), bool)
        if kept:
            alive = ~(crossed(apart[block], apart[kept]) > limit).any(axis=1)
        clash = np.triu(crossed(apart[block], apart[block]) > limit, 1)
        hits = clash.any(axis=1).tolist()
        for k, number in enumerate(block.tolist()):
            if alive[k]:
                kept.append(number)
                if len(kept) == most:
                    return np.array(kept, np.int64)
                if hits[k]:
                    alive &= ~clash[k]
    return np.array(kept, np.int64)


def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x), without overflow."""
    return 1.0 / (1.0 + np.exp(-np.clip(x, -80, 80)))


def softmax(x: Any, axis: int = -1) -> Any:
    """Probabilities of logits."""
    e = x - np.maximum.reduce(x, axis=axis, keepdims=True)
    e = np.exp(e, out=e if e.dtype.kind == "f" else None)
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e
