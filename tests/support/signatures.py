"""Find ``Any`` and ``object`` in annotations, also behind type aliases.

Annotations are resolved in the source text, because names that are imported for type checkers only
do not exist at run time.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
from collections.abc import Iterator
from functools import cache
from types import FunctionType

SOURCE = pathlib.Path(__file__).parents[2] / "src"

#: Types that accept everything.
UNTYPED = ("Any", "object")

#: Aliases that may stand for ``Any``. NDArray: NumPy's stubs have no better type for arithmetic on
#: arrays of any dtype. CheckedValue: operations declare the types of their parameters at run time.
ALLOWED = ("NDArray", "CheckedValue")


def signatures(name: str, found: object) -> Iterator[tuple[str, FunctionType]]:
    """Yield a function, or the public methods, properties and the constructor of a class."""
    if inspect.isfunction(found):
        yield name, found
    if not inspect.isclass(found):
        return
    for owner in found.__mro__:
        if not owner.__module__.startswith("dala"):
            continue
        for member, value in vars(owner).items():
            if member.startswith("_") and member not in ("__init__", "__call__"):
                continue
            value = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if inspect.isfunction(value) and value.__module__.startswith("dala"):
                yield f"{name}.{member}", value


def untyped_annotations(function: FunctionType) -> Iterator[tuple[str, str]]:
    """Yield the arguments whose annotation has no type, with the aliases that hide it."""
    for argument, kind in function.__annotations__.items():
        text = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
        path = untyped_path(text, function.__module__)
        if path:
            yield argument, " -> ".join((text, *path))


def untyped_path(text: str, module: str) -> tuple[str, ...]:
    """Return the names that lead from an annotation to ``Any`` or ``object``, or nothing.

    >>> untyped_path("list[Any]", "dala.typing")
    ('Any',)
    >>> untyped_path("Params | None", "dala.typing")
    ()
    """
    return _search(text, module, frozenset())


def _search(text: str, module: str, seen: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:  # the text of a Literal, such as "no device"
        return ()
    for name in _names(tree.body):
        if name in ALLOWED or (module, name) in seen:
            continue
        if name in UNTYPED:
            return (name,)
        place, alias = _alias(module, name)
        if alias:
            path = _search(alias, place, seen | {(module, name)})
            if path:
                return (name, *path)
    return ()


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names in an annotation, also in quoted parts.

    The values of Literal are not types. A callback may return ``object``, as its result is ignored.
    """
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _names(ast.parse(node.value, mode="eval").body)
    elif isinstance(node, ast.Subscript) and "Literal" in _names(node.value):
        return
    elif isinstance(node, ast.Subscript) and "Callable" in _names(node.value):
        arguments, result = node.slice.elts if isinstance(node.slice, ast.Tuple) else (node, node)
        yield from _names(arguments)
        yield from (name for name in _names(result) if name != "object")
    else:
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


def _alias(module: str, name: str) -> tuple[str, str]:
    """Return the module and the text of a type alias; no text for classes and foreign names."""
    aliases, imports = _definitions(module)
    if name in aliases:
        return module, aliases[name]
    source, original = imports.get(name, ("", ""))
    if not source.startswith("dala") or (source, original) == (module, name):
        return module, ""
    return _alias(source, original)


@cache
def _definitions(module: str) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Return the type aliases and the imported names of a module."""
    base = SOURCE.joinpath(*module.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not path.exists():
        return {}, {}
    aliases: dict[str, str] = {}
    imports: dict[str, tuple[str, str]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for item in node.names:
                imports[item.asname or item.name] = node.module, item.name
        elif isinstance(node, ast.AnnAssign) and "TypeAlias" in _names(node.annotation):
            aliases[ast.unparse(node.target)] = ast.unparse(node.value) if node.value else ""
    return aliases, imports
