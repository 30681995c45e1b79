"""MediaPipe's hand landmarks: 21 points of each hand, and whether it is the left or the right."""

from __future__ import annotations

from itertools import repeat
from math import pi
from typing import Final

import numpy as np

from dala.ml.landmarks.steps import (
    Landmarks,
    LandmarkSteps,
    Region,
    around,
    around_detections,
    direction,
    unit,
)
from dala.ml.results import Hand, Hands, Outputs, Prediction
from dala.ml.results.names import HAND_POINTS
from dala.ml.results.people import keypoints
from dala.ml.spec import RawResult, human_model
from dala.typing import NDArray

#: The side of a hand's region, relative to the box of its palm or of its stable points, and its
#: shift toward the fingers, relative to that box.
_PALM_SCALE, _PALM_SHIFT = 2.6, -0.5
_HAND_SCALE, _HAND_SHIFT = 2.0, -0.1
#: Points that move little when the fingers do: all without the last two of each finger.
_STABLE: Final = (0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18)
_WRIST, _INDEX, _MIDDLE, _RING = 0, 5, 9, 13


def decode(raw: RawResult) -> Hands:
    """Return the hand from x, y and z of each point, in pixels of the input."""
    score = float(raw.outputs["Identity_1:0"].reshape(-1)[0])
    if score < raw.options["score"]:
        return Hands((), raw.outputs)
    rows = raw.outputs["Identity:0"].reshape(len(HAND_POINTS), 3).astype(np.float64)
    flat = raw.placement.back(rows[:, :2])
    depths = (rows[:, 2] * unit(raw.placement)).tolist()
    points = keypoints(HAND_POINTS, flat, repeat(score), depths)
    (x1, y1), (x2, y2) = flat.min(0).tolist(), flat.max(0).tolist()
    # The number is the probability of a left hand in a mirrored picture, so of a right one here.
    right = float(raw.outputs["Identity_2:0"].reshape(-1)[0])
    side, sure = ("right", right) if right >= 0.5 else ("left", 1 - right)
    hand = Hand((x1, y1, x2, y2), "hand", score, 0, points, 0, side, sure)
    return Hands([hand], raw.outputs)


def regions(found: Prediction, size: tuple[int, int]) -> list[Region]:
    """Return the regions of detected palms, with the fingers up."""
    assert isinstance(found, Hands)
    bone = ("wrist", "middle_mcp")
    return around_detections(found, bone, size, scale=_PALM_SCALE, turn=pi / 2, shift=_PALM_SHIFT)


def again(hand: Landmarks, outputs: Outputs, region: Region) -> Region:
    """Return the region of a hand in the next frame."""
    points: NDArray = np.array([(p.x, p.y) for p in hand.keypoints])
    knuckles = ((points[_INDEX] + points[_RING]) / 2 + points[_MIDDLE]) / 2
    angle = direction(points[_WRIST], knuckles) + pi / 2
    return around(points[list(_STABLE)], angle, region.size, scale=_HAND_SCALE, shift=_HAND_SHIFT)


MODEL = human_model(
    "hands",
    "handlandmark-lite",
    "8478ec3224129957f1436194738ad26ac78bbac8ea3be1730399ccad6964a27f",
    "3dbf92db39720eac7f88aff322a24d3f4ed3ba1f54aa7a8a37b704f14cb76c0e",
    task="hands",
    title="MediaPipe hand landmarks (lite), 21 points of each hand, 224 x 224",
    size=(224, 224),
    decode=decode,
    options={"score": 0.5, "detector_score": 0.5, "most": 4},
    outputs=("Identity:0", "Identity_1:0", "Identity_2:0", "Identity_3:0"),
    finds="hands, their points and side",
    result="`Hands`: 21 `.keypoints`, `.side`, `.score`",
    steps=LandmarkSteps("palms", regions, again, Hands),
)
