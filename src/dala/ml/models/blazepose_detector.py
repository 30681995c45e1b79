"""BlazePose's detector: where people are and how they stand, the first step of "blazepose"."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Final

from dala.ml.boxes import sigmoid
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.landmarks.anchors import anchor_centers, merged
from dala.ml.prepare import Placement
from dala.ml.results import Keypoint, Outputs, Pose, Poses
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import human_models
from dala.typing import NDArray

#: The middle of the hips, a point on the circle around the whole body; the middle of the
#: shoulders, a point on the circle around the upper body. Both circles are above the middle.
POINTS: Final = ("hips", "above_body", "shoulders", "above_upper_body")


@cache
def _anchors() -> NDArray:
    return anchor_centers(((28, 2), (14, 2), (7, 6)))


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Poses:
    """Return people with four points each, with overlapping ones averaged."""
    (rows,) = outputs.values()
    scores = sigmoid(rows[:, 0])
    found = [
        _person(row, score, placement)
        for row, score in merged(rows[:, 1:], scores, _anchors(), placement.size, options)
    ]
    return Poses(found, outputs)


def _person(row: NDArray, score: float, placement: Placement) -> Pose:
    points = placement.back(row[4:].reshape(-1, 2)).tolist()
    keypoints = tuple(
        Keypoint(name, x, y, score) for name, (x, y) in zip(POINTS, points, strict=True)
    )
    return Pose(keypoints, score)


MODEL = ModelSpec(
    name="blazepose_detector",
    task="poses",
    title="BlazePose detector, 224 x 224; the first step of blazepose",
    license="Apache-2.0 (MediaPipe; its package says MIT)",
    prepare={"normalize": "signed", "fit": "letterbox", "pad": 0.0},
    size=(224, 224),
    layout="nhwc",
    decode=decode,
    options={"score": 0.5, "overlap": 0.3, "most": 100},
    origin=human_models(
        {
            "blazepose-detector.json": (
                "f74537713344b8062087945585f1a6e9b2a3827b3c6f49c14e661c007b2c1dfa"
            ),
            "blazepose-detector.bin": (
                "8c637d3a05ef6ffd9d70cda55081ad9103bf87b73b6c65d7e8faa54e2cfe327e"
            ),
        },
        partial(convert_tfjs, name="blazepose_detector"),
    ),
    finds="where people are; the first step of `blazepose`",
    result="`Poses`: `.score`, four `.keypoints`",
)
