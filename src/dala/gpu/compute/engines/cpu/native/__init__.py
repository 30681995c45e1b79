"""The ``@native`` language: typed, imperative Python functions compiled by LLVM for the CPU."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native.compiled import Native, OutOfBounds, compile_native
from dala.gpu.compute.engines.cpu.native.function import NativeFunction, native

__all__ = ["Native", "NativeFunction", "OutOfBounds", "compile_native", "native"]
