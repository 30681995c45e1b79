"""The sums of a blur of u8, in integers: as ``byte_steps`` of ``sampling.gauss`` defines them.

Taps on both sides share a weight, so their numbers are added first. Two such terms and their
weights are interleaved for one instruction that multiplies 16-bit numbers and adds adjacent
products, exactly, in 32 bits. The sums between the passes have 16 bits. They contain the rounding
of the result: half a step, as all weights add up to one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from dala.gpu.compute.engines.cpu.loops.row import interleave
from dala.gpu.compute.engines.cpu.rules.blur.rows import RowBlur
from dala.gpu.compute.engines.sampling.gauss import MIDDLE_SHIFT, RESULT_SHIFT, byte_steps

#: What is added to the sums of columns: half a unit, and half a step of the result.
_ROUNDING: Final = (1 << (MIDDLE_SHIFT - 1)) + (1 << (RESULT_SHIFT - 17 + MIDDLE_SHIFT))

#: A term: the elements on both sides of a pixel, added, in 16 bits.
_Terms = Callable[[str | int], list[str]]


def byte_weights(radius: int, sigma: float) -> bytes:
    """Return the packed weights: two of 16 bits in each word, from the center outwards.

    The last one of an even radius has no partner: there, half the rounding of sums of columns is.
    """
    steps = byte_steps(radius, sigma)
    if is_narrow(steps):
        steps = [steps[0] // 2, *steps[1:]]
    if radius % 2 == 0:
        steps = [*steps, _ROUNDING // 2]
    words = [steps[k] | steps[k + 1] << 16 for k in range(0, len(steps), 2)]
    return struct.pack(f"={radius + 1}q", *words, *[0] * (radius + 1 - len(words)))


def is_narrow(steps: Sequence[int]) -> bool:
    """Return whether the center's weight has more than 15 bits: then it counts twice, by halves."""
    return steps[0] > 32767


class ByteBlur(RowBlur):
    """The row function of a blur of u8."""

    sum: ClassVar[str] = "i16"
    stored: ClassVar[str] = "i8"

    @property
    def narrow(self) -> bool:
        """Whether the center is added to itself, with half its weight."""
        return is_narrow(byte_steps(self.radius, self.sigma))

    @property
    def paired(self) -> bool:
        """Whether two pairs are multiplied at once."""
        return bool(self.machine.pair_product) and self.lanes > 1

    @property
    def groups(self) -> int:
        """The number of groups of two terms."""
        return self.radius // 2 + 1

    def blocks(self) -> tuple[int, int]:
        one = 2 if self.machine.pair_product else 1
        down = 4 if self.looped else one
        return down, 4 if self.summed < self.channels else down

    def load_weights(self) -> list[str]:
        if self.looped:
            return []
        return [self._weight(str(g)) for g in range(self.groups)]

    def _weight(self, group: str) -> str:
        """Load the weights of a group into every lane."""
        lanes = self.lanes // 2 if self.paired else self.lanes
        return self.f.splat("i32", self.weight_word(group, "i32"), lanes)

    # the two passes -----------------------------------------------------------------------------
    def sum_columns(self, at: str) -> list[str]:
        f = self.f
        units = range(self.block // 2 if self.paired else self.block)

        def terms(i: str | int) -> list[str]:
            rows: tuple[str, ...] = (self.middle,)
            if i != 0 or self.narrow:
                rows = self.above_and_below(i)
            found = []
            for k in units:
                wide = 2 * self.lanes if self.paired else self.lanes
                given = [self.loaded(row, at, k, wide) for row in rows]
                found += self._added(*given) if self.paired else [self._widened(*given)]
            return found

        sums = self._sum("down", terms, self.block, _ROUNDING, MIDDLE_SHIFT)
        if not self.paired:
            return [f.let(f"trunc <{self.lanes} x i32> {s} to {self.kind}") for s in sums]
        n, kind = self.lanes, self.kind
        ordered = []
        for k in units:
            low, high = sums[2 * k : 2 * k + 2]
            for first in (0, n):
                places = [
                    (i // 16) * 8 + i % 8 + (n if i % 16 >= 8 else 0)
                    for i in range(first, first + n)
                ]
                ordered.append(self.f.shuffle(kind, low, high, places))
        return ordered

    def sum_along(self, x: str) -> list[str]:
        f, kind, n = self.f, self.kind, self.lanes

        def terms(i: str | int) -> list[str]:
            before, after = self.before_and_after(i)
            if i == 0 and not self.narrow:
                return self.load_sums(x, before)
            both = zip(self.load_sums(x, before), self.load_sums(x, after), strict=True)
            return [f.let(f"add {kind} {a}, {b}") for a, b in both]

        count = self.block * self.summed // self.channels
        sums = self._sum("across", terms, count, 0, RESULT_SHIFT)
        if not self.paired:
            return [f.let(f"trunc <{n} x i32> {s} to <{n} x i8>") for s in sums]
        pixels = f"<{2 * n} x i8>"
        packed = [
            f.intrinsic(self.machine.to_bytes, pixels, kind, sums[k], sums[min(k + 1, count - 1)])
            for k in range(0, count, 2)
        ]
        if self.summed < self.channels:
            return self._spread(*packed)
        places = [(i % n // 8) * 16 + i // n * 8 + i % 8 for i in range(2 * n)]
        return [self.f.shuffle(pixels, v, "poison", places) for v in packed]

    def _spread(self, first: str, second: str) -> list[str]:
        """Return two vectors of RGBA, alpha undefined, from the packed colors of their pixels."""
        f, n = self.f, self.lanes
        words, pixels = f"<{n // 2} x i32>", f"<{2 * n} x i8>"
        first, second = (f.let(f"bitcast {pixels} {v} to {words}") for v in (first, second))
        # Where each four colors are: packing has put together halves of two vectors.
        fours = [k // 2 * 4 + k % 2 + h for h in (0, 2, n // 2) for k in range(n // 4)]
        inside = [p + 3 * (k // 4) + k % 4 for p in range(0, 2 * n, 16) for k in range(16)]
        found = []
        for begin in (0, 3 * n // 8):
            places = [fours[begin + 3 * (k // 4) + min(k % 4, 2)] for k in range(n // 2)]
            moved = self.f.shuffle(words, first, second, places)
            moved = f.let(f"bitcast {words} {moved} to {pixels}")
            found.append(self.f.shuffle(pixels, moved, "poison", inside))
        return found

    # sums ---------------------------------------------------------------------------------------
    def _sum(self, name: str, terms: _Terms, count: int, rounding: int, shift: int) -> list[str]:
        """Return ``count`` weighted sums of all terms plus ``rounding``, shifted.

        They are vectors of 16 bits, or of 32 where pairs are not multiplied at once.
        """
        f, n = self.f, self.lanes
        kind = f"<{n // 2 if self.paired else n} x i32>"
        count *= 2 if self.paired else 1
        alone = self.radius % 2 == 0  # the last term, whose partner is a constant
        whole = self.groups - alone
        # Averages of packed sums round half as many vectors.
        averaged = self.paired and rounding > 0 and not alone

        def add(g: str | int, sums: list[str]) -> list[str]:
            first = 2 * g if isinstance(g, int) else f.let(f"shl nuw nsw i64 {g}, 1")
            other = 2 * g + 1 if isinstance(g, int) else f.let(f"add nuw nsw i64 {first}, 1")
            return self._add_group(g, terms(first), terms(other), sums)

        sums = [f"splat (i32 {0 if alone or averaged else rounding})"] * count
        if self.looped and whole > 1:
            sums = add(0, sums)
            sums = self.taps(f.label(f"{name}.taps"), sums, whole - 1, add, kind)
        else:
            for g in range(whole):
                sums = add(g, sums)
        if alone:
            last = terms(self.radius)
            constant = f"splat (i16 {2 if rounding else 0})"
            sums = self._add_group(whole, last, [constant] * len(last), sums)
        sums = [f.let(f"lshr {kind} {s}, splat (i32 {shift - averaged})") for s in sums]
        if not self.paired:
            return sums
        packed = [
            f.intrinsic(self.machine.to_words, self.kind, kind, *sums[k : k + 2])
            for k in range(0, count, 2)
        ]
        if not averaged:
            return packed
        half, kind = f"splat (i16 {rounding >> shift << 1})", self.kind
        return [f.intrinsic(self.machine.average, kind, kind, v, half) for v in packed]

    def _add_group(
        self, g: str | int, ones: list[str], twos: list[str], sums: list[str]
    ) -> list[str]:
        """Add two terms, each times its weight."""
        f, n, kind = self.f, self.lanes, self.kind
        weight = self.splats[g] if isinstance(g, int) and self.splats else self._weight(str(g))
        found = []
        if not self.paired:
            wide = f"<{n} x i32>"
            # All numbers have 15 bits, for which LLVM finds faster instructions.
            low = f.let(f"and {wide} {weight}, splat (i32 32767)")
            high = f.let(f"lshr {wide} {weight}, splat (i32 16)")
            high = f.let(f"and {wide} {high}, splat (i32 32767)")
            for s, a, b in zip(sums, ones, twos, strict=True):
                for term, w in ((a, low), (b, high)):
                    long = f.let(f"sext {kind} {term} to {wide}")
                    s = f.let(f"add {wide} {s}, {f.let(f'mul {wide} {long}, {w}')}")
                found.append(s)
            return found
        wide = f"<{n // 2} x i32>"
        weight = f.let(f"bitcast {wide} {weight} to {kind}")
        for k, (a, b) in enumerate(zip(ones, twos, strict=True)):
            for half in (0, 1):
                both = interleave(f, kind, a, b, n, 8, half)
                product = f.intrinsic(self.machine.pair_product, wide, kind, both, weight)
                found.append(f.let(f"add {wide} {sums[2 * k + half]}, {product}"))
        return found

    def _widened(self, *rows: str) -> str:
        """Add vectors of bytes, in 16 bits."""
        f, n = self.f, self.lanes
        first, *more = (f.let(f"zext <{n} x i8> {v} to {self.kind}") for v in rows)
        return f.let(f"add {self.kind} {first}, {more[0]}") if more else first

    def _added(self, a: str, b: str = "zeroinitializer") -> list[str]:
        """Add two vectors of bytes, in 16 bits, in the order of :meth:`sum_columns`.

        The bytes are interleaved within groups of 16, and one instruction adds adjacent ones.
        """
        f, kind, pixels = self.f, self.kind, f"<{2 * self.lanes} x i8>"
        name = f.module.intrinsic(self.machine.byte_pairs, kind, pixels, pixels)
        found = []
        for half in (0, 1):
            both = interleave(f, pixels, a, b, 2 * self.lanes, 16, half)
            if b == "zeroinitializer":
                found.append(f.let(f"bitcast {pixels} {both} to {kind}"))
            else:
                found.append(f.let(f"call {kind} {name}({pixels} {both}, {pixels} splat (i8 1))"))
        return found
