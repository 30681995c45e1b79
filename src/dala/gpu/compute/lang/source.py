"""Source text of kernels: parsing, and syntax errors that show the line."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from dala.errors import KernelSyntaxError, KernelTooLarge, printable
from dala.gpu.compute.lang.library.habits import advice_for_line
from dala.gpu.compute.lang.limits import MAX_DEPTH, MAX_SOURCE


@dataclass(frozen=True)
class KernelSource:
    """The text of a kernel, with its name, file and first line number."""

    text: str
    kernel: str
    filename: str = "<kernel>"
    first_line: int = 1

    @property
    def python(self) -> str:
        """The text in the kernel language, which is this one, unless it is a translation."""
        return self.text

    def fail(
        self, node: ast.AST | None, problem: str, advice: str = "", limit: int | None = None
    ) -> NoReturn:
        """Raise KernelSyntaxError at a node of this source; KernelTooLarge if it names a limit."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        self.fail_at(line, column, problem, advice, limit)

    def fail_at(
        self, line: int, column: int, problem: str, advice: str = "", limit: int | None = None
    ) -> NoReturn:
        """Raise the error of :meth:`fail` at a line (from 1) and a column (from 0)."""
        lines = self.text.splitlines()
        shown = lines[line - 1] if 0 < line <= len(lines) else ""
        # ast counts columns in UTF-8 bytes; the caret is placed by characters.
        shown = printable(shown)
        column = len(shown.encode()[:column].decode(errors="ignore"))
        error = KernelSyntaxError if limit is None else KernelTooLarge
        raise error(
            printable(problem),
            advice=advice,
            kernel=self.kernel,
            filename=self.filename,
            lineno=line + self.first_line - 1,
            column=column,
            line=shown,
        ) from None

    def parse(self) -> ast.Module:
        """Return the syntax tree, or raise KernelSyntaxError. Nothing is executed."""
        if len(self.text) > MAX_SOURCE:
            self.fail_at(
                1,
                0,
                f"the source has {len(self.text)} characters; the limit is {MAX_SOURCE}",
                "Split it into several kernels that call one another.",
                limit=MAX_SOURCE,
            )
        self._check_text()
        try:
            tree = ast.parse(self.text)
        except SyntaxError as error:
            lines, number = self.text.splitlines(), error.lineno or 1
            habit = advice_for_line(lines[number - 1][:500]) if number <= len(lines) else None
            if habit is not None:
                self.fail_at(number, max((error.offset or 1) - 1, 0), *habit)
            self.fail_at(
                error.lineno or 1,
                max((error.offset or 1) - 1, 0),
                f"not valid Python: {error.msg}",
                "A kernel is one Python function: def name(x): return ...",
            )
        except (ValueError, MemoryError, RecursionError) as error:
            self.fail_at(1, 0, f"the source cannot be parsed: {str(error) or type(error).__name__}")
        self.check_depth(tree)
        return tree

    def _check_text(self) -> None:
        # Check before parsing: some Python versions crash on deeply nested brackets.
        depth = 0
        for number, line in enumerate(self.text.splitlines(), 1):
            for column, char in enumerate(line):
                if "\ud800" <= char <= "\udfff":
                    self.fail_at(
                        number,
                        len(line[:column].encode()),
                        f"the character {char!a} is half of a pair and stands for nothing",
                        "Decode the text again from its bytes, with the encoding they are in.",
                    )
                depth += (char in "([{") - (char in ")]}")
                if depth > MAX_DEPTH:
                    problem = "brackets are nested too deeply"
                    self.fail_at(number, column, problem, _SPLIT, MAX_DEPTH)

    def check_depth(self, tree: ast.AST) -> None:
        """Raise KernelSyntaxError for a tree in which recursion would be too deep."""
        level: list[ast.AST] = [tree]
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        place = next((n for n in level if hasattr(n, "lineno")), None)
        self.fail(place, "the expression or block is nested too deeply", _SPLIT, MAX_DEPTH)


_SPLIT = "Split it into several assignments."


def from_text(text: str, kernel: str) -> KernelSource:
    """Return the source of a kernel given as text."""
    return KernelSource(textwrap.dedent(text.replace("\r\n", "\n")).strip("\n"), kernel)


def from_function(function: Callable[..., object], kernel: str) -> KernelSource:
    """Return the source of a Python function, read from its file."""
    code = getattr(function, "__code__", None)
    try:
        lines, first = inspect.getsourcelines(function)
        filename = inspect.getsourcefile(function) or "<kernel>"
    except (OSError, TypeError):
        from dala.gpu.compute.lang.library.typed import source_of  # few functions are in no file

        found = source_of(code) if code is not None else None
        if found is None or code is None:
            raise KernelSyntaxError(
                "the source of this function is not available here (Python 3.13 keeps it)",
                advice=f"Pass the text instead: {kernel} = kernel('def {kernel}(x): return ...'); "
                "or write the function to a file, and import it.",
                kernel=kernel,
            ) from None
        (lines, first), filename = found, code.co_filename
    return KernelSource(textwrap.dedent("".join(lines)), kernel, filename, first)
