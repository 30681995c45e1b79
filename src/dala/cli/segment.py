"""Segment pictures and videos: label every pixel."""

from __future__ import annotations

from typing import Final

from dala.cli.common import inference

EXAMPLES: Final = """\
examples:
  dala segment dog.jpg --out colors.png
  dala segment in.mp4 --out colors.mp4
  dala segment dog.jpg --model u2netp --out front.png
"""

COMMAND: Final = inference.ModelCommand(
    "deeplab", ("segment", "matte"), inference.label_facts, options={}
)
ARGUMENTS, run = COMMAND.arguments, COMMAND.run
