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
        first, second = self.pairs(0)
        made = {}
        for row, (rb, g, bias) in self.weights.items():
            total = f.let(f"add {kind} {bias}, {self.times(first, rb)}")
            total = f.let(f"add {kind} {total}, {self.times(second, g)}")
            made[row] = self.shifted(total)
        colors = [made[row] for row in self.scalars]
        alpha = f.let(f"lshr {kind} {words}, splat (i32 24)")
        result = self.packed_words(*colors, alpha)
        return self.narrowed(result) if self.program.out.channels == 3 else result

    def packed_words(self, *channels: str) -> str:
        """Return pixels of four channels, which saturate to bytes."""
        f, size = self.f, self.vector
        words = [
            f.intrinsic(self.machine.to_words, self.words16, self.words32, *channels[i : i + 2])
            for i in (0, 2)
        ]
        kind = f"<{size} x i8>"
        made = f.intrinsic(self.machine.to_bytes, kind, self.words16, *words)
        places = [
            first + 4 * c + k for first in range(0, size, 16) for k in range(4) for c in range(4)
        ]
        mixed = f.shuffle(kind, made, "poison", places)
        return f.let(f"bitcast {kind} {mixed} to {self.words32}")
