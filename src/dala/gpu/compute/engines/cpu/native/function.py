"""The ``@native`` decorator, and the source, syntax tree and parameters of a native function."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar, overload

from dala.errors import KernelSyntaxError
from dala.forks import cached_property

if TYPE_CHECKING:  # ast is imported only when a function is parsed
    import ast

    from dala.gpu.compute.engines.cpu.native.types import Term


class NotCacheable(Exception):
    """Raised if the sources or names that code depends on cannot be identified reliably."""


_digests: dict[str, str] = {}


def file_digest(path: str, *, again: bool = False) -> str:
    """Return the digest of a source file as this process first read it.

    Syntax trees are kept, so code may be compiled from an earlier state of the file. ``again``
    raises NotCacheable if the file changed since.
    """
    known = _digests.get(path)
    if known is None or again:
        try:
            with open(path, "rb") as file:
                found = hashlib.sha256(file.read()).hexdigest()
        except (OSError, ValueError):
            raise NotCacheable from None
        known = _digests.setdefault(path, found)
        if known != found:
            raise NotCacheable
    return known


@dataclass(eq=False, repr=False)
class NativeFunction:
    """A function of native code: parsed when it is compiled, never executed by Python.

    Args:
        function: the Python function.
        fast: fuse float products into the sums that they are terms of.
        aliasing: whether written arrays of a call may overlap with others.
        inline: False keeps a large function with several callers out of line.
    """

    function: Callable[..., object]
    _: KW_ONLY
    fast: bool = False
    aliasing: bool = False
    inline: bool = True

    def __post_init__(self) -> None:
        self.name: str = self.function.__name__
        self.__name__, self.__doc__ = self.name, self.function.__doc__

    def __call__(self, *args: Term, **statics: Term) -> Term:
        """Raise TypeError: only native code can call a native function."""
        raise TypeError(
            f"{self.name} is native code. Compile it: compile_native({self.name}, ...) returns a "
            "function that Python can call."
        )

    def __repr__(self) -> str:
        return f"<native {self.function.__module__}.{self.name}>"

    @cached_property
    def _source(self) -> tuple[list[str], int, str]:
        import inspect
        import textwrap

        with contextlib.suppress(NotCacheable):  # taken before the file is read
            file_digest(self.function.__code__.co_filename)
        try:
            lines, first = inspect.getsourcelines(self.function)
            filename = inspect.getsourcefile(self.function) or "<native>"
        except (OSError, TypeError):
            raise KernelSyntaxError(
                "the source of this function is not available",
                advice="Define native functions in a file.",
                kernel=self.name,
            ) from None
        return textwrap.dedent("".join(lines)).splitlines(), first, filename

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The syntax tree of the definition."""
        import ast

        node = ast.parse("\n".join(self._source[0])).body[0]
        if not isinstance(node, ast.FunctionDef):
            self.fail(node, "native code must be a plain function", "Use def name(...): ...")
        a = node.args
        if a.vararg or a.kwarg or a.defaults:
            self.fail(
                node,
                "a native function cannot have *args, **kwargs or default values",
                "Name every argument. Keyword-only arguments are compile-time constants.",
            )
        return node

    @cached_property
    def params(self) -> list[ast.arg]:
        """The run-time arguments."""
        a = self.tree.args
        return [*a.posonlyargs, *a.args]

    @cached_property
    def statics(self) -> dict[str, ast.expr | None]:
        """The compile-time arguments, with their default expressions if any.

        Type variables in the annotations of arguments are such arguments too.
        """
        import ast

        a, known = self.tree.args, self.function.__globals__
        given = {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)}
        nodes = [n for p in self.params if p.annotation for n in ast.walk(p.annotation)]
        names = [n.id for n in nodes if isinstance(n, ast.Name)]
        return dict.fromkeys(n for n in names if isinstance(known.get(n), TypeVar)) | given

    def used_names(self) -> list[str]:
        """Return all names in the definition, including those in string annotations."""
        import ast

        tree = self.tree
        parts = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs, *tree.body]
        nodes = [n for part in (*parts, tree.returns) if part for n in ast.walk(part)]
        found = {n.id for n in nodes if isinstance(n, ast.Name)}
        types = [getattr(n, "annotation", None) for n in nodes]
        for kind in (*types, tree.returns):
            for part in ast.walk(kind) if kind is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found.update(re.findall(r"[^\W\d]\w*", part.value))
        return sorted(found)

    @cached_property
    def outside(self) -> dict[str, Term]:
        """Variables of the enclosing functions. Module globals are looked up when used."""
        cells = self.function.__closure__ or ()
        names = self.function.__code__.co_freevars
        return {n: c.cell_contents for n, c in zip(names, cells, strict=True)}

    def line(self, node: ast.AST) -> int:
        """Return the line of a node in its file."""
        return int(getattr(node, "lineno", 1)) + self._source[1] - 1

    def fail(self, node: ast.AST, problem: str, advice: str = "") -> NoReturn:
        """Raise KernelSyntaxError with the source line of a node."""
        lines, first, filename = self._source
        number = int(getattr(node, "lineno", 1))
        raise KernelSyntaxError(
            f"{problem} ({filename})",
            advice=advice,
            kernel=self.name,
            filename=filename,
            lineno=number + first - 1,
            column=int(getattr(node, "col_offset", 0)),
            line=lines[number - 1] if number <= len(lines) else "",
        ) from None


@overload
def native(function: Callable[..., object], /) -> NativeFunction: ...
@overload
def native(
    *, fast: bool = False, aliasing: bool = False, inline: bool = True
) -> Callable[[Callable[..., object]], NativeFunction]: ...
def native(
    function: Callable[..., object] | None = None, /, **options: bool
) -> NativeFunction | Callable[[Callable[..., object]], NativeFunction]:
    """Declare a function as native code: ``@native`` or ``@native(fast=True)``."""
    if function is not None:
        return NativeFunction(function)
    return lambda f: NativeFunction(f, **options)
