"""The ``@native`` language: typed, imperative Python functions compiled by LLVM for the CPU.

Modules written in it import everything from here: its words (``names.py``), ``native`` and
``compile_native``.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native.compiled import Native, OutOfBounds, compile_native
from dala.gpu.compute.engines.cpu.native.function import NativeFunction, native
from dala.gpu.compute.engines.cpu.native.names import *

__all__ = [
    "Array", "F", "Native", "NativeFunction", "OutOfBounds", "Record", "S", "T", "Vector",
    "add_saturate", "all_of", "any_of", "atan", "atan2", "bits", "ceil", "compile_native",
    "copysign", "cos", "count_ones", "exp", "f32", "f64", "floor", "fma", "gather", "hinted",
    "hmax", "hmin", "hsum", "i8", "i16", "i32", "i64", "in_range", "independent", "insert", "isnan",
    "leading_zeros", "load", "local", "log", "look_up", "maximum", "minimum", "multiply_pairs",
    "multiply_q15", "narrow_fours", "native", "power", "prefetch", "saturate", "select", "serial",
    "shuffle", "sin", "splat", "sqrt", "static", "store", "stream", "table", "tan",
    "trailing_zeros", "trunc", "u8", "u16", "u32", "u64", "vec", "view",
]  # fmt: skip
