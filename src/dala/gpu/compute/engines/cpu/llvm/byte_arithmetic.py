"""Rearrange the arithmetic of programs that store bytes, where the last bits do not matter.

- A sum of products is a fused multiply-add: one instruction instead of two, rounded once.
- Two constant factors are one, such as the 1/255 of a byte and a weight.
- A quotient by a number that is the same for all pixels is a product with its reciprocal.

Results may differ in their last bits, which must not matter: the value reaches the stored byte only
through operations that keep a small error small. Comparisons, conversions to ints and divisors
could turn it into a large one, and a square root could get a number below 0 where two equal
products are subtracted.

Many filters add something times an amount. With an amount of 0, whole channels are often copies of
the input, and what they would have needed is not computed: :func:`find_zero_variant`. Row functions
test this for every row; see ``rows/forms/zero_param.py``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dala.gpu.compute.engines.cpu.llvm.byte_values import kept_channel
from dala.gpu.compute.engines.cpu.llvm.weighted_sums import needed_values, stored_value
from dala.gpu.compute.lang.ir import (
    FLOATS,
    Block,
    For,
    If,
    Program,
    SetSlot,
    Value,
    statements,
    values,
)

#: Operations whose result changes little if an operand does: the operands for which this holds.
_GENTLE: Final = {
    "add": (0, 1), "sub": (0, 1), "mul": (0, 1), "neg": (0,), "abs": (0,), "min": (0, 1),
    "max": (0, 1), "sqrt": (0,), "div": (0,), "select": (1, 2),
}  # fmt: skip

#: Errors may be multiplied by this, and must still be far below a step.
_LARGEST_FACTOR: Final = 1024.0
#: Uniform factors of what is left out must not exceed 2 to this power: their product with 0 is 0.
UNIFORM_BITS: Final = 10
#: Numbers up to 2 to this power are finite.
_MOST_BITS: Final = 120


def fused_sums(block: Block, result: Sequence[Value], *, partial: bool = False) -> dict[Value, int]:
    """Return the sums to fuse: for each, which of its operands is the product.

    ``partial``: the results are read by a program that stores bytes, and are not bytes themselves.
    """
    finder = _Finder(block, result, partial)
    return {s: k for s in values(block) if (k := finder.product(s)) is not None}


def products_for(
    block: Block, result: Sequence[Value], varying: Collection[Value]
) -> frozenset[Value]:
    """Return the quotients by uniform numbers that may be products with a reciprocal."""
    finder = _Finder(block, result)
    return frozenset(
        v
        for v in values(block)
        if v.op == "div" and v.type == "f32" and v in varying and v.args[1] not in varying
        and v not in finder.storing and finder.is_gentle(v)
    )  # fmt: skip


def merged_factors(
    block: Block, result: tuple[Value, ...], *, partial: bool = False
) -> tuple[Block, tuple[Value, ...]]:
    """Return a program with pairs of constant factors replaced by their product."""
    if any(not isinstance(s, Value) for s in block.body):
        return block, result
    finder = _Finder(block, result, partial)
    made: dict[Value, Value] = {}

    def copy(v: Value) -> Value:
        if v.op == "const":
            return v
        if v not in made:
            args = tuple(copy(a) for a in v.args)
            made[v] = v if args == v.args else Value(v.op, v.type, args, v.attr)
            inner, factor = _scaled(v), None
            if inner is not None and v not in finder.storing and finder.is_gentle(v):
                factor = _scaled(inner[0])
            if inner is not None and factor is not None:
                number = float(np.float32(inner[1]) * np.float32(factor[1]))
                if 1e-30 < abs(number) < 1e30:
                    constant = Value("const", "f32", (), number)
                    made[v] = Value("mul", "f32", (copy(factor[0]), constant))
        return made[v]

    results = tuple(copy(v) for v in result)
    return Block(list(needed_values(results))), results


def reads_are_gentle(block: Block, result: Sequence[Value], argument: int) -> bool:
    """Return whether small errors of an argument's numbers do not matter to the stored bytes."""
    finder = _Finder(block, result)
    return all(
        finder.is_gentle(v)
        for v in values(block)
        if v.op in ("image", "pixel") and v.attr[0] == argument
    )


def _enlarges(v: Value) -> bool:
    """Return whether a value is another one times a large number, and so are its errors."""
    factor = _scaled(v)
    if factor is not None:
        return not abs(factor[1]) <= _LARGEST_FACTOR
    small = v.op == "div" and v.args[1].op == "const"
    return small and not abs(float(v.args[1].attr)) >= 1.0 / _LARGEST_FACTOR


def _scaled(v: Value) -> tuple[Value, float] | None:
    """Return the operand and the constant factor of a product; None for other values."""
    if v.op != "mul" or v.type != "f32":
        return None
    for k in (0, 1):
        if v.args[k].op == "const":
            return v.args[1 - k], float(v.args[k].attr)
    return None


class _Finder:
    def __init__(self, block: Block, result: Sequence[Value], partial: bool = False) -> None:
        self.users: dict[Value, list[tuple[Value, int]]] = {}
        #: Values that slots, branches and loops depend on.
        self.rough: set[Value] = set()
        for s in statements(block):
            if isinstance(s, Value):
                for k, a in enumerate(s.args):
                    self.users.setdefault(a, []).append((s, k))
            elif isinstance(s, SetSlot):
                self.rough.add(s.value)
            elif isinstance(s, If):
                self.rough.add(s.condition)
            elif isinstance(s, For):
                self.rough.update((s.start, s.stop))
        #: The operations that clamp and round a stored byte.
        self.storing: set[Value] = set()
        for stored in () if partial else result:
            inner = stored_value(stored)
            if inner is None:
                self.rough.add(stored)
            else:
                self._mark(stored, inner)
        self.gentle: dict[Value, bool] = {}
        self.rooted: dict[Value, bool] = {}

    def _mark(self, v: Value, inner: Value) -> None:
        if v is not inner and v not in self.storing:
            self.storing.add(v)
            for a in v.args:
                self._mark(a, inner)

    def product(self, v: Value) -> int | None:
        """Return which operand of a sum is a product to fuse it with, if any."""
        if v.op not in ("add", "sub") or v.type != "f32":
            return None
        found = [
            k for k, a in enumerate(v.args) if a.op == "mul" and len(self.users.get(a, ())) == 1
        ]
        if not found or v in self.storing or not self.is_gentle(v):
            return None
        squares = v.op == "add" and all(a.op == "mul" and a.args[0] is a.args[1] for a in v.args)
        if not squares and self._under_root(v):
            return None
        return found[-1]

    def is_gentle(self, v: Value) -> bool:
        """Return whether a small error of a value stays small in the stored bytes."""
        if v not in self.gentle:
            self.gentle[v] = v not in self.rough and all(
                u in self.storing
                or (k in _GENTLE.get(u.op, ()) and not _enlarges(u) and self.is_gentle(u))
                for u, k in self.users.get(v, ())
            )
        return self.gentle[v]

    def _under_root(self, v: Value) -> bool:
        """Return whether a value's sign matters to a square root."""
        if v not in self.rooted:
            self.rooted[v] = any(
                u.op == "sqrt"
                or (
                    u.op != "abs"
                    and not (u.op == "mul" and u.args[0] is u.args[1])
                    and self._under_root(u)
                )
                for u, _ in self.users.get(v, ())
            )
        return self.rooted[v]


# a parameter of 0 --------------------------------------------------------------------------------
@dataclass
class ZeroVariant:
    """A program for a parameter that is 0."""

    #: The index of the parameter.
    param: int
    block: Block
    result: tuple[Value, ...]
    kept: dict[int, tuple[int, int]]
    #: Uniform values of the whole program that must be small for this to hold.
    guarded: list[Value]


def find_zero_variant(
    program: Program,
    block: Block,
    result: tuple[Value, ...],
    varying: set[Value],
    kept: dict[int, tuple[int, int]],
) -> ZeroVariant | None:
    """Return the variant that keeps more channels than the program itself, or None."""
    if any(not isinstance(s, Value) or s.op == "get" for s in block.body):
        return None
    best: ZeroVariant | None = None
    for index, param in enumerate(program.params):
        if param.type != "f32":
            continue
        folder = _Folder(index, varying)
        made = tuple(folder.fold(v) for v in result)
        found = {c: k for c, v in enumerate(made) if (k := kept_channel(v, program)) is not None}
        if len(found) > len(kept if best is None else best.kept):
            needed = needed_values([v for c, v in enumerate(made) if c not in found])
            best = ZeroVariant(index, Block(list(needed)), made, found, folder.guarded)
    return best


@dataclass
class _Folder:
    """Replaces a parameter by 0, and what follows from it."""

    param: int
    varying: set[Value]
    guarded: list[Value] = field(default_factory=list)
    _made: dict[Value, Value] = field(default_factory=dict)
    _bits: dict[Value, float] = field(default_factory=dict)

    def fold(self, v: Value) -> Value:
        """Return a value with the parameter replaced."""
        if v not in self._made:
            self._made[v] = self._fold(v)
        return self._made[v]

    def _fold(self, v: Value) -> Value:
        if v.op == "param" and v.attr == self.param:
            return Value("const", v.type, (), 0.0)
        if not v.args:
            return v
        args = tuple(self.fold(a) for a in v.args)
        if v.type == "f32":
            zeros = [_is_zero(a) for a in args]
            if v.op == "mul" and any(zeros) and (all(zeros) or self._finite(v.args[zeros[0]])):
                return Value("const", "f32", (), 0.0)
            if v.op in ("add", "sub") and zeros[1]:
                return args[0]
            if v.op == "add" and zeros[0]:
                return args[1]
        if all(a is b for a, b in zip(args, v.args, strict=True)):
            return v
        return Value(v.op, v.type, args, v.attr)

    def _finite(self, v: Value) -> bool:
        """Return whether a value is finite, if the guarded values are small."""
        return self._size(v) <= _MOST_BITS

    def _size(self, v: Value) -> float:
        """Return the power of two that bounds a value; infinity where there is none."""
        if v not in self._bits:
            self._bits[v] = self._size_of(v)
        return self._bits[v]

    def _size_of(self, v: Value) -> float:
        if v.op == "const":
            number = abs(float(v.attr))
            return math.log2(max(number, 1e-30)) if math.isfinite(number) else math.inf
        if v not in self.varying:
            if v.type != "f32":
                return math.inf
            if v not in self.guarded:
                self.guarded.append(v)
            return UNIFORM_BITS
        if v.op == "cast" and v.args[0].op in ("pixel", "image") and v.type in FLOATS:
            return 32.0
        if v.type != "f32" or v.op not in ("add", "sub", "mul", "neg", "abs", "min", "max"):
            return math.inf
        sizes = [self._size(a) for a in v.args]
        if v.op == "mul":
            return sum(sizes)
        return max(sizes) + (1.0 if v.op in ("add", "sub") else 0.0)


def _is_zero(v: Value) -> bool:
    return v.op == "const" and v.attr == 0
