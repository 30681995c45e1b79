"""``dala segment``: what each pixel of pictures and videos belongs to."""

from __future__ import annotations

import argparse
from typing import Any, Final

from dala.cli import _models_shared as seeing

EXAMPLES: Final = """\
examples:
  dala segment dog.jpg --out colours.png
  dala segment in.mp4 --out colours.mp4
  dala segment dog.jpg --model u2netp --out front.png
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    seeing.add_common(parser, "deeplab")
    seeing.add_out(parser)


def run(args: argparse.Namespace) -> int:
    """Prints what is found, and draws it where asked."""
    return seeing.run(args, _facts, ("segment", "matte"))


def _facts(found: Any) -> dict[str, float]:
    shares = getattr(found, "found", None)
    if shares is None:
        return {"foreground": round(float(found.alpha.mean()), 4)}
    return {label: round(share, 4) for label, share in shares.items()}
