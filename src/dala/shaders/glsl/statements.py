"""Translate statements and functions of GLSL to text of the kernel language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dala.budget import check_deadline
from dala.shaders.glsl.calls import Calls
from dala.shaders.glsl.terms import Expr, GlslVariable, zero
from dala.shaders.glsl.tree import FLOAT, INT, DeclaredName, GlslNode, GlslType, variables, walk

#: Turns of a loop of floats that is counted; others test their condition in each turn.
_COUNTED: Final = 4096
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def root(node: GlslNode) -> GlslNode:
    """Return the name that a target of an assignment is part of."""
    while node.op in ("member", "index"):
        node = node.parts[0]
    return node


class GlslWriter(Calls):
    """Writes one function."""

    # functions --------------------------------------------------------------------------------
    def write(self) -> None:
        """Write the whole function."""
        function = self.function
        assert function is not None
        text = function.text
        scope: dict[str, GlslVariable] = {}
        heads: list[str] = []
        for param in text.params:
            names = self.names(param)
            scope[param.name] = GlslVariable(names, param.kind)
            heads += [f"{n}: Image" if param.kind.base == "sampler" else n for n in names]
        heads += self.unit.heads(function.reads)
        self.line = text.line
        self.lines.append((0, f"def {function.name}({', '.join(heads)}):", text.line))
        self.scopes.append(scope)
        if not self.block(text.body.parts):
            self._leave(None)

    def names(self, declared: DeclaredName) -> tuple[str, ...]:
        """Return names for the parts of a variable."""
        base = self.fresh(declared.name)
        return tuple(base + end for end, _ in self.leaves(declared.kind))

    def _leave(self, made: Expr | None) -> None:
        function = self.function
        assert function is not None
        kind = function.text.kind
        texts: list[str] = []
        if kind.base != "void":
            texts += made.texts if made else [zero(k) for _, k in self.leaves(kind)]
        for param in function.text.params:
            if param.words & {"out", "inout"}:
                texts += self.scopes[1][param.name].texts
        for name in function.writes:
            texts += self.scopes[0][name].texts
        self.emit(f"return {', '.join(texts) or '0'}")

    # statements -------------------------------------------------------------------------------
    def block(self, body: tuple[GlslNode, ...]) -> bool:
        """Write statements; return whether control never reaches their end."""
        self.scopes.append({})
        ended = False
        for node in body:
            if self.statement(node):
                ended = True
                break
        self.scopes.pop()
        return ended

    def statement(self, node: GlslNode) -> bool:
        """Write one statement; return whether control ends in it."""
        check_deadline("a shader's text")
        self.line = node.line
        return bool(getattr(self, f"_write_{node.op}")(node))

    def inner(self, work: Callable[[], bool | None]) -> bool:
        """Write a block that is one level deeper."""
        self.indent += 1
        before = len(self.lines)
        ended = work()
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1
        return bool(ended)

    def _write_block(self, node: GlslNode) -> bool:
        return self.block(node.parts)

    def _write_expression(self, node: GlslNode) -> None:
        self.effect(node.parts[0])

    def _write_declare(self, node: GlslNode) -> None:
        for declared in variables(node):
            self.declare(declared)

    def declare(self, declared: DeclaredName) -> GlslVariable:
        """Write a variable with its first value."""
        if declared.kind.base in ("sampler", "void"):
            self.fail(GlslNode("", declared.line), f"a variable cannot be of type {declared.kind}")
        made = self.started(declared)
        constant = "const" in declared.words
        if made is not None and constant and made.value is not None:
            found = GlslVariable((), declared.kind, True, made.value)
        else:
            found = GlslVariable(self.names(declared), declared.kind, constant)
            if made is not None:
                self.store(Expr(found.texts, declared.kind), made)
            else:
                for text, (_, leaf) in zip(found.texts, self.leaves(declared.kind), strict=True):
                    self.emit(f"{text} = {zero(leaf)}")
        self.scopes[-1][declared.name] = found
        return found

    def started(self, declared: DeclaredName) -> Expr | None:
        """Return the first value of a variable."""
        if declared.start is None:
            return None
        node = self._typed(declared.start, declared.kind)
        return self.fitted(self.value(node), declared.kind, node)

    def _typed(self, node: GlslNode, kind: GlslType) -> GlslNode:
        """Return the constructor that a list in braces stands for."""
        if node.op != "list":
            return node
        if kind.base == "struct" and not kind.length:
            members = self.unit.tree.structs[kind.struct]
            if len(members) != len(node.parts):
                self.fail(node, f"{kind} takes {len(members)} values, got {len(node.parts)}")
            parts = [self._typed(p, m.kind) for p, m in zip(node.parts, members, strict=True)]
            return GlslNode("call", node.line, tuple(parts), kind.struct)
        inner = kind.item if kind.length else GlslType(kind.base, kind.size if kind.columns else 1)
        parts = [self._typed(p, inner) for p in node.parts]
        name = "" if kind.length else str(kind)
        return GlslNode("call", node.line, tuple(parts), name, kind=kind if kind.length else None)

    def _write_if(self, node: GlslNode) -> bool:
        test = self.condition(node.parts[0])
        then, other = node.parts[1:]
        if test.value is not None:
            return self.block((then,) if test.value else (other,))
        self.emit(f"if {test.text}:")
        first = self.inner(lambda: self.block((then,)))
        if other.op == "block" and not other.parts:
            return False
        self.emit("else:")
        return self.inner(lambda: self.block((other,))) and first

    # loops ------------------------------------------------------------------------------------
    def _write_for(self, node: GlslNode) -> bool:
        start, test, step, body = node.parts
        self.scopes.append({})
        if not self._counted(node):
            self.statement(start)
            self._loop(node, test, body, step)
        self.scopes.pop()
        return False

    def _loop(self, node: GlslNode, test: GlslNode, body: GlslNode, step: GlslNode) -> None:
        made, lines = self.capture(lambda: self.condition(test))
        again = None if step.op == "block" else lambda: self.effect(step)
        self.line = node.line
        self.emit("while True:" if lines else f"while {made.text}:")
        if lines:
            self.lines += lines
            self.lines.append((self.indent + 1, f"if not {made.text}:", self.line))
            self.lines.append((self.indent + 2, "break", self.line))

        def work() -> None:
            self.loops.append(again or _nothing)
            if not self.block((body,)) and again:
                again()
            self.loops.pop()

        self.inner(work)

    def _write_do(self, node: GlslNode) -> None:
        test, body = node.parts

        def again() -> None:
            made = self.condition(test)
            self.emit(f"if not {made.text}:")
            self.lines.append((self.indent + 1, "break", self.line))

        def work() -> None:
            self.loops.append(again)
            if not self.block((body,)):
                again()
            self.loops.pop()

        self.emit("while True:")
        self.inner(work)

    def _counted(self, node: GlslNode) -> bool:
        """Write a loop that counts as ``for i in range(...)``; return whether it does."""
        start, test, step, body = node.parts
        if start.op != "declare" or len(variables(start)) != 1 or test.op != "binary":
            return False
        declared = variables(start)[0]
        op, bound = test.text, test.parts[1]
        if test.parts[1].op == "name" and test.parts[1].text == declared.name:
            op, bound = _FLIPPED.get(op, ""), test.parts[0]
        elif test.parts[0].op != "name" or test.parts[0].text != declared.name:
            return False
        turn = self._turn(step, declared)
        if op not in _FLIPPED or not turn or (turn > 0) != (op[0] == "<"):
            return False
        if declared.kind not in (INT, FLOAT) or declared.start is None:
            return False
        changed = self.unit.assigned(body)
        names = {n.text for n in walk(bound)}
        if declared.name in changed or names & (changed | {declared.name, *self.unit.functions}):
            return False
        first = self.started(declared)
        assert first is not None
        last = self.value(bound)
        name = self.fresh(declared.name)
        if declared.kind == INT:
            if last.kind != INT or not float(turn).is_integer():
                return False
            more = "" if op in "<>" else f" {op[0].replace('<', '+').replace('>', '-')} 1"
            counter, texts = name, f"{first.text}, {last.text}{more}, {int(turn)}"
        else:
            turns = _turns(first.value, last.value, turn, op)
            if turns is None or last.kind not in (INT, FLOAT):
                return False
            counter, texts = self.fresh(), str(turns)
        self.emit(f"for {counter} in range({texts}):")

        def work() -> None:
            if declared.kind == FLOAT:
                self.emit(f"{name} = f32({counter}) * {turn!r} + {first.text}")
            self.scopes[-1][declared.name] = GlslVariable((name,), declared.kind)
            self.loops.append(_nothing)
            self.block((body,))
            self.loops.pop()

        self.inner(work)
        return True

    def _turn(self, step: GlslNode, declared: DeclaredName) -> float:
        """Return the step of a loop's variable in each turn; 0 if that is not a constant."""
        if not step.parts or step.parts[0].text != declared.name:
            return 0
        if step.op == "step":
            return 1.0 if step.text == "+" else -1.0
        if step.op == "assign" and step.text in ("+=", "-=") and step.parts[1].op == "number":
            value = step.parts[1].value
            assert isinstance(value, int | float)
            return float(value) if step.text == "+=" else -float(value)
        return 0

    def _write_break(self, node: GlslNode) -> bool:
        if not self.loops:
            self.fail(node, "break is outside a loop", "Remove it.")
        self.emit("break")
        return True

    def _write_continue(self, node: GlslNode) -> bool:
        loops = [again for again in self.loops if again is not None]
        if not loops or self.loops[-1] is None:
            self.fail(node, "continue must be in a loop, and not in a switch", "Use if.")
        loops[-1]()
        self.emit("continue")
        return True

    def _write_return(self, node: GlslNode) -> bool:
        assert self.function is not None
        kind = self.function.text.kind
        if bool(node.parts) != (kind.base != "void"):
            self.fail(node, f"this function returns {kind}", "Return a value of that type.")
        made = None
        if node.parts:
            made = self.fitted(self.value(node.parts[0]), kind, node)
        self.line = node.line
        self._leave(made)
        return True

    def _write_discard(self, node: GlslNode) -> bool:
        self.emit(f"{self.scopes[0]['discard'].texts[0]} = True")
        self._leave(None)
        return True

    def _write_switch(self, node: GlslNode) -> None:
        """Write a switch as a loop of one turn, in which a case that matched goes on to the next.

        Cases with ``continue`` of an outer loop are refused by the loop itself.
        """
        value = self.kept(self.value(node.parts[0]))
        hit = self.fresh()
        self.emit(f"{hit} = False")
        pairs = list(zip(node.parts[1::2], node.parts[2::2], strict=True))
        self.emit(f"for {self.fresh()} in range(1):")

        def work() -> None:
            self.loops.append(None)
            for label, body in pairs:
                if label.op == "block":
                    self.emit(f"{hit} = True")
                else:
                    same = self.operate(label, "==", value, self.value(label))
                    self.emit(f"{hit} = ({hit} or {same.text})")
                self.emit(f"if {hit}:")
                self.inner(lambda body=body: self.block(body.parts))  # type: ignore[misc]
            self.loops.pop()

        defaults = [i for i, (label, _) in enumerate(pairs) if label.op == "block"]
        if defaults and defaults[0] != len(pairs) - 1:
            self.fail(node, "default must be the last case of a switch", "Move it to the end.")
        self.inner(work)


def _nothing() -> None:
    """Do nothing before ``continue``."""


def _turns(first: float | None, last: float | None, turn: float, op: str) -> int | None:
    """Return how often a loop of floats runs, if its numbers are whole and few."""
    if first is None or last is None or not all(float(n).is_integer() for n in (first, turn)):
        return None
    if abs(first) + abs(last) > 2**23:
        return None
    span = (last - first) / turn
    count = int(span) + (span > int(span))
    if "=" in op and span == int(span):
        count += 1
    return max(count, 0) if count <= _COUNTED else None
