"""Native functions: the decorator, their syntax tree, their parameters, mistakes shown in place."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, overload

from dala.errors import KernelSyntaxError

if TYPE_CHECKING:  # what parses is imported when something has to be parsed
    import ast


class NotCacheable(Exception):
    """What something depends on cannot be told for certain."""


_digests: dict[str, str] = {}


def file_digest(path: str, *, again: bool = False) -> str:
    """Of a source file as this process first saw it; ``again`` makes sure that it still is so.

    Trees are kept, so code made later in a process may come from what a file held earlier.
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


class NativeFunction:
    """A Python function in the typed imperative form: parsed when it is compiled, never executed.

    ``fast`` allows float sums to be reordered and products to be fused into them (reductions
    become vectors). ``aliasing`` says that arrays of one call may overlap where they are written.
    ``inline=False`` keeps a big function that is called from several places out of line.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        fast: bool = False,
        aliasing: bool = False,
        inline: bool = True,
    ) -> None:
        self.function = function
        self.name: str = function.__name__
        self.fast = fast
        self.aliasing = aliasing
        self.inline = inline
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __call__(self, *args: Any, **statics: Any) -> Any:
        """Only from native code; Python calls what compile_native gives."""
        raise TypeError(
            f"{self.name} is native code: compile_native({self.name}, ...) gives a function "
            "that Python can call"
        )

    def __repr__(self) -> str:
        return f"<native {self.function.__module__}.{self.name}>"

    @cached_property
    def _source(self) -> tuple[list[str], int, str]:
        import inspect
        import textwrap

        with contextlib.suppress(NotCacheable):  # as it is before it is read
            file_digest(self.function.__code__.co_filename)
        try:
            lines, first = inspect.getsourcelines(self.function)
            filename = inspect.getsourcefile(self.function) or "<native>"
        except (OSError, TypeError):
            raise KernelSyntaxError(
                "Python cannot show the source of this function",
                advice="Native functions must stand in a file.",
                kernel=self.name,
            ) from None
        return textwrap.dedent("".join(lines)).splitlines(), first, filename

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The definition."""
        import ast

        node = ast.parse("\n".join(self._source[0])).body[0]
        if not isinstance(node, ast.FunctionDef):
            self.fail(node, "native code is a plain function", "Write def name(...): ...")
        a = node.args
        if a.vararg or a.kwarg or a.defaults:
            self.fail(
                node,
                "a native function takes no *args, no **kwargs and no default values",
                "Name every argument; keyword-only ones are compile-time constants.",
            )
        return node

    @cached_property
    def params(self) -> list[ast.arg]:
        """Arguments known when the code runs."""
        a = self.tree.args
        return [*a.posonlyargs, *a.args]

    @cached_property
    def statics(self) -> dict[str, ast.expr | None]:
        """Compile-time arguments, with the expression of their default if there is one."""
        a = self.tree.args
        return {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)}

    def used_names(self) -> list[str]:
        """All names in the definition, types of arguments written as text among them."""
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
    def outside(self) -> dict[str, Any]:
        """Names of the enclosing functions; those of the module are looked up when used."""
        cells = self.function.__closure__ or ()
        names = self.function.__code__.co_freevars
        return {n: c.cell_contents for n, c in zip(names, cells, strict=True)}

    def line(self, node: ast.AST) -> int:
        """The line of a node in its file."""
        return int(getattr(node, "lineno", 1)) + self._source[1] - 1

    def fail(self, node: ast.AST, problem: str, advice: str = "") -> NoReturn:
        """Raises KernelSyntaxError that shows the place."""
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
def native(function: Callable[..., Any], /) -> NativeFunction: ...
@overload
def native(
    *, fast: bool = False, aliasing: bool = False, inline: bool = True
) -> Callable[[Callable[..., Any]], NativeFunction]: ...
def native(function: Callable[..., Any] | None = None, /, **options: bool) -> Any:
    """Marks a function as native code: ``@native`` or ``@native(fast=True)``."""
    if function is not None:
        return NativeFunction(function)
    return lambda f: NativeFunction(f, **options)
