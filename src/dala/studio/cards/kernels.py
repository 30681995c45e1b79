"""Kernels from text: compiled, with their mistakes and the places of these.

A text of GLSL is translated: an ISF file, or one of Shadertoy's. Others may be kernel files: the
imports of Dala and the decorator ``@kernel`` mean nothing here, and are skipped. Nothing of a text
is executed as Python.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from dala.budget import Limits
from dala.errors import DalaError, KernelSyntaxError, ParameterError
from dala.gpu.compute.call.arguments import number_kinds
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.kernel import Kernel, registered
from dala.gpu.compute.kernels.filter import FilterParam
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.ir import Block, For, If, Program, Value
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.lang.source import from_text
from dala.gpu.compute.passes.program import KernelProgram
from dala.gpu.compute.passes.source import Shader, program_from
from dala.media.filters.declarations import parameters_of
from dala.media.filters.plans import check
from dala.shaders.files import from_text as glsl
from dala.shaders.files import is_glsl
from dala.studio.catalogue.parameters import JsonObject
from dala.studio.limits import StudioLimits

#: Modules whose names need no import in a kernel.
_KNOWN: Final = ("dala", "__future__")
_FUNCTION: Final = re.compile(r"^def\s+(\w+)", re.M)
_PROGRAM: Final = re.compile(r"^@(?:\w+\.)?program\b", re.M)
_WORD: Final = re.compile(r"\w+|\S")
#: What an expression may have that only names things.
_PLAIN: Final = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Tuple, ast.UnaryOp, ast.USub,
    ast.Load,
)  # fmt: skip
#: The line that lets Python read a file as another text than the one that was compiled.
_ENCODING: Final = re.compile(r"(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=]")
_BOUNDS: Final = StudioLimits()
#: The most work of a kernel that needs no limits of its own. On the largest picture of a studio,
#: 64 million pixels, it takes less than their time.
_SHORT: Final = 1024
#: Operations that take longer than an addition, and the work that they count for.
_WORK: Final = {
    "pow": 500, "image": 20, "array": 20, "div": 4, "sqrt": 4, "idiv": 16, "mod": 16,
    **dict.fromkeys(("exp", "log", "sin", "cos", "tan", "atan", "atan2"), 80),
}  # fmt: skip


class _Picture(NamedTuple):
    """A picture of the kind that most kernels get."""

    shape: tuple[int, ...] = (64, 64, 4)
    dtype: str = "u8"


@dataclass(frozen=True)
class Diagnostic:
    """A mistake in a kernel's text: lines and columns from 1, the end exclusive.

    >>> Diagnostic(1, 5, 1, 8, "the name 'foo' is not defined").json()["column"]
    5
    """

    line: int
    column: int
    end_line: int
    end_column: int
    message: str

    def json(self) -> JsonObject:
        """Return it as the protocol has it."""
        return dict(vars(self))


@dataclass(frozen=True)
class CompiledKernel:
    """The kernel of a text, or its mistakes.

    >>> compile_kernel("def half(px: Pixel): return rgba(px.rgb * 0.5, px.a)").diagnostics
    ()
    """

    text: str
    kernel: Shader | None
    diagnostics: tuple[Diagnostic, ...] = ()
    params: tuple[FilterParam, ...] = ()

    def code(self) -> dict[str, str]:
        """Return the generated code: WGSL and LLVM."""
        if self.kernel is None:
            return {"wgsl": "", "llvm": ""}
        made: dict[str, str] = {}
        for target in ("wgsl", "llvm"):
            try:
                made[target] = self.kernel.source(target)
            except DalaError as error:
                made[target] = f"; {error}" if target == "llvm" else f"// {error}"
        return made


@lru_cache(128)
def compile_kernel(text: str, limits: StudioLimits = _BOUNDS) -> CompiledKernel:
    """Compile a kernel's text, with limits on the cost of each run.

    >>> found = compile_kernel("def half(px: Pixel): return rgba(px.rgb * amont, px.a)")
    >>> found.diagnostics[0].column, found.diagnostics[0].end_column
    (43, 48)
    """
    shader = is_glsl(text)
    body, problem = (text, None) if shader else _without_imports(text)
    if problem is not None:
        return CompiledKernel(text, None, (problem,))
    # Leading empty lines are removed before the text is parsed, so lines are counted from there.
    skipped = 0 if shader else len(body) - len(body.lstrip("\n"))
    body = text if shader else body.lstrip("\n")
    if not body.strip():
        message = "there is no kernel yet. Write def name(px: Pixel): return ..."
        return CompiledKernel(text, None, (Diagnostic(1, 1, 1, 1, message),))
    name = "shader" if shader else _name(body)
    try:
        if shader:
            kernel: Shader = _sharing(glsl(text), limits)
        else:
            kernel = _compiled(text, body, name, limits)
        if len(kernel.inputs) > 1:
            message = "a kernel of a chain has one input, the picture. Others cannot be given here."
            raise ParameterError(message)
        missing = next((p.name for p in kernel.params if p.required), "")
        if missing:
            message = f"the parameter {missing!r} needs a default, such as {missing}=1.0."
            raise ParameterError(message)
        check((kernel, {}), name)
    except KernelSyntaxError as error:
        message = f"{error.problem}. {error.advice}" if error.advice else error.problem
        line, column = (error.lineno or 1) + skipped, error.offset or 1
        return CompiledKernel(text, None, (_at(text, line, column, message),))
    except DalaError as error:
        return CompiledKernel(text, None, (_at(text, 1 + skipped, 1, str(error)),))
    params = tuple(_described(p, kernel.doc) for p in parameters_of(kernel))
    return CompiledKernel(text, kernel, (), params)


def _compiled(text: str, body: str, name: str, limits: StudioLimits) -> Shader:
    """Return the kernel or program of a text, with limits where it may take long."""
    source = from_text(body, name)
    if _PROGRAM.search(text):
        return _sharing(program_from(source, registered), limits)
    declaration = declare(source, lookup=registered)
    # A kernel with limits runs alone. One that cannot run away is fused with its neighbors, and
    # stays under the limits of the chain. A list may be longer than its default.
    work, few = math.inf, None
    with suppress(DalaError):  # the check of the kernel reports it
        work = work_of(_program(declaration).body)
    if work > _SHORT or any(p.listed for p in declaration.params):
        # Iterations are counted only where that is needed: it keeps loops from being unrolled.
        most = limits.kernel_iterations if work > limits.kernel_iterations else None
        few = Limits(limits.kernel_time, most, limits.kernel_memory)
    return Kernel(name, declaration, few)


def _sharing(made: KernelProgram, limits: StudioLimits) -> KernelProgram:
    """Return a program whose passes share the time of one kernel."""
    seconds = limits.kernel_time / len(made.passes)
    few = Limits(seconds, limits.kernel_iterations, limits.kernel_memory)
    made.passes = tuple(
        replace(p, kernel=Kernel(p.kernel.name, p.kernel.decl, few)) for p in made.passes
    )
    return made


def work_of(block: Block) -> float:
    """Return the most operations of a program for each pixel, by their weights.

    Those in a loop count as often as it runs; where that is not known, it is infinity.

    >>> made = declare(from_text("def f(px: Pixel): return rgba(px.rgb * 0.5, px.a)", "f"))
    >>> work_of(_program(made).body) < 50
    True
    """
    work = 0.0
    for s in block.body:
        work += _WORK.get(s.op, 1) if isinstance(s, Value) else 1
        if isinstance(s, If):
            work += work_of(s.then) + work_of(s.otherwise)
        elif isinstance(s, For):
            if s.start.op != "const" or s.stop.op != "const":
                return math.inf
            turns = len(range(int(s.start.attr), int(s.stop.attr), s.step))
            work += turns * (1 + work_of(s.body)) if turns else 0
    return work


def _program(declaration: KernelDecl) -> Program:
    """Return the program of a kernel for a picture of bytes."""
    like, numbers = _Picture(), number_kinds(declaration, {})
    inputs = [like] * len(declaration.args)
    return program_for(declaration, inputs, like.shape, like.dtype, numbers)[0]


def plain_text(text: str) -> str:
    """Return a kernel's text without imports and decorators, as ``kernel(text)`` takes it.

    >>> plain_text("from dala.gpu.compute.language import *\\n\\n@kernel\\ndef f(x): return x")
    'def f(x): return x'
    """
    if is_glsl(text):
        return text
    body = _without_imports(text)[0].strip("\n")
    return re.sub(r"\n{3,}", "\n\n", body)


def _described(p: FilterParam, doc: str) -> FilterParam:
    """Return a parameter with its line of the docstring's ``Args:`` section, if there is one."""
    found = re.search(rf"^\s*{re.escape(p.name)}(?: \(([^)]*)\))?: (.+)$", doc, re.M)
    if found is None:
        return p
    return FilterParam(**{**vars(p), "unit": found[1] or "", "doc": found[2].strip()})


def _name(body: str) -> str:
    """Return the name of the last function."""
    found = _FUNCTION.findall(body)
    return found[-1] if found else "kernel"


def _without_imports(text: str) -> tuple[str, Diagnostic | None]:
    """Return the text with imports, decorators and module docstrings blank; or the refused part."""
    body = text.replace("\r\n", "\n")
    if _ENCODING.match(body.replace("\r", "\n")):
        return body, Diagnostic(1, 1, 1, 2, "a kernel is UTF-8. Remove the line with its encoding.")
    try:
        tree = ast.parse(body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return body, None  # the kernel parser reports it
    lines = body.split("\n")
    blank: list[ast.stmt | ast.expr] = []
    code: set[int] = set()  # lines that are left to the kernel's parser
    for item in tree.body:
        problem = None
        if isinstance(item, ast.Import | ast.ImportFrom):
            problem = _refused(item, text)
            blank.append(item)
        elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
            blank.append(item)
        else:
            code.update(range(item.lineno, (item.end_lineno or item.lineno) + 1))
            if isinstance(item, ast.FunctionDef):
                blank += item.decorator_list
                problem = _runs_code(item, text)
        if problem is not None:
            return body, problem
    for node in blank:
        covered = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if code.isdisjoint(covered):
            lines[covered.start - 1 : covered.stop - 1] = [""] * len(covered)
    return "\n".join(lines), None


def _runs_code(item: ast.FunctionDef, text: str) -> Diagnostic | None:
    """Refuse code that Python would run when a saved kernel is imported: decorators and types."""
    for decorator in item.decorator_list:
        called = isinstance(decorator, ast.Call)
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        given = [*decorator.args, *(k.value for k in decorator.keywords)] if called else []  # type: ignore[attr-defined]
        known = isinstance(name, ast.Name) and name.id in ("kernel", "program")
        if not (known and all(map(_is_plain, given))):
            message = "the only decorators are @kernel and @program. Remove the line."
            return _at(text, decorator.lineno, decorator.col_offset + 1, message)
    if item.returns is not None and not _is_plain(item.returns):
        message = "a type must be a name, such as Pixel. Remove it."
        return _at(text, item.returns.lineno, item.returns.col_offset + 1, message)
    return None


def _is_plain(expression: ast.expr) -> bool:
    """Return whether an expression has nothing but names and values."""
    return all(isinstance(node, _PLAIN) for node in ast.walk(expression))


def _refused(item: ast.Import | ast.ImportFrom, text: str) -> Diagnostic | None:
    names = [a.name for a in item.names] if isinstance(item, ast.Import) else [item.module or ""]
    renamed = any(a.asname == "kernel" for a in item.names)  # what would be called as a decorator
    if all(name.partition(".")[0] in _KNOWN for name in names) and not renamed:
        return None
    message = "a kernel can only compute, and cannot import. Remove the line."
    return _at(text, item.lineno, item.col_offset + 1, message)


def _at(text: str, line: int, column: int, message: str) -> Diagnostic:
    """Return a diagnostic that covers the expression or the word at a position."""
    lines = text.replace("\r\n", "\n").split("\n")
    line = min(max(line, 1), len(lines))
    end = _expression_end(text, line, column)
    if end is not None:
        return Diagnostic(line, column, *end, message)
    shown = lines[line - 1]
    column = min(max(column, 1), len(shown) + 1)
    found = _WORD.match(shown, column - 1)
    return Diagnostic(line, column, line, found.end() + 1 if found else len(shown) + 1, message)


def _expression_end(text: str, line: int, column: int) -> tuple[int, int] | None:
    """Return where the largest expression that starts at a position ends."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    lines: Sequence[str] = text.replace("\r\n", "\n").split("\n")

    def characters(row: int, offset: int) -> int:
        return len(lines[row - 1].encode()[:offset].decode(errors="ignore")) + 1

    best: tuple[int, int] | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or node.lineno != line:
            continue
        if characters(line, node.col_offset) != column or node.end_lineno is None:
            continue
        end = node.end_lineno, characters(node.end_lineno, node.end_col_offset or 0)
        best = end if best is None else max(best, end)
    return best
