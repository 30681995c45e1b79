"""Detect objects in pictures and videos."""

from __future__ import annotations

import argparse
from typing import Final

from dala.cli.common import arguments, inference

EXAMPLES: Final = """\
examples:
  dala detect street.jpg --out boxes.png
  dala detect in.mp4 --out boxes.mp4 --score 0.4
  dala detect in.mp4 --out tracks.mp4 --track
  dala detect photos/ --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    inference.add_common(parser, "nanodet")
    inference.add_out(parser)
    parser.add_argument(
        "--score",
        type=arguments.number(0, 1),
        metavar="S",
        help="the lowest score to report (0.4; 0.25 for models in the form of YOLO)",
    )

    parser.add_argument(
        "--track",
        action="store_true",
        help="in a video, follow objects from frame to frame: each keeps its number",
    )


def run(args: argparse.Namespace) -> int:
    """Print the results, and draw them with --out."""
    options = {} if args.score is None else {"score": args.score}
    if not args.track:
        return inference.run(args, inference.box_facts, ("detect",), **options)
    from dala.ml.track import Tracker

    inference.refuse_pictures(args.paths, "--track")
    tracker = Tracker(high=max(options.get("score", 0.4), 0.1))
    # Unsure detections continue tracks, so the model reports them too.
    options["score"] = tracker.low
    return inference.run(args, inference.box_facts, ("detect",), follow=tracker.stream, **options)
