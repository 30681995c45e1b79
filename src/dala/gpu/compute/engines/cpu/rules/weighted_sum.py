"""The row function of a weighted sum of bytes.

A vector of bytes is two vectors of 16-bit numbers, its even and its odd bytes, so bytes need not be
widened. Bytes of equal weight are added first. Two such sums and their weights are pairs, whose
products are added in 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.analysis import Form, ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.row import RowFunction, RowSpec, interleave
from dala.gpu.compute.engines.cpu.rules.narrow import NarrowRow
from dala.gpu.compute.engines.cpu.rules.program import PixelProgram
from dala.gpu.compute.engines.cpu.rules.sums import ByteRead, StoredSum, find_sum, needed_values
from dala.gpu.compute.engines.cpu.rules.values import at_center
from dala.gpu.compute.lang.ir import Block, Program, values

#: Bytes of the parts of a vector that processors interleave and pack within.
_LANE: Final = 16
#: The most different weights of a weighted sum.
MAX_GROUPS: Final = 8


@dataclass
class WeightedSum(Form):
    """The stored byte of a program for one channel."""

    name = "weighted_sum"
    sum: StoredSum
    #: Loads the parameters.
    block: Block
    #: The program for one channel.
    emitted: Program
    #: The argument that provides alpha.
    alpha: int | None

    def text(self, spec: RowSpec) -> str:
        """Return the row function of the sum, where the CPU has products of pairs."""
        if not spec.machine.pair_product:
            return RowFunction(spec).text()
        return WeightedSumRow(spec, self).text()


def weighted_sum(source: PixelProgram) -> ProgramAnalysis | None:
    """Return the analysis of a sum of neighbors whose weights are the same for all pixels."""
    if not source.of_bytes or source.flat is None:
        return None
    emitted, block, (stored,) = source.flat
    if all(v.op != "image" or at_center(v) for v in values(block)):
        return None
    found = find_sum(stored)
    if found is None or len(found.groups) > MAX_GROUPS:
        return None
    numbers = [*(weight for weight, _ in found.groups), found.bias, found.bits]
    form = WeightedSum(found, Block([*needed_values(numbers)]), emitted, source.alpha)
    whole = source.program.out.channels in (1, 4)  # the plain function of wide weights
    return source.whole(form) if whole else source.one_channel(form)


class WeightedSumRow(NarrowRow):
    """Emits the row function of a weighted sum."""

    def __init__(self, spec: RowSpec, total: WeightedSum) -> None:
        analysis = replace(
            spec.analysis, emitted=total.emitted, block=total.block, result=(), kept={},
            varying=set(), varying_slots=set(), scale=spec.analysis.program.out.channels,
            alpha=total.alpha, bytes=True,
        )  # fmt: skip
        super().__init__(spec, analysis, total.sum.bits)
        self.sum = total.sum
        #: The weights of each pair of groups.
        self.weights: list[str] = []
        self.bias = ""

    def begin(self) -> None:
        """Broadcast the weights."""
        super().begin()
        names = [self.scalar(weight) for weight, _ in self.sum.groups]
        names += ["0"] * (len(names) % 2)
        self.weights = [self.pair(*names[i : i + 2]) for i in range(0, len(names), 2)]
        self.bias = self.splat(self.scalar(self.sum.bias))

    def computed(self) -> str:
        """Return a vector of bytes; even and odd ones are computed separately and interleaved."""
        f, kind, n = self.f, f"<{self.lanes} x i8>", _LANE // 2
        even, odd = self.totals()
        both = f.intrinsic(self.machine.to_bytes, kind, self.words16, even, odd)
        places = [
            first + k + half * n
            for first in range(0, self.lanes, _LANE)
            for k in range(n)
            for half in (0, 1)
        ]
        return f.shuffle(kind, both, "poison", places)

    def totals(self) -> list[str]:
        """Return the sums for the even and for the odd bytes."""
        f, wide = self.f, self.words32
        groups = [self.added(reads) for _, reads in self.sum.groups]
        groups += [("zeroinitializer",) * 2] * (len(groups) % 2)
        found = []
        for odd in (0, 1):
            totals = [self.bias, self.bias]
            for i, weights in enumerate(self.weights):
                for half in (0, 1):
                    first, second = groups[2 * i][odd], groups[2 * i + 1][odd]
                    n = self.vector // 2
                    pairs = interleave(f, self.words16, first, second, n, _LANE // 2, half)
                    totals[half] = f.let(f"add {wide} {totals[half]}, {self.times(pairs, weights)}")
            low, high = (self.shifted(total) for total in totals)
            found.append(f.intrinsic(self.machine.to_words, self.words16, wide, low, high))
        return found

    def added(self, reads: list[ByteRead]) -> tuple[str, str]:
        """Return the sums of the even and of the odd bytes of a group."""
        f, kind = self.f, self.words16
        both = [self.halves(*read[:3]) for read in reads]
        if len(both) == 1:
            words, odd = both[0]
            return f.let(f"and {kind} {words}, splat (i16 255)"), odd
        words, odd = both[0]
        for more, upper in both[1:]:
            words = f.let(f"add {kind} {words}, {more}")
            odd = f.let(f"add {kind} {odd}, {upper}")
        # Words are even bytes plus 256 times odd ones, and so are their sums, modulo 2^16.
        return f.let(f"sub {kind} {words}, {f.let(f'shl {kind} {odd}, splat (i16 8)')}"), odd

    def halves(self, argument: int, dx: int, dy: int) -> tuple[str, str]:
        """Return a vector of bytes as 16-bit words, and its odd bytes as 16-bit numbers."""
        f, kind = self.f, self.words16
        pixels = self.channel(argument, str(dx * self.analysis.scale), str(dy), 0)
        words = f.let(f"bitcast <{self.lanes} x i8> {pixels} to {kind}")
        return words, f.let(f"lshr {kind} {words}, splat (i16 8)")
