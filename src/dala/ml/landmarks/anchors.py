"""Detectors with anchors, of MediaPipe's kind: boxes and points relative to the cells of grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dala.ml.boxes import iou
from dala.typing import NDArray


def anchor_centers(grids: Sequence[tuple[int, int]]) -> NDArray:
    """Return the centers of anchors (n, 2), 0 to 1, for grids of (side, anchors per cell).

    >>> anchor_centers(((2, 1),)).tolist()
    [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]
    """
    found = []
    for side, each in grids:
        y, x = np.mgrid[0:side, 0:side]
        centers = np.stack([x.ravel() + 0.5, y.ravel() + 0.5], axis=1) / side
        found.append(np.repeat(centers, each, axis=0))
    return np.concatenate(found)


def merged(
    offsets: NDArray,
    scores: NDArray,
    anchors: NDArray,
    size: tuple[int, int],
    options: Mapping[str, float],
) -> list[tuple[NDArray, float]]:
    """Return each group of overlapping boxes as (x1 y1 x2 y2 and points in pixels, score).

    A group is the mean of its boxes, weighted by scores, and has its best score; best first.

    Args:
        offsets: shape (n, 4 + 2 * points): center, width and height, points; in pixels of the
            input, center and points relative to the anchor.
        scores: shape (n,), 0 to 1.
        anchors: shape (n, 2), 0 to 1.
        size: (width, height) of the input.
        options: ``score``, ``overlap`` and ``most``.
    """
    sure = np.flatnonzero(scores >= options["score"])
    points = offsets[sure].astype(np.float64).reshape(len(sure), offsets.shape[1] // 2, 2)
    center = anchors[sure] * size
    points[:, 0] += center
    points[:, 2:] += center[:, None]
    half = points[:, 1] / 2
    others = points[:, 2:].reshape(len(sure), offsets.shape[1] - 4)
    rows = np.concatenate([points[:, 0] - half, points[:, 0] + half, others], axis=1)
    return _groups(rows, scores[sure], options)


def _groups(
    rows: NDArray, scores: NDArray, options: Mapping[str, float]
) -> list[tuple[NDArray, float]]:
    order = np.argsort(-scores, kind="stable")
    found: list[tuple[NDArray, float]] = []
    while order.size and len(found) < options["most"]:
        near = iou(rows[order[0], :4], rows[order, :4]) > options["overlap"]
        near[0] = True
        group = order[near]
        weights = scores[group][:, None]
        found.append(((rows[group] * weights).sum(0) / weights.sum(), float(scores[order[0]])))
        order = order[~near]
    return found
