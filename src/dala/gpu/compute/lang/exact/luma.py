"""Sums of one pixel's colors inside other computations: luma, chroma differences.

``dot(px.rgb, (0.299, 0.587, 0.114))`` with constant weights is computed in integers, whose weights
have 14 fraction bits, and converted once. It is exact on every engine, and takes fewer operations
than three conversions and products of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dala.gpu.compute.lang.exact.fixed_point import integer_weights
from dala.gpu.compute.lang.exact.sums import ByteSum, SumFinder
from dala.gpu.compute.lang.ir import (
    Block,
    For,
    If,
    Program,
    SetSlot,
    Statement,
    Value,
    make_program,
    statements,
)

#: Fraction bits of the weights. Sums of four such numbers are exact in f32.
BITS: Final = 14
#: The largest sum of the magnitudes of weights: luma has 1, chroma differences too.
_MOST: Final = 1.25


def with_integer_luma(program: Program) -> Program:
    """Return a program whose sums of a pixel's colors are computed in integers."""
    found = SumFinder(program).run(program.body)
    chosen: dict[Value, ByteSum] = {}

    def visit(v: Value) -> None:
        if v not in found or v in chosen:
            return
        if _is_luma(found[v]):
            chosen[v] = found[v]
        else:
            for a in v.args:
                visit(a)

    for s in statements(program.body):
        for v in _operands(s):
            if not isinstance(s, Value) or s not in found:
                visit(v)
    for v in program.result:
        visit(v)
    if not chosen:
        return program
    body, new = _rewritten(program.body, chosen)
    result = tuple(new.get(v, v) for v in program.result)
    made = make_program(
        program.name, program.args, program.out, program.params, body, result, program.rank
    )
    return replace(made, derived=program.derived)


def _operands(s: Statement) -> Sequence[Value]:
    if isinstance(s, Value):
        return s.args
    if isinstance(s, SetSlot):
        return (s.value,)
    if isinstance(s, If):
        return (s.condition,)
    return (s.start, s.stop) if isinstance(s, For) else ()


def _is_luma(found: ByteSum) -> bool:
    """Return whether a sum is one of several colors of a pixel, with constant weights."""
    reads = [read for read, _ in found.weights.values()]
    if len(reads) < 2 or found.bias.op != "const" or found.bias.attr:
        return False
    if any(weight.op != "const" for _, weight in found.weights.values()):
        return False
    places = {(r.op, r.attr[0], *(_place(a) for a in r.args)) for r in reads}
    sizes = sum(abs(weight.attr) * 255.0 for _, weight in found.weights.values())
    return len(places) == 1 and sizes <= _MOST


def _place(v: Value) -> object:
    return v.attr if v.op == "const" else v


def _rewritten(block: Block, chosen: dict[Value, ByteSum]) -> tuple[Block, dict[Value, Value]]:
    new: dict[Value, Value] = {}

    def of(v: Value) -> Value:
        return new.get(v, v)

    def copy(block: Block) -> Block:
        body: list[Statement] = []
        for s in block.body:
            if isinstance(s, Value):
                if s in chosen:
                    new[s] = _written(chosen[s], body)
                    continue
                args = tuple(map(of, s.args))
                if args != s.args:
                    new[s] = Value(s.op, s.type, args, s.attr)
                body.append(of(s))
            elif isinstance(s, SetSlot):
                body.append(SetSlot(s.slot, of(s.value)))
            elif isinstance(s, If):
                body.append(If(of(s.condition), copy(s.then), copy(s.otherwise)))
            elif isinstance(s, For):
                body.append(For(s.index, of(s.start), of(s.stop), s.step, copy(s.body)))
            else:
                body.append(s)
        return Block(body)

    return copy(block), new


def _written(found: ByteSum, body: list[Statement]) -> Value:
    """Append the integer sum of a pixel's colors, and return it as a number of 0 to 1."""

    def emit(op: str, kind: str, *args: Value) -> Value:
        value = Value(op, "f32" if kind == "f32" else "s32", args)
        body.append(value)
        return value

    weights = integer_weights([w.attr * 255.0 for _, w in found.weights.values()], BITS)
    total: Value | None = None
    for (read, _), weight in zip(found.weights.values(), weights, strict=True):
        product = emit("mul", "s32", read, Value("const", "s32", (), weight))
        total = product if total is None else emit("add", "s32", total, product)
    assert total is not None
    steps = emit("mul", "f32", emit("cast", "f32", total), Value("const", "f32", (), 2.0**-BITS))
    return emit("mul", "f32", steps, Value("const", "f32", (), 1.0 / 255.0))
