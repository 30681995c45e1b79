"""Surfaces to draw on, and ``dala.gpu.compute`` with buffers, kernels and pipelines.

>>> import dala
>>> with dala.gpu.create_surface(64, 48) as s:
...     dala.gpu.clear(s, "black")
...     dala.gpu.fill_rect(s, 8, 8, 20, 20, "red")
...     dala.gpu.read_pixels(s, 8, 8, 1, 1)
b'\\xff\\x00\\x00\\xff'
"""

from __future__ import annotations

from dala.gpu import command as command
from dala.gpu.protocol import COMMANDS
from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.gpu import compute as compute
    from dala.gpu.draw import *  # noqa: F403
    from dala.gpu.paint import ConicGradient as ConicGradient
    from dala.gpu.paint import LinearGradient as LinearGradient
    from dala.gpu.paint import Pattern as Pattern
    from dala.gpu.paint import RadialGradient as RadialGradient
    from dala.gpu.path import Path as Path
    from dala.gpu.surface import Surface as Surface
    from dala.gpu.surface import create_surface as create_surface

#: Modules that are imported when their name is first used.
_ROOMS = ("command", "compute")

_SHAPES = "arc circle ellipse image line measure_text polygon polyline rect svg text transformed"

_PAINTS = "ConicGradient LinearGradient Pattern RadialGradient"

#: The module of each public name, which is imported when the name is first used.
_HOMES = {
    "Path": "dala.gpu.path",
    **dict.fromkeys(_PAINTS.split(), "dala.gpu.paint"),
    "Surface": "dala.gpu.surface",
    "create_surface": "dala.gpu.surface",
    **dict.fromkeys((row.function for row in COMMANDS), "dala.gpu.draw"),
    # the calls that are not commands
    "destroy_surface": "dala.gpu.draw",
    "supports_compute": "dala.gpu.draw",
    "wait_closed": "dala.gpu.draw",
    "get_pixels": "dala.gpu.draw",
    "set_pixels": "dala.gpu.draw",
    "with_pixels": "dala.gpu.draw",
    **dict.fromkeys(_SHAPES.split(), "dala.gpu.draw"),
}

__all__ = [*_ROOMS, *_HOMES]

if not TYPE_CHECKING:  # so that type checkers refuse a misspelled name, as Python does
    __getattr__, __dir__ = attach(__name__, _HOMES, _ROOMS)
