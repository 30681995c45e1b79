"""The analysis of a pixel program for vector code; a vector holds many pixels.

Values are *uniform* (the same for every pixel of a vector: parameters, the row, loop counters) or
*varying*. Uniform values stay scalars, so a loop over uniform bounds is a plain loop and an image
read at a uniform offset is a plain load, whether or not the offset is a constant. The rules of
``cpu/rules`` choose the form in which a program is emitted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.lang.ir import *

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.loops.row import RowSpec

#: The largest distance from its pixel at which a program may read.
MAX_REACH: Final = 64

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


class Form(ABC):
    """A form in which a program is emitted, with the facts that its rule found."""

    name: str
    #: Bytes of scratch memory of the row function, which ``NAME.fill(job, scratch)`` fills.
    scratch: ClassVar[int] = 0

    @abstractmethod
    def text(self, spec: RowSpec) -> str:
        """Return the row function that a spec describes, and the functions it calls, as LLVM IR."""


@dataclass
class ProgramAnalysis:
    """A program, the form in which it is emitted, and the properties that its code depends on."""

    program: Program
    #: The program that is emitted: the program itself, or its version for one channel.
    emitted: Program
    block: Block
    result: tuple[Value, ...]
    form: Form
    #: Output channels that always equal a channel of an argument at the same pixel.
    kept: dict[int, tuple[int, int]] = field(default_factory=dict)
    varying: set[Value] = field(default_factory=set)
    varying_slots: set[Slot] = field(default_factory=set)
    #: For each argument.
    reach: list[Reach] = field(default_factory=list)
    #: In a form per channel: elements per pixel, the argument that provides alpha, and whether all
    #: values are bytes.
    scale: int = 1
    alpha: int | None = None
    bytes: bool = False

    @property
    def costly(self) -> bool:
        """Whether math functions are called on varying values."""
        return any(v.op in FUNCTIONS and v in self.varying for v in values(self.block))

    @property
    def vectorizable(self) -> bool:
        """Whether every statement can be emitted with vectors."""
        return all(_vectorizable(s, self) for s in statements(self.block))

    def find_varying(self) -> None:
        """Mark all values and slots that depend on the pixel."""
        while _mark_varying(self, self.block, False):
            pass

    def find_reach(self) -> bool:
        """Find where arguments are read; return False if that is too far."""
        spans = _Spans(list(statements(self.block)))
        self.reach = [Reach() for _ in self.program.args]
        for v in values(self.block):
            if v.op == "image":
                xs, ys = map(spans.of, v.args)
                if any(max(-low, high) > MAX_REACH for low, high in (xs, ys)):
                    return False
                self.reach[v.attr[0]].include(xs, ys)
        return True


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
