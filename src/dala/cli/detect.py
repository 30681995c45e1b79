"""Detect objects in pictures and videos.

examples:
  dala detect street.jpg --out boxes.png
  dala detect in.mp4 --out boxes.mp4 --score 0.4
  dala detect in.mp4 --out tracks.mp4 --track
  dala detect photos/ --json
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dala.cli.common import inference

if TYPE_CHECKING:
    from dala.ml.results import TrackedObjects


def _tracked(options: dict[str, float]) -> inference.Follow[TrackedObjects]:
    from dala.ml.track import Tracker

    tracker = Tracker(high=max(options.get("score", 0.4), 0.1))
    # Unsure detections continue tracks, so the model reports them too.
    options["score"] = tracker.low
    return tracker.stream


COMMAND: Final = inference.ModelCommand(
    "nanodet",
    ("detect",),
    inference.box_facts,
    inference.score("0.4; 0.25 for models in the form of YOLO"),
    ("--track", "in a video, follow objects from frame to frame: each keeps its number"),
    _tracked,
)
ARGUMENTS, run = COMMAND.arguments, COMMAND.run
