"""Find stored bytes that are weighted sums of bytes, and compute them in integers.

Most filters store a sum of bytes, each times a weight that is the same for all pixels: of the
pixel's own channels (grayscale, saturation, hue) or of neighbors (sharpen, emboss). The weights are
expressions of the parameters. They become *derived parameters*: integers that the host computes
(:mod:`~dala.gpu.compute.lang.exact.fixed_point`) whenever the parameters change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dala.gpu.compute.lang.exact.fixed_point import fixed_point
from dala.gpu.compute.lang.exact.uniform import OPERATIONS, is_uniform
from dala.gpu.compute.lang.ir import (
    Block,
    Derived,
    For,
    If,
    Param,
    Program,
    SetSlot,
    Slot,
    Statement,
    Value,
    arguments_first,
    statements,
)
from dala.gpu.compute.lang.rewrite import emit

#: The most different weights of a sum: beyond them, floats are as fast.
_MAX_GROUPS: Final = 16
#: The most bytes of a sum.
_MAX_READS: Final = 128

_ONE: Final = Value("const", "f32", (), 1.0)
_ZERO: Final = Value("const", "f32", (), 0.0)
_BYTE: Final = 255.0


@dataclass
class _Group:
    """The bytes that share a weight, in steps of the stored byte."""

    weight: Value
    reads: list[Value] = field(default_factory=list)


@dataclass
class _Row:
    """A stored byte: groups of bytes, and a bias."""

    groups: list[_Group]
    bias: Value


@dataclass(frozen=True)
class ByteSum:
    """A weighted sum of bytes plus a uniform bias; weights by the key of their read."""

    weights: dict[Hashable, tuple[Value, Value]]
    bias: Value


def in_integers(program: Program) -> Program:
    """Return a program whose weighted sums of bytes are computed in integers, where it has any."""
    if not any(arg.dtype == "u8" for arg in program.args):
        return program
    finder = SumFinder(program)
    every = finder.run(program.body)
    result = list(program.result)
    rows: dict[Hashable, _Row] = {}
    chosen: dict[int, Hashable] = {}
    for channel, stored in enumerate(program.result):
        total = _stored(stored)
        found = every.get(total) if total is not None else None
        if found is None:
            continue
        row = finder.row(found)
        if row is None:
            continue
        if _is_copy(row):
            result[channel] = row.groups[0].reads[0]
            continue
        key = finder.row_key(row)
        rows.setdefault(key, row)
        chosen[channel] = key
    if result == list(program.result) and not chosen:
        return program
    body = list(program.body.body)
    params, derived = program.params, None
    if chosen:
        writer = _Writer(list(rows.values()), finder, len(program.params))
        bytes_of = dict(zip(rows, writer.written(body), strict=True))
        for channel, key in chosen.items():
            result[channel] = bytes_of[key]
        params += writer.params
        if writer.params:
            derived = Derived(tuple(writer.wanted), tuple(writer.layout), writer.window)
    described = replace(program, params=params, derived=derived)
    return described.with_body(Block(body), tuple(result))


def _is_copy(row: _Row) -> bool:
    if len(row.groups) != 1 or len(row.groups[0].reads) != 1:
        return False
    weight, bias = row.groups[0].weight, row.bias
    return _is(bias, 0.0) and weight.op == "const" and abs(weight.attr - 1.0) < 1e-12


def _number(value: float) -> Value:
    return Value("const", "f32", (), value)


def _is(v: Value, number: float) -> bool:
    return v.op == "const" and v.attr == number


def limited_number(v: Value) -> Value | None:
    """Return the f32 that is limited and rounded to a byte; see ``Builder.to_u8``."""
    if v.op != "cast" or v.attr != "in_range" or v.args[0].op != "add":
        return None
    v, half = v.args[0].args
    if not _is(half, 0.5) or v.type != "f32":
        return None
    for rule, end in (("lt", _BYTE), ("gt", 0.0)):
        if v.op != "select" or v.args[0].op != rule or v.args[0].args[0] is not v.args[1]:
            return None
        if not _is(v.args[2], end) or not _is(v.args[0].args[1], end):
            return None
        v = v.args[1]
    return v


def _stored(v: Value) -> Value | None:
    """Return the number of 0 to 1 that is stored as a byte."""
    v = limited_number(v) or v
    return v.args[0] if v.op == "mul" and _is(v.args[1], _BYTE) else None


class SumFinder:
    """Visits a block once and finds the values that are weighted sums of bytes."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.uniform: dict[Value, bool] = {}
        self.made: dict[Hashable, Value] = {}
        self.keys: dict[Value, int] = {}
        self.numbers: dict[Hashable, int] = {}

    def run(self, block: Block) -> dict[Value, ByteSum]:
        """Return the values of a block that are weighted sums of bytes."""
        found: dict[Value, ByteSum] = {}
        slots: dict[Slot, ByteSum] = {}
        for s in block.body:
            if isinstance(s, SetSlot):
                value = self.of(s.value, found)
                if value is None:
                    slots.pop(s.slot, None)
                else:
                    slots[s.slot] = value
            elif isinstance(s, If | For):
                for inner in statements(Block([s])):
                    if isinstance(inner, SetSlot):
                        slots.pop(inner.slot, None)
                    elif isinstance(inner, For):
                        slots.pop(inner.index, None)
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

    def of(self, v: Value, found: dict[Value, ByteSum]) -> ByteSum | None:
        """Return an operand as a weighted sum, or None if it is not one."""
        if v in found:
            return found[v]
        return ByteSum({}, v) if v.type == "f32" and is_uniform(v, self.uniform) else None

    def value(self, v: Value, found: dict[Value, ByteSum]) -> ByteSum | None:
        if v.op == "cast":
            read = v.args[0]
            if self.is_byte(read):
                return ByteSum({self.key(read): (read, _ONE)}, _ZERO)
        if v.op not in ("add", "sub", "mul", "div", "neg"):
            return self.of(v, found)
        args = [self.of(a, found) for a in v.args]
        a, b = args[0], args[-1]
        if a is None or b is None:
            return None
        if v.op == "neg":
            return self.each(a, lambda w: self.binary("sub", _ZERO, w))
        if v.op in ("add", "sub"):
            return self.joined(v.op, a, b)
        if v.op == "mul" and not a.weights:
            a, b = b, a
        if b.weights:
            return None
        op, factor = v.op, b.bias
        return self.each(a, lambda w: self.binary(op, w, factor))

    def is_byte(self, v: Value) -> bool:
        """Return whether a value is a byte of a picture, at a place that is the same for all."""
        if v.op not in ("pixel", "image") or self.program.args[v.attr[0]].dtype != "u8":
            return False
        return all(a.op in ("const", "param") for a in v.args)

    def each(self, a: ByteSum, change: Callable[[Value], Value]) -> ByteSum:
        return ByteSum({k: (r, change(w)) for k, (r, w) in a.weights.items()}, change(a.bias))

    def joined(self, op: str, a: ByteSum, b: ByteSum) -> ByteSum:
        """Add or subtract two sums."""
        weights = dict(a.weights)
        for key, (read, w) in b.weights.items():
            before = weights[key][1] if key in weights else _ZERO
            weights[key] = read, self.binary(op, before, w)
        return ByteSum(weights, self.binary(op, a.bias, b.bias))

    def row(self, found: ByteSum) -> _Row | None:
        """Return a sum in steps of the stored byte, grouped by weights; None if it is too long."""
        groups: dict[Hashable, _Group] = {}
        for read, weight in found.weights.values():
            weight = self.binary("mul", weight, _number(_BYTE))
            if not _is(weight, 0.0):
                groups.setdefault(self.key(weight), _Group(weight)).reads.append(read)
        count = sum(len(g.reads) for g in groups.values())
        if not 0 < len(groups) <= _MAX_GROUPS or count > _MAX_READS:
            return None
        return _Row(list(groups.values()), self.binary("mul", found.bias, _number(_BYTE)))

    def row_key(self, row: _Row) -> Hashable:
        """Return a key that is equal for rows that store the same."""
        groups = (
            (self.key(g.weight), *map(self.key, g.reads))
            for g in sorted(row.groups, key=lambda g: self.key(g.weight))
        )
        return (self.key(row.bias), *groups)

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """Return an operation on weights, folded to a constant or shared where possible."""
        if a.op == "const" and b.op == "const":
            number = OPERATIONS[op](float(a.attr), float(b.attr))
            if math.isfinite(number):
                return _number(number)
        if (op in ("mul", "div") and _is(b, 1.0)) or (op in ("add", "sub") and _is(b, 0.0)):
            return a
        if (op == "mul" and _is(a, 1.0)) or (op == "add" and _is(a, 0.0)):
            return b
        if op == "mul" and (_is(a, 0.0) or _is(b, 0.0)):
            return _ZERO
        key = (op, self.key(a), self.key(b))
        if key not in self.made:
            self.made[key] = Value(op, "f32", (a, b), None)
        return self.made[key]

    def key(self, v: Value) -> int:
        """Return a number that is equal for equal computations."""
        for part in arguments_first([v], self.keys):
            made = (part.op, part.type, part.attr, *(self.keys[a] for a in part.args))
            self.keys[part] = self.numbers.setdefault(made, len(self.numbers))
        return self.keys[v]


class _Writer:
    """Writes sums with integer weights: constants, or derived parameters.

    Sums with equal weights, such as those of several channels, share their numbers.
    """

    def __init__(self, rows: Sequence[_Row], finder: SumFinder, first: int) -> None:
        self.rows = rows
        self.first = first
        reads = [read for row in rows for g in row.groups for read in g.reads]
        self.window = any(r.op == "image" and not all(_is(a, 0) for a in r.args) for r in reads)
        #: The number of each row's weights among the different ones.
        self.numbers: list[int] = []
        different: dict[Hashable, _Row] = {}
        for row in rows:
            groups = ((finder.key(g.weight), len(g.reads)) for g in row.groups)
            key = (finder.key(row.bias), *groups)
            different.setdefault(key, row)
            self.numbers.append(list(different).index(key))
        kept = self.kept = list(different.values())
        self.layout = [
            n for row in kept for n in (len(row.groups), *(len(g.reads) for g in row.groups))
        ]
        self.wanted = [v for row in kept for v in (*(g.weight for g in row.groups), row.bias)]
        self.constant = all(v.op == "const" for v in self.wanted)
        names = [
            *(f"weight_{r}_{g}" for r, row in enumerate(kept) for g in range(len(row.groups))),
            *(f"bias_{r}" for r in range(len(kept))),
            "bits",
        ]
        self.params = () if self.constant else tuple(Param(name, None, "s32") for name in names)

    def written(self, body: list[Statement]) -> list[Value]:
        """Append the sums to a block, and return the bytes to store."""

        def write(op: str, *args: Value | int, attr: int | None = None) -> Value:
            return emit(body, op, "s32", *args, attr=attr)

        if self.constant:
            found = fixed_point(self.window, self.layout, [float(v.attr) for v in self.wanted])
            names = [Value("const", "s32", (), n) for n in found]
        else:
            names = [write("param", attr=self.first + i) for i in range(len(self.params))]
        bits = names.pop()
        biases = [names.pop() for _ in self.kept][::-1]
        weights = [[names.pop(0) for _ in row.groups] for row in self.kept]
        made = []
        for row, number in zip(self.rows, self.numbers, strict=True):
            total = biases[number]
            for group, weight in zip(row.groups, weights[number], strict=True):
                numbers = group.reads[0]
                for read in group.reads[1:]:
                    numbers = write("add", numbers, read)
                total = write("add", total, write("mul", numbers, weight))
            made.append(write("min", write("max", write("shr", total, bits), 0), 255))
        return made
