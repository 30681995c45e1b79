"""MoveNet MultiPose: up to six people with 17 keypoints each."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.ml.models.movenet import pose_of
from dala.ml.models.posenet import PARTS
from dala.ml.results import Poses
from dala.ml.spec import RawResult, human_model

#: Numbers of a person's keypoints; a box of four and its score follow.
_POINTS: Final = 3 * len(PARTS)


def decode(raw: RawResult) -> Poses:
    """Return people, sorted by descending score."""
    rows = raw.first.astype(np.float64)
    scores = rows[:, _POINTS + 4]
    order = [
        k for k in np.argsort(-scores, kind="stable").tolist() if scores[k] >= raw.options["score"]
    ]
    found = [pose_of(rows[k, :_POINTS], float(scores[k]), raw.placement) for k in order]
    return Poses(found, raw.outputs)


MODEL = human_model(
    "movenet_multi",
    "movenet-multipose",
    "3c76e18669efc50148b28d0be97db491dc055cb2be292d248ec129031c5aa5de",
    "19828492d4a69c2e08915916c70f4d22c421c3b59152dfa5601834fc54f54118",
    task="poses",
    title="MoveNet MultiPose Lightning, up to six people of 17 points, 256 x 256",
    license="Apache-2.0 (Google; its package says MIT)",
    prepare={"normalize": "raw", "fit": "letterbox", "pad": 0.0},
    size=(256, 256),
    decode=decode,
    options={"score": 0.25},
    finds="up to six people",
    result='`Poses`: seventeen `.keypoints`, `.score`; `pose["nose"]`',
)
