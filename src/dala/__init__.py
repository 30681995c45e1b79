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

from dala.lazy import attach_stub

__version__ = "0.1.0"

#: Old public names and their new ones; each is kept for one version.
_RENAMED: dict[str, str] = {}

__getattr__, __dir__, _ = attach_stub(__name__, _RENAMED)
