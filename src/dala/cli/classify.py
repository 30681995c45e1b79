"""``dala classify``: what a picture shows."""

from __future__ import annotations

import argparse
from typing import Any, Final

from dala.cli import _models_shared as seeing
from dala.errors import ParameterError

EXAMPLES: Final = """\
examples:
  dala classify cat.jpg
  dala classify photos/ --top 3 --json
  dala classify cat.jpg --model my.onnx
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    seeing.add_common(parser, "mobilenet_v2")
    seeing.add_out(parser)
    parser.add_argument("--top", type=int, default=5, metavar="N", help="how many classes (5)")


def run(args: argparse.Namespace) -> int:
    """Prints the likeliest classes."""
    if args.top < 1:
        raise ParameterError(f"--top is 1 or more, {args.top} came.")

    def facts(scores: Any) -> list[dict[str, Any]]:
        return [
            {"label": c.label, "index": c.index, "probability": round(c.probability, 4)}
            for c in scores.top(args.top)
        ]

    def text(scores: Any) -> str:
        return "\n".join(map(str, scores.top(args.top)))

    return seeing.run(args, facts, ("classify",), text)
