"""The row function of a weighted sum of bytes.

A vector of bytes is two vectors of 16-bit numbers, its even and its odd bytes, so bytes need not be
widened. Bytes of equal weight are added first. Two such sums and their weights are pairs, whose
products are added in 32 bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.weighted_sums import ByteRead, WeightedSum
from dala.gpu.compute.engines.cpu.rows.forms.narrow import NarrowRow
from dala.gpu.compute.engines.cpu.rows.row import RowSpec, interleave

#: Bytes of the parts of a vector that processors interleave and pack within.
_LANE: Final = 16


class WeightedSumRow(NarrowRow):
    """Emits the row function of a weighted sum."""

    def __init__(self, spec: RowSpec, total: WeightedSum) -> None:
        analysis = replace(
            spec.analysis, emitted=total.emitted, block=total.block, result=(), kept={},
            varying=set(), varying_slots=set(), scale=spec.analysis.program.out.channels,
            alpha=total.alpha, bytes=True,
        )  # fmt: skip
        super().__init__(spec, analysis, total.bits)
        self.sum = total
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
