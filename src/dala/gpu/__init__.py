"""The GPU room: surfaces to draw on, and ``dala.gpu.compute`` with buffers, kernels and pipelines.

>>> import dala
>>> with dala.gpu.create_surface(64, 48) as s:
...     dala.gpu.clear(s, "black")
...     dala.gpu.fill_rect(s, 8, 8, 20, 20, "red")
...     dala.gpu.read_pixels(s, 8, 8, 1, 1)
b'\\xff\\x00\\x00\\xff'
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.gpu import command as command
    from dala.gpu import compute as compute
    from dala.gpu.draw import *  # noqa: F403

#: Modules that are imported when their name is first used.
_ROOMS = ("command", "compute")

#: The drawing calls, in ``draw.py``, which is imported when one of them is first used.
_CALLS = (
    "Surface",
    "batch",
    "blit",
    "clear",
    "create_surface",
    "destroy_surface",
    "dispatch_compute",
    "draw_circle",
    "draw_image",
    "draw_line",
    "draw_round_rect",
    "draw_triangle",
    "fill_circle",
    "fill_rect",
    "fill_round_rect",
    "fill_triangle",
    "get_pixels",
    "load_image",
    "load_shader",
    "load_sprite",
    "present",
    "read_pixels",
    "remove_image",
    "remove_sprite",
    "reset_clip",
    "resize",
    "set_clip",
    "set_pixels",
    "set_uniform",
    "supports_compute",
    "wait_closed",
    "with_pixels",
)

__all__ = [*_ROOMS, *_CALLS]

if not TYPE_CHECKING:  # so that type checkers refuse a misspelt name, as Python does
    __getattr__, __dir__ = attach(__name__, dict.fromkeys(_CALLS, "dala.gpu.draw"), _ROOMS)
