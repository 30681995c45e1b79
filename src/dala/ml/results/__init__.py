"""Results of models, with coordinates in pixels of the input picture.

Every result has ``raw``, the model's outputs by name, a readable ``str``, and ``draw``:
``result.draw(frame)`` returns the picture with the result drawn on it, as the same type.

Faces, hands and people have named points: ``face.point("nose")`` is a ``Keypoint``, and
``pose.bone("left_wrist", "left_elbow")`` a ``Bone`` with a center, a length and an angle.
``dala.ml.face``, ``dala.ml.hand`` and ``dala.ml.pose`` describe them before there is a result.
"""

from __future__ import annotations

from typing import TypeAlias

from dala.ml.results.base import Box, Outputs
from dala.ml.results.masks import Enhanced, Matte, Segmentation
from dala.ml.results.people import (
    Bone,
    Detection,
    Detections,
    Face,
    FaceMesh,
    Faces,
    Hand,
    Hands,
    Keypoint,
    Pose,
    Poses,
    TrackedObject,
    TrackedObjects,
)
from dala.ml.results.scores import Classification, Scores, Tensors

__all__ = [
    "Bone", "Box", "Classification", "Detection", "Detections", "Enhanced", "Face", "FaceMesh",
    "Faces", "Hand", "Hands", "Keypoint", "Matte", "Outputs", "Pose", "Poses", "Prediction",
    "Scores", "Segmentation", "Tensors", "TrackedObject", "TrackedObjects",
]  # fmt: skip

#: What ``predict`` returns for one picture.
Prediction: TypeAlias = (
    "Scores | Detections | Faces | Hands | Poses | Segmentation | Matte | Enhanced | Tensors"
)
