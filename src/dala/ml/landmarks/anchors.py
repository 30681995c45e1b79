"""Detectors with anchors, of MediaPipe's kind: boxes and points relative to the cells of grids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import TypeAlias

import numpy as np

from dala.ml.boxes import iou, sigmoid
from dala.ml.results import Box, Keypoint
from dala.ml.results.people import keypoints
from dala.ml.spec import RawResult
from dala.typing import NDArray

#: The side of each grid of anchors, and the anchors per cell.
Grids: TypeAlias = tuple[tuple[int, int], ...]


@cache
def anchor_centers(grids: Grids) -> NDArray:
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


def detected(
    raw: RawResult, offsets: NDArray, logits: NDArray, grids: Grids, names: Sequence[str]
) -> Iterator[tuple[Box, tuple[Keypoint, ...], float]]:
    """Yield the box, points and score of each group of overlapping boxes, best first.

    A group is the mean of its boxes, weighted by scores, and has its best score. The options are
    ``score``, ``overlap`` and ``most``.

    Args:
        raw: the placement and the options.
        offsets: shape (n, 4 + 2 * points): center, width and height, points; in pixels of the
            input, center and points relative to the anchor.
        logits: the scores, shape (n,), before the sigmoid.
        grids: of the n anchors.
        names: of the points.
    """
    scores, placement = sigmoid(logits), raw.placement
    sure = np.flatnonzero(scores >= raw.options["score"])
    points = offsets[sure].astype(np.float64).reshape(len(sure), offsets.shape[1] // 2, 2)
    center = anchor_centers(grids)[sure] * placement.size
    points[:, 0] += center
    points[:, 2:] += center[:, None]
    half = points[:, 1] / 2
    others = points[:, 2:].reshape(len(sure), offsets.shape[1] - 4)
    rows = np.concatenate([points[:, 0] - half, points[:, 0] + half, others], axis=1)
    for row, score in _groups(rows, scores[sure], raw.options):
        x1, y1, x2, y2 = placement.boxes(row[None, :4])[0].tolist()
        found = keypoints(names, placement.back(row[4:].reshape(-1, 2)), repeat(score))
        yield (x1, y1, x2, y2), found, score


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
