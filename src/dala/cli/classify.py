"""Classify pictures.

examples:
  dala classify cat.jpg
  dala classify photos/ --top 3 --json
  dala classify cat.jpg --model my.onnx
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from dala.arguments import Integer
from dala.cli.common import inference
from dala.cli.common.arguments import Options, argument
from dala.cli.common.chain import Json

if TYPE_CHECKING:
    from dala.ml.results import Scores

ARGUMENTS: Final[Options] = {
    **inference.common("mobilenet_v2"),
    "--top": argument(
        "number of classes (5)", type=Integer(1, 100000).parse, default=5, metavar="N"
    ),
}


def run(args: argparse.Namespace) -> int:
    """Print the most likely classes."""

    def facts(scores: Scores) -> Json:
        return [
            {"label": c.label, "index": c.index, "probability": round(c.probability, 4)}
            for c in scores.top(args.top)
        ]

    def text(scores: Scores) -> str:
        return "\n".join(map(str, scores.top(args.top)))

    return inference.run(args, facts, ("classify",), text)
