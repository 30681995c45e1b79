"""The body of a kernel as WGSL: one function that computes the result at one position.

Everything here is scalar. Where the numbers come from and where the result goes is the business
of ``wgsl_read.py`` and ``wgsl_main.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dala.gpu.compute.engines.wgsl_names import WGSL_TYPE, literal
from dala.gpu.compute.engines.wgsl_ops import Expressions, bare, passed
from dala.gpu.compute.lang.ir import (
    Block,
    Break,
    Continue,
    For,
    If,
    Program,
    SetSlot,
    Slot,
    Value,
    statements,
)


class Body(Expressions):
    """Writes a program's statements."""

    def lines(self) -> list[str]:
        """The statements, indented by one step, ending with the return."""
        self._uses = _count_uses(self._program)
        for slot in _slots(self._program):
            name = self._names.new(slot.name)
            self._slots[slot] = name
            self._line(f"var {name}: {WGSL_TYPE[slot.type]};")
        self._block(self._program.body, self._program.result)
        results = [self._use(v) for v in self._program.result]
        if len(results) == 1:
            self._line(f"return {bare(results[0])};")
        else:
            type_ = WGSL_TYPE[self._program.result[0].type]
            self._line(f"return vec{len(results)}<{type_}>({', '.join(map(passed, results))});")
        return self._lines

    # statements

    def _block(self, block: Block, results: Iterable[Value] = ()) -> None:
        local = _local_uses(block)
        local.update(results)
        for statement in block.body:
            match statement:
                case Value():
                    self._value(statement, local[statement])
                case SetSlot():
                    value = bare(self._use(statement.value))
                    self._line(f"{self._slots[statement.slot]} = {value};")
                case If():
                    self._if(statement)
                case For():
                    self._for(statement)
                case Break():
                    self._line("break;")
                    return  # nothing may stand after it
                case Continue():
                    self._line("continue;")
                    return

    def _nested(self, block: Block) -> None:
        self._depth += 1
        self._read.append({})
        self._block(block)
        self._read.pop()
        self._depth -= 1

    def _if(self, statement: If) -> None:
        condition = bare(self._use(statement.condition))
        if not statement.then.body:
            self._line(f"if (!({condition})) {{")
            self._nested(statement.otherwise)
        else:
            self._line(f"if ({condition}) {{")
            self._nested(statement.then)
            if statement.otherwise.body:
                self._line("} else {")
                self._nested(statement.otherwise)
        self._line("}")

    def _for(self, loop: For) -> None:
        index, step = self._slots[loop.index], loop.step
        counter = self._names.new(f"{loop.index.name}_turn")
        start, stop = bare(self._use(loop.start)), self._use(loop.stop)
        bounded = loop.stop.op == "const" and abs(loop.stop.attr) < 1 << 30 and abs(step) < 1 << 30
        if abs(step) == 1 or bounded:
            # The counter cannot run past the end of i32 here.
            test = "<" if step > 0 else ">"
            change = f"{counter} += {step}i" if step > 0 else f"{counter} -= {-step}i"
            self._line(f"for (var {counter} = {start}; {counter} {test} {bare(stop)}; {change}) {{")
            self._depth += 1
            self._line(f"{index} = {counter};")
        else:
            first, turns = self._names.new("first"), self._names.new("turns")
            low, high = (first, stop) if step > 0 else (stop, first)
            self._line(f"let {first} = {start};")
            self._line(
                f"let {turns} = select(0u, "
                f"(bitcast<u32>({high}) - bitcast<u32>({low}) - 1u) / {abs(step)}u + 1u, "
                f"{low} < {high});"
            )
            self._line(f"for (var {counter} = 0u; {counter} < {turns}; {counter} += 1u) {{")
            self._depth += 1
            self._line(f"{index} = {first} + i32({counter}) * {literal(step, 's32', set())};")
        self._depth -= 1
        self._nested(loop.body)
        self._line("}")

    def _value(self, value: Value, local_uses: int) -> None:
        uses = self._uses[value]
        if not uses:
            return
        text = self._expression(value)
        # Used once, here and soon: stands where it is used. A slot may change in between.
        if uses == 1 and local_uses == 1 and value.op != "get" and len(text) < 60:
            self._text[value] = text
            return
        if re.fullmatch(r"[A-Za-z_][\w.]*", text) and value.op != "get":
            self._text[value] = text
            return
        name = self._names.number()
        self._line(f"let {name} = {bare(text)};")
        self._text[value] = name


def _inputs(statement: Any) -> tuple[Value, ...]:
    match statement:
        case Value():
            return statement.args
        case SetSlot():
            return (statement.value,)
        case If():
            return (statement.condition,)
        case For():
            return (statement.start, statement.stop)
    return ()


def _count_uses(program: Program) -> Counter[Value]:
    """How often each value is needed, not counting what itself is never needed."""
    uses = Counter(program.result)
    for statement in reversed(list(statements(program.body))):
        if not isinstance(statement, Value) or uses[statement]:
            uses.update(_inputs(statement))
    return uses


def _local_uses(block: Block) -> Counter[Value]:
    """Uses of each value by plain statements of this very block, where nothing is repeated."""
    uses: Counter[Value] = Counter()
    for statement in block.body:
        if not isinstance(statement, For):
            uses.update(_inputs(statement))
    return uses


def _slots(program: Program) -> list[Slot]:
    found: dict[Slot, None] = {}
    for statement in statements(program.body):
        match statement:
            case SetSlot():
                found[statement.slot] = None
            case For():
                found[statement.index] = None
            case Value(op="get"):
                found[statement.attr] = None
    return list(found)
