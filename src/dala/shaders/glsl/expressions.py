"""Translate expressions of GLSL to text of the kernel language.

What has an effect (assignments, ``++``, calls that write) becomes statements before the one that
the expression is in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from dala.errors import did_you_mean
from dala.shaders.glsl.constants import OPERATORS
from dala.shaders.glsl.terms import CASTS, Expr, GlslFunction, GlslVariable, leaves, literal, zero
from dala.shaders.glsl.tree import BOOL, INT, UINT, VEC2, VEC4, GlslNode, GlslType

if TYPE_CHECKING:
    from dala.shaders.glsl.unit import Unit

#: Brackets in brackets of one expression; deeper ones get a variable.
_DEEP: Final = 24
_ORDER: Final = ("bool", "int", "uint", "float")
#: Variables of ISF with the size of an image.
IMAGE: Final = re.compile(r"_(\w+)_(imgSize|imgRect)")
_SIMPLE: Final = re.compile(r"\w+|-?[\d.]+")


class GlslExpressions:
    """Translates expressions; :class:`GlslWriter` adds statements."""

    def __init__(self, unit: Unit, function: GlslFunction | None = None) -> None:
        self.unit = unit
        #: Variables of the text, and of the blocks around the current statement.
        self.scopes = [unit.globals]
        self.function = function
        self.lines: list[tuple[int, str, int]] = []
        self.indent = 1
        self.line = 1
        self.count = 0
        #: For each loop, what ``continue`` runs first; None for a switch.
        self.loops: list[Callable[[], None] | None] = []

    def capture(self, work: Callable[[], Expr]) -> tuple[Expr, list[tuple[int, str, int]]]:
        """Return the result of some work, and the lines that it would write, one level deeper."""
        before, self.lines = self.lines, []
        self.indent += 1
        made = work()
        self.indent -= 1
        lines, self.lines = self.lines, before
        return made, lines

    def fail(self, node: GlslNode, problem: str, advice: str = "") -> NoReturn:
        """Raise the error at the line of a node."""
        self.unit.source.fail_at(node.line, 0, problem, advice)

    def leaves(self, kind: GlslType) -> list[tuple[str, GlslType]]:
        """Return the numbers and vectors of a type; see :func:`leaves`."""
        return leaves(kind, self.unit.tree.structs)

    def emit(self, text: str) -> None:
        """Append a line."""
        self.lines.append((self.indent, text, self.line))

    def fresh(self, name: str = "") -> str:
        """Return a name that is not used yet."""
        self.count += 1
        return f"v{self.count}_{name}"

    def helper(self, name: str) -> str:
        """Return the name of a function of the translation, which it then has."""
        self.unit.helpers.add(name)
        return name

    def find(self, node: GlslNode) -> GlslVariable:
        """Return the variable of a name."""
        for scope in reversed(self.scopes):
            if node.text in scope:
                return scope[node.text]
        known = {name for scope in self.scopes for name in scope}
        advice = did_you_mean(node.text, known) or "Declare it first."
        self.fail(node, f"the name {node.text!r} is not defined", advice)

    # values -----------------------------------------------------------------------------------
    def kept(self, expr: Expr) -> Expr:
        """Return an expression whose texts are names or numbers, so that they may be repeated."""
        if all(_SIMPLE.fullmatch(t) for t in expr.texts):
            return expr
        return expr._replace(texts=tuple(map(self._keep, expr.texts)), depth=0)

    def _keep(self, text: str) -> str:
        name = self.fresh()
        self.emit(f"{name} = {text}")
        return name

    def values(self, nodes: Sequence[GlslNode]) -> list[Expr]:
        """Translate operands in order: one with an effect does not change those before it."""
        found: list[Expr] = []
        for node in nodes:
            found = self.followed(found, node)
        return found

    def followed(self, found: list[Expr], node: GlslNode) -> list[Expr]:
        """Translate one more operand; variables that it would change are copied first."""
        before = len(self.lines)
        made = self.value(node)
        later = self.lines[before:]
        if later:
            del self.lines[before:]
            found = [
                e
                if e.value is not None or e.kind.base == "sampler"
                else e._replace(texts=tuple(map(self._keep, e.texts)), depth=0)
                for e in found
            ]
            self.lines += later
        return [*found, made]

    def value(self, node: GlslNode) -> Expr:
        """Translate an expression."""
        self.line = node.line
        made = getattr(self, f"_{node.op}")(node)
        assert isinstance(made, Expr)
        if made.depth > _DEEP and made.kind.base != "sampler":
            return self.kept(made)
        return made

    def condition(self, node: GlslNode) -> Expr:
        """Translate an expression that must be a bool."""
        return self.fitted(self.value(node), BOOL, node)

    def _number(self, node: GlslNode) -> Expr:
        assert node.kind is not None
        assert isinstance(node.value, int | float)
        return literal(node.value, node.kind.base)

    def _name(self, node: GlslNode) -> Expr:
        image = IMAGE.fullmatch(node.text)
        if image and image[1] in self.scopes[0]:
            texts = self.scopes[0][image[1]].texts
            self.unit.used.add(texts[0])
            size = f"f32({texts[0]}.width), f32({texts[0]}.height)"
            if image[2] == "imgSize":
                return Expr((f"vec2({size})",), VEC2)
            return Expr((f"vec4(0.0, 0.0, {size})",), VEC4)
        found = self.find(node)
        if found.value is not None:
            return literal(found.value, found.kind.base)
        return Expr(found.texts, found.kind)

    def _comma(self, node: GlslNode) -> Expr:
        self.effect(node.parts[0])
        return self.value(node.parts[1])

    def _list(self, node: GlslNode) -> Expr:
        self.fail(node, "a list in braces must follow the variable that it starts", "Write a type.")

    # types ------------------------------------------------------------------------------------
    def cast(self, expr: Expr, base: str) -> Expr:
        """Convert numbers to another base type."""
        if expr.kind.base == base:
            return expr
        if expr.value is not None:
            return literal(bool(expr.value) if base == "bool" else expr.value, base)
        kind = expr.kind._replace(base=base)
        return Expr((f"{CASTS[base]}({expr.text})",), kind, depth=expr.depth + 1)

    def fitted(self, expr: Expr, kind: GlslType, node: GlslNode) -> Expr:
        """Return a value as a type; ints become uints and floats."""
        if expr.kind == kind:
            return expr
        have, want = expr.kind.base, kind.base
        widens = have in ("int", "uint") and want in ("uint", "float")
        if widens and expr.kind._replace(base=want) == kind and not kind.length:
            return self.cast(expr, want)
        self.fail(
            node,
            f"this must be of the type {kind}, and it is {expr.kind}",
            f"Write {kind}(...)." if kind.base in CASTS and not kind.length else "",
        )

    def common(self, node: GlslNode, *exprs: Expr) -> list[Expr]:
        """Return numbers converted to the widest of their base types."""
        for e in exprs:
            if e.kind.base not in ("int", "uint", "float") or e.kind.length:
                self.fail(node, f"{node.text or node.op!r} takes numbers, got {e.kind}", "")
        base = max((e.kind.base for e in exprs), key=_ORDER.index)
        return [self.cast(e, base) for e in exprs]

    # operators --------------------------------------------------------------------------------
    def _unary(self, node: GlslNode) -> Expr:
        inner, op = self.value(node.parts[0]), node.text
        if op == "!":
            inner = self.fitted(inner, BOOL, node)
            if inner.value is not None:
                return literal(not inner.value, "bool")
            return Expr((f"(not {inner.text})",), BOOL, depth=inner.depth + 1)
        (inner,) = self.common(node, inner)
        if op == "+":
            return inner
        if op == "~" and inner.kind.base == "float":
            self.fail(node, "~ takes ints", "Write int(...).")
        if inner.value is not None:
            value = -inner.value if op == "-" else ~int(inner.value)
            return literal(value, inner.kind.base)
        return Expr((f"({op}{inner.text})",), inner.kind, depth=inner.depth + 1)

    def _binary(self, node: GlslNode) -> Expr:
        if node.text in ("&&", "||"):
            return self._logical(node)
        spine = [node]  # long sums must not recurse
        while spine[-1].parts[0].op == "binary" and spine[-1].parts[0].text not in ("&&", "||"):
            spine.append(spine[-1].parts[0])
        made = self.value(spine[-1].parts[0])
        for inner in reversed(spine):
            left, right = self.followed([made], inner.parts[1])
            made = self.operate(inner, inner.text, left, right)
            made = self.kept(made) if made.depth > _DEEP else made
        return made

    def operate(self, node: GlslNode, op: str, left: Expr, right: Expr) -> Expr:
        """Translate an operator of two values."""
        if op in ("==", "!="):
            return self._equal(node, op, left, right)
        if op == "^^":
            left, right = (self.fitted(e, BOOL, node) for e in (left, right))
            return self._joined("!=", left, right, BOOL)
        left, right = self.common(node, left, right)
        if op in ("<", ">", "<=", ">="):
            if not (left.kind.scalar and right.kind.scalar):
                advice = "Write lessThan(a, b) and any or all."
                self.fail(node, f"{op} compares numbers, got {left.kind} and {right.kind}", advice)
            return self._joined(op, left, right, BOOL)
        kind = self._product(node, left.kind, right.kind) if op == "*" else None
        kind = kind or self._alike(node, op, left.kind, right.kind)
        if kind.base == "float":
            if op in "%&|^<<>>":
                self.fail(node, f"{op} takes ints, got {kind}", "Write mod(a, b), or int(...).")
            if op == "/" and right.value == 0:
                right = right._replace(texts=("f32(0.0)",))
        elif op in "/%" and right.value == 0:
            self.fail(node, "this divides an int by zero", "Change the constant.")
        elif op in "/%" and (left.value is None or right.value is None):
            if kind.base == "int":
                name = self.helper("quotient_" if op == "/" else "rest_")
                text = f"{name}({left.text}, {right.text})"
                return Expr((text,), kind, depth=max(left.depth, right.depth) + 1)
            op = "//" if op == "/" else "%"
        return self._joined(op, left, right, kind)

    def _joined(self, op: str, left: Expr, right: Expr, kind: GlslType) -> Expr:
        if left.value is not None and right.value is not None:
            try:
                made = literal(OPERATORS[op](left.value, right.value), kind.base)
            except (ArithmeticError, ValueError, KeyError):
                made = None
            if made is not None and (kind.base != "float" or abs(made.value or 0) < 3e38):
                return made
            left = left._replace(texts=(f"{CASTS[kind.base]}({left.text})",))
        text = f"({left.text} {op} {right.text})"
        return Expr((text,), kind, depth=max(left.depth, right.depth) + 1)

    def _product(self, node: GlslNode, a: GlslType, b: GlslType) -> GlslType | None:
        """Return the type of a product with a matrix."""
        if a.columns and b.columns and a.columns == b.size:
            return b._replace(size=a.size)
        if a.columns and b == GlslType("float", a.columns):
            return GlslType("float", a.size)
        fits = b.columns and a == GlslType("float", b.size)
        return GlslType("float", b.columns) if fits else None

    def _alike(self, node: GlslNode, op: str, a: GlslType, b: GlslType) -> GlslType:
        if a == b or b.scalar:
            return a
        if not a.scalar:
            self.fail(node, f"{op} of {a} and {b} is not defined", "Use values of one size.")
        return b

    def _equal(self, node: GlslNode, op: str, left: Expr, right: Expr) -> Expr:
        if left.kind != right.kind:
            left, right = self.common(node, left, right)
        if left.kind != right.kind or left.kind.length:
            self.fail(node, f"{op} of {left.kind} and {right.kind} is not defined", "")
        if left.kind.scalar:
            return self._joined(op, left, right, BOOL)
        parts = []
        for (_, leaf), a, b in zip(self.leaves(left.kind), left.texts, right.texts, strict=True):
            one = f"({a} {op} {b})"
            if not leaf.scalar:
                one = f"all(equal({a}, {b}))" if op == "==" else f"any(notEqual({a}, {b}))"
            parts.append(one)
        text = (" and " if op == "==" else " or ").join(parts)
        return Expr((f"({text})",), BOOL, depth=max(left.depth, right.depth) + 2)

    def _logical(self, node: GlslNode) -> Expr:
        left = self.condition(node.parts[0])
        stops = node.text == "||"
        if left.value is not None:
            return left if bool(left.value) == stops else self.condition(node.parts[1])
        right, lines = self.capture(lambda: self.condition(node.parts[1]))
        if not lines:
            word = "or" if stops else "and"
            text = f"({left.text} {word} {right.text})"
            return Expr((text,), BOOL, depth=max(left.depth, right.depth) + 1)
        name = self._keep(left.text)
        self.emit(f"if {'not ' * stops}{name}:")
        self.lines += lines
        self.lines.append((self.indent + 1, f"{name} = {right.text}", self.line))
        return Expr((name,), BOOL)

    def _choice(self, node: GlslNode) -> Expr:
        test = self.condition(node.parts[0])
        if test.value is not None:
            return self.value(node.parts[1 if test.value else 2])
        first, then = self.capture(lambda: self.value(node.parts[1]))
        second, other = self.capture(lambda: self.value(node.parts[2]))
        if first.kind != second.kind:
            first, second = self.common(node, first, second)
        self.fitted(second, first.kind, node)
        if not then and not other:
            if len(first.texts) > 1:
                test = self.kept(test)
            pairs = zip(first.texts, second.texts, strict=True)
            texts = tuple(f"({a} if {test.text} else {b})" for a, b in pairs)
            depth = max(first.depth, second.depth, test.depth) + 1
            return Expr(texts, first.kind, depth=depth)
        names = tuple(self.fresh() for _ in first.texts)
        for name, (_, leaf) in zip(names, self.leaves(first.kind), strict=True):
            self.emit(f"{name} = {zero(leaf)}")
        for word, made, lines in ((f"if {test.text}", first, then), ("else", second, other)):
            self.emit(f"{word}:")
            self.lines += lines
            for name, text in zip(names, made.texts, strict=True):
                self.lines.append((self.indent + 1, f"{name} = {text}", self.line))
        return Expr(names, first.kind)

    # parts ------------------------------------------------------------------------------------
    def _member(self, node: GlslNode) -> Expr:
        return self.part(node, self.value(node.parts[0]))

    def part(self, node: GlslNode, whole: Expr) -> Expr:
        """Return a member of a struct or components of a vector."""
        kind, name = whole.kind, node.text
        if name == "length" and kind.length:
            return literal(kind.length, "int")
        if kind.base == "struct" and not kind.length:
            at = 0
            for member in self.unit.tree.structs[kind.struct]:
                size = len(self.leaves(member.kind))
                if member.name == name:
                    return Expr(whole.texts[at : at + size], member.kind, depth=whole.depth)
                at += size
        letters = next((s for s in ("xyzw", "rgba", "stpq") if set(name) <= set(s)), "")
        fits = letters and len(name) <= 4 and kind.base in CASTS and not kind.length
        if not fits or kind.columns or max(map(letters.index, name)) >= kind.size:
            known = [m.name for m in self.unit.tree.structs.get(kind.struct, [])]
            self.fail(node, f"{kind} has no part {name!r}", did_you_mean(name, known))
        if kind.size == 1:
            return self.vector(node, GlslType(kind.base, len(name)), [whole])
        made = GlslType(kind.base, len(name))
        return Expr((f"{whole.text}.{name}",), made, depth=whole.depth + 1)

    def _index(self, node: GlslNode) -> Expr:
        whole, index = self.values(node.parts)
        return self.item(node, whole, index)

    def item(self, node: GlslNode, whole: Expr, index: Expr) -> Expr:
        """Return an item of an array, a column, or a component."""
        kind = whole.kind
        if index.kind not in (INT, UINT):
            self.fail(node, f"an index must be an int, and it is {index.kind}", "Write int(...).")
        count = kind.length or kind.columns or (kind.size if kind.base in CASTS else 1)
        if count == 1 and not kind.length:
            self.fail(node, f"{kind} has no items", "Only arrays, vectors and matrices have.")
        if index.value is not None:
            if not 0 <= index.value < count:
                self.fail(node, f"the index {index.value} is not below {count}", "")
            text = str(int(index.value))
        else:
            text = self.cast(index, "int").text
        made = kind.item if kind.length else GlslType(kind.base, kind.size if kind.columns else 1)
        if len(whole.texts) > 1:
            text = self.kept(index._replace(texts=(text,))).text
        depth = max(whole.depth, index.depth) + 1
        return Expr(tuple(f"{t}[{text}]" for t in whole.texts), made, depth=depth)

    def vector(self, node: GlslNode, kind: GlslType, given: list[Expr]) -> Expr:
        """Return a number or a vector of the components given."""
        flat = []
        for e in given:
            if e.kind.columns:
                column = GlslType("float", e.kind.size)
                name = self.kept(e).text
                flat += [Expr((f"{name}[{i}]",), column) for i in range(e.kind.columns)]
            else:
                flat.append(e)
        total = sum(e.kind.size for e in flat)
        if not flat or (total < kind.size and total > 1) or len(flat) > kind.size:
            problem = f"{kind}(...) takes {kind.size} numbers, got {total}"
            self.fail(node, problem, "Pass as many, or one.")
        parts = [self.cast(e, kind.base) for e in flat]
        depth = max(e.depth for e in parts) + 1
        spare = total - kind.size
        if spare > 0 and spare < parts[-1].kind.size:
            last = parts[-1]
            cut = "xyzw"[: last.kind.size - spare]
            parts[-1] = Expr((f"{last.text}.{cut}",), GlslType(kind.base, len(cut)), depth=depth)
        elif spare > 0:
            self.fail(node, f"{kind}(...) takes {kind.size} numbers, got {total}", "")
        if len(parts) == 1 and parts[0].kind == kind:
            return parts[0]
        text = f"{kind}({', '.join(e.text for e in parts)})"
        return Expr((text,), kind, depth=depth)

    # assignments ------------------------------------------------------------------------------
    def target(self, node: GlslNode) -> Expr:
        """Return the target of an assignment, as texts that may be assigned and read."""
        if node.op == "name":
            found = self.find(node)
            if found.fixed:
                self.fail(node, f"{node.text!r} cannot be assigned", "Copy it to a variable.")
            return Expr(found.texts, found.kind)
        if node.op == "member":
            return self.part(node, self.target(node.parts[0]))
        if node.op == "index":
            whole = self.target(node.parts[0])
            return self.item(node, whole, self.kept(self.value(node.parts[1])))
        self.fail(node, "this cannot be assigned", "Assign to a variable.")

    def store(self, place: Expr, made: Expr) -> None:
        """Assign a value of the same type."""
        for name, text in zip(place.texts, made.texts, strict=True):
            self.emit(f"{name} = {text}")

    def _assign(self, node: GlslNode) -> Expr:
        if node.text == "=":
            made = self.value(node.parts[1])
            place = self.target(node.parts[0])
        else:
            made = self.value(node.parts[1])
            place = self.target(node.parts[0])
            made = self.operate(node, node.text[:-1], place, made)
        self.line = node.line
        self.store(place, self.fitted(made, place.kind, node))
        return place

    def _step(self, node: GlslNode) -> Expr:
        place = self.target(node.parts[0])
        old = place if node.value else place._replace(texts=(self._keep(place.text),))
        self._stepped(node, place)
        return place if node.value else old

    def _stepped(self, node: GlslNode, place: Expr) -> None:
        one = literal(1, place.kind.base if place.kind.base in CASTS else "int")
        self.store(place, self.operate(node, node.text, place, one))

    def effect(self, node: GlslNode) -> None:
        """Translate an expression whose value is not used."""
        self.line = node.line
        if node.op == "step":
            self._stepped(node, self.target(node.parts[0]))
        elif node.op == "comma":
            for part in node.parts:
                self.effect(part)
        else:
            self.value(node)
