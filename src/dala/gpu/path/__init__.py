"""Paths: lines and curves that surfaces and scenes fill and stroke.

The numbers of a path are float64 in a picture's coordinates: x to the right, y down. Arcs are
stored as cubic curves of at most 45 degrees, which differ from the circle by 5 millionths of its
radius.
"""

from __future__ import annotations

from dala.gpu.path.path import Path as Path

__all__ = ["Path"]
