"""MediaPipe's palm detector: palms with seven points each, the first step of "hands"."""

from __future__ import annotations

from typing import Final

from dala.ml.landmarks.anchors import detected
from dala.ml.results import Hand, Hands
from dala.ml.spec import RawResult, human_model

_POINTS: Final = (
    "wrist", "index_mcp", "middle_mcp", "ring_mcp", "pinky_mcp", "thumb_cmc", "thumb_mcp"
)  # fmt: skip
_GRIDS: Final = ((32, 2), (16, 2), (8, 6))


def decode(raw: RawResult) -> Hands:
    """Return palms: score, box and points relative to anchors, with overlapping ones averaged."""
    (rows,) = raw.outputs.values()
    found = detected(raw, rows[:, 1:], rows[:, 0], _GRIDS, _POINTS)
    hands = [Hand(box, "palm", score, 0, points) for box, points, score in found]
    return Hands(hands, raw.outputs)


MODEL = human_model(
    "palms",
    "handdetect",
    "1d57c77a8695a0748883aea76f49620ab68cb8a79d7b93700108b09b3c53e2dd",
    "e513404cfc52fcc2bb8e8c1a17d88b7bc1e7d531125a14f126b60500e8352438",
    task="hands",
    title="MediaPipe palm detector, 256 x 256; the first step of hands",
    prepare={"normalize": "signed", "fit": "letterbox", "pad": 0.0},
    size=(256, 256),
    decode=decode,
    options={"score": 0.5, "overlap": 0.3, "most": 100},
    finds="palms; the first step of `hands`",
    result="`Hands`: `.box`, `.score`, seven `.keypoints`",
)
