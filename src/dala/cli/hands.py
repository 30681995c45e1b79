"""Detect hands in pictures and videos, with 21 points each, left or right.

examples:
  dala hands wave.jpg --out hands.png
  dala hands in.mp4 --out hands.mp4 --smooth
  dala hands in.mp4 --most 2 --json
"""

from __future__ import annotations

from typing import Final

from dala.arguments import Integer
from dala.cli.common import inference
from dala.cli.common.arguments import Options, argument

#: Options of ``predict``.
_OPTIONS: Final[Options] = {
    **inference.score("0.5", 0.5),
    "--most": argument("at most N hands (4)", type=Integer(1, 100).parse, metavar="N", default=4),
}
COMMAND: Final = inference.ModelCommand(
    "hands", ("hands",), inference.box_facts, _OPTIONS, inference.SMOOTH, inference.smoothed
)
ARGUMENTS, run = COMMAND.arguments, COMMAND.run
