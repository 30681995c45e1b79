"""The sums of a blur of u8, in integers: as ``byte_weights`` of ``sampling.gauss`` defines them.

Taps on both sides share a weight, so their numbers are added first; the center counts as such a
pair, with half its weight. Two pairs and their weights are interleaved for one instruction that
multiplies 16-bit numbers and adds adjacent products, exactly, in 32 bits. The sums between the
passes have 16 bits. They contain the rounding of the result: half a step, as all weights add up
to one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from dala.gpu.compute.engines.cpu.rows.forms.blur.rows import RowBlur
from dala.gpu.compute.engines.sampling.gauss import MIDDLE_SHIFT, RESULT_SHIFT, byte_steps

#: What is added to the sums of columns: half a unit, and half a step of the result.
_ROUNDING: Final = (1 << (MIDDLE_SHIFT - 1)) + (1 << (RESULT_SHIFT - 17 + MIDDLE_SHIFT))

#: A term: the elements on both sides of a pixel, added, in 16 bits.
_Terms = Callable[[str | int], list[str]]


def byte_weights(radius: int, sigma: float) -> bytes:
    """Return the packed weights: two of 16 bits in each word, from the center outwards."""
    steps = byte_steps(radius, sigma)
    halves = [steps[0] // 2, *steps[1:], *[0] * (radius + 1)]
    words = [halves[2 * k] | halves[2 * k + 1] << 16 for k in range(radius + 1)]
    return struct.pack(f"={radius + 1}q", *words)


class ByteBlur(RowBlur):
    """The row function of a blur of u8."""

    sum: ClassVar[str] = "i16"
    sum_bytes: ClassVar[int] = 2
    stored: ClassVar[str] = "i8"
    item: ClassVar[int] = 1

    @property
    def paired(self) -> bool:
        """Whether two pairs are multiplied at once."""
        return bool(self.machine.pair_product) and self.lanes > 1

    @property
    def groups(self) -> int:
        """The number of groups of two terms."""
        return self.radius // 2 + 1

    def blocks(self) -> tuple[int, int]:
        if self.machine.pair_product:
            return (4, 4) if self.looped else (2, 2)
        return (4, 4) if self.looped else (1, 1)

    def load_weights(self) -> list[str]:
        return [self._weight(str(g)) for g in range(1 if self.looped else self.groups)]

    def _weight(self, group: str) -> str:
        """Load the weights of a group into every lane."""
        lanes = self.lanes // 2 if self.paired else self.lanes
        return self.f.splat("i32", self.weight_word(group, "i32"), lanes)

    # the two passes -----------------------------------------------------------------------------
    def sum_columns(self, at: str) -> list[str]:
        f = self.f
        units = range(self.block // 2 if self.paired else self.block)

        def terms(i: str | int) -> list[str]:
            above, below = self.above_and_below(i)
            found = []
            for k in units:
                wide = 2 * self.lanes if self.paired else self.lanes
                a, b = (self.loaded(row, at, k, wide) for row in (above, below))
                found += self._added(a, b) if self.paired else [self._widened(a, b)]
            return found

        sums = self._sum("down", terms, _ROUNDING, MIDDLE_SHIFT)
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
                ordered.append(self._shuffle(kind, low, high, places))
        return ordered

    def sum_along(self, x: str) -> list[str]:
        f, kind, n = self.f, self.kind, self.lanes

        def terms(i: str | int) -> list[str]:
            before, after = self.before_and_after(i)
            both = zip(self.load_sums(x, before), self.load_sums(x, after), strict=True)
            return [f.let(f"add {kind} {a}, {b}") for a, b in both]

        sums = self._sum("across", terms, 0, RESULT_SHIFT)
        if not self.paired:
            return [f.let(f"trunc <{n} x i32> {s} to <{n} x i8>") for s in sums]
        pixels = f"<{2 * n} x i8>"
        name = f.module.intrinsic(self.machine.to_bytes, pixels, kind, kind)
        places = [(i % n // 8) * 16 + i // n * 8 + i % 8 for i in range(2 * n)]
        found = []
        for k in range(0, self.block, 2):
            packed = f.let(f"call {pixels} {name}({kind} {sums[k]}, {kind} {sums[k + 1]})")
            found.append(self._shuffle(pixels, packed, "poison", places))
        return found

    # sums ---------------------------------------------------------------------------------------
    def _sum(self, name: str, terms: _Terms, start: int, shift: int) -> list[str]:
        """Return weighted sums of all terms plus ``start``, shifted: vectors of 16 or 32 bits."""
        f, n = self.f, self.lanes
        kind = f"<{n // 2 if self.paired else n} x i32>"

        def add(g: str | int, sums: list[str]) -> list[str]:
            return self._add_group(g, terms, sums)

        count = self.block * (2 if self.paired else 1)
        sums = add(0, [f"splat (i32 {start})"] * count)
        if self.looped and self.groups > 1:
            sums = self.taps(f.label(f"{name}.taps"), sums, self.groups - 1, add, kind)
        else:
            for g in range(1, self.groups):
                sums = add(g, sums)
        sums = [f.let(f"lshr {kind} {s}, splat (i32 {shift})") for s in sums]
        if not self.paired:
            return sums
        pack = f.module.intrinsic(self.machine.to_words, self.kind, kind, kind)
        return [
            f.let(f"call {self.kind} {pack}({kind} {sums[k]}, {kind} {sums[k + 1]})")
            for k in range(0, count, 2)
        ]

    def _add_group(self, g: str | int, terms: _Terms, sums: list[str]) -> list[str]:
        """Add two terms, each times its weight; beyond the last one the weight is 0."""
        f, n, kind = self.f, self.lanes, self.kind
        if isinstance(g, int):
            weight = self.splats[g]
            first: str | int = 2 * g
            other: str | int = min(2 * g + 1, self.radius)
        else:
            weight = self._weight(g)
            first = f.let(f"shl nuw nsw i64 {g}, 1")
            other = f.smaller(f.let(f"add nuw nsw i64 {first}, 1"), self.radius)
        ones, twos = terms(first), terms(other)
        found = []
        if not self.paired:
            wide = f"<{n} x i32>"
            low = f.let(f"and {wide} {weight}, splat (i32 65535)")
            high = f.let(f"lshr {wide} {weight}, splat (i32 16)")
            for s, a, b in zip(sums, ones, twos, strict=True):
                for term, w in ((a, low), (b, high)):
                    long = f.let(f"zext {kind} {term} to {wide}")
                    s = f.let(f"add {wide} {s}, {f.let(f'mul {wide} {long}, {w}')}")
                found.append(s)
            return found
        wide = f"<{n // 2} x i32>"
        name = f.module.intrinsic(self.machine.pair_product, wide, kind, kind)
        weight = f.let(f"bitcast {wide} {weight} to {kind}")
        for k, (a, b) in enumerate(zip(ones, twos, strict=True)):
            for half in (0, 1):
                places = [
                    n * j + p + 4 * half + i
                    for p in range(0, n, 8)
                    for i in range(4)
                    for j in (0, 1)
                ]
                both = self._shuffle(kind, a, b, places)
                product = f.let(f"call {wide} {name}({kind} {both}, {kind} {weight})")
                found.append(f.let(f"add {wide} {sums[2 * k + half]}, {product}"))
        return found

    def _widened(self, a: str, b: str) -> str:
        """Add two vectors of bytes, in 16 bits."""
        f, n = self.f, self.lanes
        x, y = (f.let(f"zext <{n} x i8> {v} to {self.kind}") for v in (a, b))
        return f.let(f"add {self.kind} {x}, {y}")

    def _added(self, a: str, b: str) -> list[str]:
        """Add two vectors of bytes, in 16 bits, in the order of :meth:`sum_columns`.

        The bytes are interleaved within groups of 16, and one instruction adds adjacent ones.
        """
        f, n, kind, pixels = self.f, self.lanes, self.kind, f"<{2 * self.lanes} x i8>"
        name = f.module.intrinsic(self.machine.byte_product, kind, pixels, pixels)
        found = []
        for half in (0, 8):
            places = [
                2 * n * j + p + half + i
                for p in range(0, 2 * n, 16)
                for i in range(8)
                for j in (0, 1)
            ]
            both = self._shuffle(pixels, a, b, places)
            found.append(f.let(f"call {kind} {name}({pixels} {both}, {pixels} splat (i8 1))"))
        return found

    def _shuffle(self, kind: str, a: str, b: str, places: Sequence[int]) -> str:
        listed = ", ".join(f"i32 {p}" for p in places)
        return self.f.let(f"shufflevector {kind} {a}, {kind} {b}, <{len(places)} x i32> <{listed}>")
