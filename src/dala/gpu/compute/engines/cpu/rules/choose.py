"""Choose the form in which a pixel program is emitted: the first rule that fits.

Every form computes the same bytes; they differ in speed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.rules.color_matrix import color_matrix
from dala.gpu.compute.engines.cpu.rules.per_channel import to_bytes
from dala.gpu.compute.engines.cpu.rules.program import PixelProgram, PlainForm, Rule
from dala.gpu.compute.engines.cpu.rules.table import table
from dala.gpu.compute.engines.cpu.rules.values import kept_channels
from dala.gpu.compute.engines.cpu.rules.weighted_sum import weighted_sum
from dala.gpu.compute.engines.cpu.rules.zero_parameter import zero_parameter
from dala.gpu.compute.engines.unroll import unroll
from dala.gpu.compute.lang.ir import Arg, Break, Continue, Out, Program, statements

#: Loops are unrolled while the program stays below this many statements. Larger ones take longer to
#: compile than they save.
UNROLL_LIMIT: Final = 1000
#: Larger programs compile faster position by position, where LLVM may give up on vectorizing.
MAX_STATEMENTS: Final = 4000

_DTYPES: Final = ("u8", "f32")
_CHANNELS: Final = (1, 3, 4)


def selected_bytes(source: PixelProgram) -> ProgramAnalysis | None:
    """Return the analysis of a program that only selects among bytes."""
    if not source.of_bytes or source.flat is None:
        return None
    _, block, result = source.flat
    found = to_bytes(block, result[0])
    if found is None:
        return None
    made = source.one_channel(PlainForm("bytes"))
    made.block, made.result, made.bytes = found[0], (found[1],), True
    return made


def per_channel(source: PixelProgram) -> ProgramAnalysis | None:
    """Return the analysis of a program that treats all channels alike.

    Unpacking four bytes by shifts is cheaper than widening and narrowing all of them.
    """
    packs = source.of_bytes and source.program.out.channels in (1, 4)
    return None if packs or source.flat is None else source.one_channel(PlainForm("per_channel"))


#: Tried in this order; the last one fits every program.
RULES: Final[tuple[Rule, ...]] = (
    selected_bytes,
    table,
    weighted_sum,
    per_channel,
    color_matrix,
    zero_parameter,
    lambda source: source.whole(PlainForm("packed")),
)


def analyze(
    program: Program, known: Mapping[int, int] | None = None, *, tables: bool = False
) -> ProgramAnalysis | None:
    """Analyze a program; return None if it cannot be emitted with vectors.

    Args:
        program: The program.
        known: Parameters, by index, whose values may be assumed.
        tables: Whether a table lookup beats any computation on this CPU.
    """
    out = program.out
    if sys.byteorder != "little":  # pixels of four bytes are unpacked by shifts
        return None
    if not out.pixels or program.rank != 2:
        return None
    if any(a.kind not in ("pixel", "image") for a in program.args):
        return None
    stored: list[Arg | Out] = [out, *program.args]
    if any(a.dtype not in _DTYPES or a.channels not in _CHANNELS for a in stored):
        return None
    block, result = unroll(program.body, program.result, known, UNROLL_LIMIT)
    every = list(statements(block))
    if len(every) > MAX_STATEMENTS or any(isinstance(s, (Break, Continue)) for s in every):
        return None
    source = PixelProgram(program, block, result, kept_channels(result, program), tables)
    found = next(made for rule in RULES if (made := rule(source)) is not None)
    found.find_varying()
    # A table is filled by a loop of its own.
    if not found.form.scratch and not found.vectorizable:
        return None
    return found if found.find_reach() else None
