"""The code emitted for the functions that access memory and vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from dala.gpu.compute.engines.cpu.native.expressions import ExpressionWriter
from dala.gpu.compute.engines.cpu.native.operations import describe
from dala.gpu.compute.engines.cpu.native.types import Span, Term, is_number
from dala.gpu.compute.engines.cpu.vector.text import constant
from dala.gpu.compute.engines.cpu.vector.types import BOOL, I32, I64, Operand, Type

#: The most bytes of one local array, and of all local arrays in a module.
MAX_LOCAL_BYTES: Final = 256 << 10
MAX_STACK_BYTES: Final = 512 << 10


# memory ---------------------------------------------------------------------------------------
def _local(b: ExpressionWriter, element: Term, length: Term) -> Span:
    kind = type_of(b, element)
    if not isinstance(length, int) or length < 1:
        b.fail("the length of a local array must be a constant of at least 1")
    if length * kind.size > MAX_LOCAL_BYTES:
        b.fail(f"a local array has at most {MAX_LOCAL_BYTES} bytes, got {length * kind.size}")
    made = b.locals
    key = (id(b.at), kind, length)  # iterations of an unrolled loop share one
    if key not in made:
        made[key] = b.f.alloca(f"[{length} x {kind.stored}]", f"local.{len(made)}", 64)
        b.unit.stack += length * kind.size
        if b.unit.stack > MAX_STACK_BYTES:
            b.fail(f"local arrays have at most {MAX_STACK_BYTES} bytes in all, got {b.unit.stack}")
    return Span(kind, made[key], str(length), kind.size)


def _view(b: ExpressionWriter, array: Term, element: Term, offset: Term = 0) -> Span:
    source, kind, at = span_of(b, array), type_of(b, element), b.index(offset)
    size = b.f.let(f"mul i64 {source.length}, {source.element.size}")
    if b.unit.checked:
        b.check_range(at, size, more="1")
    left = b.f.let(f"sub i64 {size}, {at}")
    length = b.f.let(f"sdiv i64 {left}, {kind.size}")
    pointer = b.f.let(f"getelementptr inbounds i8, ptr {source.pointer}, i64 {at}")
    return Span(kind, pointer, length, 1)


def _table(b: ExpressionWriter, element: Term, values: Term) -> Span:
    kind = type_of(b, element)
    if not isinstance(values, (tuple, list, range)) or not all(is_number(v) for v in values):
        b.fail(f"table(...) takes constant numbers, got {describe(values)}")
    stored = kind.stored
    listed = ", ".join(f"{stored} {constant(v, stored)}" for v in values)
    text = f"internal unnamed_addr constant [{len(values)} x {stored}] [{listed}], align 64"
    made = b.unit.tables
    if text not in made:
        made[text] = f"@table.{len(made)}"
        b.unit.globals.append(f"{made[text]} = {text}")
    return Span(kind, made[text], str(len(values)), kind.size)


def _load(
    b: ExpressionWriter, array: Term, index: Term, lanes: Term, count: Term = None
) -> Operand:
    source, at, n = span_of(b, array), b.index(index), lanes_of(b, lanes)
    if count is None:
        return b.load(source, at, n)
    mask, kind = _first_lanes(b, source, at, n, count), source.element.wide(n)
    m, t = f"<{n} x i1>", kind.llvm
    name = b.f.module.intrinsic(f"masked.load.{kind.suffix}.p0", t, "ptr", "i32", m, t)
    given = f"ptr {b.address(source, at)}, i32 {source.align}, {m} {mask}, {t} zeroinitializer"
    return Operand(kind, b.f.let(f"call {t} {name}({given}){b.access_metadata()}"))


def _store(b: ExpressionWriter, array: Term, index: Term, vector: Term, count: Term = None) -> None:
    target, at = span_of(b, array), b.index(index)
    if count is None:
        b.store(target, at, vector)
        return
    v = vector_of(b, vector)
    if v.type.scalar != target.element:
        b.fail(f"cannot store {v.type} in an array of {target.element}")
    m, t = f"<{v.type.lanes} x i1>", v.type.llvm
    mask = _first_lanes(b, target, at, v.type.lanes, count)
    name = b.f.module.intrinsic(f"masked.store.{v.type.suffix}.p0", "void", t, "ptr", "i32", m)
    given = f"{t} {v.name}, ptr {b.address(target, at)}, i32 {target.align}, {m} {mask}"
    b.f.do(f"call void {name}({given}){b.access_metadata()}")


def _first_lanes(b: ExpressionWriter, array: Span, at: str, lanes: int, count: Term) -> str:
    """Return the mask of the first lanes, with a bounds check in checked builds."""
    if array.element.bits == 1:
        b.fail("a count is not supported for bools")
    wanted = b.intrinsic("smax", Operand(I64, b.index(count)), Operand(I64, "0"))
    wanted = b.intrinsic("smin", wanted, Operand(I64, str(lanes)))
    if b.unit.checked:
        b.check_range(at, array.length, more="1")
        last = b.f.let(f"add i64 {at}, {wanted.name}")
        b.check_range(last, array.length, more="1")
    wide = b.broadcast(b.convert(wanted, I32), lanes)
    numbers = ", ".join(f"i32 {i}" for i in range(lanes))
    return b.f.let(f"icmp sgt <{lanes} x i32> {wide.name}, <{numbers}>")


def _stream(b: ExpressionWriter, array: Term, index: Term, vector: Term) -> None:
    target, at, v, f = span_of(b, array), b.index(index), vector_of(b, vector), b.f
    size = v.type.lanes * v.type.size
    if not b.unit.machine.streams or size not in (16, 32, 64):
        b.store(target, at, v)
        return
    if v.type.scalar != target.element or v.type.bits == 1:
        b.fail(f"cannot stream {v.type} to an array of {target.element}")
    b.check_range(at, target.length, width=v.type.lanes)
    place = b.address(target, at)
    low = f.let(f"and i64 {f.let(f'ptrtoint ptr {place} to i64')}, {size - 1}")
    past, usual, after = f.label("past"), f.label("usual"), f.label("stored")
    f.branch(f.let(f"icmp eq i64 {low}, 0"), past, usual)
    f.start(past)
    text = f"store {v.type.llvm} {v.name}, ptr {place}, align"
    f.do(f"{text} {size}, !nontemporal {b.unit.meta('!{i32 1}')}{b.access_metadata()}")
    f.jump(after)
    f.start(usual)
    f.do(f"{text} {target.align}{b.access_metadata()}")
    f.jump(after)
    f.start(after)
    b.unit.streamed = True


def _gather(b: ExpressionWriter, array: Term, indexes: Term, element: Term = None) -> Operand:
    source, at = span_of(b, array), b.value(indexes)
    if not at.type.integer or at.type.lanes == 1 or source.element.bits == 1:
        b.fail("gather takes an array of numbers and a vector of integers")
    kind, align = source.element, source.align
    if element is not None:
        kind, align = type_of(b, element), 1
        if source.element.size != 1 or kind.bits == 1:
            b.fail("gather with a type takes an array of bytes")
    if b.unit.checked:
        for lane in range(at.type.lanes):
            bytes_each = 1 if element is None else kind.size
            index = b.index(b.lane(at, str(lane)))
            b.check_range(index, source.length, width=bytes_each)
    n, t = at.type.lanes, kind.wide(at.type.lanes)
    wide = b.convert(at, I64)
    text = f"getelementptr {source.element.llvm}, ptr {source.pointer}, {wide.type.llvm}"
    places = b.f.let(f"{text} {wide.name}")
    name = b.f.module.intrinsic(
        f"masked.gather.{t.suffix}.v{n}p0", t.llvm, f"<{n} x ptr>", "i32", f"<{n} x i1>", t.llvm
    )
    every = b.literal(True, BOOL.wide(n)).name
    text = f"call {t.llvm} {name}(<{n} x ptr> {places}, i32 {align}, <{n} x i1> {every}"
    return Operand(t, b.f.let(f"{text}, {t.llvm} poison)"))


def _prefetch(b: ExpressionWriter, array: Term, index: Term) -> None:
    source, at = span_of(b, array), b.index(index)
    place = b.f.let(f"getelementptr {source.element.stored}, ptr {source.pointer}, i64 {at}")
    name = b.f.module.intrinsic("prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    b.f.do(f"call void {name}(ptr {place}, i32 0, i32 3, i32 1)")


# vectors --------------------------------------------------------------------------------------
def _vec(b: ExpressionWriter, *values: Term) -> Operand:
    parts = b.same_type(*values, what="vec(...)")
    if len(parts) < 2 or parts[0].type.lanes > 1:
        b.fail("vec(...) takes at least two scalars")
    kind = parts[0].type.wide(len(parts))
    name = "poison"
    for i, p in enumerate(parts):
        name = b.f.let(f"insertelement {kind.llvm} {name}, {p.type.llvm} {p.name}, i64 {i}")
    return Operand(kind, name)


def _insert(b: ExpressionWriter, vector: Term, lane: Term, value: Term) -> Operand:
    v = vector_of(b, vector)
    one = b.value(value, v.type.scalar)
    if one.type != v.type.scalar:
        b.fail(f"cannot insert {one.type} into a {v.type}", f"Convert it: {v.type.scalar}(...).")
    if isinstance(lane, int) and not 0 <= lane < v.type.lanes:
        b.fail(f"lane {lane} is out of range for {v.type.lanes} lanes")
    at = b.index(lane)
    text = f"insertelement {v.type.llvm} {v.name}, {one.type.llvm} {one.name}, i64 {at}"
    return Operand(v.type, b.f.let(text))


def _shuffle(b: ExpressionWriter, first: Term, second: Term, lanes: Term) -> Operand:
    x, y = b.same_type(first, second, what="shuffle")
    ok = isinstance(lanes, tuple) and all(isinstance(i, int) for i in lanes)
    if not ok or not all(0 <= i < 2 * x.type.lanes for i in lanes):
        b.fail("the lanes of a shuffle must be a constant tuple of lanes of both vectors")
    return b.shuffle(x, y, lanes)


def _join(b: ExpressionWriter, *vectors: Term) -> Operand:
    return joined(b, [vector_of(b, v) for v in vectors])


def joined(b: ExpressionWriter, found: list[Operand]) -> Operand:
    """Return the lanes of vectors one after another, joined in pairs."""
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [b.shuffle(p, q, range(2 * p.type.lanes)) for p, q in pairs]
    return found[0]


def _across(b: ExpressionWriter, vector: Term, op: str) -> Operand:
    v = vector_of(b, vector)
    one, t = v.type.scalar, v.type
    if t.floating and op == "add":
        return _sum(b, v)
    if t.floating:
        op = {"min": "fminimum", "max": "fmaximum"}.get(op, op)
    elif op in ("min", "max"):
        op = ("s" if t.signed else "u") + op
    name = b.f.module.intrinsic(f"vector.reduce.{op}.{t.suffix}", one.llvm, t.llvm)
    return Operand(one, b.invoke(name, one, v))


def _sum(b: ExpressionWriter, v: Operand) -> Operand:
    """Add the upper half to the lower one, again and again: the same order on every processor."""
    while v.type.lanes % 2 == 0 and v.type.lanes > 2:
        half = v.type.lanes // 2
        low, high = (b.shuffle(v, v, range(at, at + half)) for at in (0, half))
        v = Operand(low.type, b.f.let(f"fadd {low.type.llvm} {low.name}, {high.name}"))
    one, t = v.type.scalar, v.type
    name = b.f.module.intrinsic(f"vector.reduce.fadd.{t.suffix}", one.llvm, one.llvm, t.llvm)
    return Operand(one, b.invoke(name, one, b.number(-0.0, one), v))


def _mask(b: ExpressionWriter, mask: Term, op: str) -> Operand:
    v = b.condition(mask)
    return v if v.type.lanes == 1 else _across(b, v, op)


# helpers --------------------------------------------------------------------------------------
def type_of(b: ExpressionWriter, term: Term) -> Type:
    """Return a term that must be a type."""
    if not isinstance(term, Type):
        b.fail(f"expected a type, got {describe(term)}")
    return term


def span_of(b: ExpressionWriter, term: Term) -> Span:
    """Return a term that must be an array."""
    if not isinstance(term, Span):
        b.fail(f"expected an array, got {describe(term)}")
    return term


def vector_of(b: ExpressionWriter, term: Term) -> Operand:
    """Return a term that must be a vector."""
    if not isinstance(term, Operand) or term.type.lanes == 1:
        b.fail(f"expected a vector, got {describe(term)}")
    return term


def lanes_of(b: ExpressionWriter, term: Term) -> int:
    """Return a term that must be a number of lanes."""
    if not isinstance(term, int) or not 2 <= term <= 64:
        b.fail("the number of lanes must be a constant from 2 to 64")
    return term


VECTOR_INTRINSICS: Final[dict[str, Callable[..., Term]]] = {
    "local": _local, "view": _view, "table": _table, "load": _load, "store": _store,
    "stream": _stream, "gather": _gather, "prefetch": _prefetch, "vec": _vec,
    "splat": lambda b, value, lanes: b.broadcast(b.value(value), lanes_of(b, lanes)),
    "insert": _insert, "join": _join, "shuffle": _shuffle,
    "hsum": partial(_across, op="add"), "hmin": partial(_across, op="min"),
    "hmax": partial(_across, op="max"), "any_of": partial(_mask, op="or"),
    "all_of": partial(_mask, op="and"),
}  # fmt: skip
