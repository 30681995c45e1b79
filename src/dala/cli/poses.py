"""Detect people and their poses in pictures and videos.

examples:
  dala poses dancer.jpg --out pose.png
  dala poses in.mp4 --out poses.mp4 --smooth
  dala poses in.mp4 --out poses.mp4 --model movenet
  dala poses in.mp4 --model blazepose --json
"""

from __future__ import annotations

from typing import Final

from dala.cli.common import inference

COMMAND: Final = inference.ModelCommand(
    "posenet",
    ("poses",),
    inference.pose_facts,
    inference.score("0.15", 0.15),
    inference.SMOOTH,
    inference.smoothed,
)
ARGUMENTS, run = COMMAND.arguments, COMMAND.run
