"""Dala: a portable GPU stack for realtime media.

``import dala`` takes a few milliseconds; everything below is loaded on first use.

- ``dala.gpu``: surfaces; ``dala.gpu.compute``: buffers, kernels, pipelines
- ``dala.media``: images, video, scenes; ``dala.ml``: models; ``dala.samples``: photographs and
  videos for examples
- ``dala.batch``: the same work over many files, processes and machines
- ``dala.studio``: a studio in the browser, as an application or in a notebook
- ``dala.web``: chains of filters as web pages that run on the visitor's GPU
- ``dala.use("cpu")``, ``with dala.device("webgpu"):``, ``dala.devices()``: the device to run on
- ``with dala.limits(time=, iterations=, memory=):``: limits on what work may spend
- ``dala.doctor()``: a report on the machine; ``dala.selftest()``: compares its devices' bytes with
  stored answers; ``dala.diagnostics()``: live resources
- ``dala.DalaError``: the base class of all errors

>>> import dala
>>> with dala.device("reference") as chosen:
...     print(chosen)
reference
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False  # importing typing for it would take 5 ms
if TYPE_CHECKING:
    from dala import batch as batch
    from dala import errors as errors
    from dala import gpu as gpu
    from dala import media as media
    from dala import ml as ml
    from dala import samples as samples
    from dala import studio as studio
    from dala import web as web
    from dala.answers.report import selftest as selftest
    from dala.budget import Limits as Limits
    from dala.budget import limits as limits
    from dala.errors import *  # noqa: F403
    from dala.gpu.compute.engines.auto import Device as Device
    from dala.gpu.compute.engines.auto import device as device
    from dala.gpu.compute.engines.auto import devices as devices
    from dala.gpu.compute.engines.auto import use as use
    from dala.machine.report import doctor as doctor
    from dala.memory import set_memory_limit as set_memory_limit
    from dala.resources import diagnostics as diagnostics

__version__ = "0.1.0"

#: Subpackages and modules, imported on first use.
_ROOMS = ("batch", "errors", "gpu", "media", "ml", "samples", "studio", "web")

#: The module of each function and class; the errors are those of ``dala.errors``.
_HOMES = {
    "Device": "dala.gpu.compute.engines.auto",
    "Limits": "dala.budget",
    "device": "dala.gpu.compute.engines.auto",
    "devices": "dala.gpu.compute.engines.auto",
    "diagnostics": "dala.resources",
    "doctor": "dala.machine.report",
    "limits": "dala.budget",
    "selftest": "dala.answers.report",
    "set_memory_limit": "dala.memory",
    "use": "dala.gpu.compute.engines.auto",
}

#: Old public names and their new ones; each is kept for one version.
_RENAMED: dict[str, str] = {}

if not TYPE_CHECKING:  # so that type checkers reject a misspelled name, as Python does
    __getattr__, __dir__ = attach(
        __name__, _HOMES, _ROOMS, stars=("dala.errors",), renamed=_RENAMED
    )
