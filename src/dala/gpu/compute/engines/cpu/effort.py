"""How much LLVM optimizes a module: less for larger ones, so that compile time grows linearly.

LLVM's vectorizer takes time that grows with the square of a loop's length, and some passes over
loops with the square of their number. A module is optimized fully up to a size that takes about a
second. Beyond it the scalar passes remain, and functions such as ``sin`` are called, not inlined.
Beyond a second size LLVM only selects instructions. All three compute the same numbers. The sizes
depend on the text alone, so every machine decides alike.

Text that is written with vectors, in its loops too, leaves little to LLVM: a few passes give code
that is as fast, in half the time. Only loops over single numbers, such as those that fill a table,
are left to LLVM's vectorizer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: A function that LLVM inlines at every call: its name and its instructions.
_INLINED: Final = re.compile(
    r"^define internal [^@\n]*(@[\w.]+)\([^\n]*alwaysinline[^\n]*\{\n(.*?)^\}", re.M | re.S
)
#: A scalar function that could be called instead.
SCALAR_FUNCTION: Final = re.compile(
    r"^(define internal (?:<\d+ x )?(?:float|double)>? @[^\n]*)alwaysinline", re.MULTILINE
)
#: The cost of a block, and of a conversion that saturates, beside that of one instruction.
_BLOCK: Final = 3
_SATURATE: Final = 20


@dataclass(frozen=True)
class Effort:
    """How much LLVM optimizes a module.

    Attributes:
        passes: passes by llvmlite's names; empty for a whole pipeline.
        codegen: the level of the code generator, 0 to 3.
        calls: whether scalar functions are called rather than inlined.
        pipeline: the level of the whole pipeline; at 1 it does not make vectors of straight code.
    """

    passes: tuple[str, ...]
    codegen: int
    calls: bool
    pipeline: int = 3


FULL: Final = Effort((), 3, False)
#: For modules with :data:`LOOPS_NOTE`: as fast after the shorter pipeline, a quarter sooner.
LOOPS: Final = Effort((), 3, False, 1)
#: For modules with :data:`VECTORS_NOTE`.
VECTORS: Final = Effort(
    (
        "always_inliner",
        "sroa",
        "instruction_combine",
        "simplify_cfg",
        "loop_simplify",
        "loop_rotate",
    ),
    3,
    False,
)
SCALAR: Final = Effort(("sroa", "instruction_combine", "simplify_cfg"), 1, True)
QUICK: Final = Effort(("simplify_cfg",), 0, True)  # registers for variables take too long, too

#: Lines of modules that are written with vectors: with loops over single numbers, and without.
LOOPS_NOTE: Final = "; vectors and loops\n"
VECTORS_NOTE: Final = "; vectors\n"

#: The largest sizes that are optimized fully, and by the scalar passes.
MAX_FULL: Final = 4_000
MAX_SCALAR: Final = 12_000


def inlined_size(text: str) -> int:
    """Return the size of a module of LLVM IR after inlining, in instructions.

    >>> inlined_size("define void @body() {\\nentry:\\n  ret void\\n}\\n")
    7
    """
    size = text.count("\n") + _BLOCK * text.count(":\n") + _SATURATE * text.count("i.sat.")
    for name, body in _INLINED.findall(text):
        # One of the occurrences is its definition, whose lines are counted already.
        size += body.count("\n") * (text.count(f"{name}(") - 2)
    return size


def effort_for(text: str, *, unrolled: bool = False) -> Effort:
    """Return how much a module is optimized; unrolled loops are bounded already.

    >>> effort_for("define void @body() {\\nentry:\\n  ret void\\n}\\n") is FULL
    True
    """
    size = inlined_size(text)
    if size <= (MAX_SCALAR if unrolled else MAX_FULL):
        return VECTORS if VECTORS_NOTE in text else LOOPS if LOOPS_NOTE in text else FULL
    return SCALAR if size <= MAX_SCALAR else QUICK
