"""BlazeFace, the model for rear cameras: smaller faces too."""

from __future__ import annotations

from dala.ml.models.blazeface import face_model

MODEL = face_model(
    "blazeface_back",
    "BlazeFace, smaller faces too",
    256,
    "faces near and farther away",
    "face_detection_back.tflite",
    "e376cf6b168d5ece8a3cedb94acc4eb168a136aede125ccc3d903ef38f5beda8",
)
