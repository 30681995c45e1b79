"""MoveNet Lightning: one person with 17 keypoints, in real time on a CPU."""

from __future__ import annotations

import numpy as np

from dala.ml.models.posenet import PARTS
from dala.ml.prepare import Placement
from dala.ml.results import Pose, Poses
from dala.ml.results.people import keypoints
from dala.ml.spec import RawResult, human_model
from dala.typing import NDArray


def decode(raw: RawResult) -> Poses:
    """Return the person from rows of y, x and score, both from 0 to 1 in the input."""
    rows = raw.first.reshape(-1).astype(np.float64)
    person = pose_of(rows, float(rows[2::3].mean()), raw.placement)
    return Poses([person] if person.score >= raw.options["score"] else [], raw.outputs)


def pose_of(numbers: NDArray, score: float, placement: Placement) -> Pose:
    """Return a person from y, x and score of each part; y and x are 0 to 1 in the input."""
    rows = numbers.reshape(len(PARTS), 3)
    places = placement.back(rows[:, 1::-1] * placement.size)
    return Pose(keypoints(PARTS, places, rows[:, 2].tolist()), score)


MODEL = human_model(
    "movenet",
    "movenet-lightning",
    "df8cbde44d00f533ccc4916a7c6ebc17316532fb3fadad114ec667fef22872e9",
    "bf97bc10d9c8a11200b0190ed64ce039b6252f1aff7cb552aca99b3d191c2f34",
    task="poses",
    title="MoveNet Lightning, one person of 17 points, 192 x 192",
    license="Apache-2.0 (Google; its package says MIT)",
    prepare={"normalize": "raw", "fit": "letterbox", "pad": 0.0},
    size=(192, 192),
    decode=decode,
    options={"score": 0.2},
    finds="one person, in real time",
    result='`Poses`: seventeen `.keypoints`, `.score`; `pose["nose"]`',
)
