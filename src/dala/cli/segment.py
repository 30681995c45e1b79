"""Segment pictures and videos: label every pixel.

examples:
  dala segment dog.jpg --out colors.png
  dala segment in.mp4 --out colors.mp4
  dala segment dog.jpg --model u2netp --out front.png
"""

from __future__ import annotations

from typing import Final

from dala.cli.common import inference

COMMAND: Final = inference.ModelCommand(
    "deeplab", ("segment", "matte"), inference.label_facts, options={}
)
ARGUMENTS, run = COMMAND.arguments, COMMAND.run
