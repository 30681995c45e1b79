"""``dala faces``: faces in pictures and videos, with eyes, nose, mouth and ears."""

from __future__ import annotations

import argparse
from typing import Final

from dala.cli import _models_shared as seeing

EXAMPLES: Final = """\
examples:
  dala faces group.jpg --out faces.png
  dala faces in.mp4 --model blazeface_back --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    seeing.add_common(parser, "blazeface")
    seeing.add_out(parser)
    parser.add_argument("--score", type=float, default=0.5, help="the least score (0.5)")


def run(args: argparse.Namespace) -> int:
    """Prints what is found, and draws it where asked."""
    return seeing.run(args, seeing.box_facts, ("faces",), score=args.score)
