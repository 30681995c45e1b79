"""From the typed IR to LLVM IR for a vector of pixels at a time.

The twin of ``scalar``: the same operations, but what differs from pixel
to pixel is a vector, ``if`` becomes a choice between both sides' results, and equal operations are
written once. Arithmetic is that of the twin to the bit, but for sums of products in a slot and for
``exp``. What is the same for all pixels (see
``facts``) is a scalar, spread when a vector meets it.
"""

from __future__ import annotations

from typing import Final, Protocol

from dala.gpu.compute.engines.cpu.llvm.facts import Facts
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS, math_function
from dala.gpu.compute.engines.cpu.llvm.scalar import READS
from dala.gpu.compute.engines.cpu.llvm.text import TYPES as SCALARS
from dala.gpu.compute.engines.cpu.llvm.text import Function, constant
from dala.gpu.compute.engines.cpu.llvm.vector_math import exp_function
from dala.gpu.compute.lang.ir import FLOATS, Block, For, If, SetSlot, Slot, Value, statements

TYPES: Final = {**SCALARS, "u8": "i8"}
_PLAIN: Final = {
    "add": ("add", "fadd"), "sub": ("sub", "fsub"), "mul": ("mul", "fmul"), "div": ("", "fdiv"),
    "and": ("and", ""), "or": ("or", ""), "xor": ("xor", ""),
}  # fmt: skip
_COMPARE: Final = {
    "eq": ("eq", "eq", "oeq"), "ne": ("ne", "ne", "une"), "lt": ("slt", "ult", "olt"),
    "le": ("sle", "ule", "ole"), "gt": ("sgt", "ugt", "ogt"), "ge": ("sge", "uge", "oge"),
}  # fmt: skip
_ROUNDING: Final = {"floor": "floor", "ceil": "ceil", "round": "roundeven", "sqrt": "sqrt"}
_SUFFIX: Final = {
    "float": "f32", "double": "f64", "i32": "i32", "i64": "i64", "i1": "i1",
    "i8": "i8",
}  # fmt: skip
_UNSIGNED: Final = frozenset({"u32", "bool", "u8"})
_BITS: Final = {"bool": 1, "s32": 32, "u32": 32, "s64": 64, "f32": 32, "f64": 64}


class Reads(Protocol):
    """Gives the operand of every operation in ``READS``."""

    def read(self, value: Value, args: list[str]) -> str: ...

    def enter(self) -> None: ...

    def leave(self) -> None: ...


class Vectors:
    """Writes the instructions of a program for ``lanes`` pixels side by side."""

    def __init__(self, f: Function, reads: Reads, facts: Facts, lanes: int) -> None:
        self.f = f
        self.reads = reads
        self.facts = facts
        self.lanes = lanes
        self.slots: dict[Slot, str] = {}
        self.names: dict[Value, str] = {}
        self.spreads: dict[str, str] = {}
        self.same: dict[object, str] = {}
        self.mask = ""
        #: Names once the program is written, for those who store its results.
        self.finished: dict[Value, str] = {}

    # types and operands -------------------------------------------------------------------------
    def kind(self, ir_type: str, uneven: bool = True) -> str:
        """LLVM's type for a value."""
        return f"<{self.lanes} x {TYPES[ir_type]}>" if uneven else TYPES[ir_type]

    def number(self, value: float, ir_type: str, uneven: bool) -> str:
        """A constant."""
        text = constant(value, TYPES[ir_type])
        return f"splat ({TYPES[ir_type]} {text})" if uneven else text

    def operand(self, v: Value, uneven: bool) -> str:
        """A value computed earlier, as a vector or as a scalar."""
        if v.op == "const":
            return self.number(v.attr, v.type, uneven)
        name = self.names[v]
        return self.spread(name, v.type) if uneven and v not in self.facts.uneven else name

    def spread(self, name: str, ir_type: str) -> str:
        """A scalar in every place of a vector."""
        if name not in self.spreads:
            kind, scalar = self.kind(ir_type), TYPES[ir_type]
            one = self.f.let(f"insertelement {kind} poison, {scalar} {name}, i64 0")
            self.spreads[name] = self.f.let(
                f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer"
            )
        return self.spreads[name]

    def let(self, text: str) -> str:
        """An instruction without side effects, written once in a scope."""
        if text not in self.same:
            self.same[text] = self.f.let(text)
        return self.same[text]

    # control flow -------------------------------------------------------------------------------
    def make_slots(self) -> None:
        """Reserves the slots; LLVM makes registers of them."""
        for s in statements(self.facts.block):
            slot = (
                s.slot if isinstance(s, SetSlot)
                else s.index if isinstance(s, For)
                else s.attr if isinstance(s, Value) and s.op == "get"
                else None
            )  # fmt: skip
            if slot is not None and slot not in self.slots:
                kind = self.kind(slot.type, slot in self.facts.uneven_slots)
                self.slots[slot] = self.f.alloca(kind, f"slot{len(self.slots)}")

    def before(self) -> None:
        """Writes, ahead of the loop along a row, what does not change within it."""
        for s in self.facts.block.body:
            if not isinstance(s, Value) or s.op == "get" or s in self.facts.uneven:
                continue
            if all(a.op == "const" or a in self.names for a in s.args):
                self.names[s] = self.value(s)
        met = {a for s in self.facts.uneven for a in s.args}
        for v, name in self.names.items():
            if v in met:
                self.spread(name, v.type)

    def program(self) -> None:
        """Writes the program for one vector; what ``before`` wrote is at hand in every one."""
        names, spreads, same = dict(self.names), dict(self.spreads), dict(self.same)
        self.mask = ""
        for slot, pointer in self.slots.items():
            kind = self.kind(slot.type, slot in self.facts.uneven_slots)
            self.f.do(f"store {kind} zeroinitializer, ptr {pointer}")
        self.block(self.facts.block)
        self.finished = self.names
        self.names, self.spreads, self.same = names, spreads, same

    def block(self, block: Block) -> None:
        """Writes all statements."""
        for s in block.body:
            if isinstance(s, Value):
                if s not in self.names:
                    self.names[s] = self.value(s)
            elif isinstance(s, SetSlot):
                self.set(s)
            elif isinstance(s, If):
                self.choice(s)
            elif isinstance(s, For):
                self.loop(s)

    def scoped(self, block: Block) -> None:
        """A block whose values are not known after it."""
        names, spreads, same = dict(self.names), dict(self.spreads), dict(self.same)
        self.reads.enter()
        self.block(block)
        self.reads.leave()
        self.names, self.spreads, self.same = names, spreads, same

    def set(self, s: SetSlot) -> None:
        """Assigns a slot, in the pixels that take this branch."""
        uneven = s.slot in self.facts.uneven_slots
        kind, pointer = self.kind(s.slot.type, uneven), self.slots[s.slot]
        value = self.operand(s.value, uneven)
        if self.mask and uneven:
            old = self.f.let(f"load {kind}, ptr {pointer}")
            condition = f"<{self.lanes} x i1> {self.mask}"
            value = self.f.let(f"select {condition}, {kind} {value}, {kind} {old}")
        self.f.do(f"store {kind} {value}, ptr {pointer}")

    def choice(self, s: If) -> None:
        """``if``: a branch where all pixels agree, else both sides under a mask."""
        f, flags = self.f, f"<{self.lanes} x i1>"
        if s.condition not in self.facts.uneven:
            yes, no, after = f.label("then"), f.label("else"), f.label("endif")
            f.branch(self.operand(s.condition, False), yes, no)
            for label, side in ((yes, s.then), (no, s.otherwise)):
                f.start(label)
                self.scoped(side)
                f.jump(after)
            f.start(after)
            return
        outer = self.mask
        condition = self.operand(s.condition, True)
        for side, taken in ((s.then, True), (s.otherwise, False)):
            if not side.body:
                continue
            mask = condition
            if not taken:
                mask = f.let(f"xor {flags} {condition}, splat (i1 true)")
            self.mask = f.let(f"and {flags} {outer}, {mask}") if outer else mask
            self.block(side)
            self.mask = outer

    def loop(self, s: For) -> None:
        """``for``; all pixels go round together."""
        f = self.f
        first = f.let(f"sext i32 {self.operand(s.start, False)} to i64")
        last = f.let(f"sext i32 {self.operand(s.stop, False)} to i64")
        head, turn, follow, after = (f.label(h) for h in ("for", "turn", "next", "endfor"))
        before, step = f.here, f"%step.{head}"
        f.jump(head)
        f.start(head)
        counter = f.let(f"phi i64 [ {first}, %{before} ], [ {step}, %{follow} ]", "count")
        rule = "slt" if s.step > 0 else "sgt"
        f.branch(f.let(f"icmp {rule} i64 {counter}, {last}"), turn, after)
        f.start(turn)
        index = f.let(f"trunc i64 {counter} to i32")
        f.do(f"store i32 {index}, ptr {self.slots[s.index]}")
        self.scoped(s.body)
        f.jump(follow)
        f.start(follow)
        f.do(f"{step} = add nsw i64 {counter}, {s.step}")
        f.jump(head, ", !llvm.loop !2")
        f.start(after)

    # values -------------------------------------------------------------------------------------
    def value(self, v: Value) -> str:
        """Writes one operation; see the table in ``ir``."""
        op, uneven = v.op, v in self.facts.uneven
        kind = self.kind(v.type, uneven)
        if op in READS:
            return self.reads.read(v, [self.operand(a, False) for a in v.args])
        if op == "get":
            return self.f.let(f"load {kind}, ptr {self.slots[v.attr]}")
        if op == "select":
            return self.select(v, kind, uneven)
        args = [self.operand(a, uneven) for a in v.args]
        if op in _PLAIN:
            if op == "add" and uneven and v.type == "f32" and v.args[0].op == "get":
                return self.accumulate(v, kind, args)
            text = _PLAIN[op][v.type in FLOATS]
            return self.let(f"{text} {kind} {args[0]}, {args[1]}")
        if op in _COMPARE:
            return self.compare(v, args, uneven)
        if op in ("min", "max"):
            return self.extreme(v, kind, args, uneven)
        if op in ("idiv", "mod"):
            return self.divide(v, kind, args[0], args[1], uneven)
        if op in ("shl", "shr"):
            amount = self.let(
                f"and {kind} {args[1]}, {self.number(_BITS[v.type] - 1, v.type, uneven)}"
            )
            text = "shl" if op == "shl" else "lshr" if v.type in _UNSIGNED else "ashr"
            return self.let(f"{text} {kind} {args[0]}, {amount}")
        if op == "neg":
            text = f"fneg {kind}" if v.type in FLOATS else f"sub {kind} zeroinitializer,"
            if not uneven and v.type not in FLOATS:
                text = f"sub {kind} 0,"
            return self.let(f"{text} {args[0]}")
        if op == "not":
            ones = self.number(1 if v.type == "bool" else -1, v.type, uneven)
            return self.let(f"xor {kind} {args[0]}, {ones}")
        if op == "abs":
            return self.absolute(v, args[0], uneven)
        if op in _ROUNDING:
            return self.call(_ROUNDING[op], v.type, uneven, args[0])
        if op in FUNCTIONS:
            return self.function(v, kind, args, uneven)
        if op == "isnan":
            source = self.kind(v.args[0].type, uneven)
            return self.let(f"fcmp uno {source} {args[0]}, {args[0]}")
        if op == "cast":
            return self.cast(v, kind, args[0], uneven)
        if op == "bits":
            source = self.kind(v.args[0].type, uneven)
            return args[0] if source == kind else self.let(f"bitcast {source} {args[0]} to {kind}")
        raise NotImplementedError(f"the cpu engine has no operation {op!r}")

    def call(self, name: str, ir_type: str, uneven: bool, *args: str, tail: str = "") -> str:
        """A call of an intrinsic whose arguments and result have one type."""
        kind, scalar = self.kind(ir_type, uneven), _SUFFIX[TYPES[ir_type]]
        suffix = f"v{self.lanes}{scalar}" if uneven else scalar
        kinds = [kind] * len(args) + (["i1"] if tail else [])
        full = self.f.module.intrinsic(f"{name}.{suffix}", kind, *kinds)
        listed = ", ".join([f"{kind} {a}" for a in args] + ([tail] if tail else []))
        return self.let(f"call {kind} {full}({listed})")

    def accumulate(self, v: Value, kind: str, args: list[str]) -> str:
        """``total += a * b``, as one operation where the machine has it: loops live on these."""
        product = v.args[1]
        if product.op != "mul":
            return self.let(f"fadd {kind} {args[0]}, {args[1]}")
        a, b = (self.operand(x, True) for x in product.args)
        return self.call("fmuladd", "f32", True, a, b, args[0])

    def compare(self, v: Value, args: list[str], uneven: bool) -> str:
        """A comparison; bools compare as 0 and 1."""
        signed, unsigned, floating = _COMPARE[v.op]
        source = v.args[0].type
        kind = self.kind(source, uneven)
        if source in FLOATS:
            return self.let(f"fcmp {floating} {kind} {args[0]}, {args[1]}")
        rule = unsigned if source in _UNSIGNED else signed
        return self.let(f"icmp {rule} {kind} {args[0]}, {args[1]}")

    def select(self, v: Value, kind: str, uneven: bool) -> str:
        """A choice; the condition may be one for all pixels."""
        condition = v.args[0]
        each = condition in self.facts.uneven
        flag = self.operand(condition, each)
        yes, no = (self.operand(a, uneven) for a in v.args[1:])
        return self.let(f"select {self.kind('bool', each)} {flag}, {kind} {yes}, {kind} {no}")

    def absolute(self, v: Value, a: str, uneven: bool) -> str:
        """The size of a number; unsigned ones have no sign to lose."""
        if v.type in FLOATS:
            return self.call("fabs", v.type, uneven, a)
        if v.type in _UNSIGNED:
            return a
        return self.call("abs", v.type, uneven, a, tail="i1 false")

    def extreme(self, v: Value, kind: str, args: list[str], uneven: bool) -> str:
        """min and max; in floats b wins where it is beyond a or NaN, else a."""
        a, b = args
        if v.type not in FLOATS:
            return self.call(("u" if v.type in _UNSIGNED else "s") + v.op, v.type, uneven, a, b)
        rule = "lt" if v.op == "max" else "gt"
        flags = self.kind("bool", uneven)
        first, second = v.args
        if self.number_always(first):
            beyond = self.let(f"fcmp u{rule} {kind} {a}, {b}")
            return self.let(f"select {flags} {beyond}, {kind} {b}, {kind} {a}")
        beyond = self.let(f"fcmp o{rule} {kind} {a}, {b}")
        picked = self.let(f"select {flags} {beyond}, {kind} {b}, {kind} {a}")
        if self.number_always(second):
            return picked
        nan = self.let(f"fcmp uno {kind} {b}, {b}")
        return self.let(f"select {flags} {nan}, {kind} {b}, {kind} {picked}")

    def number_always(self, v: Value, depth: int = 8) -> bool:
        """Whether a float can never be NaN, as far as can be told at once."""
        if v.op == "const":
            return bool(v.attr == v.attr)
        if v.op == "cast":
            return v.args[0].type not in FLOATS
        if v.op == "mul" and v.args[1].op == "const" and abs(v.args[1].attr) <= 1.0:
            return self.number_always(v.args[0], depth - 1)
        if v.op in ("min", "max") and depth:
            return all(self.number_always(a, depth - 1) for a in v.args)
        return False

    def function(self, v: Value, kind: str, args: list[str], uneven: bool) -> str:
        """A function of the maths library."""
        if uneven:
            name = exp_function(self.f.module, self.lanes, self.facts.program.out.dtype == "u8")
            return self.let(f"call {kind} {name}({kind} {args[0]})")
        listed = ", ".join(f"{kind} {a}" for a in args)
        return self.let(f"call {kind} {math_function(self.f.module, v.op, v.type)}({listed})")

    def divide(self, v: Value, kind: str, a: str, b: str, uneven: bool) -> str:
        """Floor division and modulo that never trap."""
        signed, flags = v.type not in _UNSIGNED, self.kind("bool", uneven)
        zero, one = (self.number(n, v.type, uneven) for n in (0, 1))
        none = self.let(f"icmp eq {kind} {b}, {zero}")
        unsafe = none
        if signed:
            least = self.number(-(1 << (_BITS[v.type] - 1)), v.type, uneven)
            lowest = self.let(f"icmp eq {kind} {a}, {least}")
            minus = self.let(f"icmp eq {kind} {b}, {self.number(-1, v.type, uneven)}")
            both = self.let(f"and {flags} {lowest}, {minus}")
            unsafe = self.let(f"or {flags} {none}, {both}")
        # Dividing by 1 gives the wanted remainder 0 and, for the lowest number, itself.
        divisor = self.let(f"select {flags} {unsafe}, {kind} {one}, {kind} {b}")
        if not uneven or v.args[1].op == "const":
            quotient = self.quotient(signed, kind, a, divisor, zero, flags)
        else:
            # Machines divide vectors of floats only; f64 holds every 32-bit quotient well enough
            # that its floor is exact.
            letter, double = "s" if signed else "u", self.kind("f64")
            x, y = (self.let(f"{letter}itofp {kind} {n} to {double}") for n in (a, divisor))
            ratio = self.let(f"fdiv {double} {x}, {y}")
            floor = self.call("floor", "f64", True, ratio)
            quotient = self.let(f"fpto{letter}i {double} {floor} to {kind}")
        if v.op == "idiv":
            return self.let(f"select {flags} {none}, {kind} {zero}, {kind} {quotient}")
        product = self.let(f"mul {kind} {quotient}, {divisor}")
        return self.let(f"sub {kind} {a}, {product}")

    def quotient(self, signed: bool, kind: str, a: str, b: str, zero: str, flags: str) -> str:
        """Floor division by something that is safe to divide by."""
        if not signed:
            return self.let(f"udiv {kind} {a}, {b}")
        quotient = self.let(f"sdiv {kind} {a}, {b}")
        rest = self.let(f"srem {kind} {a}, {b}")
        mixed = self.let(f"xor {kind} {rest}, {b}")
        apart = self.let(f"icmp slt {kind} {mixed}, {zero}")
        some = self.let(f"icmp ne {kind} {rest}, {zero}")
        below = self.let(f"and {flags} {apart}, {some}")
        return self.let(f"add {kind} {quotient}, {self.let(f'sext {flags} {below} to {kind}')}")

    def cast(self, v: Value, want: str, a: str, uneven: bool) -> str:
        """A conversion; float to int truncates and saturates unless it is known to be in range."""
        source, target = v.args[0].type, v.type
        have = self.kind(source, uneven)
        if source == target:
            return a
        if target == "bool":
            rule = "fcmp une" if source in FLOATS else "icmp ne"
            return self.let(f"{rule} {have} {a}, {self.number(0, source, uneven)}")
        unsigned = source in _UNSIGNED
        if source in FLOATS and target in FLOATS:
            return self.let(f"{'fpext' if target == 'f64' else 'fptrunc'} {have} {a} to {want}")
        if source in FLOATS:
            letter = "u" if target in _UNSIGNED else "s"
            if v.attr == "in_range":
                return self.let(f"fpto{letter}i {have} {a} to {want}")
            n = f"v{self.lanes}" if uneven else ""
            ends = f"{n}{_SUFFIX[TYPES[target]]}.{n}{_SUFFIX[TYPES[source]]}"
            name = self.f.module.intrinsic(f"fpto{letter}i.sat.{ends}", want, have)
            return self.let(f"call {want} {name}({have} {a})")
        if target in FLOATS:
            return self.let(f"{'u' if unsigned else 's'}itofp {have} {a} to {want}")
        if _BITS[source] == _BITS[target]:
            return a
        if _BITS[source] > _BITS[target]:
            return self.let(f"trunc {have} {a} to {want}")
        return self.let(f"{'zext' if unsigned else 'sext'} {have} {a} to {want}")
