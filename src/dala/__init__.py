"""Dala: a portable GPU stack for realtime media.

``import dala`` takes a few milliseconds: everything below is loaded when it is first used.

- ``dala.gpu`` (``dala.gpu.compute``: buffers, kernels, pipelines), ``dala.media``, ``dala.ml``
- ``dala.use("cpu")``, ``with dala.device("webgpu"):`` and ``dala.devices()`` say where work runs
- ``dala.doctor()`` explains the machine, ``dala.diagnostics()`` what is alive now
- ``dala.DalaError`` is the root of every error

>>> import dala
>>> with dala.device("reference") as chosen:
...     print(chosen)
reference
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers know the name; importing typing for it would cost 5 ms
if TYPE_CHECKING:
    from dala import errors as errors
    from dala import gpu as gpu
    from dala import media as media
    from dala import ml as ml
    from dala.errors import *  # noqa: F403
    from dala.gpu.compute.engines.auto import Device as Device
    from dala.gpu.compute.engines.auto import device as device
    from dala.gpu.compute.engines.auto import devices as devices
    from dala.gpu.compute.engines.auto import use as use
    from dala.machine.report import doctor as doctor
    from dala.resources import diagnostics as diagnostics

__version__ = "0.1.0"

#: Modules that are imported when their name is first used.
_ROOMS = ("errors", "gpu", "media", "ml")

#: The module that holds each function; everything else that is public is in ``dala.errors``.
_HOMES = {
    "Device": "dala.gpu.compute.engines.auto",
    "device": "dala.gpu.compute.engines.auto",
    "devices": "dala.gpu.compute.engines.auto",
    "diagnostics": "dala.resources",
    "doctor": "dala.machine.report",
    "use": "dala.gpu.compute.engines.auto",
}

if not TYPE_CHECKING:  # so that type checkers refuse a misspelt name, as Python does

    def __getattr__(name):
        from importlib import import_module

        if name in _ROOMS:
            try:
                return import_module(f"dala.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"dala.{name}":
                    raise  # the room is there; what it imports is not
                raise AttributeError(f"dala {__version__} has no dala.{name}") from None
        if name not in _HOMES and (name.startswith("_") or name not in _errors()):
            raise AttributeError(  # with name and obj, Python adds its "Did you mean ...?"
                f"module 'dala' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
            )
        value = getattr(import_module(_HOMES.get(name, "dala.errors")), name)
        globals()[name] = value  # the next look-up is a plain one
        return value


def _errors() -> list[str]:
    from importlib import import_module

    names: list[str] = import_module("dala.errors").__all__
    return names


def __dir__() -> list[str]:
    dunders = {name for name in globals() if name.startswith("__")}
    return sorted({*dunders, *_HOMES, *_errors(), "errors", "gpu", "media", "ml"})
