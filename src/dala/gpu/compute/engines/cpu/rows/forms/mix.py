"""The row function of a mix of colours, in fixed point.

A pixel is a word, and a word is two 16-bit numbers: red and blue once, green and alpha the other
time. Two products of pairs are a channel. Weights have as many bits for fractions as the largest of
them leaves; where that is too few, the row is left to the function that computes in floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.facts import Facts
from dala.gpu.compute.engines.cpu.llvm.text import Module, constant
from dala.gpu.compute.engines.cpu.rows.emit import Machine, Row, Words
from dala.gpu.compute.lang.ir import Value

#: What weights may be scaled by: at least so that the errors of three stay below half a step.
_COARSEST: Final = 1024.0
_FINEST: Final = 16384.0
#: The largest 16-bit number.
_LARGEST: Final = 32767.0
#: The most that may be added, so that sums of 32 bits hold it.
_FARTHEST: Final = 32768.0


def mix_functions(
    module: Module, name: str, facts: Facts, words: Words, machine: Machine, tight: Sequence[bool],
    tight_out: bool,
) -> str:  # fmt: skip
    """The row function of that name, and the one in floats."""
    floats = Row(module, f"{name}.floats", facts, words, machine.vector, tight, tight_out).text()
    return floats + "\n" + _Row(module, name, facts, words, machine, tight, tight_out).text()


class _Row(Row):
    def __init__(
        self, module: Module, name: str, facts: Facts, words: Words, machine: Machine,
        tight: Sequence[bool], tight_out: bool,
    ) -> None:  # fmt: skip
        assert facts.mix is not None
        self.mix = facts.mix
        own = replace(facts, block=self.mix.block, uneven=set(), uneven_slots=set())
        super().__init__(module, name, own, words, machine.vector, tight, tight_out)
        self.name = name
        self.product = machine.pair_product
        self.kind = f"<{self.lanes} x i32>"
        #: For each channel what its scalars are called, by which equal channels are known.
        self.scalars: list[tuple[str, ...]] = []
        #: By those names: the weights, of both pairs or of each colour, and what is added.
        self.weights: dict[tuple[str, ...], list[str]] = {}
        self.bits = ""

    # ahead of the loop --------------------------------------------------------------------------
    def begin(self) -> None:
        """The weights in fixed point; what they are too large for goes to floats."""
        f = self.f
        self.scalars = [tuple(self.scalar(v) for v in row) for row in self.mix.rows]
        names = [name for row in self.scalars for name in row[:3]]
        largest = self.largest(names, constant(1.0, "float"))
        added = self.largest([row[3] for row in self.scalars], constant(0.0, "float"))
        room = f.let(f"fdiv float {_float(_LARGEST)}, {largest}")
        fits = f.let(f"fcmp oge float {room}, {_float(_COARSEST)}")
        near = f.let(f"fcmp ole float {added}, {_float(_FARTHEST)}")
        f.branch(f.let(f"and i1 {fits}, {near}"), "whole", "floats")
        f.start("floats")
        given = "ptr %job, ptr %out, ptr %rows, i64 %count, i64 %x0, i64 %y"
        f.do(f"call void {self.name}.floats({given})")
        f.do("ret void")
        f.start("whole")
        much = f.let(f"fcmp ogt float {room}, {_float(_FINEST)}")
        room = f.let(f"select i1 {much}, float {_float(_FINEST)}, float {room}")
        power = f.let(f"and i32 {f.let(f'bitcast float {room} to i32')}, 2139095040")
        scale = f.let(f"bitcast i32 {power} to float")
        bits = f.let(f"sub i32 {f.let(f'lshr i32 {power}, 23')}, 127")
        self.bits = self.everywhere(bits)
        for row in self.scalars:
            if row in self.weights:
                continue
            r, g, b = (self.whole(name, scale) for name in row[:3])
            rounded = f.let(f"fadd float {row[3]}, 5.000000e-01")
            more = self.everywhere(self.whole(rounded, scale))
            if self.product:
                lower = f.let(f"and i32 {r}, 65535")
                pair = f.let(f"or i32 {lower}, {f.let(f'shl i32 {b}, 16')}")
                alone = f.let(f"and i32 {g}, 65535")
                self.weights[row] = [self.everywhere(pair), self.everywhere(alone), more]
            else:
                self.weights[row] = [*(self.everywhere(c) for c in (r, g, b)), more]

    def scalar(self, v: Value) -> str:
        return self.vectors.operand(v, False)

    def largest(self, names: list[str], least: str) -> str:
        """The size of the largest of some numbers, NaN if one is."""
        f = self.f
        name = f.module.intrinsic("fabs.f32", "float", "float")
        found = least
        for given in names:
            size = f.let(f"call float {name}(float {given})")
            less = f.let(f"fcmp ult float {found}, {size}")
            found = f.let(f"select i1 {less}, float {size}, float {found}")
        return found

    def whole(self, number: str, scale: str) -> str:
        f = self.f
        name = f.module.intrinsic("roundeven.f32", "float", "float")
        scaled = f.let(f"fmul float {number}, {scale}")
        return f.let(f"fptosi float {f.let(f'call float {name}(float {scaled})')} to i32")

    def everywhere(self, number: str) -> str:
        """A number in every place of a vector."""
        f, kind = self.f, self.kind
        one = f.let(f"insertelement {kind} poison, i32 {number}, i64 0")
        zero = f"<{self.lanes} x i32> zeroinitializer"
        return f.let(f"shufflevector {kind} {one}, {kind} poison, {zero}")

    # in the loop --------------------------------------------------------------------------------
    def computed(self) -> str:
        """A vector of pixels."""
        f, kind = self.f, self.kind
        red = self.channel(0, "0", "0", 0)
        words = self.loaded[0, "0", "0"]
        if self.product:
            pairs = "splat (i32 16711935)"
            first = f.let(f"and {kind} {words}, {pairs}")
            upper = f.let(f"lshr {kind} {words}, splat (i32 8)")
            colours = [first, f.let(f"and {kind} {upper}, {pairs}")]
        else:
            colours = [red, *(self.channel(0, "0", "0", c) for c in (1, 2))]
        made = {row: self.total(colours, weights) for row, weights in self.weights.items()}
        result = made[self.scalars[0]]
        for channel, row in enumerate(self.scalars[1:], 1):
            moved = f.let(f"shl {kind} {made[row]}, splat (i32 {8 * channel})")
            result = f.let(f"or {kind} {result}, {moved}")
        if self.program.out.channels == 3:
            return self.narrowed(result)
        alpha = f.let(f"and {kind} {words}, splat (i32 -16777216)")
        return f.let(f"or {kind} {result}, {alpha}")

    def total(self, colours: list[str], weights: list[str]) -> str:
        """A channel of the output, as numbers of 0 to 255."""
        f, kind, total = self.f, self.kind, weights[-1]
        for colour, weight in zip(colours, weights[:-1], strict=True):
            total = f.let(f"add {kind} {total}, {self.times(colour, weight)}")
        total = f.let(f"ashr {kind} {total}, {self.bits}")
        for rule, end in (("smax", 0), ("smin", 255)):
            name = f.module.intrinsic(f"{rule}.v{self.lanes}i32", kind, kind, kind)
            total = f.let(f"call {kind} {name}({kind} {total}, {kind} splat (i32 {end}))")
        return total

    def times(self, a: str, b: str) -> str:
        """Products: of pairs, added up, where the machine has that."""
        f, kind, pairs = self.f, self.kind, f"<{2 * self.lanes} x i16>"
        if not self.product:
            return f.let(f"mul {kind} {a}, {b}")
        x, y = (f.let(f"bitcast {kind} {v} to {pairs}") for v in (a, b))
        name = f.module.intrinsic(self.product, kind, pairs, pairs)
        return f.let(f"call {kind} {name}({pairs} {x}, {pairs} {y})")


def _float(value: float) -> str:
    return constant(value, "float")
