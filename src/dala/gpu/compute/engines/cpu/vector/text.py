"""LLVM IR as text: constants, and functions written line by line.

llvmlite's own IR builder is not used. Importing and running it takes longer than all of our
emission, and ``kernel.source("llvm")`` shows this text.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from string import Template
from typing import Final

#: LLVM's name for each type of the IR. Signedness is part of the instructions. Bytes occur only in
#: programs that do not widen them.
TYPES: Final = {
    "bool": "i1", "s32": "i32", "u32": "i32", "s64": "i64", "f32": "float", "f64": "double",
    "u8": "i8",
}  # fmt: skip

#: The type of a dtype in memory.
STORED: Final = {dtype: kind for dtype, kind in TYPES.items() if dtype != "bool"}

#: Metadata of a loop that LLVM must not unroll.
ROLLED_LOOP: Final = ", !llvm.loop !7"
#: Ends a loop that LLVM should neither vectorize nor unroll; ``kernel`` defines the metadata.
PLAIN_LOOP: Final = ", !llvm.loop !2"
#: Marks a store that leaves the caches alone, likewise.
NONTEMPORAL: Final = ", !nontemporal !8"

_WIDTH: Final = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


@cache
def runtime(name: str, **values: str | int) -> str:
    """Return a part of ``runtime.ll``, which is written by hand, with values for its ``$names``."""
    # Not by importlib.resources, which takes longer to import than code takes to load.
    with open(os.path.join(os.path.dirname(__file__), "runtime.ll"), encoding="utf-8") as file:
        _, *parts = file.read().split("; --- ")
    found = dict(part.split("\n", 1) for part in parts)
    return Template(found[name]).substitute(values)


def constant(value: float, llvm_type: str) -> str:
    """Return a number as LLVM writes it, in every lane of a vector type.

    Floats are hexadecimal unless a short decimal is exact.

    >>> constant(0.5, "float"), constant(-1, "i32"), constant(1, "<4 x i32>")
    ('0.5', '-1', 'splat (i32 1)')
    """
    if llvm_type.startswith("<"):
        element = llvm_type.partition(" x ")[2][:-1]
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
        #: Whether row functions are written with vectors, and whether there are loops
        #: that LLVM vectorizes; see ``effort.py``.
        self.vectors = self.loops = False
        self.declarations: dict[str, str] = {}
        self.helpers: dict[str, str] = {}

    def intrinsic(self, name: str, result: str, *args: str) -> str:
        """Declare an intrinsic once; return its name. ``name`` ends with the types it works on."""
        full = f"@llvm.{name}"
        self.declarations.setdefault(full, f"declare {result} {full}({', '.join(args)})")
        return full

    def text(self) -> str:
        """Return helpers and declarations, in the order of their first use."""
        return "\n".join([*self.helpers.values(), *self.declarations.values()]) + "\n"


def body_text(module: Module) -> FunctionText:
    """Return the text of ``body(job, out, start, end)``, which computes some positions of a job."""
    head = "define void @body(ptr %job, ptr %out, i64 %start, i64 %end) noinline #0"
    return FunctionText(module, head)


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
        #: False if ``multiply_add`` rounds its product.
        self.fused = True
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
        return self.intrinsic("smin.i64", "i64", "i64", a, b)

    def larger(self, a: str, b: str | int) -> str:
        """Return the larger of two i64."""
        return self.intrinsic("smax.i64", "i64", "i64", a, b)

    def intrinsic(self, name: str, result: str, kind: str, *args: str | int) -> str:
        """Call an intrinsic whose arguments have one type."""
        full = self.module.intrinsic(name, result, *[kind] * len(args))
        return self.let(f"call {result} {full}({', '.join(f'{kind} {a}' for a in args)})")

    def splat(self, element: str, name: str, lanes: int) -> str:
        """Broadcast a scalar to every lane of a vector."""
        kind = f"<{lanes} x {element}>"
        one = self.let(f"insertelement {kind} poison, {element} {name}, i64 0")
        zero = f"<{lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector {kind} {one}, {kind} poison, {zero}")

    def shuffle(self, kind: str, a: str, b: str, lanes: Sequence[int]) -> str:
        """Return selected lanes of two vectors, which may be "poison", as one vector."""
        listed = ", ".join(f"i32 {lane}" for lane in lanes)
        both, places = f"{kind} {a}, {kind} {b}", f"<{len(lanes)} x i32> <{listed}>"
        return self.let(f"shufflevector {both}, {places}")

    def interleaved(self, element: str, vectors: Sequence[str], lanes: int) -> str:
        """Return up to four vectors of elements as one: the first of each, then the second."""
        if len(vectors) == 1:
            return vectors[0]
        kind, double = f"<{lanes} x {element}>", f"<{2 * lanes} x {element}>"
        count = len(vectors)
        vectors = [*vectors, "poison"][: 2 * ((count + 1) // 2)]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        halves = [self.shuffle(kind, a, b, range(2 * lanes)) for a, b in pairs]
        places = [c * lanes + k for k in range(lanes) for c in range(count)]
        return self.shuffle(double, halves[0], [*halves, "poison"][1], places)

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
