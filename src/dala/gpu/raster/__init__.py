"""The rasterizer: a canvas, and the native code that executes command bytes on it."""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.gpu.raster.canvas import Canvas as Canvas
    from dala.gpu.raster.canvas import Fault as Fault
    from dala.gpu.raster.canvas import Stop as Stop

__all__ = ["Canvas", "Fault", "Stop"]

# The canvas imports ``dala.gpu.vector``, which stands on other modules of this package.
if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, "dala.gpu.raster.canvas"))
