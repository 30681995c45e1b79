"""LLVM instructions for the operations of the typed IR.

Each operation is emitted in one place, for scalars and for vectors. A value that differs between
the positions of a vector is *varying* and becomes a vector of ``lanes`` elements. All other values
are *uniform*: they stay scalars and are broadcast where a vector is needed. With one lane, no value
is varying.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Final

from dala.errors import UnsupportedOperation
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS, math_function, vector_exp
from dala.gpu.compute.engines.cpu.llvm.text import TYPES, FunctionText, constant
from dala.gpu.compute.lang.ir import FLOATS, Value

#: Instructions for ints and for floats.
_ARITHMETIC: Final = {
    "add": ("add", "fadd"), "sub": ("sub", "fsub"), "mul": ("mul", "fmul"), "div": ("", "fdiv"),
    "and": ("and", ""), "or": ("or", ""), "xor": ("xor", ""),
}  # fmt: skip
#: Predicates for signed ints, unsigned ints and floats.
_COMPARE: Final = {
    "eq": ("eq", "eq", "oeq"), "ne": ("ne", "ne", "une"), "lt": ("slt", "ult", "olt"),
    "le": ("sle", "ule", "ole"), "gt": ("sgt", "ugt", "ogt"), "ge": ("sge", "uge", "oge"),
}  # fmt: skip
_ROUNDING: Final = {"floor": "floor", "ceil": "ceil", "round": "roundeven", "sqrt": "sqrt"}
_SUFFIX: Final = {
    "float": "f32", "double": "f64", "i32": "i32", "i64": "i64", "i1": "i1", "i8": "i8",
}  # fmt: skip
_UNSIGNED: Final = frozenset({"u32", "bool", "u8"})
_BITS: Final = {"bool": 1, "s32": 32, "u32": 32, "s64": 64, "f32": 32, "f64": 64}


class InstructionWriter:
    """Emits operations for ``lanes`` positions at a time.

    Args:
        f: The function to write to.
        lanes: Elements of a vector.
        varying: Values that become vectors.
        of_bytes: Whether a program stores bytes: nothing is fused, so that all processors store
            the same, and ``exp`` is that of ``lang/exact/exponential.py``.
    """

    def __init__(
        self,
        f: FunctionText,
        lanes: int = 1,
        varying: Collection[Value] = frozenset(),
        of_bytes: bool = False,
    ) -> None:
        self.f = f
        self.lanes = lanes
        self.varying = varying
        self.of_bytes = of_bytes
        #: The LLVM name of each value emitted so far.
        self.names: dict[Value, str] = {}
        self._splats: dict[str, str] = {}
        self._emitted: dict[str, str] = {}

    # operands -----------------------------------------------------------------------------------
    def kind(self, ir_type: str, vector: bool = True) -> str:
        """Return the LLVM type for an IR type."""
        return f"<{self.lanes} x {TYPES[ir_type]}>" if vector else TYPES[ir_type]

    def number(self, value: float, ir_type: str, vector: bool) -> str:
        """Return a constant as an operand."""
        return constant(value, self.kind(ir_type, vector))

    def operand(self, v: Value, vector: bool) -> str:
        """Return a constant or a value emitted earlier, as a vector or as a scalar."""
        if v.op == "const":
            return self.number(v.attr, v.type, vector)
        name = self.names[v]
        return self.splat(name, v.type) if vector and v not in self.varying else name

    def splat(self, name: str, ir_type: str) -> str:
        """Broadcast a scalar to all lanes, once per scope."""
        if name not in self._splats:
            self._splats[name] = self.f.splat(TYPES[ir_type], name, self.lanes)
        return self._splats[name]

    def let(self, text: str) -> str:
        """Emit an instruction without side effects, once per scope."""
        if text not in self._emitted:
            self._emitted[text] = self.f.let(text)
        return self._emitted[text]

    def mark(self) -> tuple[int, int, int]:
        """Return the current position, for :meth:`rewind`."""
        return len(self.names), len(self._splats), len(self._emitted)

    def rewind(self, mark: tuple[int, int, int]) -> None:
        """Forget the names of all values emitted since a mark: they are out of scope."""
        values, splats, emitted = mark
        while len(self.names) > values:
            self.names.popitem()
        for texts, count in ((self._splats, splats), (self._emitted, emitted)):
            while len(texts) > count:
                texts.popitem()

    # operations ---------------------------------------------------------------------------------
    def operation(self, v: Value) -> str:
        """Emit an operation that reads nothing but its operands; return its name."""
        vector = v in self.varying
        if v.op == "select":
            return self._select(v, vector)
        write = _WRITERS.get(v.op)
        if write is None:
            raise UnsupportedOperation(
                f"cpu: kernels cannot use the operation {v.op!r}.",
                call="cpu",
                operation=v.op,
                engine="cpu",
            )
        return write(self, v, [self.operand(a, vector) for a in v.args], vector)

    def intrinsic(self, name: str, ir_type: str, vector: bool, *args: str, tail: str = "") -> str:
        """Call an intrinsic whose arguments and result have one type."""
        kind, suffix = self.kind(ir_type, vector), self._suffix(ir_type, vector)
        kinds = [kind] * len(args) + (["i1"] if tail else [])
        full = self.f.module.intrinsic(f"{name}.{suffix}", kind, *kinds)
        listed = ", ".join([f"{kind} {a}" for a in args] + ([tail] if tail else []))
        return self.let(f"call {kind} {full}({listed})")

    def _suffix(self, ir_type: str, vector: bool) -> str:
        scalar = _SUFFIX[TYPES[ir_type]]
        return f"v{self.lanes}{scalar}" if vector else scalar

    def _arithmetic(self, v: Value, args: list[str], vector: bool) -> str:
        kind = self.kind(v.type, vector)
        if vector and v.op == "add" and v.type == "f32" and not self.of_bytes:
            total, product = v.args
            if total.op == "get" and product.op == "mul":
                # A loop that sums products spends its time here: fuse where the CPU can.
                a, b = (self.operand(x, True) for x in product.args)
                return self.intrinsic("fmuladd", "f32", True, a, b, args[0])
        text = _ARITHMETIC[v.op][v.type in FLOATS]
        return self.let(f"{text} {kind} {args[0]}, {args[1]}")

    def _compare(self, v: Value, args: list[str], vector: bool) -> str:
        signed, unsigned, floating = _COMPARE[v.op]
        source = v.args[0].type
        kind = self.kind(source, vector)
        if source in FLOATS:
            return self.let(f"fcmp {floating} {kind} {args[0]}, {args[1]}")
        rule = unsigned if source in _UNSIGNED else signed
        return self.let(f"icmp {rule} {kind} {args[0]}, {args[1]}")

    def _select(self, v: Value, vector: bool) -> str:
        # The condition may be uniform where the result is not.
        condition, kind = v.args[0], self.kind(v.type, vector)
        each = condition in self.varying
        flag = self.operand(condition, each)
        yes, no = (self.operand(a, vector) for a in v.args[1:])
        return self.let(f"select {self.kind('bool', each)} {flag}, {kind} {yes}, {kind} {no}")

    def _min_max(self, v: Value, args: list[str], vector: bool) -> str:
        a, b = args
        if v.type not in FLOATS:
            letter = "u" if v.type in _UNSIGNED else "s"
            return self.intrinsic(letter + v.op, v.type, vector, a, b)
        kind, flags = self.kind(v.type, vector), self.kind("bool", vector)
        rule = "lt" if v.op == "max" else "gt"
        if never_nan(v.args[0]):
            # "b is beyond a, or NaN" is one instruction where a cannot be NaN.
            beyond = self.let(f"fcmp u{rule} {kind} {a}, {b}")
            return self.let(f"select {flags} {beyond}, {kind} {b}, {kind} {a}")
        beyond = self.let(f"fcmp o{rule} {kind} {a}, {b}")
        picked = self.let(f"select {flags} {beyond}, {kind} {b}, {kind} {a}")
        if never_nan(v.args[1]):
            return picked
        nan = self.let(f"fcmp uno {kind} {b}, {b}")
        return self.let(f"select {flags} {nan}, {kind} {b}, {kind} {picked}")

    def _shift(self, v: Value, args: list[str], vector: bool) -> str:
        kind = self.kind(v.type, vector)
        mask = self.number(_BITS[v.type] - 1, v.type, vector)
        amount = self.let(f"and {kind} {args[1]}, {mask}")
        text = "shl" if v.op == "shl" else "lshr" if v.type in _UNSIGNED else "ashr"
        return self.let(f"{text} {kind} {args[0]}, {amount}")

    def _negate(self, v: Value, args: list[str], vector: bool) -> str:
        kind = self.kind(v.type, vector)
        if v.type in FLOATS:
            return self.let(f"fneg {kind} {args[0]}")
        return self.let(f"sub {kind} {self.number(0, v.type, vector)}, {args[0]}")

    def _invert(self, v: Value, args: list[str], vector: bool) -> str:
        ones = self.number(1 if v.type == "bool" else -1, v.type, vector)
        return self.let(f"xor {self.kind(v.type, vector)} {args[0]}, {ones}")

    def _absolute(self, v: Value, args: list[str], vector: bool) -> str:
        if v.type in FLOATS:
            return self.intrinsic("fabs", v.type, vector, args[0])
        if v.type in _UNSIGNED:
            return args[0]
        return self.intrinsic("abs", v.type, vector, args[0], tail="i1 false")

    def _round(self, v: Value, args: list[str], vector: bool) -> str:
        return self.intrinsic(_ROUNDING[v.op], v.type, vector, args[0])

    def _function(self, v: Value, args: list[str], vector: bool) -> str:
        kind = self.kind(v.type, vector)
        if vector or (self.of_bytes and v.op == "exp" and v.type == "f32"):
            name = vector_exp(self.f.module, self.lanes if vector else 1, self.of_bytes)
        else:
            name = math_function(self.f.module, v.op, v.type)
        return self.let(f"call {kind} {name}({', '.join(f'{kind} {a}' for a in args)})")

    def _isnan(self, v: Value, args: list[str], vector: bool) -> str:
        kind = self.kind(v.args[0].type, vector)
        return self.let(f"fcmp uno {kind} {args[0]}, {args[0]}")

    def _divide(self, v: Value, args: list[str], vector: bool) -> str:
        """Emit floor division or modulo; neither ever traps."""
        (a, b), kind, flags = args, self.kind(v.type, vector), self.kind("bool", vector)
        signed = v.type not in _UNSIGNED
        zero, one = (self.number(n, v.type, vector) for n in (0, 1))
        by_zero = self.let(f"icmp eq {kind} {b}, {zero}")
        unsafe = by_zero
        if signed:
            least = self.number(-(1 << (_BITS[v.type] - 1)), v.type, vector)
            lowest = self.let(f"icmp eq {kind} {a}, {least}")
            minus = self.let(f"icmp eq {kind} {b}, {self.number(-1, v.type, vector)}")
            overflow = self.let(f"and {flags} {lowest}, {minus}")
            unsafe = self.let(f"or {flags} {by_zero}, {overflow}")
        # Dividing by 1 gives the specified remainder 0 and, for the lowest number, itself.
        divisor = self.let(f"select {flags} {unsafe}, {kind} {one}, {kind} {b}")
        if _BITS[v.type] == 32 and v.args[1].op != "const":
            quotient = self._float_quotient(signed, kind, a, divisor, vector)
        else:
            quotient = self._int_quotient(signed, kind, a, divisor, zero, flags)
        if v.op == "idiv":
            return self.let(f"select {flags} {by_zero}, {kind} {zero}, {kind} {quotient}")
        product = self.let(f"mul {kind} {quotient}, {divisor}")
        return self.let(f"sub {kind} {a}, {product}")

    def _float_quotient(self, signed: bool, kind: str, a: str, b: str, vector: bool) -> str:
        # CPUs divide vectors of floats only. The floor of the f64 quotient of two 32-bit ints is
        # exact.
        letter, double = "s" if signed else "u", self.kind("f64", vector)
        x, y = (self.let(f"{letter}itofp {kind} {n} to {double}") for n in (a, b))
        floor = self.intrinsic("floor", "f64", vector, self.let(f"fdiv {double} {x}, {y}"))
        return self.let(f"fpto{letter}i {double} {floor} to {kind}")

    def _int_quotient(self, signed: bool, kind: str, a: str, b: str, zero: str, flags: str) -> str:
        if not signed:
            return self.let(f"udiv {kind} {a}, {b}")
        quotient = self.let(f"sdiv {kind} {a}, {b}")
        rest = self.let(f"srem {kind} {a}, {b}")
        signs = self.let(f"xor {kind} {rest}, {b}")
        differ = self.let(f"icmp slt {kind} {signs}, {zero}")
        inexact = self.let(f"icmp ne {kind} {rest}, {zero}")
        below = self.let(f"and {flags} {differ}, {inexact}")
        return self.let(f"add {kind} {quotient}, {self.let(f'sext {flags} {below} to {kind}')}")

    def _cast(self, v: Value, args: list[str], vector: bool) -> str:
        """Emit a conversion; float to int saturates unless the value is known to be in range."""
        a, source, target = args[0], v.args[0].type, v.type
        have, want = self.kind(source, vector), self.kind(target, vector)
        if source == target:
            return a
        if target == "bool":
            rule = "fcmp une" if source in FLOATS else "icmp ne"
            return self.let(f"{rule} {have} {a}, {self.number(0, source, vector)}")
        unsigned = source in _UNSIGNED
        if source in FLOATS and target in FLOATS:
            return self.let(f"{'fpext' if target == 'f64' else 'fptrunc'} {have} {a} to {want}")
        if source in FLOATS:
            letter = "u" if target in _UNSIGNED else "s"
            if v.attr == "in_range":
                return self.let(f"fpto{letter}i {have} {a} to {want}")
            suffix = f"{self._suffix(target, vector)}.{self._suffix(source, vector)}"
            name = self.f.module.intrinsic(f"fpto{letter}i.sat.{suffix}", want, have)
            return self.let(f"call {want} {name}({have} {a})")
        if target in FLOATS:
            return self.let(f"{'u' if unsigned else 's'}itofp {have} {a} to {want}")
        if _BITS[source] == _BITS[target]:
            return a
        if _BITS[source] > _BITS[target]:
            return self.let(f"trunc {have} {a} to {want}")
        return self.let(f"{'zext' if unsigned else 'sext'} {have} {a} to {want}")

    def _bits(self, v: Value, args: list[str], vector: bool) -> str:
        have, want = self.kind(v.args[0].type, vector), self.kind(v.type, vector)
        return args[0] if have == want else self.let(f"bitcast {have} {args[0]} to {want}")


def never_nan(v: Value) -> bool:
    """Return whether a float is known not to be NaN."""
    return (v.op == "const" and bool(v.attr == v.attr)) or _finite(v)


def _finite(v: Value, depth: int = 8) -> bool:
    if v.op == "const":
        return math.isfinite(v.attr)
    if v.op == "cast":
        return v.args[0].type not in FLOATS
    if v.op == "mul" and v.args[1].op == "const" and abs(v.args[1].attr) <= 1.0:
        return depth > 0 and _finite(v.args[0], depth - 1)
    if v.op in ("min", "max"):
        return depth > 0 and all(_finite(a, depth - 1) for a in v.args)
    return False


_Writer = Callable[[InstructionWriter, Value, list[str], bool], str]

_WRITERS: Final[dict[str, _Writer]] = {
    **dict.fromkeys(_ARITHMETIC, InstructionWriter._arithmetic),
    **dict.fromkeys(_COMPARE, InstructionWriter._compare),
    **dict.fromkeys(_ROUNDING, InstructionWriter._round),
    **dict.fromkeys(FUNCTIONS, InstructionWriter._function),
    **dict.fromkeys(("min", "max"), InstructionWriter._min_max),
    **dict.fromkeys(("idiv", "mod"), InstructionWriter._divide),
    **dict.fromkeys(("shl", "shr"), InstructionWriter._shift),
    "neg": InstructionWriter._negate,
    "not": InstructionWriter._invert,
    "abs": InstructionWriter._absolute,
    "isnan": InstructionWriter._isnan,
    "cast": InstructionWriter._cast,
    "bits": InstructionWriter._bits,
}
