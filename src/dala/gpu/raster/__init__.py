"""Drawing by command bytes, on the CPU: the canvas, and its executor in native code."""

from __future__ import annotations

from dala.gpu.raster.canvas import Canvas, Fault, Stop

__all__ = ["Canvas", "Fault", "Stop"]
