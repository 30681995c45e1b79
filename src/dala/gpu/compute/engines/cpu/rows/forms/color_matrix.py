"""The row function of a color matrix.

A pixel is a 32-bit word, which is two pairs of 16-bit numbers: red and blue, green and alpha. Two
products of pairs make one channel.
"""

from __future__ import annotations

from dataclasses import replace

from dala.gpu.compute.engines.cpu.llvm.weighted_sums import ColorMatrix
from dala.gpu.compute.engines.cpu.rows.forms.narrow import NarrowRow
from dala.gpu.compute.engines.cpu.rows.row import RowSpec


class ColorMatrixRow(NarrowRow):
    """Emits the row function of a color matrix."""

    def __init__(self, spec: RowSpec, matrix: ColorMatrix) -> None:
        analysis = replace(spec.analysis, block=matrix.block, varying=set(), varying_slots=set())
        super().__init__(spec, analysis, matrix.bits)
        self.matrix = matrix
        #: The scalars of each channel; equal channels have equal names.
        self.scalars: list[tuple[str, ...]] = []
        #: By those names: weights of red and blue, of green, and the bias.
        self.weights: dict[tuple[str, ...], tuple[str, str, str]] = {}

    def begin(self) -> None:
        """Broadcast the weights."""
        super().begin()
        self.scalars = [tuple(map(self.scalar, row)) for row in self.matrix.rows]
        for row in self.scalars:
            r, g, b, bias = row
            if row not in self.weights:
                self.weights[row] = self.pair(r, b), self.pair(g, "0"), self.splat(bias)

    def computed(self) -> str:
        """Return a vector of pixels."""
        f, kind = self.f, self.words32
        words = self.pixels(0)
        pairs = "splat (i32 16711935)"
        first = f.let(f"and {kind} {words}, {pairs}")
        second = f.let(f"and {kind} {f.let(f'lshr {kind} {words}, splat (i32 8)')}, {pairs}")
        made = {}
        for row, (rb, g, bias) in self.weights.items():
            total = f.let(f"add {kind} {bias}, {self.times(first, rb)}")
            total = f.let(f"add {kind} {total}, {self.times(second, g)}")
            total = self.shifted(total)
            for rule, end in (("smax", 0), ("smin", 255)):
                name = f.module.intrinsic(f"{rule}.v{self.lanes}i32", kind, kind, kind)
                total = f.let(f"call {kind} {name}({kind} {total}, {kind} splat (i32 {end}))")
            made[row] = total
        result = made[self.scalars[0]]
        for channel, row in enumerate(self.scalars[1:], 1):
            moved = f.let(f"shl {kind} {made[row]}, splat (i32 {8 * channel})")
            result = f.let(f"or {kind} {result}, {moved}")
        if self.program.out.channels == 3:
            return self.narrowed(result)
        alpha = f.let(f"and {kind} {words}, splat (i32 -16777216)")
        return f.let(f"or {kind} {result}, {alpha}")
