"""LLVM IR as text: constants, functions written line by line, and values with operators.

llvmlite's own IR builder is not used. Importing and running it takes longer than all of our
emission, and ``kernel.source("llvm")`` shows this text.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, TypeAlias

#: LLVM's name for each type of the IR. Signedness is part of the instructions. Bytes occur only in
#: programs that do not widen them.
TYPES: Final = {
    "bool": "i1", "s32": "i32", "u32": "i32", "s64": "i64", "f32": "float", "f64": "double",
    "u8": "i8",
}  # fmt: skip

#: The type of a dtype in memory.
STORED: Final = {
    "f32": "float", "f64": "double", "s32": "i32", "s64": "i64", "u32": "i32", "u8": "i8",
}  # fmt: skip

#: Metadata of a loop that LLVM must not unroll.
ROLLED_LOOP: Final = ", !llvm.loop !7"
#: Ends a loop that LLVM should neither vectorize nor unroll; ``kernel`` defines the metadata.
PLAIN_LOOP: Final = ", !llvm.loop !2"
#: Marks a store that leaves the caches alone, likewise.
NONTEMPORAL: Final = ", !nontemporal !8"

_WIDTH: Final = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


@lru_cache(maxsize=256)
def element_type(llvm_type: str) -> str:
    """Return the type of a vector's elements, or a scalar type itself.

    >>> element_type("<8 x float>")
    'float'
    """
    return llvm_type.partition(" x ")[2][:-1] if llvm_type.startswith("<") else llvm_type


def type_like(llvm_type: str, element: str) -> str:
    """Return a type with as many lanes as another, and other elements.

    >>> type_like("<8 x float>", "i1")
    '<8 x i1>'
    """
    if not llvm_type.startswith("<"):
        return element
    return f"{llvm_type.partition(' x ')[0]} x {element}>"


def constant(value: float, llvm_type: str) -> str:
    """Return a number as LLVM writes it, in every lane of a vector type.

    Floats are hexadecimal unless a short decimal is exact.

    >>> constant(0.5, "float"), constant(-1, "i32"), constant(1, "<4 x i32>")
    ('0.5', '-1', 'splat (i32 1)')
    """
    if llvm_type.startswith("<"):
        element = element_type(llvm_type)
        return f"splat ({element} {constant(value, element)})"
    if llvm_type in _WIDTH:
        if llvm_type == "i1":
            return "true" if value else "false"
        width = _WIDTH[llvm_type]
        number = int(value) & ((1 << width) - 1)
        return str(number - (1 << width) if number >> (width - 1) else number)
    value = float(value)
    if llvm_type == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    if abs(value) < 1e6 and (value * 256.0).is_integer():
        return repr(value)
    if math.isnan(value):
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Module:
    """The declarations and helper functions of a module."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}

    def intrinsic(self, name: str, result: str, *args: str) -> str:
        """Declare an intrinsic once; return its name. ``name`` ends with the types it works on."""
        full = f"@llvm.{name}"
        self.declarations.setdefault(full, f"declare {result} {full}({', '.join(args)})")
        return full

    def external(self, name: str, result: str, *args: str) -> str:
        """Declare a function of the C library, whose address the linker receives."""
        self.declarations.setdefault(f"@{name}", f"declare {result} @{name}({', '.join(args)})")
        return f"@{name}"

    def text(self) -> str:
        """Return helpers and declarations, in the order of their first use."""
        return "\n".join([*self.helpers.values(), *self.declarations.values()]) + "\n"


class FunctionText:
    """The text of one function, written instruction by instruction."""

    def __init__(self, module: Module, head: str) -> None:
        self.module = module
        self.head = head
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.here = "entry"
        #: True after a branch, until the next label: instructions there would be invalid.
        self.ended = False
        #: True once the function has fuel; see ``metering.py``.
        self.metered = False
        self._count = 0
        self._labels = 0

    def let(self, text: str, hint: str = "v") -> str:
        """Emit ``%name = text``; return the name."""
        self._count += 1
        name = f"%{hint if hint.isascii() else 'v'}.{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Emit an instruction that has no value."""
        self.lines.append(f"  {text}")

    def note(self, text: str) -> None:
        """Emit a comment."""
        self.lines.append(f"  ; {text}")

    def alloca(self, llvm_type: str, name: str, align: int = 0) -> str:
        """Reserve a variable in the entry block, where LLVM promotes it to a register."""
        suffix = f", align {align}" if align else ""
        self.entry.append(f"  %{name} = alloca {llvm_type}{suffix}")
        return f"%{name}"

    def label(self, hint: str) -> str:
        """Return an unused label; :meth:`start` places it."""
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Start a block."""
        self.lines.append(f"{label}:")
        self.here = label
        self.ended = False

    def jump(self, label: str, tail: str = "") -> None:
        """End the block with a jump, unless it has ended."""
        if not self.ended:
            self.do(f"br label %{label}{tail}")
            self.ended = True

    def branch(self, condition: str, yes: str, no: str) -> None:
        """End the block with a conditional branch."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")
        self.ended = True

    def word(self, at: int, kind: str = "i64", hint: str = "word", tail: str = "") -> str:
        """Load a word of the job block."""
        pointer = self.let(f"getelementptr i64, ptr %job, i64 {at}")
        return self.let(f"load {kind}, ptr {pointer}{tail}", hint)

    def param(self, at: int, llvm_type: str, hint: str = "param", tail: str = "") -> str:
        """Load a parameter from the job block, where a bool takes a byte."""
        if llvm_type != "i1":
            return self.word(at, llvm_type, hint, tail)
        return self.let(f"icmp ne i8 {self.word(at, 'i8', hint, tail)}, 0")

    def at(self, pointer: str, offset: str, kind: str = "i8", hint: str = "p") -> str:
        """Return a pointer moved by a number of elements."""
        return self.let(f"getelementptr {kind}, ptr {pointer}, i64 {offset}", hint)

    def smaller(self, a: str, b: str | int) -> str:
        """Return the smaller of two i64."""
        name = self.module.intrinsic("smin.i64", "i64", "i64", "i64")
        return self.let(f"call i64 {name}(i64 {a}, i64 {b})")

    def larger(self, a: str, b: str | int) -> str:
        """Return the larger of two i64."""
        name = self.module.intrinsic("smax.i64", "i64", "i64", "i64")
        return self.let(f"call i64 {name}(i64 {a}, i64 {b})")

    def splat(self, element: str, name: str, lanes: int) -> str:
        """Broadcast a scalar to every lane of a vector."""
        kind = f"<{lanes} x {element}>"
        one = self.let(f"insertelement {kind} poison, {element} {name}, i64 0")
        zero = f"<{lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector {kind} {one}, {kind} poison, {zero}")

    @contextmanager
    def loop(
        self, begin: str, stop: str, step: int = 1, hint: str = "loop", tail: str = PLAIN_LOOP
    ) -> Iterator[str]:
        """Emit a loop from ``begin`` to ``stop``; the ``with`` block emits its body.

        Yields the counter, an i64. ``tail`` is the metadata of the branch back.
        """
        head = self.label(hint)
        before, follow = self.here, f"%{head}.x.next"
        self.jump(head)
        self.start(head)
        x = self.let(f"phi i64 [ {begin}, %{before} ], [ {follow}, %{head}.next ]", "x")
        self.branch(self.let(f"icmp slt i64 {x}, {stop}"), f"{head}.body", f"{head}.end")
        self.start(f"{head}.body")
        yield x
        self.jump(f"{head}.next")
        self.start(f"{head}.next")
        self.do(f"{follow} = add nuw nsw i64 {x}, {step}")
        self.jump(head, tail)
        self.start(f"{head}.end")

    def text(self) -> str:
        """Return the finished function."""
        return "\n".join([f"{self.head} {{", "entry:", *self.entry, *self.lines, "}\n"])


Operand: TypeAlias = "Num | float | int"


class Num:
    """An SSA value whose operators write instructions.

    The math functions are written with it. Comparisons are ordered, so they are false for NaN.
    Shifts are logical.
    """

    __slots__ = ("f", "name", "type")

    def __init__(self, f: FunctionText, llvm_type: str, name: str) -> None:
        self.f = f
        self.type = llvm_type
        self.name = name

    @property
    def element(self) -> str:
        """The type of one lane."""
        return element_type(self.type)

    def _operand(self, other: Operand) -> str:
        return other.name if isinstance(other, Num) else constant(other, self.type)

    def _binary(self, integer: str, floating: str, other: Operand, swap: bool = False) -> Num:
        op = integer if self.element in _WIDTH else floating
        a, b = self.name, self._operand(other)
        if swap:
            a, b = b, a
        return Num(self.f, self.type, self.f.let(f"{op} {self.type} {a}, {b}"))

    def __add__(self, other: Operand) -> Num:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Operand) -> Num:
        return self._binary("sub", "fsub", other)

    def __rsub__(self, other: Operand) -> Num:
        return self._binary("sub", "fsub", other, swap=True)

    def __mul__(self, other: Operand) -> Num:
        return self._binary("mul", "fmul", other)

    def __truediv__(self, other: Operand) -> Num:
        return self._binary("sdiv", "fdiv", other)

    def __rtruediv__(self, other: Operand) -> Num:
        return self._binary("sdiv", "fdiv", other, swap=True)

    def __and__(self, other: Operand) -> Num:
        return self._binary("and", "", other)

    def __or__(self, other: Operand) -> Num:
        return self._binary("or", "", other)

    def __xor__(self, other: Operand) -> Num:
        return self._binary("xor", "", other)

    def __lshift__(self, other: Operand) -> Num:
        return self._binary("shl", "", other)

    def __rshift__(self, other: Operand) -> Num:
        return self._binary("lshr", "", other)

    def __neg__(self) -> Num:
        if self.element in _WIDTH:
            return 0 - self
        return Num(self.f, self.type, self.f.let(f"fneg {self.type} {self.name}"))

    def of(self, value: float) -> Num:
        """Return a constant of this value's type."""
        return Num(self.f, self.type, constant(value, self.type))

    def compare(self, rule: str, other: Operand) -> Num:
        """Compare by an LLVM predicate: "olt", "oeq", "uno" for floats, "slt", "eq" for ints."""
        op = "icmp" if self.element in _WIDTH else "fcmp"
        text = f"{op} {rule} {self.type} {self.name}, {self._operand(other)}"
        return Num(self.f, type_like(self.type, "i1"), self.f.let(text))

    def __lt__(self, other: Operand) -> Num:
        return self.compare("slt" if self.element in _WIDTH else "olt", other)

    def __gt__(self, other: Operand) -> Num:
        return self.compare("sgt" if self.element in _WIDTH else "ogt", other)

    def equals(self, other: Operand) -> Num:
        """Compare for equality (``==`` keeps Python's meaning)."""
        return self.compare("eq" if self.element in _WIDTH else "oeq", other)

    def choose(self, yes: Num, no: Operand) -> Num:
        """Return ``yes`` where this i1 is true, else ``no``."""
        text = (
            f"select {self.type} {self.name}, {yes.type} {yes.name}, {yes.type} {yes._operand(no)}"
        )
        return Num(yes.f, yes.type, self.f.let(text))

    def to(self, op: str, llvm_type: str) -> Num:
        """Convert by an LLVM instruction, such as ``fpext``, ``fptrunc`` or ``bitcast``."""
        kind = type_like(self.type, llvm_type)
        return Num(self.f, kind, self.f.let(f"{op} {self.type} {self.name} to {kind}"))

    def bits(self) -> Num:
        """Reinterpret a float as an int, or an int as a float."""
        other = {"double": "i64", "i64": "double", "float": "i32", "i32": "float"}
        return self.to("bitcast", other[self.element])

    def call(self, intrinsic: str, *others: Operand) -> Num:
        """Call an intrinsic whose arguments all have this value's type."""
        suffix = {"double": "f64", "float": "f32"}.get(self.element, self.element)
        if self.type != self.element:
            suffix = f"v{self.type[1:].partition(' ')[0]}{suffix}"
        args = [self.type] * (1 + len(others))
        name = self.f.module.intrinsic(f"{intrinsic}.{suffix}", self.type, *args)
        given = [self.name, *(self._operand(o) for o in others)]
        listed = ", ".join(f"{self.type} {g}" for g in given)
        return Num(self.f, self.type, self.f.let(f"call {self.type} {name}({listed})"))

    def multiply_add(self, factor: Operand, addend: Operand) -> Num:
        """Return ``self * factor + addend``, fused where the CPU has the instruction."""
        return self.call("fmuladd", factor, addend)

    def within(self, low: float, high: float) -> Num:
        """Clamp to a range; NaN stays NaN."""
        above = (self < low).choose(self.of(low), self)
        return (above > high).choose(self.of(high), above)


def polynomial(x: Num, coefficients: Sequence[float]) -> Num:
    """Evaluate ``c[0] + c[1] x + c[2] x^2 + ...`` by Horner's rule."""
    total: Num = x.multiply_add(coefficients[-1], coefficients[-2])
    for c in reversed(coefficients[:-2]):
        total = total.multiply_add(x, c)
    return total
