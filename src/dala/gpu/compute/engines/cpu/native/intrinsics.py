"""The code emitted for the functions in :mod:`dala.gpu.compute.engines.cpu.native.names`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import partial
from typing import Final

from dala.gpu.compute.engines.cpu.native import names
from dala.gpu.compute.engines.cpu.native.expressions import ExpressionWriter
from dala.gpu.compute.engines.cpu.native.types import Span, Term, is_number
from dala.gpu.compute.engines.cpu.native.vectors import VECTOR_INTRINSICS, joined, span_of, type_of
from dala.gpu.compute.engines.cpu.vector.types import I8, I16, I32, I64, U8, Operand, Type


# numbers --------------------------------------------------------------------------------------
def _saturate(b: ExpressionWriter, target: Term, value: Term) -> Operand:
    return b.saturated(b.value(value), type_of(b, target))


def _add_saturate(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = b.same_type(*args, what="add_saturate")
    if not x.type.integer:
        b.fail(f"add_saturate takes integers, got {x.type}")
    return b.intrinsic(("s" if x.type.signed else "u") + "add.sat", x, y)


def _product(b: ExpressionWriter, x: Operand, y: Operand, made: Type = I32) -> Operand:
    """Return products of i16 as i32, for processors without an instruction for more."""
    return b.write("mul nsw", b.convert(x, made), b.convert(y, made))


def _multiply_q15(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = b.same_type(*args, what="multiply_q15")
    t, machine = x.type, b.unit.machine
    if t.scalar != I16:
        b.fail(f"multiply_q15 takes vectors of i16, got {t}")
    if machine.q15 and not t.lanes % machine.lanes:
        return _in_parts(b, machine.q15, machine.lanes, x, y, I16.wide(machine.lanes))
    product = _product(b, x, y)
    half, shift = (b.number(n, product.type) for n in (16384, 15))
    return b.convert(b.write("ashr", b.write("add nsw", product, half), shift), I16)


def _multiply_pairs(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = (b.value(a) for a in args)
    machine, t = b.unit.machine, x.type
    kinds, name, lanes, made = (I16, I16), machine.pairs, machine.lanes, I32
    if t.scalar == U8:
        kinds, name, lanes, made = (U8, I8), machine.byte_pairs, 2 * machine.lanes, I16
    if (t.scalar, y.type.scalar) != kinds or t.lanes % 2 or t.lanes != y.type.lanes:
        b.fail(f"multiply_pairs takes vectors of pairs of i16, or of u8 and i8, got {t}, {y.type}")
    if name and not t.lanes % lanes:
        return _in_parts(b, name, lanes, x, y, made.wide(lanes // 2))
    product = _product(b, x, y, made)
    return b.write("add", *(b.shuffle(product, product, range(k, t.lanes, 2)) for k in (0, 1)))


def _narrow_fours(b: ExpressionWriter, *args: Term) -> Operand:
    x, y = b.same_type(*args, what="narrow_fours")
    t, lanes = x.type, b.unit.machine.lanes // 2
    if t.scalar != I32 or t.lanes % 4:
        b.fail(f"narrow_fours takes vectors of fours of i32, got {t}")
    if lanes and not t.lanes % lanes:
        return _in_parts(b, b.unit.machine.to_words, lanes, x, y, I16.wide(2 * lanes))
    order = [k + s for g in range(0, t.lanes, 4) for s in (0, t.lanes) for k in range(g, g + 4)]
    return b.saturated(b.shuffle(x, y, order), I16)


def _in_parts(
    b: ExpressionWriter, intrinsic: str, lanes: int, x: Operand, y: Operand, made: Type
) -> Operand:
    """Call an intrinsic of two vectors of ``lanes`` for the parts of longer ones."""
    kinds = (v.type.scalar.wide(lanes).llvm for v in (x, y))
    name = b.f.module.intrinsic(intrinsic, made.llvm, *kinds)
    found: list[Operand] = []
    for first in range(0, x.type.lanes, lanes):
        parts = (b.shuffle(v, v, range(first, first + lanes)) for v in (x, y))
        found.append(Operand(made, b.invoke(name, made, *parts)))
    return joined(b, found)


def _look_up(b: ExpressionWriter, *args: Term) -> Operand:
    vectors = [b.value(a) for a in args]
    kind = U8.wide(64)
    if len(vectors) != 5 or any(v.type != kind for v in vectors):
        b.fail("look_up takes five vectors of 64 u8: a table's quarters, and the places")
    *quarters, places = vectors
    text = kind.llvm
    if b.unit.machine.lookup:
        name = b.f.module.intrinsic(b.unit.machine.lookup, text, text, text, text)
        low, high = (
            Operand(kind, b.invoke(name, kind, p, places, q))
            for p, q in (quarters[:2], quarters[2:])
        )
        return b.select(b.comparison("ge", places, b.number(128, kind)), high, low)
    whole = b.f.alloca("[256 x i8]", "table", 64)
    for k, quarter in enumerate(quarters):
        b.f.do(f"store {text} {quarter.name}, ptr {b.f.at(whole, str(64 * k))}, align 64")
    made = "poison"
    for k in range(64):
        at = b.f.at(whole, b.index(b.lane(places, str(k))))
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
    return b.cast("bitcast", v, want)


def _extreme(b: ExpressionWriter, *args: Term, least: bool) -> Term:
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
            best = b.extreme("min" if least else "max", best, v)
        else:
            b.fail("min and max take numbers")
    return best


def _spreading(b: ExpressionWriter, first: Term, second: Term, *, least: bool) -> Term:
    x, y = b.same_type(first, second, what="minimum or maximum")
    if not x.type.floating:
        return _extreme(b, x, y, least=least)
    return b.intrinsic("minimum" if least else "maximum", x, y)


def _len(b: ExpressionWriter, array: Term) -> Term:
    if isinstance(array, (tuple, range)):
        return len(array)
    return Operand(I64, span_of(b, array).length)


def _abs(b: ExpressionWriter, a: Term) -> Term:
    if is_number(a):
        return abs(a)
    return b.absolute(b.value(a))


def _floating(b: ExpressionWriter, what: str, *args: Term) -> list[Operand]:
    """Return operands of one type, which must be floats."""
    values = b.same_type(*args, what=what)
    if not values[0].type.floating:
        b.fail(f"{what} takes floats, got {values[0].type}")
    return values


def _floats(intrinsic: str, folded: Callable[[float], float] | None) -> Callable[..., Term]:
    def write(b: ExpressionWriter, *args: Term) -> Term:
        if folded is not None and len(args) == 1 and is_number(args[0]):
            return folded(args[0])
        return b.intrinsic(intrinsic, *_floating(b, intrinsic, *args), flags=b.flags)

    return write


def _exp(b: ExpressionWriter, a: Term) -> Term:
    return math.exp(a) if is_number(a) else b.math_function("exp", b.value(a))


def _isnan(b: ExpressionWriter, a: Term) -> Term:
    (v,) = _floating(b, "isnan", a)
    return b.comparison("uno", v, v)


def _range(b: ExpressionWriter, *numbers: Term) -> range:
    if not all(isinstance(n, int) for n in numbers):
        b.fail("a range of run-time values is allowed only in a for loop")
    return range(*numbers)


def _static(b: ExpressionWriter, value: Term) -> Term:
    if isinstance(value, (Operand, Span)):
        b.fail("static(...) takes a compile-time constant", "Keyword-only arguments are.")
    return value


#: The functions of native code by name.
_NAMED: Final[dict[str, Callable[..., Term]]] = {
    **VECTOR_INTRINSICS,
    "add_saturate": _add_saturate, "multiply_q15": _multiply_q15, "multiply_pairs": _multiply_pairs,
    "narrow_fours": _narrow_fours, "look_up": _look_up, "bits": _bits, "saturate": _saturate,
    "in_range": _in_range, "select": ExpressionWriter.choose, "isnan": _isnan, "static": _static,
    "minimum": partial(_spreading, least=True), "maximum": partial(_spreading, least=False),
    "floor": _floats("floor", math.floor), "ceil": _floats("ceil", math.ceil), "exp": _exp,
    "sqrt": _floats("sqrt", math.sqrt), "fma": _floats("fmuladd", None),
}  # fmt: skip
INTRINSICS: Final[dict[object, Callable[..., Term]]] = {
    **{getattr(names, name): function for name, function in _NAMED.items()},
    min: partial(_extreme, least=True), max: partial(_extreme, least=False),
    len: _len, abs: _abs, round: _floats("roundeven", round), range: _range,
}  # fmt: skip
