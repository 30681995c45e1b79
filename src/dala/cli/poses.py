"""``dala poses``: people in pictures and videos, as seventeen points each."""

from __future__ import annotations

import argparse
from typing import Any, Final

from dala.cli import _models_shared as seeing

EXAMPLES: Final = """\
examples:
  dala poses dancer.jpg --out pose.png
  dala poses in.mp4 --out poses.mp4
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    seeing.add_common(parser, "posenet")
    seeing.add_out(parser)
    parser.add_argument("--score", type=float, default=0.15, help="the least score (0.15)")


def run(args: argparse.Namespace) -> int:
    """Prints what is found, and draws it where asked."""
    return seeing.run(args, _facts, ("poses",), score=args.score)


def _facts(poses: Any) -> list[dict[str, Any]]:
    return [
        {"score": round(p.score, 4), "keypoints": seeing.point_facts(p.keypoints)} for p in poses
    ]
