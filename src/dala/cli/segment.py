"""Segment pictures and videos: label every pixel."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from dala.cli.common import inference
from dala.cli.common.chain import Json

if TYPE_CHECKING:
    from dala.ml.results import Matte, Segmentation

EXAMPLES: Final = """\
examples:
  dala segment dog.jpg --out colors.png
  dala segment in.mp4 --out colors.mp4
  dala segment dog.jpg --model u2netp --out front.png
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    inference.add_common(parser, "deeplab")
    inference.add_out(parser)


def run(args: argparse.Namespace) -> int:
    """Print the results, and draw them with --out."""
    return inference.run(args, _facts, ("segment", "matte"))


def _facts(found: Segmentation | Matte) -> Json:
    if not hasattr(found, "found"):
        return {"foreground": round(float(found.alpha.mean()), 4)}
    return {label: round(share, 4) for label, share in found.found.items()}
