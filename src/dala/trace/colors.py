"""Colors of the stages of a frame."""

from __future__ import annotations

from typing import Final

#: Colors of stages, as different as they can be; other stages have one color.
COLORS: Final = {
    "demux": "#393b79", "decode": "#1f77b4", "deinterlace": "#17becf", "convert": "#aec7e8",
    "upload": "#98df8a", "download": "#2ca02c", "compile": "#d62728", "pass": "#9467bd",
    "model": "#e377c2", "compose": "#bcbd22", "encode": "#ff7f0e", "mux": "#ffbb78",
    "network": "#8c564b", "draw": "#637939", "present": "#c49c94", "user": "#dbdb8d",
    "gil": "#e7298a", "processor": "#666666", "python": "#c7c7c7", "gc": "#f7b6d2",
    "idle": "#f4f4f4",
}  # fmt: skip
OTHER: Final = "#9edae5"


def color(stage: str) -> str:
    """Return the color of a stage.

    >>> color("encode"), color("wait:lock") == OTHER
    ('#ff7f0e', True)
    """
    return COLORS.get(stage, OTHER)
