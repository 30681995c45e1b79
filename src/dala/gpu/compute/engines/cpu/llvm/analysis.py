"""Analyze a pixel program before it is emitted with vectors, which hold many pixels.

Values are *uniform* (the same for every pixel of a vector: parameters, the row, loop counters) or
*varying*. Uniform values stay scalars, so a loop over uniform bounds is a plain loop and an image
read at a uniform offset is a plain load, whether or not the offset is a constant.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.bytes.values import at_center, kept_channels
from dala.gpu.compute.engines.cpu.llvm.bytes.zero import ZeroVariant, find_zero_variant
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.engines.cpu.llvm.per_channel import flatten, to_bytes
from dala.gpu.compute.engines.cpu.llvm.weighted_sums import (
    ColorMatrix,
    WeightedSum,
    find_color_matrix,
    find_weighted_sum,
)
from dala.gpu.compute.engines.unroll import unroll
from dala.gpu.compute.lang.ir import (
    Arg,
    Block,
    Break,
    Continue,
    For,
    If,
    Out,
    Program,
    SetSlot,
    Slot,
    Statement,
    Value,
    statements,
    values,
)

#: Loops are unrolled while the program stays below this many statements. Larger ones take longer to
#: compile than they save.
UNROLL_LIMIT: Final = 1000
#: Larger programs compile faster position by position, where LLVM may give up on vectorizing.
MAX_STATEMENTS: Final = 4000
#: The largest distance from its pixel at which a program may read.
MAX_REACH: Final = 64

_DTYPES: Final = ("u8", "f32")
_CHANNELS: Final = (1, 3, 4)
#: The range of a 32-bit int.
_INT32: Final = (-(1 << 31), (1 << 31) - 1)


@dataclass
class Reach:
    """The rectangle around a pixel in which an argument is read: ranges of dx and dy."""

    left: int = 0
    right: int = 0
    up: int = 0
    down: int = 0

    def include(self, xs: tuple[int, int], ys: tuple[int, int]) -> None:
        """Extend the rectangle to include one more read."""
        self.left, self.right = min(self.left, xs[0]), max(self.right, xs[1])
        self.up, self.down = min(self.up, ys[0]), max(self.down, ys[1])

    @property
    def pointwise(self) -> bool:
        """Whether only the pixel itself is read."""
        return not (self.left or self.right or self.up or self.down)


@dataclass
class ProgramAnalysis:
    """A program, the form in which it is emitted, and the properties that its code depends on."""

    program: Program
    #: The program that is emitted: the program itself, or its version for one channel.
    emitted: Program
    block: Block
    result: tuple[Value, ...]
    #: Output channels that always equal a channel of an argument at the same pixel.
    kept: dict[int, tuple[int, int]] = field(default_factory=dict)
    varying: set[Value] = field(default_factory=set)
    varying_slots: set[Slot] = field(default_factory=set)
    #: For each argument.
    reach: list[Reach] = field(default_factory=list)
    #: In a per-channel form: elements per pixel, the argument that provides alpha, and whether all
    #: values are bytes.
    scale: int = 1
    alpha: int | None = None
    bytes: bool = False
    #: Whether the program maps each byte to another, and a table lookup is faster than computing.
    table: bool = False
    #: The per-channel form as a weighted sum of bytes, if it is one: faster for most weights.
    weighted_sum: WeightedSum | None = None
    #: The program as a color matrix, if it is one.
    color_matrix: ColorMatrix | None = None
    #: What is left of a packed program where a parameter is 0, if that is less.
    zero: ZeroVariant | None = None

    @property
    def form(self) -> str:
        """The name of the form in which the program is emitted."""
        if self.weighted_sum is not None:
            return "weighted_sum"
        if self.color_matrix is not None:
            return "color_matrix"
        if self.table:
            return "table"
        if self.bytes:
            return "bytes"
        return "packed" if self.emitted is self.program else "per_channel"

    @property
    def costly(self) -> bool:
        """Whether math functions are called on varying values."""
        return any(v.op in FUNCTIONS and v in self.varying for v in values(self.block))

    @property
    def vectorizable(self) -> bool:
        """Whether every statement can be emitted with vectors."""
        return all(_vectorizable(s, self) for s in statements(self.block))


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
    kept = kept_channels(result, program)
    analysis = _per_channel(program, block, result, kept, tables) or ProgramAnalysis(
        program, program, block, result, kept
    )
    _find_varying(analysis)
    if not analysis.table and not analysis.vectorizable:
        return None
    if not _find_reach(analysis):
        return None
    analysis.color_matrix = _color_matrix(analysis)
    if out.dtype == "u8" and analysis.form == "packed":
        analysis.zero = find_zero_variant(analysis)
    return analysis


def analyze_zero(analysis: ProgramAnalysis) -> ProgramAnalysis:
    """Return the analysis of a program whose variant for a parameter of 0 is emitted."""
    zero = analysis.zero
    assert zero is not None
    made = replace(
        analysis, block=zero.block, result=zero.result, kept=zero.kept, varying=set(), zero=None
    )
    _find_varying(made)
    return made


def _per_channel(
    program: Program,
    block: Block,
    result: tuple[Value, ...],
    kept: dict[int, tuple[int, int]],
    tables: bool,
) -> ProgramAnalysis | None:
    """Return the analysis of a program that treats all channels alike; None for others."""
    alpha = kept.get(3) if program.out.channels == 4 else None
    if alpha is not None and alpha[1] != 3:
        return None
    made = flatten(program, block, result, alpha is not None)
    if made is None:
        return None
    original = block, result
    emitted, block, result = made
    of_bytes = {program.out.dtype, *(a.dtype for a in program.args)} == {"u8"}
    analysis = ProgramAnalysis(program, emitted, block, result, scale=program.out.channels)
    analysis.alpha = None if alpha is None else alpha[0]
    if of_bytes:
        found = to_bytes(block, result[0])
        if found is not None:
            analysis.block, analysis.result = found[0], (found[1],)
            analysis.bytes = True
            return analysis
        if _is_table(analysis, tables):
            analysis.table = True
            return analysis
    sums = None
    if of_bytes and any(v.op == "image" and not at_center(v) for v in values(block)):
        sums = find_weighted_sum(emitted, result[0], analysis.alpha)
    # Unpacking four bytes by shifts is cheaper than widening and narrowing all of them.
    if of_bytes and program.out.channels in (1, 4):
        if sums is None:
            return None
        analysis = ProgramAnalysis(program, program, *original, kept)
    analysis.weighted_sum = sums
    return analysis


def _color_matrix(analysis: ProgramAnalysis) -> ColorMatrix | None:
    """Return a program as a color matrix if it is one and keeps alpha."""
    program = analysis.program
    if analysis.form != "packed" or len(program.args) != 1 or program.out.dtype != "u8":
        return None
    arg, channels = program.args[0], program.out.channels
    if arg.dtype != "u8" or arg.channels != channels or not analysis.reach[0].pointwise:
        return None
    if channels == 1 or (channels == 4 and analysis.kept.get(3) != (0, 3)):
        return None
    return find_color_matrix(analysis.result, 0)


def _is_table(analysis: ProgramAnalysis, always: bool) -> bool:
    """Return whether a program is a costly function (or ``always``: any function) of one byte."""
    _find_varying(analysis)
    simple = len(analysis.program.args) == 1 and all(
        v.op not in ("position", "element", "array") and (v.op != "image" or at_center(v))
        for v in values(analysis.block)
    )
    return simple and (analysis.costly or always)


def _find_varying(analysis: ProgramAnalysis) -> None:
    """Mark all values and slots that depend on the pixel."""
    while _mark_varying(analysis, analysis.block, False):
        pass


def _mark_varying(analysis: ProgramAnalysis, block: Block, masked: bool) -> bool:
    """Mark values that depend on the pixel, in one pass; return whether any were new."""
    before = len(analysis.varying) + len(analysis.varying_slots)
    for s in block.body:
        if isinstance(s, Value):
            own = s.op in ("pixel", "image") or (s.op == "position" and s.attr == 1)
            held = s.op == "get" and s.attr in analysis.varying_slots
            if own or held or any(a in analysis.varying for a in s.args):
                analysis.varying.add(s)
        elif isinstance(s, SetSlot):
            if masked or s.value in analysis.varying:
                analysis.varying_slots.add(s.slot)
        elif isinstance(s, If):
            inside = masked or s.condition in analysis.varying
            _mark_varying(analysis, s.then, inside)
            _mark_varying(analysis, s.otherwise, inside)
        elif isinstance(s, For):
            _mark_varying(analysis, s.body, masked)
    return len(analysis.varying) + len(analysis.varying_slots) > before


def _vectorizable(s: Statement, analysis: ProgramAnalysis) -> bool:
    if isinstance(s, For):
        uniform = s.start not in analysis.varying and s.stop not in analysis.varying
        return uniform and s.index not in analysis.varying_slots
    if not isinstance(s, Value):
        return True
    if s.op in ("element", "array"):
        return False
    if s not in analysis.varying:
        return True
    if s.op in FUNCTIONS:
        return s.op == "exp" and s.type == "f32"
    if s.op == "image" and any(a in analysis.varying for a in s.args):
        return False
    wide = s.type in ("s64", "f64") or any(a.type in ("s64", "f64") for a in s.args)
    return not wide or s.op not in ("idiv", "mod")


# where images are read --------------------------------------------------------------------------
def _find_reach(analysis: ProgramAnalysis) -> bool:
    spans = _Spans(list(statements(analysis.block)))
    analysis.reach = [Reach() for _ in analysis.program.args]
    for v in values(analysis.block):
        if v.op == "image":
            xs, ys = map(spans.of, v.args)
            if any(max(-low, high) > MAX_REACH for low, high in (xs, ys)):
                return False
            analysis.reach[v.attr[0]].include(xs, ys)
    return True


class _Spans:
    """The smallest and the largest values that the ints of a program may have."""

    def __init__(self, every: list[Statement]) -> None:
        #: Loops, and other values that are assigned to their indexes.
        self.indexes: dict[Slot, list[For | Value]] = {
            s.index: [] for s in every if isinstance(s, For)
        }
        for s in every:
            if isinstance(s, For):
                self.indexes[s.index].append(s)
            elif isinstance(s, SetSlot) and s.slot in self.indexes:
                self.indexes[s.slot].append(s.value)
        self.seen: dict[Value, tuple[int, int]] = {}

    def of(self, v: Value) -> tuple[int, int]:
        """Return the range of a value."""
        if v.op == "const":
            return v.attr, v.attr
        if v not in self.seen:
            self.seen[v] = _INT32  # in case the value depends on itself
            low, high = self._computed(v)
            self.seen[v] = (low, high) if _INT32[0] <= low <= high <= _INT32[1] else _INT32
        return self.seen[v]

    def _assigned(self, source: For | Value) -> tuple[int, int]:
        """Return the range of a loop's counter, or of another value assigned to its index."""
        if isinstance(source, Value):
            return self.of(source)
        start, stop = self.of(source.start), self.of(source.stop)
        if source.step > 0:
            return start[0], max(start[0], stop[1] - 1)
        return min(start[1], stop[0] + 1), start[1]

    def _computed(self, v: Value) -> tuple[int, int]:
        if v.type != "s32":
            return _INT32
        if v.op == "get" and v.attr in self.indexes:
            lows, highs = zip(*map(self._assigned, self.indexes[v.attr]), strict=True)
            return min(lows), max(highs)
        if v.op not in _SPANS:
            return _INT32
        spans = [self.of(a) for a in v.args]
        return _SPANS[v.op](*spans[0], *spans[-1])


def _product_span(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    ends = a * c, a * d, b * c, b * d
    return min(ends), max(ends)


#: The range of an operation, given those of its first and its last operand.
_SPANS: Final[dict[str, Callable[[int, int, int, int], tuple[int, int]]]] = {
    "add": lambda a, b, c, d: (a + c, b + d),
    "sub": lambda a, b, c, d: (a - d, b - c),
    "neg": lambda a, b, c, d: (-b, -a),
    "min": lambda a, b, c, d: (min(a, c), min(b, d)),
    "max": lambda a, b, c, d: (max(a, c), max(b, d)),
    "mul": _product_span,
    "idiv": lambda a, b, c, d: (a // c, b // c) if c == d > 0 else _INT32,
}
