"""PoseNet: people with 17 keypoints each, several in a picture.

The model gives a heatmap for each body part, and displacements from each part to its neighbors
along the body. Decoding starts a person at the best parts and follows the displacements. A person
whose first part is close to that of an earlier one is dropped.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np

from dala.ml.boxes import sigmoid
from dala.ml.prepare import Placement
from dala.ml.results import Outputs, Pose, Poses
from dala.ml.results.names import BODY_BONES, BODY_POINTS
from dala.ml.results.people import keypoints
from dala.ml.spec import RawResult, human_model
from dala.typing import NDArray

PARTS: Final = BODY_POINTS
#: Pairs of connected parts, from the nose outward, in the order of the displacements.
EDGES: Final = tuple((PARTS.index(a), PARTS.index(b)) for a, b in BODY_BONES)
#: The radius, in cells, in which a person's first part has the highest score.
_RADIUS: Final = 1
#: Refinements of a displaced point by the offsets at its cell.
_CORRECTIONS: Final = 2


#: A position (y, x) in the input.
_Point: TypeAlias = tuple[float, float]
#: The row and column of an entry of the maps.
_Cell: TypeAlias = tuple[int, int]


class _Maps:
    """The outputs for one picture. Single points are Python's numbers, which are faster there."""

    def __init__(self, outputs: Outputs, stride: int) -> None:
        by = {_kind(name): array for name, array in outputs.items()}
        self.scores = sigmoid(by["heatmap"].astype(np.float64))
        self.rows, self.columns, parts = self.scores.shape
        shape = self.rows, self.columns, 2
        self.offsets = by["offset"].reshape(*shape, parts)
        self.forward = by["displacement_fwd"].reshape(*shape, len(EDGES))
        self.backward = by["displacement_bwd"].reshape(*shape, len(EDGES))
        self.stride = stride

    def cell(self, point: _Point) -> _Cell:
        """Return the cell nearest to a point."""
        y, x = point
        # NaN becomes 0: max() keeps its first argument.
        row = min(max(0.0, y / self.stride), self.rows - 1)
        return round(row), round(min(max(0.0, x / self.stride), self.columns - 1))

    def place(self, cell: _Cell, part: int) -> _Point:
        """Return the exact position of a part near a cell."""
        y, x = self.offsets[(*cell, slice(None), part)].tolist()
        return cell[0] * self.stride + y, cell[1] * self.stride + x

    def step(self, point: _Point, edge: int, target: int, moves: NDArray) -> tuple[_Point, float]:
        """Follow an edge to the neighboring part, and return its position and score."""
        y, x = moves[(*self.cell(point), slice(None), edge)].tolist()
        point = point[0] + y, point[1] + x
        for _ in range(_CORRECTIONS):
            point = self.place(self.cell(point), target)
        cell = self.cell(point)
        for _ in range(_CORRECTIONS):
            cell = self.best_cell(cell, target)
        return self.place(cell, target), float(self.scores[(*cell, target)])

    def best_cell(self, cell: _Cell, part: int) -> _Cell:
        """Return the cell with the highest score for a part, around a cell."""
        top, left = max(0, cell[0] - _RADIUS), max(0, cell[1] - _RADIUS)
        part_of = self.scores[top : cell[0] + _RADIUS + 1, left : cell[1] + _RADIUS + 1, part]
        row, column = divmod(int(part_of.argmax()), part_of.shape[1])
        return top + row, left + column

    def person(self, part: int, cell: _Cell) -> tuple[list[_Point], list[float]]:
        """Return the positions and scores of all parts of the person with a given part."""
        points, scores = [(0.0, 0.0)] * len(PARTS), [0.0] * len(PARTS)
        points[part], scores[part] = self.place(cell, part), float(self.scores[(*cell, part)])
        for edge in reversed(range(len(EDGES))):
            to, start = EDGES[edge]
            if scores[start] > 0 and scores[to] == 0:
                points[to], scores[to] = self.step(points[start], edge, to, self.backward)
        for edge, (start, to) in enumerate(EDGES):
            if scores[start] > 0 and scores[to] == 0:
                points[to], scores[to] = self.step(points[start], edge, to, self.forward)
        return points, scores

    def starts(self, limit: float) -> list[tuple[int, int, int]]:
        """Return the row, column and part of local maxima of the scores, best first."""
        highest = self.scores
        for axis in (0, 1):
            highest = _around(highest, axis)
        found = np.argwhere((self.scores >= highest) & (self.scores >= limit))
        order = np.argsort(-self.scores[tuple(found.T)], kind="stable")
        return [tuple(row) for row in found[order].tolist()]


def _around(x: NDArray, axis: int) -> NDArray:
    """Return the largest of the elements around each element, along an axis."""
    made = x.copy()
    source, most = np.moveaxis(x, axis, 0), np.moveaxis(made, axis, 0)
    for shift in range(1, _RADIUS + 1):
        np.maximum(most[shift:], source[:-shift], out=most[shift:])
        np.maximum(most[:-shift], source[shift:], out=most[:-shift])
    return made


def _kind(name: str) -> str:
    kinds = ("displacement_fwd", "displacement_bwd", "heatmap", "offset")
    return next((kind for kind in kinds if kind in name), name)


def decode(raw: RawResult) -> Poses:
    """Return people, sorted by descending score."""
    rows = raw.first.shape[0]
    maps = _Maps(raw.outputs, (raw.placement.size[1] - 1) // (rows - 1))
    found: list[tuple[list[_Point], list[float], float]] = []
    near = raw.options["apart"]
    for y, x, part in maps.starts(raw.options["part_score"]):
        if len(found) >= raw.options["most"]:
            break
        start = maps.place((y, x), part)
        if any(math.dist(points[part], start) <= near for points, _, _ in found):
            continue
        points, scores = maps.person(part, (y, x))
        # Points close to those of an earlier person do not count.
        own = (
            score
            for k, score in enumerate(scores)
            if all(math.dist(other[k], points[k]) > near for other, _, _ in found)
        )
        score = sum(own) / len(PARTS)
        if score >= raw.options["score"]:
            found.append((points, scores, score))
    found.sort(key=lambda person: -person[2])
    return Poses([_pose(*person, raw.placement) for person in found], raw.outputs)


def _pose(points: list[_Point], scores: list[float], score: float, placement: Placement) -> Pose:
    return Pose(keypoints(PARTS, placement.back(np.array(points)[:, ::-1]), scores), score)


MODEL = human_model(
    "posenet",
    "posenet",
    "a0070d53d9e2b085a9df22be217658f9416df055770a020ee0bef9bfa44ff0d4",
    "15e9a22e499fe09307b077ee9bd37939987a5e20acb1a17506ccdf1cb72cd433",
    task="poses",
    title="PoseNet on MobileNetV1, 17 points a person, 385 x 385",
    license="Apache-2.0 (TensorFlow; its package says MIT)",
    prepare={"normalize": "signed", "fit": "letterbox", "pad": 0.0},
    size=(385, 385),
    decode=decode,
    options={"score": 0.15, "part_score": 0.5, "apart": 20.0, "most": 20},
    outputs=("heatmap", "offset", "displacement_fwd", "displacement_bwd"),
    finds="people",
    result='`Poses`: seventeen `.keypoints`, `.score`; `pose["nose"]`',
)
