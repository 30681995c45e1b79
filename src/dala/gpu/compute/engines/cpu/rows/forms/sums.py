"""The row function of a weighted sum of bytes, in 16-bit fixed point.

A vector of bytes is two of 16-bit numbers, the even and the odd ones, with no need to widen or to
narrow. Bytes of one weight are added first, and the sum is multiplied as a fraction, rounded. How
many bits are left for fractions depends on the weights, and is found anew for every row: as many as
the largest possible sum has room for. Where the errors of all roundings could come near half a
step, the row is left to the function that computes in floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.facts import Facts
from dala.gpu.compute.engines.cpu.llvm.text import Module, constant
from dala.gpu.compute.engines.cpu.rows.emit import Machine, Row, Words
from dala.gpu.compute.lang.ir import Value

#: The largest 16-bit number, and the most that fractions may be scaled by.
_LARGEST: Final = 32767.0
_FINEST: Final = 128.0


def sums_functions(
    module: Module, name: str, facts: Facts, words: Words, machine: Machine, tight: Sequence[bool],
    tight_out: bool,
) -> str:  # fmt: skip
    """The row function of that name, and the one in floats."""
    floats = Row(module, f"{name}.floats", facts, words, machine.vector, tight, tight_out).text()
    return floats + "\n" + _Row(module, name, facts, words, machine, tight, tight_out).text()


class _Row(Row):
    def __init__(
        self, module: Module, name: str, facts: Facts, words: Words, machine: Machine,
        tight: Sequence[bool], tight_out: bool,
    ) -> None:  # fmt: skip
        assert facts.sums is not None
        self.sums = facts.sums
        flat = replace(
            facts, form=self.sums.form, block=self.sums.block, result=(), kept={}, uneven=set(),
            uneven_slots=set(), scale=facts.program.out.channels, alpha=self.sums.alpha, bytes=True,
        )  # fmt: skip
        super().__init__(module, name, flat, words, machine.vector, tight, tight_out)
        self.name = name
        self.product = machine.rounded_product
        self.half = self.lanes // 2
        self.kind = f"<{self.half} x i16>"
        #: For each group: bits that its sum is moved up by, and its weight in every place.
        self.shifts = [
            int(math.log2(_LARGEST / (255 * len(g.reads)))) for g in self.sums.groups
        ]  # fmt: skip
        self.weights: list[str] = []
        self.bias = self.back = ""

    # ahead of the loop --------------------------------------------------------------------------
    def begin(self) -> None:
        """The weights as fractions; what they are too large or too many for goes to floats."""
        f, groups = self.f, self.sums.groups
        weights = [self.scalar(g.weight) for g in groups]
        bias = self.scalar(self.sums.bias)
        sizes = [self.call("fabs.f32", w) for w in weights]
        largest = self.call("fabs.f32", bias)
        for g, size in zip(groups, sizes, strict=True):
            share = f.let(f"fmul float {size}, {_float(255.0 * len(g.reads))}")
            largest = f.let(f"fadd float {largest}, {share}")
        for shift, size in zip(self.shifts, sizes, strict=True):
            # A weight must fit too, as the fraction that its group needs.
            share = f.let(f"fmul float {size}, {_float(2.0 ** (15 - shift))}")
            larger = f.let(f"fcmp ogt float {share}, {largest}")
            largest = f.let(f"select i1 {larger}, float {share}, float {largest}")
        largest = f.let(f"fadd float {largest}, 1.0")
        room = f.let(f"fdiv float {_float(_LARGEST)}, {largest}")
        # Each product and each weight may be half a unit off, and so may the sum.
        least = _float(2.0 ** math.ceil(math.log2(2 * len(groups) + 1)))
        f.branch(f.let(f"fcmp oge float {room}, {least}"), "whole", "floats")
        f.start("floats")
        given = "ptr %job, ptr %out, ptr %rows, i64 %count, i64 %x0, i64 %y"
        f.do(f"call void {self.name}.floats({given})")
        f.do("ret void")
        f.start("whole")
        much = f.let(f"fcmp ogt float {room}, {_float(_FINEST)}")
        room = f.let(f"select i1 {much}, float {_float(_FINEST)}, float {room}")
        bits = f.let(f"bitcast float {room} to i32")
        scale = f.let(f"bitcast i32 {f.let(f'and i32 {bits}, 2139095040')} to float")
        for shift, w in zip(self.shifts, weights, strict=True):
            each = f.let(f"fmul float {w}, {_float(2.0 ** (15 - shift))}")
            self.weights.append(self.everywhere(f.let(f"fmul float {each}, {scale}")))
        if self.sums.bias.op != "const" or self.sums.bias.attr:
            self.bias = self.everywhere(f.let(f"fmul float {bias}, {scale}"))
        self.back = self.everywhere(f.let(f"fdiv float 32768.0, {scale}"))

    def scalar(self, v: Value) -> str:
        return self.vectors.operand(v, False)

    def call(self, name: str, a: str) -> str:
        full = self.f.module.intrinsic(name, "float", "float")
        return self.f.let(f"call float {full}(float {a})")

    def everywhere(self, number: str) -> str:
        """A float, rounded, in every place of a vector."""
        f, kind = self.f, self.kind
        whole = f.let(f"fptosi float {self.call('roundeven.f32', number)} to i16")
        one = f.let(f"insertelement {kind} poison, i16 {whole}, i64 0")
        zero = f"<{self.half} x i32> zeroinitializer"
        return f.let(f"shufflevector {kind} {one}, {kind} poison, {zero}")

    # in the loop --------------------------------------------------------------------------------
    def computed(self) -> str:
        """A vector of bytes: even and odd ones apart, then together again."""
        f, kind = self.f, self.kind
        even, odd = self.total(0), self.total(1)
        odd = f.let(f"shl {kind} {odd}, splat (i16 8)")
        both = f.let(f"or {kind} {even}, {odd}")
        return f.let(f"bitcast {kind} {both} to <{self.lanes} x i8>")

    def total(self, part: int) -> str:
        """The sums of every other byte, as numbers of 0 to 255."""
        f, kind = self.f, self.kind
        total = ""
        for g, shift, weight in zip(self.sums.groups, self.shifts, self.weights, strict=True):
            numbers = [self.number(*read[:3], part) for read in g.reads]
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

    def number(self, argument: int, dx: int, dy: int, part: int) -> str:
        """Every other byte of a row."""
        f, kind = self.f, self.kind
        key = ("part", argument, dx, dy, part)
        if key not in self.loaded:
            pixels = self.channel(argument, str(dx * self.facts.scale), str(dy), 0)
            words = f.let(f"bitcast <{self.lanes} x i8> {pixels} to {kind}")
            text = f"lshr {kind} {words}, splat (i16 8)"
            self.loaded[key] = f.let(text if part else f"and {kind} {words}, splat (i16 255)")
        return self.loaded[key]

    def times(self, a: str, b: str) -> str:
        """The product of two fractions, rounded: (a b + 2^14) / 2^15."""
        f, kind, wide = self.f, self.kind, f"<{self.half} x i32>"
        if self.product:
            name = f.module.intrinsic(self.product, kind, kind, kind)
            return f.let(f"call {kind} {name}({kind} {a}, {kind} {b})")
        x, y = (f.let(f"sext {kind} {v} to {wide}") for v in (a, b))
        product = f.let(f"add {wide} {f.let(f'mul {wide} {x}, {y}')}, splat (i32 16384)")
        product = f.let(f"ashr {wide} {product}, splat (i32 15)")
        return f.let(f"trunc {wide} {product} to {kind}")


def _float(value: float) -> str:
    return constant(value, "float")
