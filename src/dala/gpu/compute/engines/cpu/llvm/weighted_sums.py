"""Recognize programs that compute weighted sums of bytes.

A per-channel program often stores a sum of neighboring bytes, each times a weight that is the same
for all pixels: sharpen, emboss, a box blur. Other programs compute each channel as such a sum of
the pixel's own channels: saturation, sepia, hue rotation. Neither needs floats. The weights are
expressions of the parameters, computed once per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dala.gpu.compute.lang.ir import Block, Program, SetSlot, Slot, Value

#: A byte that is read: argument, dx, dy, channel.
ByteRead: TypeAlias = "tuple[int, int, int, int]"
#: The most different weights. Each costs a multiplication and half a unit of precision.
MAX_GROUPS: Final = 6
#: The most bytes of equal weight: their sum must fit in 16 bits, with bits to spare.
MAX_READS: Final = 64

_ONE: Final = Value("const", "f32", (), 1.0)
_BYTE: Final = 255.0


@dataclass
class WeightGroup:
    """The bytes that share a weight, which is in units of the stored byte."""

    weight: Value
    reads: list[ByteRead] = field(default_factory=list)


@dataclass
class WeightedSum:
    """A weighted sum of bytes plus a bias."""

    groups: list[WeightGroup]
    bias: Value
    #: Computes the weights.
    block: Block
    #: The program for one channel.
    emitted: Program
    #: The argument that provides alpha.
    alpha: int | None


@dataclass
class ColorMatrix:
    """The three colors of a pixel as weighted sums of its colors, in units of the stored byte."""

    #: For each output channel: the weights of red, green and blue, and the bias.
    rows: list[tuple[Value, Value, Value, Value]]
    block: Block


@dataclass(frozen=True)
class _Affine:
    """A weighted sum of bytes plus a uniform bias."""

    weights: dict[ByteRead, Value]
    bias: Value


def find_weighted_sum(
    emitted: Program, block: Block, stored: Value, varying: set[Value], alpha: int | None
) -> WeightedSum | None:
    """Return the weighted sum that a per-channel program of bytes stores, or None."""
    total = stored_value(stored)
    if total is None:
        return None
    finder = _Finder(varying)
    found = finder.run(block).get(total)
    if found is None:
        return None
    by_weight: dict[Hashable, WeightGroup] = {}
    for read, weight in found.weights.items():
        weight = finder.binary("mul", weight, _number(_BYTE))
        by_weight.setdefault(finder.key(weight), WeightGroup(weight)).reads.append(read)
    groups = list(by_weight.values())
    if not 0 < len(groups) <= MAX_GROUPS or max(len(g.reads) for g in groups) > MAX_READS:
        return None
    bias = finder.binary("mul", found.bias, _number(_BYTE))
    needed = needed_values([*(g.weight for g in groups), bias])
    if any(v.op == "get" for v in needed):
        return None
    return WeightedSum(groups, bias, Block(list(needed)), emitted, alpha)


def find_color_matrix(
    block: Block, stored: tuple[Value, ...], varying: set[Value], argument: int
) -> ColorMatrix | None:
    """Return three stored colors as sums of the colors of one argument's pixel, or None."""
    finder = _Finder(varying)
    every = finder.run(block)
    rows = []
    for channel in range(3):
        total = stored_value(stored[channel])
        found = None if total is None else every.get(total)
        if found is None:
            return None
        places = [(argument, 0, 0, c) for c in range(3)]
        if any(read not in places for read in found.weights):
            return None
        given = [found.weights.get(read, _number(0.0)) for read in places]
        r, g, b, more = (
            finder.binary("mul", weight, _number(_BYTE)) for weight in (*given, found.bias)
        )
        rows.append((r, g, b, more))
    needed = needed_values([v for row in rows for v in row])
    return None if any(v.op == "get" for v in needed) else ColorMatrix(rows, Block(list(needed)))


def _number(value: float) -> Value:
    return Value("const", "f32", (), value)


def _is(v: Value, number: float) -> bool:
    return v.op == "const" and v.attr == number


def stored_value(v: Value) -> Value | None:
    """Return the value that is scaled to a byte, clamped and rounded."""
    if v.op != "cast" or v.attr != "in_range" or v.args[0].op != "add":
        return None
    v, half = v.args[0].args
    if not _is(half, 0.5):
        return None
    for rule, end in (("lt", _BYTE), ("gt", 0.0)):
        if v.op != "select" or not _is(v.args[2], end):
            return None
        condition, inner = v.args[0], v.args[1]
        if (
            condition.op != rule
            or condition.args[0] is not inner
            or not _is(condition.args[1], end)
        ):
            return None
        v = inner
    return v.args[0] if v.op == "mul" and _is(v.args[1], _BYTE) else None


class _Finder:
    """Visits a block once and finds the values that are weighted sums of bytes."""

    def __init__(self, varying: set[Value]) -> None:
        self.varying = varying
        self.made: dict[Hashable, Value] = {}
        self.keys: dict[Value, Hashable] = {}

    def run(self, block: Block) -> dict[Value, _Affine]:
        found: dict[Value, _Affine] = {}
        slots: dict[Slot, _Affine] = {}
        for s in block.body:
            if isinstance(s, SetSlot):
                value = self.of(s.value, found)
                if value is None:
                    slots.pop(s.slot, None)
                else:
                    slots[s.slot] = value
            elif not isinstance(s, Value):
                return {}
            elif s.op == "get":
                if s.attr in slots:
                    found[s] = slots[s.attr]
            elif s.type == "f32":
                value = self.value(s, found)
                if value is not None:
                    found[s] = value
        return found

    def of(self, v: Value, found: dict[Value, _Affine]) -> _Affine | None:
        """Return an operand as a weighted sum, or None if it is not one."""
        if v in found:
            return found[v]
        uniform = v.type == "f32" and v.op != "get" and v not in self.varying
        return _Affine({}, v) if uniform else None

    def value(self, v: Value, found: dict[Value, _Affine]) -> _Affine | None:
        if v.op == "cast":
            read = v.args[0]
            if read.op == "pixel":
                return _Affine({(read.attr[0], 0, 0, read.attr[1]): _ONE}, _number(0.0))
            if read.op == "image" and all(a.op == "const" for a in read.args):
                dx, dy = (int(a.attr) for a in read.args)
                return _Affine({(read.attr[0], dx, dy, read.attr[1]): _ONE}, _number(0.0))
        if v.op not in ("add", "sub", "mul", "div", "neg"):
            return self.uniform(v)
        args = [self.of(a, found) for a in v.args]
        if any(a is None for a in args):
            return self.uniform(v)
        a, b = args[0], args[-1]
        assert a is not None
        assert b is not None
        if v.op == "neg":
            return self.each(a, lambda w: self.binary("sub", _number(0.0), w))
        if v.op in ("add", "sub"):
            return self.joined(v.op, a, b)
        if v.op == "mul" and not a.weights:
            a, b = b, a
        if b.weights:
            return None
        op, factor = v.op, b.bias
        return self.each(a, lambda w: self.binary(op, w, factor))

    def uniform(self, v: Value) -> _Affine | None:
        return None if v in self.varying else _Affine({}, v)

    def each(self, a: _Affine, change: Callable[[Value], Value]) -> _Affine:
        return _Affine({r: change(w) for r, w in a.weights.items()}, change(a.bias))

    def joined(self, op: str, a: _Affine, b: _Affine) -> _Affine:
        """Add or subtract two sums."""
        weights = dict(a.weights)
        for read, w in b.weights.items():
            weights[read] = self.binary(op, weights.get(read, _number(0.0)), w)
        return _Affine(weights, self.binary(op, a.bias, b.bias))

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """Return an operation on weights, folded to a constant or shared where possible."""
        if a.op == "const" and b.op == "const":
            number = _computed(op, float(a.attr), float(b.attr))
            if math.isfinite(number):
                return _number(number)
        if (op in ("mul", "div") and _is(b, 1.0)) or (op in ("add", "sub") and _is(b, 0.0)):
            return a
        if (op == "mul" and _is(a, 1.0)) or (op == "add" and _is(a, 0.0)):
            return b
        key = (op, self.key(a), self.key(b))
        if key not in self.made:
            self.made[key] = Value(op, "f32", (a, b), None)
        return self.made[key]

    def key(self, v: Value) -> Hashable:
        """Return a key that is equal for equal computations."""
        if v.op == "const":
            return float(v.attr)
        if v not in self.keys:
            self.keys[v] = (v.op, v.type, v.attr, *(self.key(a) for a in v.args))
        return self.keys[v]


def _computed(op: str, a: float, b: float) -> float:
    if op == "add":
        return a + b
    if op == "sub":
        return a - b
    if op == "mul":
        return a * b
    return a / b if b else math.nan


def needed_values(wanted: Sequence[Value]) -> list[Value]:
    """Return all values that the given ones depend on, in order."""
    body: list[Value] = []
    seen: set[Value] = set()

    def need(v: Value) -> None:
        if v.op == "const" or v in seen:
            return
        seen.add(v)
        for a in v.args:
            need(a)
        body.append(v)

    for v in wanted:
        need(v)
    return body
