"""The GPU room: ``dala.gpu.compute`` holds buffers, kernels and pipelines.

>>> import dala
>>> dala.gpu.compute.__name__
'dala.gpu.compute'
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.gpu import compute as compute

#: Modules that are imported when their name is first used.
_ROOMS = ("compute",)

if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _ROOMS:
            from importlib import import_module

            return import_module(f"dala.gpu.{name}")
        raise AttributeError(f"module 'dala.gpu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS})
