"""Detect hands in pictures and videos, with 21 points each, left or right."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from dala.cli.common import arguments, inference

if TYPE_CHECKING:
    from dala.ml.results import Hands

EXAMPLES: Final = """\
examples:
  dala hands wave.jpg --out hands.png
  dala hands in.mp4 --out hands.mp4 --smooth
  dala hands in.mp4 --most 2 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    inference.add_common(parser, "hands")
    inference.add_out(parser)
    parser.add_argument(
        "--score",
        type=arguments.number(0, 1),
        metavar="S",
        default=0.5,
        help="the lowest score to report (0.5)",
    )
    parser.add_argument(
        "--most", type=arguments.integer(1, 100), metavar="N", default=4, help="at most N hands (4)"
    )
    inference.add_smooth(parser)


def run(args: argparse.Namespace) -> int:
    """Print the results, and draw them with --out."""
    options = {"score": args.score, "most": args.most}
    if not args.smooth:
        return inference.run(args, inference.box_facts, ("hands",), **options)
    from dala.ml.smooth import Smoother

    inference.refuse_pictures(args.paths, "--smooth")
    smoother: Smoother[Hands] = Smoother()
    return inference.run(args, inference.box_facts, ("hands",), follow=smoother.stream, **options)
