"""Detect people and their poses in pictures and videos."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from dala.cli.common import arguments, inference
from dala.cli.common.chain import Json

if TYPE_CHECKING:
    from dala.ml.results import Poses

EXAMPLES: Final = """\
examples:
  dala poses dancer.jpg --out pose.png
  dala poses in.mp4 --out poses.mp4 --smooth
  dala poses in.mp4 --out poses.mp4 --model movenet
  dala poses in.mp4 --model blazepose --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    inference.add_common(parser, "posenet")
    inference.add_out(parser)
    parser.add_argument(
        "--score",
        type=arguments.number(0, 1),
        metavar="S",
        default=0.15,
        help="the lowest score to report (0.15)",
    )
    inference.add_smooth(parser)


def run(args: argparse.Namespace) -> int:
    """Print the results, and draw them with --out."""
    if not args.smooth:
        return inference.run(args, _facts, ("poses",), score=args.score)
    from dala.ml.smooth import Smoother

    inference.refuse_pictures(args.paths, "--smooth")
    smoother: Smoother[Poses] = Smoother()
    return inference.run(args, _facts, ("poses",), follow=smoother.stream, score=args.score)


def _facts(poses: Poses) -> Json:
    return [
        {
            **({"id": p.id} if p.id else {}),
            "score": round(p.score, 4),
            "keypoints": inference.point_facts(p.keypoints),
        }
        for p in poses
    ]
