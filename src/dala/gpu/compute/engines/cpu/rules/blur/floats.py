"""The sums of a blur of f32.

Each tap contributes its difference from the center, so that constant areas stay exactly constant.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import ClassVar, Final

from dala.gpu.compute.engines.cpu.rules.blur.rows import RowBlur

#: Vectors per iteration where taps are looped over, so that a weight is loaded once for all.
_VECTORS: Final = 4


def float_weights(radius: int, sigma: float) -> bytes:
    """Return the packed weights, one per word, from the center outwards."""
    # Divide first: the square of a small sigma would be 0. Weights beyond 40 sigmas are 0.
    shares = [math.exp(-0.5 * min(d / sigma, 40.0) ** 2) for d in range(radius + 1)]
    total = math.fsum([shares[0], *(2.0 * s for s in shares[1:])])
    return b"".join(struct.pack("=f4x", s / total) for s in shares)


class FloatBlur(RowBlur):
    """The row function of a blur of f32."""

    sum: ClassVar[str] = "float"
    stored: ClassVar[str] = "float"

    def blocks(self) -> tuple[int, int]:
        return (_VECTORS, _VECTORS) if self.looped else (1, 1)

    def load_weights(self) -> list[str]:
        return [] if self.looped else [self._weight(i) for i in range(1, self.radius + 1)]

    def sum_columns(self, at: str) -> list[str]:
        def load(row: str) -> list[str]:
            return [self.loaded(row, at, k, self.lanes) for k in range(self.block)]

        def pair(i: str | int) -> tuple[list[str], list[str]]:
            above, below = self.above_and_below(i)
            return load(above), load(below)

        return self._sum("down", load(self.middle), pair)

    def sum_along(self, x: str) -> list[str]:
        def pair(i: str | int) -> tuple[list[str], list[str]]:
            before, after = self.before_and_after(i)
            return self.load_sums(x, before), self.load_sums(x, after)

        return self._sum("across", self.load_sums(x, str(self.radius * self.channels)), pair)

    def _weight(self, index: str | int) -> str:
        return self.f.splat("float", self.weight_word(str(index), "float"), self.lanes)

    def _sum(
        self, name: str, center: list[str], pair: Callable[[str | int], tuple[list[str], list[str]]]
    ) -> list[str]:
        """Add the taps on both sides in pairs."""

        def add(i: str | int, sums: list[str]) -> list[str]:
            weight = self.splats[i - 1] if isinstance(i, int) else self._weight(i)
            return [
                self._add_pair(s, a, b, m, weight)
                for s, a, b, m in zip(sums, *pair(i), center, strict=True)
            ]

        if self.looped:
            return self.taps(self.f.label(f"{name}.taps"), center, self.radius, add, self.kind)
        sums = center
        for i in range(1, self.radius + 1):
            sums = add(i, sums)
        return sums

    def _add_pair(self, s: str, a: str, b: str, middle: str, weight: str) -> str:
        """Add two taps of equal weight."""
        f, kind = self.f, self.kind
        both = f.let(f"fadd {kind} {a}, {b}")
        twice = f.let(f"fadd {kind} {middle}, {middle}")
        apart = f.let(f"fsub {kind} {both}, {twice}")
        return f.intrinsic(f"fmuladd.v{self.lanes}f32", kind, kind, apart, weight, s)
