"""The rasterizer: a canvas, and the native code that executes command bytes on it."""

from __future__ import annotations

from dala.gpu.raster.canvas import Canvas, Fault, Stop

__all__ = ["Canvas", "Fault", "Stop"]
