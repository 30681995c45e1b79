"""The ``@native`` language: typed, imperative Python functions compiled by LLVM for the CPU.

Modules written in it import everything from here: its words (``names.py``), ``native`` and
``compile_native``, and ``Final`` for constants.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native.compiled import Native, OutOfBounds, compile_native
from dala.gpu.compute.engines.cpu.native.function import NativeFunction, native
from dala.gpu.compute.engines.cpu.native.names import *

__all__ = [
    "Array", "F", "Final", "Native", "NativeFunction", "OutOfBounds", "Record", "S", "T", "Vector",
    "add_saturate", "all_of", "any_of", "bits", "ceil", "compile_native", "exp", "f32", "f64",
    "floor", "fma", "gather", "hinted", "hmax", "hmin", "hsum", "i8", "i16", "i32", "i64",
    "in_range", "independent", "insert", "isnan", "join", "load", "local", "look_up", "maximum",
    "minimum", "multiply_pairs", "multiply_q15", "narrow_fours", "native", "prefetch", "saturate",
    "select", "serial", "shuffle", "splat", "sqrt", "static", "store", "stream", "table", "u8",
    "u16", "u32", "u64", "vec", "view",
]  # fmt: skip
