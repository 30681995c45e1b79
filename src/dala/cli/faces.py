"""Detect faces in pictures and videos, with eyes, nose, mouth and ears."""

from __future__ import annotations

import argparse
from typing import Final

from dala.cli import _arguments as arguments
from dala.cli import _inference as inference

EXAMPLES: Final = """\
examples:
  dala faces group.jpg --out faces.png
  dala faces in.mp4 --model blazeface_back --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    inference.add_common(parser, "blazeface")
    inference.add_out(parser)
    parser.add_argument(
        "--score",
        type=arguments.number(0, 1),
        metavar="S",
        default=0.5,
        help="the lowest score to report (0.5)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the results, and draw them with --out."""
    return inference.run(args, inference.box_facts, ("faces",), score=args.score)
