"""Limits on the size of a kernel, because kernel text may be untrusted."""

from __future__ import annotations

from typing import Final

#: Characters of source text.
MAX_SOURCE: Final = 65_536
#: Nesting of one expression or block, as the parser counts it.
MAX_DEPTH: Final = 150
#: Operations in one program, with helpers inlined. One of this size compiles in about two seconds.
MAX_VALUES: Final = 20_000
#: Operations over all attempts to find the types of variables.
MAX_TYPING: Final = 100_000
#: Depth of kernels that call kernels.
MAX_CALLS_DEEP: Final = 24
#: Blocks in blocks, of a kernel and of the kernels that call it. Beyond 78 the software driver
#: llvmpipe computes wrong results, and beyond 120 WGSL compilers refuse the text.
MAX_BLOCKS_DEEP: Final = 64
#: Loops in loops. Mesa's OpenGL compiler takes twice as long for each.
MAX_LOOPS_DEEP: Final = 10
#: Items of a list: of a local table, and of a list parameter.
MAX_LIST: Final = 256
