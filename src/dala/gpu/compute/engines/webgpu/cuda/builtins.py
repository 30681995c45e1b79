"""The functions that WGSL has, by LLVM's instructions and intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from dala.gpu.compute.engines.webgpu.cuda.emitter import ShaderEmitter, mangled
from dala.gpu.compute.engines.webgpu.cuda.types import (
    BOOL,
    U32,
    WgslScalar,
    WgslValue,
    WgslVector,
    constant,
    like,
    scalar_of,
)

Builtin: TypeAlias = "Callable[..., WgslValue]"

#: Functions of floats that are one intrinsic.
_INTRINSICS: Final = {
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven", "sqrt": "sqrt",
    "fma": "fma",
}  # fmt: skip
_ATOMICS: Final = {
    "atomicAdd": "add", "atomicSub": "sub", "atomicAnd": "and", "atomicOr": "or",
    "atomicXor": "xor", "atomicExchange": "xchg", "atomicMin": "min", "atomicMax": "max",
}  # fmt: skip


def intrinsic(emitter: ShaderEmitter, name: str, *values: WgslValue) -> WgslValue:
    """Call an intrinsic whose operands and result have one type."""
    kind = values[0].kind
    return emitter.call(f"llvm.{name}.{mangled(kind)}", kind, *values)


def binary(emitter: ShaderEmitter, sign: str, left: WgslValue, right: WgslValue) -> WgslValue:
    """Return the result of an operator; both operands have one type."""
    kind, scalar = left.kind, scalar_of(left.kind)
    if scalar.abstract or (isinstance(left.number, int) and isinstance(right.number, int)):
        folded = _fold(sign, left, right)
        if folded is not None:
            return folded
    operands = f"{kind.llvm} {left.text}, {right.text}"
    if sign in _COMPARISONS:
        floats, name = _COMPARISONS[sign]
        if scalar.floating:
            return emitter.emit(f"fcmp {floats} {operands}", like(kind, BOOL))
        prefix = "" if name in ("eq", "ne") else "s" if scalar.signed else "u"
        return emitter.emit(f"icmp {prefix}{name} {operands}", like(kind, BOOL))
    if scalar.floating:
        name = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "%": "frem"}[sign]
        fused = "contract " if emitter.fused and sign in "+-*" else ""
        return emitter.emit(f"{name} {fused}{operands}", kind)
    if sign in "/%":
        safe = _divisor(emitter, left, right)
        name = ("s" if scalar.signed else "u") + ("div" if sign == "/" else "rem")
        return emitter.emit(f"{name} {kind.llvm} {left.text}, {safe.text}", kind)
    name = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}[sign]
    return emitter.emit(f"{name} {operands}", kind)


def shift(emitter: ShaderEmitter, sign: str, left: WgslValue, right: WgslValue) -> WgslValue:
    """Return a number shifted by a count, whose upper bits do not matter."""
    kind, scalar = left.kind, scalar_of(left.kind)
    if isinstance(left.number, int) and isinstance(right.number, int):
        shifted = left.number << right.number if sign == "<<" else left.number >> right.number
        return constant(scalar, shifted)
    left = emitter.concrete(left)
    kind, scalar = left.kind, scalar_of(left.kind)
    right = emitter.convert(emitter.coerce(right, U32), scalar)
    if isinstance(kind, WgslVector) and not isinstance(right.kind, WgslVector):
        right = emitter.splat(right, kind.count)
    if right.number is None:
        right = binary(emitter, "&", right, emitter.number(kind, scalar.bits - 1))
    name = "shl" if sign == "<<" else "ashr" if scalar.signed else "lshr"
    return emitter.emit(f"{name} {kind.llvm} {left.text}, {right.text}", kind)


_COMPARISONS: Final = {
    "==": ("oeq", "eq"), "!=": ("une", "ne"), "<": ("olt", "lt"), "<=": ("ole", "le"),
    ">": ("ogt", "gt"), ">=": ("oge", "ge"),
}  # fmt: skip


def _fold(sign: str, left: WgslValue, right: WgslValue) -> WgslValue | None:
    a, b = left.number, right.number
    scalar = scalar_of(left.kind)
    if a is None or b is None or scalar == BOOL:
        return None
    if sign in _COMPARISONS:
        tests = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
        return constant(BOOL, tests[sign])
    if sign in "/%" and (not b or scalar.name != "float"):
        if not b:
            return None
        whole = abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
        return constant(scalar, whole if sign == "/" else int(a) - whole * int(b))
    if sign in "&|^":
        whole_a, whole_b = int(a), int(b)
        bits = {"&": whole_a & whole_b, "|": whole_a | whole_b, "^": whole_a ^ whole_b}
        return constant(scalar, bits[sign])
    values = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0}
    return constant(scalar, values[sign])


def _divisor(emitter: ShaderEmitter, left: WgslValue, right: WgslValue) -> WgslValue:
    """Return a divisor that LLVM defines: 1 for 0, and for -1 below the least number."""
    if right.number is not None and right.number not in (0, -1):
        return right
    kind, scalar = left.kind, scalar_of(left.kind)
    wrong = binary(emitter, "==", right, emitter.number(kind, 0))
    if scalar.signed:
        least = binary(emitter, "==", left, emitter.number(kind, -(1 << (scalar.bits - 1))))
        minus = binary(emitter, "==", right, emitter.number(kind, -1))
        wrong = binary(emitter, "|", wrong, binary(emitter, "&", least, minus))
    return choose(emitter, right, emitter.number(kind, 1), wrong)


def choose(emitter: ShaderEmitter, no: WgslValue, yes: WgslValue, test: WgslValue) -> WgslValue:
    """Return one of two values, or of each of their elements."""
    if isinstance(no.kind, WgslVector) and not isinstance(test.kind, WgslVector):
        test = emitter.splat(test, no.kind.count)
    values = ", ".join(f"{v.kind.llvm} {v.text}" for v in (test, yes, no))
    return emitter.emit(f"select {values}", no.kind)


def negated(emitter: ShaderEmitter, value: WgslValue) -> WgslValue:
    """Return a number with the other sign."""
    if value.number is not None and isinstance(value.kind, WgslScalar):
        return constant(value.kind, -value.number)
    if scalar_of(value.kind).floating:
        return emitter.emit(f"fneg {value.kind.llvm} {value.text}", value.kind)
    zero = "zeroinitializer" if isinstance(value.kind, WgslVector) else "0"
    return emitter.emit(f"sub {value.kind.llvm} {zero}, {value.text}", value.kind)


def inverted(emitter: ShaderEmitter, value: WgslValue) -> WgslValue:
    """Return a value with all bits changed."""
    ones = emitter.number(value.kind, -1 if scalar_of(value.kind) != BOOL else 1)
    return binary(emitter, "^", value, ones)


def bitcast(emitter: ShaderEmitter, value: WgslValue, kind: object) -> WgslValue:
    """Return the same bits as another type."""
    value = emitter.concrete(value)
    assert isinstance(kind, WgslScalar | WgslVector)
    if kind.llvm == value.kind.llvm:
        return WgslValue(kind, value.text)
    return emitter.emit(f"bitcast {value.kind.llvm} {value.text} to {kind.llvm}", kind)


def _least(
    emitter: ShaderEmitter, left: WgslValue, right: WgslValue, *, most: bool = False
) -> WgslValue:
    left, right = emitter.unify(left, right)
    scalar = scalar_of(left.kind)
    if scalar.abstract:
        assert left.number is not None
        assert right.number is not None
        return constant(scalar, (max if most else min)(left.number, right.number))
    kind = "max" if most else "min"
    name = f"{kind}num" if scalar.floating else ("s" if scalar.signed else "u") + kind
    return intrinsic(emitter, name, left, right)


_greatest: Final = partial(_least, most=True)


def _clamp(emitter: ShaderEmitter, value: WgslValue, low: WgslValue, high: WgslValue) -> WgslValue:
    value, low, high = emitter.unify(value, low, high)
    return _least(emitter, _greatest(emitter, value, low), high)


def _select(emitter: ShaderEmitter, no: WgslValue, yes: WgslValue, test: WgslValue) -> WgslValue:
    no, yes = (emitter.concrete(v) for v in emitter.unify(no, yes))
    return choose(emitter, no, yes, test)


def _abs(emitter: ShaderEmitter, value: WgslValue) -> WgslValue:
    value = emitter.concrete(value)
    scalar = scalar_of(value.kind)
    if scalar.floating:
        return intrinsic(emitter, "fabs", value)
    if not scalar.signed:
        return value
    return _greatest(emitter, value, negated(emitter, value))


def _mix(
    emitter: ShaderEmitter, first: WgslValue, second: WgslValue, share: WgslValue
) -> WgslValue:
    first, second, share = (emitter.concrete(v) for v in emitter.unify(first, second, share))
    rest = binary(emitter, "-", emitter.number(first.kind, 1.0), share)
    left = binary(emitter, "*", first, rest)
    return binary(emitter, "+", left, binary(emitter, "*", second, share))


def _dot(emitter: ShaderEmitter, left: WgslValue, right: WgslValue) -> WgslValue:
    return _all(emitter, binary(emitter, "*", left, right), "+")


def _length(emitter: ShaderEmitter, value: WgslValue) -> WgslValue:
    if not isinstance(value.kind, WgslVector):
        return _abs(emitter, value)
    return intrinsic(emitter, "sqrt", _dot(emitter, value, value))


def _inverse_sqrt(emitter: ShaderEmitter, value: WgslValue) -> WgslValue:
    root = intrinsic(emitter, "sqrt", emitter.concrete(value))
    return binary(emitter, "/", emitter.number(root.kind, 1.0), root)


def _all(emitter: ShaderEmitter, value: WgslValue, sign: str = "&") -> WgslValue:
    if not isinstance(value.kind, WgslVector):
        return value
    total = emitter.part(value, 0)
    for k in range(1, value.kind.count):
        total = binary(emitter, sign, total, emitter.part(value, k))
    return total


def _first_bit(emitter: ShaderEmitter, value: WgslValue) -> WgslValue:
    kind, name = value.kind, f"llvm.cttz.{mangled(value.kind)}"
    emitter.declared.add(f"declare {kind.llvm} @{name}({kind.llvm}, i1)")
    found = emitter.emit(f"call {kind.llvm} @{name}({kind.llvm} {value.text}, i1 false)", kind)
    nothing, none = (emitter.number(kind, number) for number in (0, -1))
    return choose(emitter, found, none, binary(emitter, "==", value, nothing))


#: By name; the emitter comes first.
FUNCTIONS: Final[dict[str, Builtin]] = {
    "min": _least, "max": _greatest, "clamp": _clamp, "select": _select, "abs": _abs, "mix": _mix,
    "dot": _dot, "length": _length, "inverseSqrt": _inverse_sqrt, "all": _all,
    "any": partial(_all, sign="|"),
    "firstTrailingBit": _first_bit,
}  # fmt: skip


def function(name: str) -> Builtin | None:
    """Return a function of WGSL, or None if there is none of this name here."""
    if name in _INTRINSICS:
        return lambda emitter, *values: intrinsic(
            emitter, _INTRINSICS[name], *[emitter.concrete(v) for v in emitter.unify(*values)]
        )
    return FUNCTIONS.get(name)


def atomic(
    emitter: ShaderEmitter, name: str, where: str, kind: WgslScalar, value: WgslValue | None
) -> WgslValue | None:
    """Return the number at an address before a change of it, or None for a store."""
    if name == "atomicLoad":
        return emitter.emit(f"load atomic i32, {where} monotonic, align 4", kind)
    assert value is not None
    value = emitter.coerce(value, kind)
    if name == "atomicStore":
        emitter.do(f"store atomic i32 {value.text}, {where} monotonic, align 4")
        return None
    how = _ATOMICS[name]
    if how in ("min", "max") and not kind.signed:
        how = "u" + how
    return emitter.emit(f"atomicrmw {how} {where}, i32 {value.text} monotonic", kind)
