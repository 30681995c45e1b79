"""Signatures: annotations, the types of arguments and results, and the constants of a call."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.names import Record
from dala.gpu.compute.engines.cpu.native.operations import describe
from dala.gpu.compute.engines.cpu.native.types import ArgType, Result, Span, Static, Term, is_group
from dala.gpu.compute.engines.cpu.vector.types import BOOL, Operand, Type

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.native.expressions import ExpressionWriter


def bind(
    caller: ExpressionWriter, function: NativeFunction, args: list[Term], statics: dict[str, Static]
) -> tuple[list[Term], dict[str, Static]]:
    """Return the arguments as operands of the parameters' types, and all constants."""
    for name, value in statics.items():
        if isinstance(value, (Operand, Span)):
            caller.fail(f"{function.name}: {name} must be a compile-time constant")
    inferred = _inferred(function, args, statics)
    inherited = {
        name: caller.statics[name]
        for name, default in function.statics.items()
        if default is None and name in caller.statics
    }
    filled = fill_statics(function, inherited | inferred)
    given: list[Term] = []
    for param, arg in zip(function.params, args, strict=True):
        kind = annotation(function, param.annotation, filled, param)
        where = f"{function.name}: argument {param.arg}"
        if kind is None:
            function.fail(
                param,
                f"argument {param.arg} needs a type",
                "Annotate it, for example f32 or Vector.",
            )
        if kind == "any":
            given.append(arg if isinstance(arg, Span) else caller.value(arg))
        elif is_group(kind):
            if not isinstance(arg, kind):
                caller.fail(f"{where} must be a {kind.__name__}, got {describe(arg)}")
            given.append(arg)
        elif isinstance(kind, tuple):
            if not isinstance(arg, Span) or (arg.element != kind[1] and kind[1] != "any"):
                caller.fail(f"{where} must be an array of {kind[1]}, got {describe(arg)}")
            given.append(replace(arg, record=kind[2]))
        else:
            v = caller.value(arg, kind)
            if v.type != kind:
                caller.fail(f"{where} must be {kind}, got {v.type}", f"Convert it: {kind}(...).")
            given.append(v)
    return given, filled


def fill_statics(function: NativeFunction, given: dict[str, Static]) -> dict[str, Static]:
    """Return the constants with defaults filled in; raise for unknown and missing ones."""
    if unknown := sorted(set(given) - set(function.statics)):
        function.fail(
            function.tree,
            f"{function.name} has no constant named {', '.join(unknown)}",
            f"It has: {', '.join(function.statics) or 'none'}.",
        )
    filled: dict[str, Static] = {}
    for name, default in function.statics.items():
        if name in given:
            value: object = given[name]
        elif default is not None:
            value = ast.literal_eval(default)
        else:
            function.fail(function.tree, f"{function.name} needs the constant {name}")
        if isinstance(value, list):
            value = tuple(value)
        if not isinstance(value, (bool, int, float, Type, tuple, NativeFunction)):
            function.fail(
                function.tree,
                f"constant {name} must be a number, type, tuple or native function, got {value!r}",
            )
        filled[name] = value
    return filled


def _inferred(
    function: NativeFunction, args: list[Term], statics: dict[str, Static]
) -> dict[str, Static]:
    """Return the constants, with missing type constants inferred from the arguments."""
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
    """Return the LLVM type of a result."""
    if result is None:
        return "void"
    if isinstance(result, tuple):
        return "{ " + ", ".join(t.llvm for t in result) + " }"
    return result.llvm


def arg_type(term: Term) -> ArgType:
    """Return the type of an argument."""
    if is_group(term):
        return type(term)(*map(arg_type, term))
    return term.type if isinstance(term, Operand) else (term.element, term.align, term.record)


def annotation(
    function: NativeFunction, node: ast.expr | None, statics: dict[str, Static], place: ast.AST
) -> Term:
    """Return the type of an annotation: a Type, the class of a group, None, or ``"any"``.

    Of an array, it is ``("array", Type, record or None)``.
    """
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.Name):
        if node.id in ("Any", "Vector"):
            return "any"
        found = lookup(function, node.id, statics)
        if found is bool:
            return BOOL
        if isinstance(found, Type) or is_group(found):
            return found
        if isinstance(found, type) and issubclass(found, Record):
            return "array", found.element, found
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if node.value.id == "Array":
            return "array", annotation(function, node.slice, statics, place), None
        if node.value.id == "tuple":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(annotation(function, p, statics, place) for p in parts)
    function.fail(
        place,
        f"{ast.unparse(node)!r} is not a native type",
        "Types are bool, u8 to u64, i8 to i64, f32, f64, Array[...] of these, and Vector.",
    )


def lookup(function: NativeFunction, name: str, statics: dict[str, Static]) -> Term:
    """Return the value of a global name: a constant, a variable of an enclosing function, a global.

    Raises KeyError if it is not defined.
    """
    for names in (statics, function.outside, function.function.__globals__):
        if name in names:
            return names[name]
    builtins = function.function.__globals__["__builtins__"]
    return (builtins if isinstance(builtins, dict) else vars(builtins))[name]
