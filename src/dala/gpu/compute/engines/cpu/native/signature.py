"""Binding a call to a function: argument types, and the constants it is specialised for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.operations import describe
from dala.gpu.compute.engines.cpu.native.types import ArgType, Operand, Result, Span, Term, Type

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.native.expressions import ExpressionWriter


def bind(
    caller: ExpressionWriter, function: NativeFunction, args: list[Term], statics: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as their parameters want them, and all constants of the function."""
    for name, value in statics.items():
        if isinstance(value, (Operand, Span)):
            caller.fail(f"{function.name}: {name} is a compile-time constant, not a value")
    filled = _inferred(function, args, statics)
    filled = fill_statics(function, filled)
    given: list[Any] = []
    for param, arg in zip(function.params, args, strict=True):
        kind = annotation(function, param.annotation, filled, param)
        where = f"{function.name}: argument {param.arg}"
        if kind is None:
            function.fail(param, f"argument {param.arg} has no type", "Annotate it: f32, Any, ...")
        if kind == "any":
            given.append(arg if isinstance(arg, Span) else caller.value(arg))
        elif isinstance(kind, tuple):
            if not isinstance(arg, Span) or (arg.element != kind[1] and kind[1] != "any"):
                caller.fail(f"{where} is an array of {kind[1]}, not {describe(arg)}")
            given.append(arg)
        else:
            v = caller.value(arg, kind)
            if v.type != kind:
                caller.fail(f"{where} is {kind}, not {v.type}", f"Convert it: {kind}(...).")
            given.append(v)
    return given, filled


def fill_statics(function: NativeFunction, given: dict[str, Any]) -> dict[str, Any]:
    """Constants with defaults filled in; unknown and missing ones are refused."""
    if unknown := sorted(set(given) - set(function.statics)):
        function.fail(
            function.tree,
            f"{function.name} has no constant named {', '.join(unknown)}",
            f"It has: {', '.join(function.statics) or 'none'}.",
        )
    filled = {}
    for name, default in function.statics.items():
        if name in given:
            value = given[name]
        elif default is not None:
            value = ast.literal_eval(default)
        else:
            function.fail(function.tree, f"{function.name} needs the constant {name}")
        if isinstance(value, list):
            value = tuple(value)
        if not isinstance(value, (bool, int, float, Type, tuple, NativeFunction)):
            function.fail(
                function.tree,
                f"{name} is {value!r}",
                "Constants are numbers, types, tuples of them, and native functions.",
            )
        filled[name] = value
    return filled


def _inferred(
    function: NativeFunction, args: list[Term], statics: dict[str, Any]
) -> dict[str, Any]:
    """A type constant that is not given is taken from the arguments annotated with it."""
    found = dict(statics)
    for param, arg in zip(function.params, args, strict=True):
        node = param.annotation
        if isinstance(node, ast.Subscript) and isinstance(arg, Span):
            node, kind = node.slice, arg.element
        elif isinstance(arg, Operand):
            kind = arg.type.scalar
        else:
            continue
        if isinstance(node, ast.Name) and node.id in function.statics:
            found.setdefault(node.id, kind)
    return found


def llvm_result(result: Result) -> str:
    """LLVM's type for a result."""
    if result is None:
        return "void"
    if isinstance(result, tuple):
        return "{ " + ", ".join(t.llvm for t in result) + " }"
    return result.llvm


def arg_type(term: Term) -> ArgType | None:
    """The type of an argument, None if it cannot be one."""
    if isinstance(term, Operand):
        return term.type
    if isinstance(term, Span):
        return term.element, term.align
    return None


def annotation(
    function: NativeFunction, node: ast.expr | None, statics: dict[str, Any], place: ast.AST
) -> Any:
    """What an annotation names: a Type, ``("array", Type)``, None, or ``"any"``."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.Name):
        if node.id == "Any":
            return "any"
        found = lookup(function, node.id, statics)
        if found is bool:
            return Type("bool", "i1", 1)
        if isinstance(found, Type):
            return found
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if node.value.id == "Array":
            return "array", annotation(function, node.slice, statics, place)
        if node.value.id == "tuple":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(annotation(function, p, statics, place) for p in parts)
    function.fail(
        place,
        f"{ast.unparse(node)!r} is no type of native code",
        "Types are bool, u8 to u64, i8 to i64, f32, f64, Array[...] of them, and Any.",
    )


def lookup(function: NativeFunction, name: str, statics: dict[str, Any]) -> Any:
    """What a name means: a static, the enclosing function's, the module's; else KeyError."""
    for names in (statics, function.outside, function.function.__globals__):
        if name in names:
            return names[name]
    builtins = function.function.__globals__["__builtins__"]
    return (builtins if isinstance(builtins, dict) else vars(builtins))[name]
