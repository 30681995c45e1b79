"""MediaPipe's palm detector: palms with seven points each, the first step of "hands"."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Final

from dala.ml.boxes import sigmoid
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.landmarks.anchors import anchor_centers, merged
from dala.ml.prepare import Placement
from dala.ml.results import Hand, Hands, Keypoint, Outputs
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import human_models
from dala.typing import NDArray

_POINTS: Final = (
    "wrist", "index_mcp", "middle_mcp", "ring_mcp", "pinky_mcp", "thumb_cmc", "thumb_mcp"
)  # fmt: skip


@cache
def _anchors() -> NDArray:
    return anchor_centers(((32, 2), (16, 2), (8, 6)))


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Hands:
    """Return palms: score, box and points relative to anchors, with overlapping ones averaged."""
    (rows,) = outputs.values()
    scores = sigmoid(rows[:, 0])
    found = [
        _palm(row, score, placement)
        for row, score in merged(rows[:, 1:], scores, _anchors(), placement.size, options)
    ]
    return Hands(found, outputs)


def _palm(row: NDArray, score: float, placement: Placement) -> Hand:
    x1, y1, x2, y2 = placement.boxes(row[None, :4])[0].tolist()
    points = placement.back(row[4:].reshape(-1, 2)).tolist()
    keypoints = tuple(
        Keypoint(name, x, y, score) for name, (x, y) in zip(_POINTS, points, strict=True)
    )
    return Hand((x1, y1, x2, y2), "palm", score, 0, keypoints)


MODEL = ModelSpec(
    name="palms",
    task="hands",
    title="MediaPipe palm detector, 256 x 256; the first step of hands",
    license="Apache-2.0 (MediaPipe; its package says MIT)",
    prepare={"normalize": "signed", "fit": "letterbox", "pad": 0.0},
    size=(256, 256),
    layout="nhwc",
    decode=decode,
    options={"score": 0.5, "overlap": 0.3, "most": 100},
    origin=human_models(
        {
            "handdetect.json": "1d57c77a8695a0748883aea76f49620ab68cb8a79d7b93700108b09b3c53e2dd",
            "handdetect.bin": "e513404cfc52fcc2bb8e8c1a17d88b7bc1e7d531125a14f126b60500e8352438",
        },
        partial(convert_tfjs, name="palms"),
    ),
    finds="palms; the first step of `hands`",
    result="`Hands`: `.box`, `.score`, seven `.keypoints`",
)
