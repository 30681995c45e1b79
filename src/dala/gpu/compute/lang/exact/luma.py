"""Sums of one pixel's colors inside other computations: luma.

``dot(px.rgb, (0.299, 0.587, 0.114))`` with constant weights is exact on every engine. In functions
of one pixel it is a sum of floats that are integers below 2^24, scaled by a power of two: weights
of luma have 16 fraction bits. Differences of colors (chroma) are left as they are there: edges
multiply their errors. In windows all are integers of 14 bits, converted once, which is faster where
colors are not needed themselves.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Final

from dala.gpu.compute.lang.exact.fixed_point import integer_weights
from dala.gpu.compute.lang.exact.sums import ByteSum, SumFinder
from dala.gpu.compute.lang.ir import Program, Statement, Value, operands, statements
from dala.gpu.compute.lang.rewrite import emit, rewrite

#: Fraction bits of the weights in windows. Sums of four such numbers are exact in f32.
BITS: Final = 14
#: The largest sum of the magnitudes of weights: luma has 1, chroma differences too.
_MOST: Final = 1.25


def with_integer_luma(program: Program) -> Program:
    """Return a program whose sums of a pixel's colors are computed in integers."""
    found = SumFinder(program).run(program.body)
    chosen: dict[Value, ByteSum] = {}

    todo = list(program.result)
    for s in statements(program.body):
        if not isinstance(s, Value) or s not in found:
            todo += operands(s)
    seen: set[Value] = set()
    while todo:
        v = todo.pop()
        if v in seen or v not in found:
            continue
        seen.add(v)
        if _is_luma(found[v]):
            chosen[v] = found[v]
        else:
            todo += v.args
    if not chosen:
        return program
    return rewrite(
        program, lambda old, _, body: _written(chosen[old], body) if old in chosen else None
    )


def _is_luma(found: ByteSum) -> bool:
    """Return whether a sum is one of several colors of a pixel, with constant weights."""
    reads = [read for read, _ in found.weights.values()]
    if len(reads) < 2 or found.bias.op != "const" or found.bias.attr:
        return False
    if any(weight.op != "const" for _, weight in found.weights.values()):
        return False
    if reads[0].op != "image" and any(weight.attr <= 0.0 for _, weight in found.weights.values()):
        return False
    places = {(r.op, r.attr[0], *(a.attr if a.op == "const" else a for a in r.args)) for r in reads}
    sizes = sum(abs(weight.attr) * 255.0 for _, weight in found.weights.values())
    return len(places) == 1 and sizes <= _MOST


def _written(found: ByteSum, body: list[Statement]) -> Value:
    """Append the exact sum of a pixel's colors, and return it as a number of 0 to 1."""
    write = partial(emit, body)
    reads, exact = zip(*((read, w.attr * 255.0) for read, w in found.weights.values()), strict=True)
    window = reads[0].op == "image"
    bits = BITS if window else math.floor(math.log2(2**24 / (255.0 * sum(exact))))
    parts = []
    for read, weight in zip(reads, integer_weights(exact, bits), strict=True):
        if window:
            parts.append(write("mul", "s32", read, weight))
        else:
            number = write("mul", "f32", write("cast", "f32", read), 1.0 / 255.0)
            parts.append(write("mul", "f32", number, weight * 2.0**-bits))
    total = reduce(lambda a, b: write("add", a.type, a, b), parts)
    if not window:
        return total
    number = write("mul", "f32", write("cast", "f32", total), 2.0**-BITS)
    return write("mul", "f32", number, 1 / 255)
