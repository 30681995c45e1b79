"""The code emitted for the functions in :mod:`dala.gpu.compute.engines.cpu.native.names`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Final

from dala.gpu.compute.engines.cpu.native import names
from dala.gpu.compute.engines.cpu.native.expressions import ExpressionWriter
from dala.gpu.compute.engines.cpu.native.types import (
    BOOL,
    I16,
    I32,
    U8,
    Operand,
    Span,
    Term,
    Type,
    is_number,
)
from dala.gpu.compute.engines.cpu.native.vectors import VECTOR_INTRINSICS, pick, type_of


# numbers --------------------------------------------------------------------------------------
def _saturate(b: ExpressionWriter, target: Term, value: Term) -> Operand:
    return b.clamp_convert(value, type_of(b, target))


def _add_saturate(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = b.same_type(*args, what="add_saturate")
    if not x.type.integer:
        b.fail(f"add_saturate takes integers, got {x.type}")
    return b.intrinsic(("s" if x.type.signed else "u") + "add.sat", x, y)


def _multiply_q15(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = b.same_type(*args, what="multiply_q15")
    t, lanes = x.type, b.unit.q15_lanes
    if t.scalar != I16:
        b.fail(f"multiply_q15 takes vectors of i16, got {t}")
    if not lanes or t.lanes % lanes:
        wide = I32.wide(t.lanes)
        longer = [b.f.let(f"sext {t.llvm} {v.name} to {wide.llvm}") for v in (x, y)]
        half, shift = (b.broadcast(Operand(I32, n), t.lanes).name for n in ("16384", "15"))
        product = b.f.let(f"mul nsw {wide.llvm} {longer[0]}, {longer[1]}")
        rounded = b.f.let(f"add nsw {wide.llvm} {product}, {half}")
        upper = b.f.let(f"ashr {wide.llvm} {rounded}, {shift}")
        return Operand(t, b.f.let(f"trunc {wide.llvm} {upper} to {t.llvm}"))
    return _in_parts(b, b.unit.q15, lanes, x, y, I16.wide(lanes))


def _multiply_pairs(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = b.same_type(*args, what="multiply_pairs")
    t, lanes = x.type, b.unit.pair_lanes
    if t.scalar != I16 or t.lanes % 2:
        b.fail(f"multiply_pairs takes vectors of pairs of i16, got {t}")
    if lanes and not t.lanes % lanes:
        return _in_parts(b, b.unit.pairs, lanes, x, y, I32.wide(lanes // 2))
    wide = I32.wide(t.lanes)
    longer = [b.f.let(f"sext {t.llvm} {v.name} to {wide.llvm}") for v in (x, y)]
    product = Operand(wide, b.f.let(f"mul nsw {wide.llvm} {longer[0]}, {longer[1]}"))
    even, odd = (pick(b, product, product, tuple(range(k, t.lanes, 2))) for k in (0, 1))
    return Operand(even.type, b.f.let(f"add {even.type.llvm} {even.name}, {odd.name}"))


def _narrow_fours(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = b.same_type(*args, what="narrow_fours")
    t, lanes = x.type, b.unit.pair_lanes // 2
    if t.scalar != I32 or t.lanes % 4:
        b.fail(f"narrow_fours takes vectors of fours of i32, got {t}")
    if lanes and not t.lanes % lanes:
        return _in_parts(b, b.unit.narrow, lanes, x, y, I16.wide(2 * lanes))
    order = (k + s for g in range(0, t.lanes, 4) for s in (0, t.lanes) for k in range(g, g + 4))
    return b.clamp_convert(pick(b, x, y, tuple(order)), I16)


def _in_parts(
    b: ExpressionWriter, intrinsic: str, lanes: int, x: Operand, y: Operand, made: Type
) -> Operand:
    """Call an intrinsic of two vectors of ``lanes`` for the parts of longer ones."""
    part = x.type.scalar.wide(lanes)
    name = b.f.module.intrinsic(intrinsic, made.llvm, part.llvm, part.llvm)
    found: list[Operand] = []
    for first in range(0, x.type.lanes, lanes):
        own = tuple(range(first, first + lanes))
        a, c = (pick(b, v, v, own) for v in (x, y))
        text = f"call {made.llvm} {name}({part.llvm} {a.name}, {part.llvm} {c.name})"
        found.append(Operand(made, b.f.let(text)))
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [pick(b, p, q, tuple(range(2 * p.type.lanes))) for p, q in pairs]
    return found[0]


def _look_up(b: ExpressionWriter, *args: Term) -> Operand:
    vectors = [b.value(a) for a in args]
    kind = U8.wide(64)
    if len(vectors) != 5 or any(v.type != kind for v in vectors):
        b.fail("look_up takes five vectors of 64 u8: a table's quarters, and the places")
    *quarters, places = vectors
    text = kind.llvm
    if b.unit.lookup:
        name = b.f.module.intrinsic(b.unit.lookup, text, text, text, text)
        halves = [
            b.f.let(f"call {text} {name}({text} {p.name}, {text} {places.name}, {text} {q.name})")
            for p, q in (quarters[:2], quarters[2:])
        ]
        upper = b.f.let(f"icmp slt {text} {places.name}, zeroinitializer")
        both = f"{text} {halves[1]}, {text} {halves[0]}"
        return Operand(kind, b.f.let(f"select <64 x i1> {upper}, {both}"))
    whole = b.f.alloca("[256 x i8]", "table", 64)
    for k, quarter in enumerate(quarters):
        b.f.do(f"store {text} {quarter.name}, ptr {b.f.at(whole, str(64 * k))}, align 64")
    made = "poison"
    for k in range(64):
        place = b.f.let(f"extractelement {text} {places.name}, i64 {k}")
        at = b.f.at(whole, b.f.let(f"zext i8 {place} to i64"))
        entry = b.f.let(f"load i8, ptr {at}")
        made = b.f.let(f"insertelement {text} {made}, i8 {entry}, i64 {k}")
    return Operand(kind, made)


def _in_range(b: ExpressionWriter, target: Term, value: Term) -> Operand:
    return b.convert(value, type_of(b, target), fits=True)


def _bits(b: ExpressionWriter, target: Term, value: Term) -> Operand:
    kind, v = type_of(b, target), b.value(value)
    total = v.type.scalar.bits * v.type.lanes
    if total % kind.bits or (v.type.lanes == 1 and total != kind.bits):
        b.fail(f"{kind} and {v.type} have different sizes")
    want = kind.wide(total // kind.bits)
    if want.llvm == v.type.llvm:
        return Operand(want, v.name)
    return Operand(want, b.f.let(f"bitcast {v.type.llvm} {v.name} to {want.llvm}"))


def _extreme(b: ExpressionWriter, args: tuple[Term, ...], least: bool) -> Term:
    if len(args) < 2:
        b.fail("min and max take at least two numbers")
    if all(is_number(a) for a in args):
        return min(args) if least else max(args)
    total = b.same_type(*args, what="min or max")
    best = total[0]
    for v in total[1:]:
        if v.type.floating:
            beyond = b.compare(ast.Lt() if least else ast.Gt(), v, best)
            best = b.choose(beyond, v, best)
        elif v.type.integer:
            letter = "s" if v.type.signed else "u"
            best = b.intrinsic(letter + ("min" if least else "max"), best, v)
        else:
            b.fail("min and max take numbers")
    return best


def _spreading(b: ExpressionWriter, args: tuple[Term, ...], least: bool) -> Term:
    x, y = b.same_type(*args, what="minimum or maximum")
    if not x.type.floating:
        return _extreme(b, (x, y), least)
    return b.intrinsic("minimum" if least else "maximum", x, y)


def _abs(b: ExpressionWriter, a: Term) -> Term:
    if is_number(a):
        return abs(a)
    v = b.value(a)
    if v.type.floating:
        return b.intrinsic("fabs", v)
    if not v.type.signed:
        return v
    t = v.type
    name = b.f.module.intrinsic(f"abs.{t.suffix}", t.llvm, t.llvm, "i1")
    return Operand(t, b.f.let(f"call {t.llvm} {name}({t.llvm} {v.name}, i1 false)"))


def _floats(intrinsic: str, folded: Callable[[float], float] | None) -> Callable[..., Term]:
    def write(b: ExpressionWriter, *args: Term) -> Term:
        if folded is not None and len(args) == 1 and is_number(args[0]):
            return folded(args[0])
        values = b.same_type(*args, what=intrinsic)
        if not values[0].type.floating:
            b.fail(f"{intrinsic} takes floats, got {values[0].type}")
        return b.intrinsic(intrinsic, *values, flags=True)

    return write


def _trunc(b: ExpressionWriter, a: Term) -> Term:
    if is_number(a):
        return math.trunc(a)
    v = b.value(a)
    if not v.type.floating:
        b.fail(f"trunc takes floats, got {v.type}")
    # From operations that need no library function on any machine, see Jit.
    return b.intrinsic("copysign", b.intrinsic("floor", b.intrinsic("fabs", v)), v)


def _math_function(op: str, count: int, folded: Callable[..., float]) -> Callable[..., Term]:
    def write(b: ExpressionWriter, *args: Term) -> Term:
        if len(args) != count:
            b.fail(f"{op} takes {count} argument{'s' * (count > 1)}")
        if all(is_number(a) for a in args):
            try:
                return folded(*args)
            except (ValueError, OverflowError) as error:
                b.fail(f"cannot compute this constant: {error}")
        return b.math_function(op, *b.same_type(*args, what=op))

    return write


def _counting(intrinsic: str) -> Callable[..., Term]:
    def write(b: ExpressionWriter, a: Term) -> Term:
        v = b.value(a)
        t = v.type
        if not t.integer:
            b.fail(f"bit counts take integers, got {t}")
        if intrinsic == "ctpop":
            return b.intrinsic(intrinsic, v)
        name = b.f.module.intrinsic(f"{intrinsic}.{t.suffix}", t.llvm, t.llvm, "i1")
        return Operand(t, b.f.let(f"call {t.llvm} {name}({t.llvm} {v.name}, i1 false)"))

    return write


def _isnan(b: ExpressionWriter, a: Term) -> Term:
    v = b.value(a)
    if not v.type.floating:
        b.fail(f"isnan takes floats, got {v.type}")
    name = b.f.let(f"fcmp uno {v.type.llvm} {v.name}, {v.name}")
    return Operand(BOOL.wide(v.type.lanes), name)


def _range(b: ExpressionWriter, *numbers: Term) -> range:
    if not all(isinstance(n, int) for n in numbers):
        b.fail("a range of run-time values is allowed only in a for loop")
    return range(*numbers)


def _static(b: ExpressionWriter, value: Term) -> Term:
    if isinstance(value, (Operand, Span)):
        b.fail("static(...) takes a compile-time constant")
    return value


INTRINSICS: Final[dict[object, Callable[..., Term]]] = {
    **VECTOR_INTRINSICS,
    names.add_saturate: _add_saturate, names.multiply_q15: _multiply_q15,
    names.multiply_pairs: _multiply_pairs, names.narrow_fours: _narrow_fours,
    names.look_up: _look_up, names.bits: _bits,
    names.saturate: _saturate, names.in_range: _in_range,
    names.select: lambda b, c, yes, no: b.choose(c, yes, no),
    min: lambda b, *a: _extreme(b, a, True),
    max: lambda b, *a: _extreme(b, a, False),
    names.minimum: lambda b, x, y: _spreading(b, (x, y), True),
    names.maximum: lambda b, x, y: _spreading(b, (x, y), False),
    abs: _abs, names.isnan: _isnan, range: _range, names.static: _static,
    names.floor: _floats("floor", math.floor), names.ceil: _floats("ceil", math.ceil),
    names.trunc: _trunc, round: _floats("roundeven", round),
    names.sqrt: _floats("sqrt", math.sqrt), names.fma: _floats("fmuladd", None),
    names.copysign: _floats("copysign", None),
    names.exp: _math_function("exp", 1, math.exp), names.log: _math_function("log", 1, math.log),
    names.sin: _math_function("sin", 1, math.sin), names.cos: _math_function("cos", 1, math.cos),
    names.tan: _math_function("tan", 1, math.tan), names.atan: _math_function("atan", 1, math.atan),
    names.atan2: _math_function("atan2", 2, math.atan2),
    names.power: _math_function("pow", 2, math.pow),
    names.count_ones: _counting("ctpop"), names.leading_zeros: _counting("ctlz"),
    names.trailing_zeros: _counting("cttz"),
}  # fmt: skip
