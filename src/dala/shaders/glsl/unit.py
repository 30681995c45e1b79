"""Translate one text of GLSL: its functions, its variables, and how they are used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dala.budget import check_deadline
from dala.gpu.compute.lang.limits import MAX_CALLS_DEEP
from dala.gpu.compute.lang.source import KernelSource
from dala.shaders.glsl.builtin import DERIVATIVES, HELPERS
from dala.shaders.glsl.expressions import IMAGE
from dala.shaders.glsl.parse import Parser
from dala.shaders.glsl.statements import GlslWriter, root
from dala.shaders.glsl.terms import PLACES, Expr, GlslFunction, GlslVariable, leaves, zero
from dala.shaders.glsl.tokens import GlslToken, Preprocessor
from dala.shaders.glsl.tree import BOOL, VEC4, DeclaredName, GlslNode, GlslType, UnitTree, walk

#: Characters of a translation.
MAX_MADE: Final = 1_000_000
#: Derivatives of one shader.
MAX_SITES: Final = 64


@dataclass(frozen=True)
class GlslSource(KernelSource):
    """The text of a shader; ``made`` is its translation, of whose lines ``places`` has theirs."""

    made: str = ""
    places: tuple[int, ...] = ()

    @property
    def python(self) -> str:
        """The translation."""
        return self.made

    def parse(self) -> ast.Module:
        """Return the syntax tree of the translation, with the lines of the author's text."""
        try:
            tree = ast.parse(self.made)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            line = getattr(error, "lineno", None) or 1
            place = self.places[min(line, len(self.places)) - 1]
            self.fail_at(place, 0, f"this cannot be translated: {error}", "Write it simpler.")
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword):
                node.lineno = self.places[node.lineno - 1]
                node.col_offset = 0
        self.check_depth(tree)
        return tree


def parsed(source: KernelSource, text: str) -> UnitTree:
    """Return the tree of a text."""

    def condition(tokens: list[GlslToken]) -> float:
        parser = Parser(source, [*tokens, tokens[-1]])
        value = parser.evaluate(parser.expression())
        if parser.token.kind != "end":
            parser.fail(f"{parser.token.text!r} cannot be in this condition", "Check it.")
        return value

    tokens = Preprocessor(source, condition).run(text)
    end = GlslToken("end", "", tokens[-1].line if tokens else 1)
    return Parser(source, [*tokens, end, end]).parse()


class Unit:
    """Translates one text. ``outside`` are the variables that it is given, with their types."""

    def __init__(
        self,
        source: KernelSource,
        tree: UnitTree,
        outside: Mapping[str, GlslType],
        values: Mapping[str, float],
        here: Iterable[str] = (),
        mark: str = "",
        edges: Mapping[str, str] = {},
        levels: bool = False,
    ) -> None:
        self.source = source
        self.tree = tree
        self.mark = mark
        self.levels = levels
        derives = any(n.text in DERIVATIVES for f in tree.functions for n in walk(f.body))
        self.here = frozenset(() if derives else here)
        self.edges = {f"g_{name}": edge for name, edge in edges.items()}
        #: The number of derivatives, each call of a function with some counted.
        self.sites = 0
        #: Characters of the translated functions.
        self.written = 0
        self.helpers: set[str] = set()
        #: Images that are read, by their names in the translation.
        self.used: set[str] = set()
        self.globals: dict[str, GlslVariable] = {}
        self.functions: dict[str, list[GlslFunction]] = {}
        #: Functions as (indent, text, line), those that are called first.
        self.done: list[tuple[int, str, int]] = []
        self.open: list[GlslFunction] = []
        self.known: set[GlslFunction] = set()
        for name, kind in outside.items():
            self.globals[name] = GlslVariable((f"g_{name}",), kind, True, values.get(name))
        self.globals["discard"] = GlslVariable(("g_discard",), BOOL)
        for name in "abs":
            self.globals[f"%{name}"] = GlslVariable((f"g_{name}",), VEC4, fixed=True)
        self.globals[PLACES] = GlslVariable(("g_p",), VEC4)
        self.own = [v for v in tree.variables if v.name not in outside]
        for v in self.own:
            if "uniform" in v.words:
                problem = f"the uniform {v.name!r} is not an input of this shader"
                source.fail_at(v.line, 0, problem, "Declare it among the inputs.")
            names = tuple(f"g{mark}_{v.name}{end}" for end, _ in leaves(v.kind, tree.structs))
            self.globals[v.name] = GlslVariable(names, v.kind, "const" in v.words)
        for count, text in enumerate(tree.functions):
            made = GlslFunction(text, f"f{mark}{count}_{text.name}", [], [])
            self.functions.setdefault(text.name, []).append(made)
        self.start = GlslWriter(self)
        starts = (n for v in self.own if v.start is not None for n in walk(v.start))
        early = any(n.op == "call" and n.text in self.functions for n in starts)
        if early:
            self._uses()
        for v in self.own:
            self._begin(v)
        if not early:  # the values of constants are known
            self._uses()

    def _begin(self, v: DeclaredName) -> None:
        """Write the first value of a variable, or keep that of a constant."""
        writer, found = self.start, self.globals[v.name]
        writer.line = v.line
        made = writer.started(v)
        if made is not None and made.value is not None and "const" in v.words:
            found.value = made.value
        elif made is not None:
            writer.store(Expr(found.texts, v.kind), made)
        elif not v.words & {"in", "varying"} or "out" in v.words:
            for name, (_, leaf) in zip(found.texts, leaves(v.kind, self.tree.structs), strict=True):
                writer.emit(f"{name} = {zero(leaf)}")

    # uses -------------------------------------------------------------------------------------
    def assigned(self, node: GlslNode) -> set[str]:
        """Return names that are assigned in a tree, those outside it by calls too."""
        found = set()
        for n in walk(node):
            if n.op in ("assign", "step"):
                found.add(root(n.parts[0]).text)
            elif n.op == "discard":
                found.add("discard")
            elif n.op == "call":
                for f in self.functions.get(n.text, []):
                    found.update(f.writes)
                    for param, part in zip(f.text.params, n.parts, strict=False):
                        if param.words & {"out", "inout"}:
                            found.add(root(part).text)
        return found

    def _uses(self) -> None:
        """Find the variables outside that each function reads and writes, through calls too."""
        everything = [f for same in self.functions.values() for f in same]
        order = [name for name, v in self.globals.items() if v.value is None]
        used: dict[GlslFunction, tuple[set[str], set[str], list[GlslFunction]]] = {}
        for f in everything:
            nodes, writes = walk(f.text.body), self.assigned(f.text.body)
            calls = {n.text for n in nodes if n.op == "call"} & set(self.functions)
            names = {n.text for n in nodes if n.op == "name"} | writes
            if any(n.op == "call" and n.text in DERIVATIVES for n in nodes):
                names |= {"%a", "%b", "%s", PLACES}
                writes.add(PLACES)
            if any(n.text.startswith("IMG_THIS") for n in nodes):
                names.add("isf_FragNormCoord")
            names |= {found[1] for n in names if (found := IMAGE.fullmatch(n))}
            used[f] = names, writes, [g for name in calls for g in self.functions[name]]
        changed = True
        while changed:
            changed = False
            check_deadline("a shader's text")
            for names, writes, callees in used.values():
                size = len(names) + len(writes)
                for g in callees:
                    names |= used[g][0] & set(order)
                    writes |= used[g][1] & set(order)
                changed = changed or len(names) + len(writes) != size
        for f, (names, writes, _) in used.items():
            f.reads = [n for n in order if n in names]
            f.writes = [n for n in order if n in writes and not self.globals[n].fixed]

    def heads(self, names: Iterable[str]) -> list[str]:
        """Return variables outside as parameters of a function."""
        found: list[str] = []
        for name in names:
            v = self.globals[name]
            found += [f"{t}: Image" if v.kind.base == "sampler" else t for t in v.texts]
        return found

    def site(self, node: GlslNode) -> int:
        """Return the number of another derivative."""
        self.sites += 1
        if self.sites > MAX_SITES:
            problem = f"there are more than {MAX_SITES} derivatives, with calls counted"
            self.source.fail_at(node.line, 0, problem, "Use fewer.", limit=MAX_SITES)
        return self.sites - 1

    def need(self, function: GlslFunction, node: GlslNode) -> GlslFunction:
        """Translate a function, and before it every one that it calls; return the one to call.

        A function with derivatives is translated for each call, since each has values of its own.
        """
        if function in self.known and function not in self.open:
            return function
        if function in self.open or len(self.open) >= MAX_CALLS_DEEP:
            problem = f"{function.text.name} is called recursively or too deeply"
            self.source.fail_at(node.line, 0, problem, "Use a loop.")
        if PLACES in function.writes:
            name = f"{function.name}_{self.sites}_{len(self.done)}"
            made = replace(function, name=name)
        else:
            self.known.add(function)
            made = function
        self.open.append(function)
        writer = GlslWriter(self, made)
        writer.write()
        self.open.pop()
        self.done += writer.lines
        self.written += sum(len(text) for _, text, _ in writer.lines)
        if self.written > MAX_MADE:
            problem = "the functions are too long, with the numbers of their arrays written out"
            self.source.fail_at(function.text.line, 0, problem, "Split them.", limit=MAX_MADE)
        return made

    def run(self, name: str = "main") -> list[tuple[int, str, int]]:
        """Return the lines that set the variables and call the main function."""
        found = self.functions.get(name)
        if found is None:
            self.source.fail_at(1, 0, f"there is no function {name}()", f"Write void {name}().")
        self.start.emit(f"{self.globals['discard'].texts[0]} = False")
        self.start.effect(GlslNode("call", found[-1].text.line, text=name))
        return self.start.lines


def helper_lines(names: Iterable[str]) -> list[tuple[int, str, int]]:
    """Return the functions that translations need, as lines."""
    text = "".join(HELPERS[name] for name in sorted(names))
    return [(0, line, 1) for line in text.splitlines()]
