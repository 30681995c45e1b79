"""Tokens of GLSL, and the preprocessor."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from dala.budget import check_deadline
from dala.gpu.compute.lang.limits import MAX_SOURCE
from dala.gpu.compute.lang.source import KernelSource

#: Tokens after all macros are expanded.
MAX_TOKENS: Final = 100_000
#: Calls of macros in the arguments of macros.
MAX_CALLS: Final = 64

_TOKEN: Final = re.compile(
    r"(?P<number>0[xX][0-9a-fA-F]+[uU]?"
    r"|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?:lf|LF|[fF])?|\d+[eE][+-]?\d+[fF]?|\d+[uUfF]?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark><<=|>>=|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\^\^|##|[-+*/%&|^]=|[-+*/%<>=!~&|^?:;,.(){}\[\]#])"
    r"|(?P<space>[ \t\r\f\v]+)",
    re.ASCII,
)
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?(\*/|\Z)", re.DOTALL)


class GlslToken(NamedTuple):
    """A token, its line, and the macros that may not be expanded in it."""

    kind: str
    text: str
    line: int
    hidden: frozenset[str] = frozenset()


class Macro(NamedTuple):
    """A macro; ``names`` is None if it takes no arguments."""

    names: tuple[str, ...] | None
    body: tuple[GlslToken, ...]


class Preprocessor:
    """Turns text into tokens: comments, conditions and macros are gone.

    ``evaluate`` computes the condition of ``#if`` from its tokens.
    """

    def __init__(
        self, source: KernelSource, evaluate: Callable[[list[GlslToken]], float], first: int = 1
    ) -> None:
        self.source = source
        self.evaluate = evaluate
        self.first = first
        self.macros: dict[str, Macro] = {}
        for name, value in (("GL_ES", "1"), ("__VERSION__", "300")):
            self.macros[name] = Macro(None, (GlslToken("number", value, 0),))
        place = GlslToken("name", "isf_FragNormCoord", 0)  # its name in ISF 1
        self.macros["vv_FragNormCoord"] = Macro(None, (place,))
        self.found: list[GlslToken] = []
        self.count = 0
        #: Calls of macros in the arguments of others.
        self.depth = 0

    def run(self, text: str) -> list[GlslToken]:
        """Return the tokens of a text."""
        if len(text) > MAX_SOURCE:
            problem = f"the source has {len(text)} characters; the limit is {MAX_SOURCE}"
            self.source.fail_at(1, 0, problem, "Split it into several shaders.", limit=MAX_SOURCE)
        #: For each open #if: whether its lines count now, and whether a branch was taken.
        conditions: list[tuple[bool, bool]] = []
        waiting: list[GlslToken] = []
        for line, words in self._lines(text):
            if not words or words[0].text != "#":
                if all(active for active, _ in conditions):
                    waiting += words
                continue
            self.found += self.expand(waiting)
            waiting = []
            self._directive(words[1:], line, conditions)
        if conditions:
            self.source.fail_at(len(text.splitlines()), 0, "an #if has no #endif", "Add it.")
        return self.found + self.expand(waiting)

    def _lines(self, text: str) -> list[tuple[int, list[GlslToken]]]:
        """Return the tokens of each line; lines that end in a backslash go on."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")

        def spaces(found: re.Match[str]) -> str:
            if found[0].startswith("/*") and not found[1]:
                line = text.count("\n", 0, found.start()) + 1
                self.source.fail_at(line, 0, "a comment has no end", "Add */.")
            return " " + "\n" * found[0].count("\n")

        lines: list[tuple[int, list[GlslToken]]] = []
        goes_on = False
        for number, line in enumerate(_COMMENT.sub(spaces, text).split("\n"), self.first):
            goes = line.endswith("\\")
            words = self._words(line[:-1] if goes else line, number)
            if goes_on:
                lines[-1][1].extend(words)
            else:
                lines.append((number, words))
            goes_on = goes
        return lines

    def _words(self, line: str, number: int) -> list[GlslToken]:
        found: list[GlslToken] = []
        at = 0
        directive = line.lstrip().startswith("#")
        while at < len(line):
            match = _TOKEN.match(line, at)
            if match is None:  # refused if the line counts
                found.append(GlslToken("odd", line[at], number))
                at += 1
                continue
            at = match.end()
            kind = match.lastgroup or ""
            if kind != "space" or (directive and found):
                found.append(GlslToken(kind, match[0], number))
        return found

    def _directive(
        self, words: list[GlslToken], line: int, conditions: list[tuple[bool, bool]]
    ) -> None:
        while words and words[0].kind == "space":
            words = words[1:]
        name = words[0].text if words else ""
        rest = words[1:]
        bare = [t for t in rest if t.kind != "space"]
        active = all(a for a, _ in conditions)
        if name in ("if", "ifdef", "ifndef"):
            holds = active and self._holds(name, bare, line)
            conditions.append((holds, holds or not active))
        elif name in ("elif", "else", "endif"):
            if not conditions:
                self.source.fail_at(line, 0, f"#{name} without #if", "Remove it.")
            _, taken = conditions.pop()
            if name != "endif":
                around = all(a for a, _ in conditions)
                holds = around and not taken and (name == "else" or self._holds("if", bare, line))
                conditions.append((holds, taken or holds))
        elif active:
            self._plain(name, rest, bare, line)

    def _holds(self, name: str, words: list[GlslToken], line: int) -> bool:
        if name != "if":
            if not words:
                self.source.fail_at(line, 0, f"#{name} takes a name", "Write the macro's name.")
            return (words[0].text in self.macros) == (name == "ifdef")
        ready: list[GlslToken] = []
        at = 0
        while at < len(words):
            if words[at].text == "defined":
                inner = [t for t in words[at + 1 : at + 4] if t.kind == "name"][:1]
                known = bool(inner) and inner[0].text in self.macros
                ready.append(GlslToken("number", str(int(known)), line))
                paren = at + 1 < len(words) and words[at + 1].text == "("
                at += 4 if paren else 2
            else:
                ready.append(words[at])
                at += 1
        numbers = [
            t._replace(kind="number", text="0") if t.kind == "name" else t
            for t in self.expand(ready)
        ]
        return bool(self.evaluate([*numbers, GlslToken("end", "", line)]))

    def _plain(self, name: str, rest: list[GlslToken], bare: list[GlslToken], line: int) -> None:
        if name == "define" and bare and bare[0].kind == "name":
            self._define(rest, line)
        elif name == "undef" and bare:
            self.macros.pop(bare[0].text, None)
        elif name == "error":
            self.source.fail_at(line, 0, "#error: " + " ".join(t.text for t in bare))
        elif name not in ("version", "extension", "pragma", "line", ""):
            advice = "Put its text here." if name == "include" else "Remove it."
            self.source.fail_at(line, 0, f"#{name} is not supported", advice)

    def _define(self, rest: list[GlslToken], line: int) -> None:
        while rest[0].kind == "space":
            rest = rest[1:]
        name, rest = rest[0].text, rest[1:]
        names: tuple[str, ...] | None = None
        if rest and rest[0].text == "(":
            ends = [i for i, t in enumerate(rest) if t.text == ")"]
            if not ends:
                self.source.fail_at(line, 0, f"the macro {name} has no ')'", "Add it.")
            names = tuple(t.text for t in rest[: ends[0]] if t.kind == "name")
            rest = rest[ends[0] + 1 :]
        self.macros[name] = Macro(names, tuple(t for t in rest if t.kind != "space"))

    # macros -----------------------------------------------------------------------------------
    def expand(self, tokens: list[GlslToken]) -> list[GlslToken]:
        """Return tokens with all macros replaced."""
        todo, done = tokens[::-1], []
        while todo:
            token = todo.pop()
            self.count += 1
            if self.count > MAX_TOKENS:
                problem = f"the text has more than {MAX_TOKENS:,} tokens, with macros expanded"
                self.source.fail_at(token.line, 0, problem, "Write functions.", limit=MAX_TOKENS)
            if token.kind == "odd":
                problem = f"the character {token.text!a} is not part of GLSL"
                self.source.fail_at(token.line, 0, problem, "Remove it.")
            if not self.count % 256:
                check_deadline("a shader's text")
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if token.text == "__LINE__":
                token = token._replace(kind="number", text=str(token.line))
            if macro is None or token.text in token.hidden:
                done.append(token)
                continue
            given: dict[str, list[GlslToken]] = {}
            if macro.names is not None:
                if not todo or todo[-1].text != "(":
                    done.append(token)
                    continue
                given = self._arguments(token, macro, todo)
            made = len(todo) + sum(len(given.get(t.text, (t,))) for t in macro.body)
            if made > MAX_TOKENS:
                problem = f"macros make more than {MAX_TOKENS:,} tokens"
                self.source.fail_at(token.line, 0, problem, "Write functions.", limit=MAX_TOKENS)
            hidden = token.hidden | {token.text}
            todo += [
                t._replace(line=token.line, hidden=t.hidden | hidden if t.hidden else hidden)
                for t in _replaced(macro, given)
            ][::-1]
        return done

    def _arguments(
        self, call: GlslToken, macro: Macro, todo: list[GlslToken]
    ) -> dict[str, list[GlslToken]]:
        parts: list[list[GlslToken]] = [[]]
        depth = int(bool(todo.pop()))  # the opening bracket
        while todo and depth:
            token = todo.pop()
            depth += (token.text in "([{") - (token.text in ")]}")
            if token.text == "," and depth == 1:
                parts.append([])
            elif depth:
                parts[-1].append(token)
        if depth:
            self.source.fail_at(call.line, 0, f"the macro {call.text} has no ')'", "Add it.")
        names = macro.names or ()
        if len(parts) != len(names) and (names or parts != [[]]):
            problem = f"the macro {call.text} takes {len(names)} arguments, got {len(parts)}"
            self.source.fail_at(call.line, 0, problem, "Pass each.")
        self.depth += 1
        if self.depth > MAX_CALLS:
            problem = f"macros are called in macros more than {MAX_CALLS} deep"
            self.source.fail_at(call.line, 0, problem, "Write functions.", limit=MAX_CALLS)
        given = dict(zip(names, map(self.expand, parts), strict=False))
        self.depth -= 1
        return given


def _replaced(macro: Macro, given: dict[str, list[GlslToken]]) -> list[GlslToken]:
    """Return a macro's body with its arguments in place, and tokens around ``##`` joined."""
    found: list[GlslToken] = []
    joins = False
    for token in macro.body:
        if token.text == "##":
            joins = bool(found)
            continue
        new = list(given.get(token.text, [token])) if token.kind == "name" else [token]
        if joins and new:
            found[-1] = found[-1]._replace(text=found[-1].text + new.pop(0).text)
        found += new
        joins = False
    return found
