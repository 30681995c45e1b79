"""BlazePose (lite): 33 points of each person, with hands, heels and toes."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, pi
from typing import Final

import numpy as np

from dala.ml.boxes import sigmoid
from dala.ml.landmarks.steps import Landmarks, LandmarkSteps, Region, direction, unit
from dala.ml.results import Outputs, Pose, Poses, Prediction
from dala.ml.results.names import POSE_POINTS
from dala.ml.results.people import keypoints
from dala.ml.spec import RawResult, human_model
from dala.typing import NDArray

#: Points of the model's output; the two after those of the body are the middle of the hips and a
#: point on the circle around the body, which give the region of the next frame.
_ROWS: Final = 39
_BODY: Final = len(POSE_POINTS)
#: The side of a person's region, relative to the diameter of that circle.
_SCALE: Final = 1.25
#: Points are moved to the center of the heatmap around them, if it reaches this value.
_WINDOW: Final = 3
_SURE: Final = 0.5


def decode(raw: RawResult) -> Poses:
    """Return the person from x, y, z, visibility and presence of each point."""
    score = float(raw.outputs["output_poseflag"].reshape(-1)[0])
    if score < raw.options["score"]:
        return Poses((), raw.outputs)
    places = raw.placement.back(_points(raw.outputs, raw.placement.size)[:_BODY])
    rows = _rows(raw.outputs)[:_BODY]
    depths = (rows[:, 2] * unit(raw.placement)).tolist()
    points = keypoints(POSE_POINTS, places, sigmoid(rows[:, 3]).tolist(), depths)
    return Poses([Pose(points, score)], raw.outputs)


def _rows(outputs: Outputs) -> NDArray:
    return outputs["ld_3d"].reshape(_ROWS, 5).astype(np.float64)


def _points(outputs: Outputs, size: tuple[int, int]) -> NDArray:
    """Return the points (39, 2) in pixels of the input, refined by the heatmaps.

    A point moves to the center of the values of its heatmap in a window around it, if the highest
    of them is sure.
    """
    points: NDArray = _rows(outputs)[:, :2] / size
    maps = outputs["activation_heatmap"].astype(np.float64)
    high, wide = maps.shape[:2]
    for k, (x, y) in enumerate(points.tolist()):
        column, row = int(x * wide), int(y * high)
        if not (0 <= column < wide and 0 <= row < high):
            continue
        left, top = max(0, column - _WINDOW), max(0, row - _WINDOW)
        part = maps[top : row + _WINDOW + 1, left : column + _WINDOW + 1, k]
        if part.max() < _SURE:
            continue
        total = part.sum()
        points[k, 0] = (part.sum(0) @ np.arange(left, left + part.shape[1])) / total / wide
        points[k, 1] = (part.sum(1) @ np.arange(top, top + part.shape[0])) / total / high
    return points * size


def regions(found: Prediction, size: tuple[int, int]) -> list[Region]:
    """Return the regions of detected people, upright."""
    assert isinstance(found, Poses)
    return [_around(tuple(person["hips"]), tuple(person["above_body"]), size) for person in found]


def again(person: Landmarks, outputs: Outputs, region: Region) -> Region:
    """Return the region of a person in the next frame."""
    middle, above = region.back(_points(outputs, region.size)[_BODY : _BODY + 2]).tolist()
    return _around(middle, above, region.size)


def _around(middle: Sequence[float], above: Sequence[float], size: tuple[int, int]) -> Region:
    """Return the region around a circle, from its middle and a point of it above the body."""
    x, y = middle
    diameter = 2 * hypot(above[0] - x, above[1] - y)
    angle = direction(middle, above) + pi / 2
    return Region(x, y, max(diameter, 1.0) * _SCALE, angle, size)


MODEL = human_model(
    "blazepose",
    "blazepose-lite",
    "db4cbdb614e8064e8c7b01e163b5fea77eeb5d5b3ef7014c74d85bab89da1061",
    "168a3dfa28aba0b543377670e1af1fec65fad837d033d45472ad946b480e31a4",
    task="poses",
    title="BlazePose (lite), 33 points of each person, 256 x 256",
    size=(256, 256),
    decode=decode,
    options={"score": 0.5, "detector_score": 0.5, "most": 4},
    outputs=("ld_3d", "world_3d", "output_poseflag", "activation_heatmap"),
    finds="people, with hands, heels and toes",
    result='`Poses`: 33 `.keypoints` with `z`, `.score`; `pose["left_heel"]`',
    # People are often cut by the border, and a repeated one looks like long clothes. The detector
    # is far off where people are small or beside each other.
    steps=LandmarkSteps("blazepose_detector", regions, again, Poses, border="constant", looks=4),
)
