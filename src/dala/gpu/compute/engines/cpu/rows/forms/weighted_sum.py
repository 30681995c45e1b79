"""The row function of a weighted sum of bytes, in 16-bit fixed point.

A vector of bytes is two vectors of 16-bit numbers, its even and its odd bytes, so nothing has to be
widened or narrowed. Bytes of equal weight are added first, and their sum is multiplied as a rounded
fraction. The number of fraction bits depends on the weights and is computed for every row: as many
as the largest possible sum has room for. Where rounding errors could add up to half a step, the row
is left to a function that computes in floats.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.weighted_sums import WeightedSum
from dala.gpu.compute.engines.cpu.rows.forms.fixed_point import (
    LARGEST_INT16,
    FixedPointRow,
    float_constant,
)
from dala.gpu.compute.engines.cpu.rows.row import RowSpec

#: The largest scale of fractions.
_MAX_SCALE: Final = 128.0


class WeightedSumRow(FixedPointRow):
    """Emits the row function of a weighted sum."""

    def __init__(self, spec: RowSpec, total: WeightedSum) -> None:
        analysis = replace(
            spec.analysis, emitted=total.emitted, block=total.block, result=(), kept={},
            varying=set(), varying_slots=set(), scale=spec.analysis.program.out.channels,
            alpha=total.alpha, bytes=True,
        )  # fmt: skip
        super().__init__(spec, analysis)
        self.sum = total
        self.product = spec.machine.rounded_product
        self.half = self.lanes // 2
        self.kind = f"<{self.half} x i16>"
        #: For each group: bits that its sum is shifted up by.
        self.shifts = [
            int(math.log2(LARGEST_INT16 / (255 * len(g.reads)))) for g in total.groups
        ]  # fmt: skip
        #: For each group: its weight in every lane.
        self.weights: list[str] = []
        self.bias = self.back = ""

    # ahead of the loop --------------------------------------------------------------------------
    def begin(self) -> None:
        """Convert the weights to fractions, or call the function in floats."""
        f, groups = self.f, self.sum.groups
        weights = [self.emitter.operand(g.weight, False) for g in groups]
        bias = self.emitter.operand(self.sum.bias, False)
        sizes = [self.absolute(w) for w in weights]
        largest = self.absolute(bias)
        for g, size in zip(groups, sizes, strict=True):
            share = f.let(f"fmul float {size}, {float_constant(255.0 * len(g.reads))}")
            largest = f.let(f"fadd float {largest}, {share}")
        for shift, size in zip(self.shifts, sizes, strict=True):
            # A weight must fit too, as the fraction that its group needs.
            share = f.let(f"fmul float {size}, {float_constant(2.0 ** (15 - shift))}")
            larger = f.let(f"fcmp ogt float {share}, {largest}")
            largest = f.let(f"select i1 {larger}, float {share}, float {largest}")
        largest = f.let(f"fadd float {largest}, 1.0")
        room = f.let(f"fdiv float {float_constant(LARGEST_INT16)}, {largest}")
        # Each product and each weight may be half a unit off, and so may the sum.
        least = float_constant(2.0 ** math.ceil(math.log2(2 * len(groups) + 1)))
        self.use_floats_unless(f.let(f"fcmp oge float {room}, {least}"))
        scale, _ = self.scale(room, _MAX_SCALE)
        for shift, w in zip(self.shifts, weights, strict=True):
            each = f.let(f"fmul float {w}, {float_constant(2.0 ** (15 - shift))}")
            self.weights.append(self.splat(f.let(f"fmul float {each}, {scale}")))
        if self.sum.bias.op != "const" or self.sum.bias.attr:
            self.bias = self.splat(f.let(f"fmul float {bias}, {scale}"))
        self.back = self.splat(f.let(f"fdiv float 32768.0, {scale}"))

    def splat(self, number: str) -> str:
        """Round a float to an i16 and broadcast it."""
        return self.f.splat("i16", self.rounded(number, "i16"), self.half)

    # in the loop --------------------------------------------------------------------------------
    def computed(self) -> str:
        """Return a vector of bytes; even and odd ones are computed separately and interleaved."""
        f, kind = self.f, self.kind
        even, odd = self.total(0), self.total(1)
        odd = f.let(f"shl {kind} {odd}, splat (i16 8)")
        both = f.let(f"or {kind} {even}, {odd}")
        return f.let(f"bitcast {kind} {both} to <{self.lanes} x i8>")

    def total(self, odd: int) -> str:
        """Return the sums for every other byte, as numbers from 0 to 255."""
        f, kind = self.f, self.kind
        total = ""
        for g, shift, weight in zip(self.sum.groups, self.shifts, self.weights, strict=True):
            numbers = [self.every_other(*read[:3], odd) for read in g.reads]
            group = numbers[0]
            for number in numbers[1:]:
                group = f.let(f"add {kind} {group}, {number}")
            if shift:
                group = f.let(f"shl {kind} {group}, splat (i16 {shift})")
            product = self.times(group, weight)
            total = f.let(f"add {kind} {total}, {product}") if total else product
        if self.bias:
            total = f.let(f"add {kind} {total}, {self.bias}")
        total = self.times(total, self.back)
        for rule, end in (("smax", 0), ("smin", 255)):
            name = f.module.intrinsic(f"{rule}.v{self.half}i16", kind, kind, kind)
            total = f.let(f"call {kind} {name}({kind} {total}, {kind} splat (i16 {end}))")
        return total

    def every_other(self, argument: int, dx: int, dy: int, odd: int) -> str:
        """Return the even or the odd bytes of a vector as 16-bit numbers."""
        f, kind = self.f, self.kind
        key = ("half", argument, dx, dy, odd)
        if key not in self.loaded:
            pixels = self.channel(argument, str(dx * self.analysis.scale), str(dy), 0)
            words = f.let(f"bitcast <{self.lanes} x i8> {pixels} to {kind}")
            text = f"lshr {kind} {words}, splat (i16 8)"
            self.loaded[key] = f.let(text if odd else f"and {kind} {words}, splat (i16 255)")
        return self.loaded[key]

    def times(self, a: str, b: str) -> str:
        """Multiply two fractions and round: (a b + 2^14) / 2^15."""
        f, kind, wide = self.f, self.kind, f"<{self.half} x i32>"
        if self.product:
            name = f.module.intrinsic(self.product, kind, kind, kind)
            return f.let(f"call {kind} {name}({kind} {a}, {kind} {b})")
        x, y = (f.let(f"sext {kind} {v} to {wide}") for v in (a, b))
        product = f.let(f"add {wide} {f.let(f'mul {wide} {x}, {y}')}, splat (i32 16384)")
        product = f.let(f"ashr {wide} {product}, splat (i32 15)")
        return f.let(f"trunc {wide} {product} to {kind}")
