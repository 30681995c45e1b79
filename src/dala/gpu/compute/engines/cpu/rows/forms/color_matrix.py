"""The row function of a color matrix, in fixed point.

A pixel is a 32-bit word, which is two pairs of 16-bit numbers: red and blue, green and alpha. Two
products of pairs make one channel. Weights have as many fraction bits as the largest of them leaves
room for. Where that is too few, the row is left to a function that computes in floats.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.weighted_sums import ColorMatrix
from dala.gpu.compute.engines.cpu.rows.forms.fixed_point import (
    LARGEST_INT16,
    FixedPointRow,
    float_constant,
)
from dala.gpu.compute.engines.cpu.rows.row import RowSpec

#: The smallest scale of weights at which the errors of three products stay below half a step.
_MIN_SCALE: Final = 1024.0
_MAX_SCALE: Final = 16384.0
#: The largest bias that fits 32-bit sums.
_LARGEST_BIAS: Final = 32768.0


class ColorMatrixRow(FixedPointRow):
    """Emits the row function of a color matrix."""

    def __init__(self, spec: RowSpec, matrix: ColorMatrix) -> None:
        analysis = replace(spec.analysis, block=matrix.block, varying=set(), varying_slots=set())
        super().__init__(spec, analysis)
        self.matrix = matrix
        self.product = spec.machine.pair_product
        self.kind = f"<{self.lanes} x i32>"
        #: The scalars of each channel; equal channels have equal names.
        self.scalars: list[tuple[str, ...]] = []
        #: By those names: weights, for each pair or for each color, and the bias.
        self.weights: dict[tuple[str, ...], list[str]] = {}
        self.bits = ""

    # ahead of the loop --------------------------------------------------------------------------
    def begin(self) -> None:
        """Convert the weights to fixed point, or call the function in floats."""
        f = self.f
        self.scalars = [
            tuple(self.emitter.operand(v, False) for v in row) for row in self.matrix.rows
        ]
        weights = [name for row in self.scalars for name in row[:3]]
        largest = self.largest(weights, float_constant(1.0))
        bias = self.largest([row[3] for row in self.scalars], float_constant(0.0))
        room = f.let(f"fdiv float {float_constant(LARGEST_INT16)}, {largest}")
        fits = f.let(f"fcmp oge float {room}, {float_constant(_MIN_SCALE)}")
        near = f.let(f"fcmp ole float {bias}, {float_constant(_LARGEST_BIAS)}")
        self.use_floats_unless(f.let(f"and i1 {fits}, {near}"))
        scale, power = self.scale(room, _MAX_SCALE)
        bits = f.let(f"sub i32 {f.let(f'lshr i32 {power}, 23')}, 127")
        self.bits = self.splat(bits)
        for row in self.scalars:
            if row in self.weights:
                continue
            r, g, b = (self.scaled(name, scale) for name in row[:3])
            rounded = f.let(f"fadd float {row[3]}, 5.000000e-01")
            added = self.splat(self.scaled(rounded, scale))
            if self.product:
                lower = f.let(f"and i32 {r}, 65535")
                pair = f.let(f"or i32 {lower}, {f.let(f'shl i32 {b}, 16')}")
                alone = f.let(f"and i32 {g}, 65535")
                self.weights[row] = [self.splat(pair), self.splat(alone), added]
            else:
                self.weights[row] = [*(self.splat(c) for c in (r, g, b)), added]

    def largest(self, names: list[str], least: str) -> str:
        """Return the largest magnitude of some floats; NaN if any is NaN."""
        f = self.f
        found = least
        for given in names:
            size = self.absolute(given)
            less = f.let(f"fcmp ult float {found}, {size}")
            found = f.let(f"select i1 {less}, float {size}, float {found}")
        return found

    def scaled(self, number: str, scale: str) -> str:
        """Scale a float and round it to an i32."""
        return self.rounded(self.f.let(f"fmul float {number}, {scale}"), "i32")

    def splat(self, number: str) -> str:
        """Broadcast an i32."""
        return self.f.splat("i32", number, self.lanes)

    # in the loop --------------------------------------------------------------------------------
    def computed(self) -> str:
        """Return a vector of pixels."""
        f, kind = self.f, self.kind
        words = self.pixels(0)
        if self.product:
            pairs = "splat (i32 16711935)"
            first = f.let(f"and {kind} {words}, {pairs}")
            upper = f.let(f"lshr {kind} {words}, splat (i32 8)")
            colors = [first, f.let(f"and {kind} {upper}, {pairs}")]
        else:
            colors = [self.channel(0, "0", "0", c) for c in range(3)]
        made = {row: self.total(colors, weights) for row, weights in self.weights.items()}
        result = made[self.scalars[0]]
        for channel, row in enumerate(self.scalars[1:], 1):
            moved = f.let(f"shl {kind} {made[row]}, splat (i32 {8 * channel})")
            result = f.let(f"or {kind} {result}, {moved}")
        if self.program.out.channels == 3:
            return self.narrowed(result)
        alpha = f.let(f"and {kind} {words}, splat (i32 -16777216)")
        return f.let(f"or {kind} {result}, {alpha}")

    def total(self, colors: list[str], weights: list[str]) -> str:
        """Return a channel of the output, as numbers from 0 to 255."""
        f, kind, total = self.f, self.kind, weights[-1]
        for color, weight in zip(colors, weights[:-1], strict=True):
            total = f.let(f"add {kind} {total}, {self.times(color, weight)}")
        total = f.let(f"ashr {kind} {total}, {self.bits}")
        for rule, end in (("smax", 0), ("smin", 255)):
            name = f.module.intrinsic(f"{rule}.v{self.lanes}i32", kind, kind, kind)
            total = f.let(f"call {kind} {name}({kind} {total}, {kind} splat (i32 {end}))")
        return total

    def times(self, a: str, b: str) -> str:
        """Multiply and add pairs where the CPU has the instruction, else multiply elements."""
        f, kind, pairs = self.f, self.kind, f"<{2 * self.lanes} x i16>"
        if not self.product:
            return f.let(f"mul {kind} {a}, {b}")
        x, y = (f.let(f"bitcast {kind} {v} to {pairs}") for v in (a, b))
        name = f.module.intrinsic(self.product, kind, pairs, pairs)
        return f.let(f"call {kind} {name}({pairs} {x}, {pairs} {y})")
