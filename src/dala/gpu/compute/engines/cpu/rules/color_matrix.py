"""The row function of a color matrix.

A pixel is a 32-bit word, which is two pairs of 16-bit numbers: red and blue, green and alpha. Two
products of pairs make one channel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dala.gpu.compute.engines.cpu.llvm.analysis import Form, ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.row import RowFunction, RowSpec
from dala.gpu.compute.engines.cpu.rules.narrow import NarrowRow
from dala.gpu.compute.engines.cpu.rules.program import PixelProgram
from dala.gpu.compute.engines.cpu.rules.sums import find_sum, needed_values
from dala.gpu.compute.engines.cpu.rules.values import at_center
from dala.gpu.compute.lang.ir import Block, Value, values


@dataclass
class ColorMatrix(Form):
    """The three stored colors of a pixel as sums of its colors."""

    name = "color_matrix"
    #: For each output channel: the weights of red, green and blue, and the bias.
    rows: list[tuple[Value, Value, Value, Value]]
    bits: Value
    block: Block

    def text(self, spec: RowSpec) -> str:
        """Return the row function of the matrix, where the CPU has products of pairs."""
        if not spec.machine.pair_product:
            return RowFunction(spec).text()
        return ColorMatrixRow(spec, self).text()


def color_matrix(source: PixelProgram) -> ProgramAnalysis | None:
    """Return the analysis of a program whose colors are sums of the colors, and keeps alpha."""
    program, channels = source.program, source.program.out.channels
    if not source.of_bytes or len(program.args) != 1 or program.args[0].channels != channels:
        return None
    if channels == 1 or (channels == 4 and source.kept.get(3) != (0, 3)):
        return None
    if any(v.op == "image" and not at_center(v) for v in values(source.block)):
        return None
    form = _matrix(source.result)
    return None if form is None else source.whole(form)


def _matrix(stored: tuple[Value, ...]) -> ColorMatrix | None:
    """Return three stored colors as sums of the colors of the pixel, or None."""
    rows = []
    bits = zero = Value("const", "s32", (), 0)
    for value in stored[:3]:
        found = find_sum(value)
        if found is None:
            return None
        weights = {read: weight for weight, reads in found.groups for read in reads}
        places = [(0, 0, 0, c) for c in range(3)]
        twice = len(weights) < sum(len(reads) for _, reads in found.groups)
        if twice or any(read not in places for read in weights):
            return None
        r, g, b = (weights.get(read, zero) for read in places)
        rows.append((r, g, b, found.bias))
        bits = found.bits
    needed = needed_values([*(v for row in rows for v in row), bits])
    return ColorMatrix(rows, bits, Block(list(needed)))


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
