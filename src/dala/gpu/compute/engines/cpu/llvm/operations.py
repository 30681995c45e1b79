"""LLVM instructions for the operations of the typed IR.

Each operation is emitted in one place, for scalars and for vectors. A value that differs between
the positions of a vector is *varying* and becomes a vector of ``lanes`` elements. All other values
are *uniform*: they stay scalars and are broadcast where a vector is needed. With one lane, no value
is varying.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from dala.errors import UnsupportedOperation
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS, math_function, vector_exp
from dala.gpu.compute.engines.cpu.vector.text import TYPES, FunctionText, constant
from dala.gpu.compute.engines.cpu.vector.types import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    U8,
    U32,
    Operand,
)
from dala.gpu.compute.engines.cpu.vector.writer import ValueWriter
from dala.gpu.compute.lang.ir import FLOATS, Value

_ARITHMETIC: Final = ("add", "sub", "mul", "div", "and", "or", "xor")
_COMPARE: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_ROUNDING: Final = {"floor": "floor", "ceil": "ceil", "round": "roundeven", "sqrt": "sqrt"}
#: The type of values of each type of the IR.
_TYPES: Final = {
    "bool": BOOL, "s32": I32, "u32": U32, "s64": I64, "f32": F32, "f64": F64, "u8": U8,
}  # fmt: skip


class InstructionWriter(ValueWriter):
    """Emits operations for ``lanes`` positions at a time.

    Args:
        f: The function to write to.
        lanes: Elements of a vector.
        varying: Values that become vectors.
        of_bytes: Whether a program stores bytes: only exact products are fused, so that all
            processors store the same.
    """

    #: Whether vectors of f32 may round in other places than single numbers do.
    quick = True

    def __init__(
        self,
        f: FunctionText,
        lanes: int = 1,
        varying: Collection[Value] = frozenset(),
        of_bytes: bool = False,
    ) -> None:
        super().__init__(f)
        self.lanes = lanes
        #: The types of scalars and of vectors, by those of the IR.
        self.types = {False: _TYPES, True: {k: t.wide(lanes) for k, t in _TYPES.items()}}
        self.varying = varying
        self.of_bytes = of_bytes
        #: The LLVM name of each value emitted so far.
        self.names: dict[Value, str] = {}
        self._splats: dict[str, str] = {}
        self._emitted: dict[str, str] = {}

    # operands -----------------------------------------------------------------------------------
    def kind(self, ir_type: str, vector: bool = True) -> str:
        """Return the LLVM type for an IR type."""
        return self.types[vector][ir_type].llvm

    def operand(self, v: Value, vector: bool) -> str:
        """Return a constant or a value emitted earlier, as a vector or as a scalar."""
        if v.op == "const":
            return constant(v.attr, self.kind(v.type, vector))
        name = self.names[v]
        return self.broadcast(name, v.type) if vector and v not in self.varying else name

    def typed(self, v: Value, vector: bool) -> Operand:
        """Return an operand with its type."""
        return Operand(self.types[vector][v.type], self.operand(v, vector))

    def broadcast(self, name: str, ir_type: str) -> str:
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
        if v.op == "select":  # the condition may be uniform where the result is not
            condition, *args = v.args
            flag = self.typed(condition, condition in self.varying)
            return self.select(flag, *(self.typed(a, vector) for a in args)).name
        write = _WRITERS.get(v.op)
        if write is None:
            raise UnsupportedOperation(
                f"cpu: kernels cannot use the operation {v.op!r}.",
                call="cpu",
                operation=v.op,
                engine="cpu",
            )
        return write(self, v, *(self.typed(a, vector) for a in v.args)).name

    def _sum(self, v: Value, x: Operand, y: Operand) -> Operand:
        """Emit a sum or difference; of f32 with a product, fused where the CPU can."""
        if v.type == "f32":
            vector = v in self.varying
            if self.of_bytes:
                places = [i for i in (1, 0) if v.args[i].op == "mul" and v.args[i].attr == "exact"]
            else:
                # A loop that sums products spends its time here.
                loop = v.op == "add" and v.args[0].op == "get" and v.args[1].op == "mul"
                loop = loop and vector and self.quick
                places = [1] if loop else []
            for i in places[:1]:
                a, b = (self.typed(p, vector) for p in v.args[i].args)
                other = (x, y)[1 - i]
                if v.op == "sub" and i:
                    a = self.negated(a)
                elif v.op == "sub":
                    other = self.negated(other)
                return self.intrinsic("fmuladd", a, b, other)
        return self.arithmetic(v.op, x, y)

    def _min_max(self, v: Value, a: Operand, b: Operand) -> Operand:
        if v.type not in FLOATS:
            return self.extreme(v.op, a, b)
        rule, (x, y) = "lt" if v.op == "max" else "gt", v.args
        if x.op == "const" and x.attr == x.attr:
            # "b is beyond a, or NaN" is one instruction where a cannot be NaN.
            return self.select(self.comparison("u" + rule, a, b), b, a)
        picked = self.select(self.comparison(rule, a, b), b, a)
        if y.op == "const" and y.attr == y.attr:
            return picked
        return self.select(self.comparison("uno", b, b), b, picked)

    def _function(self, v: Value, *args: Operand) -> Operand:
        t, module = args[0].type, self.f.module
        if t.lanes > 1 and self.quick:
            name = vector_exp(module, self.lanes)
        else:
            fused = not self.of_bytes
            name = math_function(module, v.op, v.type, fused=fused, lanes=t.lanes)
        return Operand(t, self.invoke(name, t, *args))

    def _divide(self, v: Value, a: Operand, b: Operand) -> Operand:
        known = v.args[1].attr if v.args[1].op == "const" else None
        return self.divide(a, b, rest=v.op == "mod", known=known, floats=True)

    def _cast(self, v: Value, a: Operand) -> Operand:
        """Emit a conversion; float to int saturates unless the value is known to be in range."""
        return self.convert(a, _TYPES[v.type], fits=v.attr == "in_range")


_WRITERS: Final[dict[str, Callable[..., Operand]]] = {
    **dict.fromkeys(_ARITHMETIC, lambda w, v, x, y: w.arithmetic(v.op, x, y)),
    **dict.fromkeys(("add", "sub"), InstructionWriter._sum),
    **dict.fromkeys(_COMPARE, lambda w, v, x, y: w.comparison(v.op, x, y)),
    **dict.fromkeys(_ROUNDING, lambda w, v, x: w.intrinsic(_ROUNDING[v.op], x)),
    **dict.fromkeys(FUNCTIONS, InstructionWriter._function),
    **dict.fromkeys(("min", "max"), InstructionWriter._min_max),
    **dict.fromkeys(("idiv", "mod"), InstructionWriter._divide),
    **dict.fromkeys(("shl", "shr"), lambda w, v, x, y: w.shift(v.op, x, y)),
    "neg": lambda w, v, x: w.negated(x),
    "not": lambda w, v, x: w.inverted(x),
    "abs": lambda w, v, x: w.absolute(x),
    "isnan": lambda w, v, x: w.comparison("uno", x, x),
    "cast": InstructionWriter._cast,
    "bits": lambda w, v, x: w.cast("bitcast", x, w.types[x.type.lanes > 1][v.type]),
}
