"""Write the body of a kernel as a WGSL function that computes the result at one position.

All values are scalars. ``loads.py`` reads the arguments and ``writer.py`` stores the result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from dala.gpu.compute.engines.webgpu.wgsl.expressions import WgslExpressions, bare, passed
from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE, literal
from dala.gpu.compute.engines.webgpu.wgsl.shader import CUT, OVER
from dala.gpu.compute.lang.ir import (
    Block,
    Break,
    Continue,
    For,
    If,
    Program,
    SetSlot,
    Slot,
    Statement,
    Value,
    operands,
    statements,
)


class WgslBody(WgslExpressions):
    """Writes the statements of a program."""

    def lines(self) -> list[str]:
        """Return the statements, indented by one level, ending with the return."""
        self._prepare()
        for slot in slots_of(self.program):
            name = self.names.new(slot.name)
            self._slots[slot] = name
            if slot not in self._own:
                self._line(f"var {name}: {WGSL_TYPE[slot.type]};")
        if self.metering.limit is not None:
            self._line(f"left = {self.metering.limit};")
        self._block(self.program.body, self.program.result)
        results = [self._use(v) for v in self.program.result]
        if len(results) == 1:
            self._line(f"return {bare(results[0])};")
        else:
            type_ = WGSL_TYPE[self.program.result[0].type]
            self._line(f"return vec{len(results)}<{type_}>({', '.join(map(passed, results))});")
        return self._lines

    def _prepare(self) -> None:
        #: For each loop around, the variable that tells that it was left, and the expression that
        #: tells that it has iterations left; only where loops may end early.
        self._watched: list[tuple[str, str]] = []
        self._loops_around = 0
        self._uses = _count_uses(self.program)
        self._own = _loop_variables(self.program)

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
                    self._write_pending()
                    self._line(f"{self._slots[statement.slot]} = {value};")
                case If():
                    self._if(statement)
                case For():
                    self._for(statement)
                case Break():
                    if self._watched:
                        self._line(f"{self._watched[-1][0]} = true;")
                    self._line("break;")
                    return  # WGSL allows no statement after it
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
        self._write_pending()
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
        own = loop.index in self._own
        start, stop = bare(self._use(loop.start)), self._use(loop.stop)
        self._write_pending()
        apart = self.apart and not self._loops_around
        if apart:
            once = self.names.new("once")
            self._line(f"for (var {once} = 0u; {once} < p.once; {once} += 1u) {{")
            self._depth += 1
        self._loops_around += 1
        bounded = loop.stop.op == "const" and abs(loop.stop.attr) < 1 << 30 and abs(step) < 1 << 30
        if abs(step) == 1 or bounded:
            # The counter cannot overflow i32 here.
            counter = index if own else self.names.new(f"{loop.index.name}_turn")
            test = "<" if step > 0 else ">"
            change = f"{counter} += {step}i" if step > 0 else f"{counter} -= {-step}i"
            begin, more = f"var {counter} = {start}", f"{counter} {test} {bare(stop)}"
            begin = self._watch(loop, begin, f"{counter} + i32(p.zero) {test} {bare(stop)}")
            self._line(f"for ({begin}; {more}; {change}) {{")
            self._depth += 1
            self._meter()
            if not own:
                self._line(f"{index} = {counter};")
        else:
            counter = self.names.new(f"{loop.index.name}_turn")
            first, turns = self.names.new("first"), self.names.new("turns")
            low, high = (first, stop) if step > 0 else (stop, first)
            self._line(f"let {first} = {start};")
            self._line(
                f"let {turns} = select(0u, "
                f"(bitcast<u32>({high}) - bitcast<u32>({low}) - 1u) / {abs(step)}u + 1u, "
                f"{low} < {high});"
            )
            begin = self._watch(loop, f"var {counter} = 0u", f"{counter} + p.zero < {turns}")
            self._line(f"for ({begin}; {counter} < {turns}; {counter} += 1u) {{")
            self._depth += 1
            self._meter()
            number = f"{first} + i32({counter}) * {literal(step, 's32', set())}"
            self._line(f"{'let ' if own else ''}{index} = {number};")
        self._depth -= 1
        self._nested(loop.body)
        self._line("}")
        self._loops_around -= 1
        if apart:
            self._depth -= 1
            self._line("}")
        if self.metering.cut:
            ended, missing = self._watched.pop()
            self._line(f"if ({missing} && !{ended}) {{ atomicMax(&over, {CUT}u); }}")

    def _watch(self, loop: For, begin: str, unfinished: str) -> str:
        """Prepare to report a loop that ends early; return the first part of its ``for``."""
        if not self.metering.cut:
            return begin
        # The sum with zero, a member of the block, keeps compilers from assuming the loop's end.
        ended = self.names.new("ended")
        self._line(f"var {ended} = false;")
        self._line(f"{begin};")
        self._watched.append((ended, unfinished))
        return ""

    def _meter(self) -> None:
        """Write the start of an iteration that is counted."""
        if self.metering.limit is not None:
            leave = f"{self._watched[-1][0]} = true; break;" if self._watched else "break;"
            self._line("left -= 1;")
            self._line(f"if (left < 0) {{ atomicMax(&over, {OVER}u); {leave} }}")

    def _value(self, value: Value, local_uses: int) -> None:
        uses = self._uses[value]
        if not uses:
            return
        waiting = [a for a in value.args if a in self._pending]
        text = self._expression(value)
        once = uses == 1 and local_uses == 1 and len(text) < 60
        steady = value.op == "get" and value.attr in self._own
        name = re.fullmatch(r"[A-Za-z_][\w.]*", text) is not None and value.op != "get"
        if once or steady or name:  # written inline where it is used
            self._text[value] = text
            if waiting or (value.op == "get" and not steady):
                self._pending[value] = None
            return
        self._bind(value, text)

    def _bind(self, value: Value, text: str) -> None:
        """Assign a value to a variable."""
        name = self.names.number()
        self._line(f"let {name} = {bare(text)};")
        self._text[value] = name

    def _write_pending(self) -> None:
        """Assign values that read slots to variables, because a slot is about to change."""
        for value in list(self._pending):
            self._bind(value, self._text[value])
        self._pending.clear()


def _count_uses(program: Program) -> Counter[Value]:
    """Count the uses of each value, except by values that are never used."""
    uses = Counter(program.result)
    for statement in reversed(list(statements(program.body))):
        if not isinstance(statement, Value) or uses[statement]:
            uses.update(operands(statement))
    return uses


def _local_uses(block: Block) -> Counter[Value]:
    """Count the uses of each value in this block, not in nested ones."""
    uses: Counter[Value] = Counter()
    for statement in block.body:
        if not isinstance(statement, For):
            uses.update(operands(statement))
    return uses


def slots_of(program: Program) -> list[Slot]:
    """Return the slots of a program."""
    found: dict[Slot, None] = {}
    for statement in statements(program.body):
        match statement:
            case SetSlot(slot=slot) | For(index=slot) | Value(op="get", attr=slot):
                found[slot] = None
    return list(found)


def _loop_variables(program: Program) -> set[Slot]:
    """Return the loop indices that are never set and never read outside their loop."""
    everywhere = list(statements(program.body))
    loops = [s for s in everywhere if isinstance(s, For)]
    taken = Counter(loop.index for loop in loops)
    taken.update(s.slot for s in everywhere if isinstance(s, SetSlot))
    read = Counter(_gets(everywhere))
    return {
        loop.index
        for loop in loops
        if taken[loop.index] == 1
        and read[loop.index] == Counter(_gets(statements(loop.body)))[loop.index]
    }


def _gets(found: Iterable[Statement]) -> Iterator[Slot]:
    return (s.attr for s in found if isinstance(s, Value) and s.op == "get")
