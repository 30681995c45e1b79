"""BlazePose's detector: where people are and how they stand, the first step of "blazepose"."""

from __future__ import annotations

from typing import Final

from dala.ml.landmarks.anchors import detected
from dala.ml.results import Pose, Poses
from dala.ml.spec import RawResult, human_model

#: The middle of the hips, a point on the circle around the whole body; the middle of the
#: shoulders, a point on the circle around the upper body. Both circles are above the middle.
POINTS: Final = ("hips", "above_body", "shoulders", "above_upper_body")
_GRIDS: Final = ((28, 2), (14, 2), (7, 6))


def decode(raw: RawResult) -> Poses:
    """Return people with four points each, with overlapping ones averaged."""
    (rows,) = raw.outputs.values()
    found = detected(raw, rows[:, 1:], rows[:, 0], _GRIDS, POINTS)
    return Poses([Pose(points, score) for _, points, score in found], raw.outputs)


MODEL = human_model(
    "blazepose_detector",
    "blazepose-detector",
    "f74537713344b8062087945585f1a6e9b2a3827b3c6f49c14e661c007b2c1dfa",
    "8c637d3a05ef6ffd9d70cda55081ad9103bf87b73b6c65d7e8faa54e2cfe327e",
    task="poses",
    title="BlazePose detector, 224 x 224; the first step of blazepose",
    prepare={"normalize": "signed", "fit": "letterbox", "pad": 0.0},
    size=(224, 224),
    decode=decode,
    options={"score": 0.5, "overlap": 0.3, "most": 100},
    finds="where people are; the first step of `blazepose`",
    result="`Poses`: `.score`, four `.keypoints`",
)
