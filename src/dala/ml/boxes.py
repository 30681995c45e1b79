"""Boxes: how much two overlap, and which of many to keep."""

from __future__ import annotations

from typing import Any

import numpy as np


def overlaps(box: Any, others: Any) -> Any:
    """Intersection over union of a box (4,) with others (n, 4), x1 y1 x2 y2."""
    left_top = np.maximum(box[:2], others[:, :2])
    right_bottom = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.clip(right_bottom - left_top, 0, None), axis=1)
    area = np.prod(box[2:] - box[:2])
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    return common / np.maximum(area + areas - common, 1e-9)


def keep_best(boxes: Any, scores: Any, classes: Any, limit: float, most: int) -> Any:
    """Numbers of boxes that no better one of their class overlaps by more than ``limit``."""
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    # Boxes of each class are moved to a place of their own, so that classes never overlap.
    span = float(np.max(np.abs(boxes), initial=0)) * 2 + 1
    apart = np.asarray(boxes, np.float64) + np.asarray(classes, np.float64)[:, None] * span
    while order.size and len(kept) < most:
        best = order[0]
        kept.append(int(best))
        rest = order[1:]
        order = rest[overlaps(apart[best], apart[rest]) <= limit]
    return np.array(kept, np.int64)


def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x), without overflow."""
    return 1.0 / (1.0 + np.exp(-np.clip(x, -80, 80)))


def softmax(x: Any, axis: int = -1) -> Any:
    """Probabilities of logits."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
