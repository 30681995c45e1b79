"""From the typed IR to LLVM IR: values and control flow, one position at a time.

:class:`Scalars` turns a :class:`~dala.gpu.compute.lang.ir.Block` into instructions. What a position
is, and how its arguments are read, is the business of the loops around it
(:mod:`dala.gpu.compute.engines.cpu.llvm.kernel`), which hand in a :class:`Reads`.
"""

from __future__ import annotations

from typing import Final, Protocol

from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS, math_function
from dala.gpu.compute.engines.cpu.llvm.text import TYPES, Function, constant
from dala.gpu.compute.lang.ir import (
    FLOATS,
    Block,
    Break,
    Continue,
    For,
    If,
    SetSlot,
    Slot,
    Value,
    statements,
)

#: Operations that read the world outside the block.
READS: Final = frozenset({"param", "position", "dim", "element", "pixel", "image", "array"})

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
    "f32": "f32", "f64": "f64", "s32": "i32", "u32": "i32", "s64": "i64", "bool": "i1",
}  # fmt: skip
_UNSIGNED: Final = frozenset({"u32", "bool"})
_BITS: Final = {"bool": 1, "s32": 32, "u32": 32, "s64": 64, "f32": 32, "f64": 64}


class Reads(Protocol):
    """Gives the operand of every operation in :data:`READS`."""

    def read(self, value: Value, args: list[str]) -> str: ...


class Scalars:
    """Writes the instructions of a block for one position.

    Slots are stack variables that LLVM turns into registers; they are zeroed where they are made.
    """

    def __init__(self, f: Function, reads: Reads, slots: dict[Slot, str]) -> None:
        self.f = f
        self.reads = reads
        self.slots = slots
        self.names: dict[Value, str] = {}
        #: Where ``continue`` and ``break`` go, innermost loop last.
        self.loops: list[tuple[str, str]] = []

    # control flow -----------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        """Writes all statements; what follows a ``break`` or ``continue`` can never run."""
        for s in block.body:
            if isinstance(s, Value):
                self.names.setdefault(s, self.value(s))
            elif isinstance(s, SetSlot):
                kind = TYPES[s.slot.type]
                self.f.do(f"store {kind} {self.name(s.value)}, ptr {self.slots[s.slot]}")
            elif isinstance(s, If):
                self.branch(s)
            elif isinstance(s, For):
                self.loop(s)
            elif isinstance(s, Break):
                self.f.jump(self.loops[-1][1])
                return
            elif isinstance(s, Continue):
                self.f.jump(self.loops[-1][0])
                return

    def zero_slots(self) -> None:
        """Gives every slot its first value."""
        for slot, pointer in self.slots.items():
            kind = TYPES[slot.type]
            self.f.do(f"store {kind} {constant(0, kind)}, ptr {pointer}")

    def branch(self, s: If) -> None:
        """``if``, as blocks; LLVM makes selects of them where that is better."""
        f = self.f
        yes, no, after = f.label("then"), f.label("else"), f.label("endif")
        f.branch(self.name(s.condition), yes, no if s.otherwise.body else after)
        f.start(yes)
        self.block(s.then)
        f.jump(after)
        if s.otherwise.body:
            f.start(no)
            self.block(s.otherwise)
            f.jump(after)
        f.start(after)

    def loop(self, s: For) -> None:
        """``for``; the hidden counter has 64 bits, so it cannot run over its end."""
        f = self.f
        first = f.let(f"sext i32 {self.name(s.start)} to i64")
        last = f.let(f"sext i32 {self.name(s.stop)} to i64")
        head, turn, follow, after = (f.label(h) for h in ("for", "turn", "next", "endfor"))
        before = f.here
        f.jump(head)
        f.start(head)
        step = f"%step.{head}"
        counter = f.let(f"phi i64 [ {first}, %{before} ], [ {step}, %{follow} ]", "count")
        rule = "slt" if s.step > 0 else "sgt"
        f.branch(f.let(f"icmp {rule} i64 {counter}, {last}"), turn, after)
        f.start(turn)
        index = f.let(f"trunc i64 {counter} to i32")
        f.do(f"store i32 {index}, ptr {self.slots[s.index]}")
        self.loops.append((follow, after))
        self.block(s.body)
        self.loops.pop()
        f.jump(follow)
        f.start(follow)
        f.do(f"{step} = add nsw i64 {counter}, {s.step}")
        f.jump(head)
        f.start(after)

    # values -----------------------------------------------------------------------------------
    def name(self, v: Value) -> str:
        """The operand for a value computed earlier, or a constant."""
        if v.op == "const":
            return constant(v.attr, TYPES[v.type])
        return self.names[v]

    def value(self, v: Value) -> str:
        """Writes one operation; see the table in :mod:`dala.gpu.compute.lang.ir`."""
        f, op = self.f, v.op
        args = [self.name(a) for a in v.args]
        if op in READS:
            return self.reads.read(v, args)
        kind = TYPES[v.type]
        if op == "get":
            return f.let(f"load {kind}, ptr {self.slots[v.attr]}")
        if op in _PLAIN:
            text = _PLAIN[op][v.type in FLOATS]
            return f.let(f"{text} {kind} {args[0]}, {args[1]}")
        if op in _COMPARE:
            return self.compare(op, v.args[0].type, args[0], args[1])
        if op == "select":
            return f.let(f"select i1 {args[0]}, {kind} {args[1]}, {kind} {args[2]}")
        if op in ("min", "max"):
            return self.extreme(v, args[0], args[1])
        if op in ("idiv", "mod"):
            return self.divide(v, args[0], args[1])
        if op in ("shl", "shr"):
            amount = f.let(f"and {kind} {args[1]}, {_BITS[v.type] - 1}")
            text = "shl" if op == "shl" else "lshr" if v.type in _UNSIGNED else "ashr"
            return f.let(f"{text} {kind} {args[0]}, {amount}")
        if op == "neg":
            text = f"fneg {kind}" if v.type in FLOATS else f"sub {kind} 0,"
            return f.let(f"{text} {args[0]}")
        if op == "not":
            ones = "true" if v.type == "bool" else "-1"
            return f.let(f"xor {kind} {args[0]}, {ones}")
        if op == "abs":
            return self.absolute(v.type, args[0])
        if op in _ROUNDING:
            return self.intrinsic(_ROUNDING[op], v.type, args[0])
        if op in FUNCTIONS:
            listed = ", ".join(f"{kind} {a}" for a in args)
            return f.let(f"call {kind} {math_function(f.module, op, v.type)}({listed})", op)
        if op == "isnan":
            source = TYPES[v.args[0].type]
            return f.let(f"fcmp uno {source} {args[0]}, {args[0]}")
        if op == "cast":
            return self.cast(v, args[0])
        if op == "bits":
            source = TYPES[v.args[0].type]
            return args[0] if source == kind else f.let(f"bitcast {source} {args[0]} to {kind}")
        raise NotImplementedError(f"the cpu engine has no operation {op!r}")

    def intrinsic(self, name: str, ir_type: str, *args: str) -> str:
        """A call of an intrinsic whose arguments and result have one type."""
        kind = TYPES[ir_type]
        full = self.f.module.intrinsic(f"{name}.{_SUFFIX[ir_type]}", kind, *[kind] * len(args))
        return self.f.let(f"call {kind} {full}({', '.join(f'{kind} {a}' for a in args)})")

    def compare(self, op: str, ir_type: str, a: str, b: str) -> str:
        """A comparison; bools compare as 0 and 1."""
        signed, unsigned, floating = _COMPARE[op]
        if ir_type in FLOATS:
            return self.f.let(f"fcmp {floating} {TYPES[ir_type]} {a}, {b}")
        rule = unsigned if ir_type in _UNSIGNED else signed
        return self.f.let(f"icmp {rule} {TYPES[ir_type]} {a}, {b}")

    def absolute(self, ir_type: str, a: str) -> str:
        """The size of a number; unsigned ones have no sign to lose."""
        if ir_type in FLOATS:
            return self.intrinsic("fabs", ir_type, a)
        if ir_type in _UNSIGNED:
            return a
        kind = TYPES[ir_type]
        name = self.f.module.intrinsic(f"abs.{_SUFFIX[ir_type]}", kind, kind, "i1")
        return self.f.let(f"call {kind} {name}({kind} {a}, i1 false)")

    def extreme(self, v: Value, a: str, b: str) -> str:
        """min and max; in floats b wins where it is beyond a or NaN, else a."""
        f, kind = self.f, TYPES[v.type]
        if v.type not in FLOATS:
            return self.intrinsic(("u" if v.type in _UNSIGNED else "s") + v.op, v.type, a, b)
        rule = "lt" if v.op == "max" else "gt"
        first, second = v.args
        if first.op == "const" and first.attr == first.attr:
            # "Beyond, or not comparable" is one instruction when a cannot be NaN.
            beyond = f.let(f"fcmp u{rule} {kind} {a}, {b}")
            return f.let(f"select i1 {beyond}, {kind} {b}, {kind} {a}")
        beyond = f.let(f"fcmp o{rule} {kind} {a}, {b}")
        picked = f.let(f"select i1 {beyond}, {kind} {b}, {kind} {a}")
        if second.op == "const" and second.attr == second.attr:
            return picked
        nan = f.let(f"fcmp uno {kind} {b}, {b}")
        return f.let(f"select i1 {nan}, {kind} {b}, {kind} {picked}")

    def divide(self, v: Value, a: str, b: str) -> str:
        """Floor division and modulo that never trap."""
        f, kind, width = self.f, TYPES[v.type], _BITS[v.type]
        signed = v.type not in _UNSIGNED
        zero = f.let(f"icmp eq {kind} {b}, 0")
        unsafe = zero
        if signed:
            lowest = f.let(f"icmp eq {kind} {a}, {-(1 << (width - 1))}")
            minus = f.let(f"icmp eq {kind} {b}, -1")
            unsafe = f.let(f"or i1 {zero}, {f.let(f'and i1 {lowest}, {minus}')}")
        # Dividing by 1 gives the wanted remainder 0 and, for the lowest number, itself.
        divisor = f.let(f"select i1 {unsafe}, {kind} 1, {kind} {b}")
        if width == 32 and v.args[1].op != "const":
            quotient = self._quotient32(signed, a, divisor)
        else:
            quotient = self._quotient(signed, kind, a, divisor)
        if v.op == "idiv":
            return f.let(f"select i1 {zero}, {kind} 0, {kind} {quotient}")
        return f.let(f"sub {kind} {a}, {f.let(f'mul {kind} {quotient}, {divisor}')}")

    def _quotient32(self, signed: bool, a: str, b: str) -> str:
        # Machines divide vectors of floats only; f64 holds every 32-bit quotient well enough that
        # its floor is exact.
        f, letter = self.f, "s" if signed else "u"
        wide = [f.let(f"{letter}itofp i32 {x} to double") for x in (a, b)]
        ratio = f.let(f"fdiv double {wide[0]}, {wide[1]}")
        return f.let(f"fpto{letter}i double {self.intrinsic('floor', 'f64', ratio)} to i32")

    def _quotient(self, signed: bool, kind: str, a: str, b: str) -> str:
        f = self.f
        if not signed:
            return f.let(f"udiv {kind} {a}, {b}")
        quotient = f.let(f"sdiv {kind} {a}, {b}")
        rest = f.let(f"srem {kind} {a}, {b}")
        apart = f.let(f"icmp slt {kind} {f.let(f'xor {kind} {rest}, {b}')}, 0")
        some = f.let(f"icmp ne {kind} {rest}, 0")
        below = f.let(f"sext i1 {f.let(f'and i1 {apart}, {some}')} to {kind}")
        return f.let(f"add {kind} {quotient}, {below}")

    def cast(self, v: Value, a: str) -> str:
        """A conversion; float to int truncates and saturates unless it is known to be in range."""
        f, source, target = self.f, v.args[0].type, v.type
        have, want = TYPES[source], TYPES[target]
        if source == target:
            return a
        if target == "bool":
            rule = "fcmp une" if source in FLOATS else "icmp ne"
            return f.let(f"{rule} {have} {a}, {constant(0, have)}")
        unsigned = source in _UNSIGNED
        if source in FLOATS and target in FLOATS:
            return f.let(f"{'fpext' if target == 'f64' else 'fptrunc'} {have} {a} to {want}")
        if source in FLOATS:
            letter = "u" if target in _UNSIGNED else "s"
            if v.attr == "in_range":
                return f.let(f"fpto{letter}i {have} {a} to {want}")
            suffix = f"{_SUFFIX[target]}.{_SUFFIX[source]}"
            name = f.module.intrinsic(f"fpto{letter}i.sat.{suffix}", want, have)
            return f.let(f"call {want} {name}({have} {a})")
        if target in FLOATS:
            return f.let(f"{'u' if unsigned else 's'}itofp {have} {a} to {want}")
        if _BITS[source] == _BITS[target]:
            return a
        if _BITS[source] > _BITS[target]:
            return f.let(f"trunc {have} {a} to {want}")
        return f.let(f"{'zext' if unsigned else 'sext'} {have} {a} to {want}")


def slots_of(f: Function, block: Block) -> dict[Slot, str]:
    """A stack variable for every slot a block uses."""
    found: dict[Slot, str] = {}
    for s in statements(block):
        slot = (
            s.slot if isinstance(s, SetSlot)
            else s.index if isinstance(s, For)
            else s.attr if isinstance(s, Value) and s.op == "get"
            else None
        )  # fmt: skip
        if slot is not None and slot not in found:
            found[slot] = f.alloca(TYPES[slot.type], f"slot{len(found)}")
    return found
