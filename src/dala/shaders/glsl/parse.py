"""Parse tokens of GLSL into a tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NoReturn

from dala.budget import check_deadline
from dala.gpu.compute.lang.limits import MAX_LIST
from dala.gpu.compute.lang.source import KernelSource
from dala.shaders.glsl.constants import evaluate
from dala.shaders.glsl.tokens import GlslToken
from dala.shaders.glsl.tree import (
    BOOL,
    FLOAT,
    INT,
    KINDS,
    PRECISIONS,
    QUALIFIERS,
    REFUSED,
    UINT,
    DeclaredName,
    GlslFunctionText,
    GlslNode,
    GlslType,
    UnitTree,
)

#: Nesting of expressions and of blocks.
MAX_NESTED: Final = 40

_LEVELS: Final = {
    "||": 1, "^^": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, ">": 8,
    "<=": 8, ">=": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11,
}  # fmt: skip
_ASSIGN: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
#: Digits of an int.
_DIGITS: Final = 256
_EMPTY: Final = GlslNode("block", 0)


class Parser:
    """Parses the tokens of one text."""

    def __init__(self, source: KernelSource, tokens: list[GlslToken]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.unit = UnitTree()
        self.constants: dict[str, float] = {}
        #: Numbers, vectors and matrices in each struct.
        self.parts: dict[str, int] = {}

    # tokens -----------------------------------------------------------------------------------
    @property
    def token(self) -> GlslToken:
        """The next token."""
        return self.tokens[self.at]

    def fail(self, problem: str, advice: str = "", line: int | None = None) -> NoReturn:
        """Raise the error at the next token, or at a line."""
        self.source.fail_at(line or self.token.line or 1, 0, problem, advice)

    def take(self, text: str) -> bool:
        """Skip a token if it is next."""
        if self.token.text == text and self.token.kind != "end":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Skip a token that must be next."""
        if not self.take(text):
            found = self.token.text if self.token.kind != "end" else "the end of the text"
            self.fail(f"expected {text!r}, found {found!r}", "Check the brackets and semicolons.")

    def name(self) -> str:
        """Return the name that must be next."""
        if self.token.kind != "name" or self.token.text in KINDS:
            self.fail(f"expected a name, found {self.token.text!r}", "Write a name here.")
        self.at += 1
        return self.tokens[self.at - 1].text

    def deeper(self) -> None:
        """Count one level of nesting; the caller counts it off."""
        self.depth += 1
        if self.depth > MAX_NESTED:
            problem = f"expressions or blocks are nested more than {MAX_NESTED} deep"
            self.source.fail_at(self.token.line or 1, 0, problem, "Use variables.", MAX_NESTED)
        check_deadline("a shader's text")

    # declarations -----------------------------------------------------------------------------
    def parse(self) -> UnitTree:
        """Return the tree of the whole text."""
        while self.token.kind != "end":
            if not self.take(";"):
                self._outside()
        return self.unit

    def _outside(self) -> None:
        if self.take("precision"):
            while not self.take(";"):
                self.name() if self.token.text not in KINDS else self.take(self.token.text)
            return
        words = self._words()
        if words & {"invariant", "precise"} and self.tokens[self.at + 1].text in ";,":
            while not self.take(";"):
                self.at += 1
            return
        if self.take("struct"):
            kind = self._struct()
            if self.take(";"):
                return
        else:
            kind = self._type()
        if self.tokens[self.at + 1].text == "(" and not words & {"const", "uniform"}:
            self._function(kind)
        else:
            self.unit.variables += self._variables(kind, words)

    def _words(self) -> frozenset[str]:
        found = set()
        while self.token.text in QUALIFIERS:
            found.add(self.token.text)
            self.at += 1
            if "layout" in found and self.take("("):
                while not self.take(")"):
                    self.at += self.token.kind != "end"
                    if self.token.kind == "end":
                        self.expect(")")
        return frozenset(found - PRECISIONS)

    def _type(self) -> GlslType:
        text = self.token.text
        if text in REFUSED:
            self.fail(f"{text} ({REFUSED[text]}) is not supported", "Use floats and sampler2D.")
        if text in self.unit.structs:
            kind = GlslType("struct", struct=text)
        elif text in KINDS:
            kind = KINDS[text]
        else:
            self.fail(f"{text!r} is not a type", "Declare it first, or write float, vec3, mat4.")
        self.at += 1
        return self._array(kind)

    def _array(self, kind: GlslType) -> GlslType:
        if not self.take("["):
            return kind
        length = -1
        if not self.take("]"):
            size = self.evaluate(self.assignment())
            self.expect("]")
            length = int(size) if math.isfinite(size) else 0
            if not 1 <= length <= MAX_LIST:
                self.fail(f"an array has 1 to {MAX_LIST} items, got {length}", "Use a texture.")
        if kind.length or self.token.text == "[":
            self.fail("arrays of arrays are not supported", "Use one array, and compute the index.")
        return kind._replace(length=length)

    def _struct(self) -> GlslType:
        name = self.name()
        self.expect("{")
        members: list[DeclaredName] = []
        while not self.take("}"):
            self._words()
            members += self._variables(self._type(), frozenset())
        parts = sum(self.parts.get(m.kind.struct, 1) for m in members)
        if not 1 <= parts <= MAX_LIST:
            self.fail(f"a struct has 1 to {MAX_LIST} parts, with those in it", "Use less.")
        self.unit.structs[name], self.parts[name] = members, parts
        return GlslType("struct", struct=name)

    def _variables(self, kind: GlslType, words: frozenset[str]) -> list[DeclaredName]:
        """Parse the names of one declaration, with their values."""
        found = []
        while True:
            line = self.token.line
            name = self.name()
            if kind.base == "void":
                self.fail(f"the variable {name!r} is void", "Give it a type.", line)
            own, start = self._array(kind), None
            if self.take("="):
                start = self._initializer()
            if own.length < 0:
                if start is None or start.op not in ("list", "call"):
                    self.fail(f"the array {name!r} has no length", "Write it: a[4].", line)
                own = own._replace(length=len(start.parts))
            made = DeclaredName(name, own, line, words, start)
            if "const" in words and own in (INT, UINT, FLOAT) and start is not None:
                self.constants.pop(name, None)
                if (value := self._constant(start)) is not None:
                    self.constants[name] = value
            found.append(made)
            if not self.take(","):
                break
        self.expect(";")
        return found

    def _initializer(self) -> GlslNode:
        line = self.token.line
        if not self.take("{"):
            return self.assignment()
        items = []
        self.deeper()
        while not self.take("}"):
            items.append(self._initializer())
            if not self.take(","):
                self.expect("}")
                break
        self.depth -= 1
        return GlslNode("list", line, tuple(items))

    def _function(self, kind: GlslType) -> None:
        line, name = self.token.line, self.name()
        self.expect("(")
        params: list[DeclaredName] = []
        while not self.take(")"):
            words = self._words()
            if self.token.text == "void":
                self.at += 1
                continue
            own, at = self._type(), self.token.line
            inner = self.name() if self.token.kind == "name" else f"unnamed{len(params)}"
            params.append(DeclaredName(inner, self._array(own), at, words))
            if not self.take(",") and self.token.text != ")":
                self.expect(")")
        if self.take(";"):
            return  # a prototype
        self.unit.functions.append(GlslFunctionText(name, kind, params, self.block(), line))

    # statements -------------------------------------------------------------------------------
    def block(self) -> GlslNode:
        """Parse statements in braces."""
        line = self.token.line
        self.expect("{")
        found = []
        self.deeper()
        while not self.take("}"):
            if self.token.kind == "end":
                self.expect("}")
            found.append(self.statement())
        self.depth -= 1
        return GlslNode("block", line, tuple(found))

    def statement(self) -> GlslNode:
        """Parse one statement."""
        token = self.token
        special = _STATEMENTS.get(token.text)
        if token.text == "{":
            return self.block()
        if special is not None:
            self.at += 1
            self.deeper()
            made = special(self, token.line)
            self.depth -= 1
            return made
        return self._simple()

    def _simple(self) -> GlslNode:
        """Parse a declaration or an expression, with its semicolon."""
        line = self.token.line
        if self.take(";"):
            return GlslNode("block", line)
        if self.take("struct"):
            kind = self._struct()
            return GlslNode("block", line) if self.take(";") else self._declare(kind, line)
        words = self._words()
        after = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        is_type = self.token.text in KINDS or self.token.text in self.unit.structs
        known = self.token.text in REFUSED
        if words or known or (is_type and (after.kind == "name" or self._is_array_type())):
            return self._declare(self._type(), line, words)
        value = self.expression()
        self.expect(";")
        return GlslNode("expression", line, (value,))

    def _is_array_type(self) -> bool:
        """Return whether ``float[3] a`` is next."""
        at = self.at + 1
        if self.tokens[at].text != "[":
            return False
        while self.tokens[at].text not in ("]", ";") and self.tokens[at].kind != "end":
            at += 1
        return self.tokens[at].text == "]" and self.tokens[at + 1].kind == "name"

    def _declare(self, kind: GlslType, line: int, words: frozenset[str] = frozenset()) -> GlslNode:
        return GlslNode("declare", line, value=self._variables(kind, words))

    def _if(self, line: int) -> GlslNode:
        test = self._condition()
        then = self.statement()
        other = self.statement() if self.take("else") else _EMPTY
        return GlslNode("if", line, (test, then, other))

    def _condition(self) -> GlslNode:
        self.expect("(")
        test = self.expression()
        self.expect(")")
        return test

    def _for(self, line: int) -> GlslNode:
        self.expect("(")
        start = self._simple()
        always = GlslNode("number", line, value=True, kind=BOOL)
        test = always if self.token.text == ";" else self.expression()
        self.expect(";")
        step = _EMPTY if self.token.text == ")" else self.expression()
        self.expect(")")
        return GlslNode("for", line, (start, test, step, self.statement()))

    def _while(self, line: int) -> GlslNode:
        test = self._condition()
        return GlslNode("for", line, (_EMPTY, test, _EMPTY, self.statement()))

    def _do(self, line: int) -> GlslNode:
        body = self.statement()
        self.expect("while")
        test = self._condition()
        self.expect(";")
        return GlslNode("do", line, (test, body))

    def _switch(self, line: int) -> GlslNode:
        """Parse a switch: parts are the value, then (label, block) pairs."""
        parts = [self._condition()]
        self.expect("{")
        while not self.take("}"):
            if self.take("case"):
                parts.append(self.expression())
            else:
                self.expect("default")
                parts.append(_EMPTY)
            self.expect(":")
            body = []
            while self.token.text not in ("case", "default", "}"):
                if self.token.kind == "end":
                    self.expect("}")
                body.append(self.statement())
            parts.append(GlslNode("block", self.token.line, tuple(body)))
        return GlslNode("switch", line, tuple(parts))

    def _return(self, line: int) -> GlslNode:
        parts = () if self.token.text == ";" else (self.expression(),)
        self.expect(";")
        return GlslNode("return", line, parts)

    def _jump(self, line: int) -> GlslNode:
        op = self.tokens[self.at - 1].text
        self.expect(";")
        return GlslNode(op, line)

    # expressions ------------------------------------------------------------------------------
    def expression(self) -> GlslNode:
        """Parse an expression, commas included."""
        left, count = self.assignment(), 0
        while self.take(","):
            count = self._counted(count)
            left = GlslNode("comma", left.line, (left, self.assignment()))
        return left

    def _counted(self, count: int) -> int:
        """Count one more operand, each of which is translated by recursion."""
        if count >= MAX_NESTED:
            self.fail(f"more than {MAX_NESTED} of these stand in a row", "Use variables.")
        return count + 1

    def assignment(self) -> GlslNode:
        """Parse an expression without commas."""
        self.deeper()
        left = self._binary(1)
        line = self.token.line
        if self.take("?"):
            first = self.expression()
            self.expect(":")
            left = GlslNode("choice", line, (left, first, self.assignment()))
        elif self.token.text in _ASSIGN:
            op = self.token.text
            self.at += 1
            left = GlslNode("assign", line, (left, self.assignment()), op)
        self.depth -= 1
        return left

    def _binary(self, level: int) -> GlslNode:
        left, count = self._unary(), 0
        while True:
            token = self.token
            found = _LEVELS.get(token.text, 0) if token.kind == "mark" else 0
            if found < level:
                return left
            count = self._counted(count) if token.text in ("&&", "||") else count
            self.at += 1
            left = GlslNode("binary", token.line, (left, self._binary(found + 1)), token.text)

    def _unary(self) -> GlslNode:
        token = self.token
        if token.text in ("+", "-", "!", "~", "++", "--") and token.kind == "mark":
            self.at += 1
            self.deeper()
            inner = self._unary()
            self.depth -= 1
            if len(token.text) == 2:
                return GlslNode("step", token.line, (inner,), token.text[0], True)
            return GlslNode("unary", token.line, (inner,), token.text)
        return self._postfix(self._primary())

    def _postfix(self, made: GlslNode) -> GlslNode:
        count = 0
        while True:
            line = self.token.line
            if self.token.text in ("[", ".", "++", "--"):
                count = self._counted(count)
            if self.take("["):
                made = GlslNode("index", line, (made, self.expression()))
                self.expect("]")
            elif self.take("."):
                made = GlslNode("member", line, (made,), self.name())
                if made.text == "length" and self.take("("):
                    self.expect(")")
            elif self.token.text in ("++", "--"):
                made = GlslNode("step", line, (made,), self.token.text[0], False)
                self.at += 1
            else:
                return made

    def _primary(self) -> GlslNode:
        token = self.token
        if token.kind == "end":
            self.fail("the text ends in an expression", "Check the brackets and semicolons.")
        self.at += 1
        if token.kind == "number":
            return self._number(token)
        if token.text == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token.text in ("true", "false"):
            return GlslNode("number", token.line, value=token.text == "true", kind=BOOL)
        if token.kind != "name":
            self.at -= 1
            self.fail(f"{token.text!r} cannot be here", "Check the brackets and semicolons.")
        kind = None
        if token.text in KINDS and self.token.text == "[":
            self.at -= 1
            kind = self._type()
        if not self.take("("):
            if token.text in KINDS or token.text in REFUSED:
                self.fail(f"{token.text!r} cannot be here", "Write a value.", token.line)
            return GlslNode("name", token.line, text=token.text)
        args = []
        if self.token.text == "void":
            self.at += 1
        while not self.take(")"):
            args.append(self.assignment())
            if not self.take(",") and self.token.text != ")":
                self.expect(")")
        if kind is not None and kind.length < 0:
            kind = kind._replace(length=len(args))
        return GlslNode("call", token.line, tuple(args), token.text, kind=kind)

    def _number(self, token: GlslToken) -> GlslNode:
        text = token.text.lower()
        digits = text.rstrip("u")
        if digits.isdigit() and len(digits) > _DIGITS:
            self.fail(f"an int has more than {_DIGITS} digits", "Write it shorter.")
        try:  # tokens that ## joined may be anything
            if not (text.startswith("0x") or digits.isdigit()):
                value = float(text.rstrip("lf"))
                return GlslNode("number", token.line, value=value, kind=FLOAT)
            octal = digits[:1] == "0" and digits[1:].isdigit() and not set("89") & set(digits)
            number = int(digits, 8 if octal else 16 if digits.startswith("0x") else 10)
        except ValueError:
            self.fail(f"{token.text!a} is not a number", "Write it with digits.", token.line)
        kind, number = UINT if text.endswith("u") else INT, number % 2**32
        number -= 2**32 * (kind == INT and number >= 2**31)
        return GlslNode("number", token.line, value=number, kind=kind)

    def _constant(self, node: GlslNode) -> float | None:
        """Return the value of an expression of constants; None if it has none."""
        try:
            return evaluate(node, self.constants)
        except (LookupError, ArithmeticError, ValueError, TypeError, RecursionError):
            return None

    def evaluate(self, node: GlslNode) -> float:
        """Return the value of a constant expression."""
        value = self._constant(node)
        if value is None:
            self.fail("this must be a constant", "Write a number.", node.line)
        return value


_STATEMENTS: Final[dict[str, Callable[[Parser, int], GlslNode]]] = {
    "if": Parser._if, "for": Parser._for, "while": Parser._while, "do": Parser._do,
    "switch": Parser._switch, "return": Parser._return, "break": Parser._jump,
    "continue": Parser._jump, "discard": Parser._jump,
}  # fmt: skip
