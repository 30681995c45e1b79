"""Buffers and kernels for any device.

>>> from dala.gpu.compute import buffer, buffer_zeros, run_kernel, read_list
>>> a, b = buffer([1.0, 2.0, 3.0], device="cpu"), buffer([4.0, 5.0, 6.0], device="cpu")
>>> c = buffer_zeros((3,), device="cpu")
>>> run_kernel("elementwise_add", [a, b], c)
>>> read_list(c)
[5.0, 7.0, 9.0]

The names of :mod:`dala.gpu.compute.language` can be imported from here too. They load on first use
and are not part of ``import *``. ``shape`` and ``tanh`` are functions of buffers here; inside a
kernel the names mean the same, wherever they come from.
"""

from __future__ import annotations

# Submodules with the name of a function are imported before it is bound.
import dala.gpu.compute.kernels  # noqa: F401
from dala.gpu.compute.create import buffer as buffer
from dala.gpu.compute.functions import kernels as kernels
from dala.gpu.compute.kernel import kernel as kernel
from dala.gpu.compute.pipeline.pipeline import pipeline as pipeline
from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, aside="dala.gpu.compute.language")
