"""NanoDet-g: object detection with the 80 classes of COCO, permissively licensed.

The model has three grids of cells, 8, 16 and 32 pixels apart. Each cell gives a score per class and
the distance from its center to each side of the box as probabilities of 0 to 10 cells.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dala.ml.boxes import softmax
from dala.ml.models.yolo_v5 import detections
from dala.ml.prepare import Placement
from dala.ml.results import Detections
from dala.ml.spec import RawResult, human_model
from dala.typing import NDArray

#: Distances of a side that have a probability: 0 to 10 cells.
_BINS: Final = 11


def decode(raw: RawResult) -> Detections:
    """Return detections from the class scores and the distances of each grid's cells."""
    sides = 4 * _BINS
    distances = {len(a): a for a in raw.outputs.values() if a.shape[-1] == sides}
    scores = {len(a): a for a in raw.outputs.values() if a.shape[-1] != sides}
    found = [
        _grid(scores[cells], distances[cells], raw.placement, raw.options["score"])
        for cells in sorted(scores, reverse=True)
    ]
    boxes, best, classes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return detections(boxes, best, classes, raw)


def _grid(
    scores: NDArray, distances: NDArray, placement: Placement, least: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Return the boxes, scores and classes of a grid's cells of at least a score."""
    columns = math.isqrt(len(scores))
    stride = placement.size[0] / columns
    classes = scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), classes]
    sure = np.flatnonzero(best >= least)
    centers = (np.stack([sure % columns, sure // columns], axis=1) + 0.5) * stride
    bins = softmax(distances[sure].reshape(-1, 4, _BINS).astype(np.float64))
    far = bins @ np.arange(_BINS) * stride  # left, top, right, bottom
    boxes = np.concatenate([centers - far[:, :2], centers + far[:, 2:]], axis=1)
    return boxes, best[sure], classes[sure]


MODEL = human_model(
    "nanodet",
    "nanodet",
    "4495eb0ec74bd33ee40a79aa06ebc1ccd7e28be1bf7355d93ffb570b8d77f45d",
    "5d0e4f8c4eded666287330be03017d494787d35f523fd77ca23f59db984a4ad9",
    task="detect",
    title="NanoDet-g, 80 classes of COCO, 416 x 416",
    license="Apache-2.0 (RangiLyu; its package says MIT)",
    # ImageNet's mean and standard deviation, in the order blue, green, red.
    prepare={
        "mean": (103.53 / 255, 116.28 / 255, 123.675 / 255),
        "std": (57.375 / 255, 57.12 / 255, 58.395 / 255),
        "order": "bgr",
        "fit": "letterbox",
        "pad": 0.0,
    },
    size=(416, 416),
    layout="nchw",
    decode=decode,
    options={"score": 0.4, "overlap": 0.6, "most": 100},
    labels="coco",
    # The kernel's parameter `output`: class scores, then distances, of the grids from 52 x 52 down.
    outputs=("Identity:0", "Identity_1", "Identity_2", "Identity_3", "Identity_4", "Identity_5"),
    finds="objects of 80 kinds",
    result="`Detections`: `.box`, `.label`, `.score`",
)
