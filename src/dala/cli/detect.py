"""``dala detect``: things in pictures and videos."""

from __future__ import annotations

import argparse
from typing import Final

from dala.cli import _models_shared as seeing

EXAMPLES: Final = """\
examples:
  dala detect street.jpg --out boxes.png
  dala detect in.mp4 --out boxes.mp4 --score 0.4
  dala detect photos/ --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    seeing.add_common(parser, "yolo_v5")
    seeing.add_out(parser)
    parser.add_argument("--score", type=float, default=0.25, help="the least score (0.25)")


def run(args: argparse.Namespace) -> int:
    """Prints what is found, and draws it where asked."""
    return seeing.run(args, seeing.box_facts, ("detect",), score=args.score)
