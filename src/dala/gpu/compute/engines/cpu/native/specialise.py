"""Binding a call to a function: argument types, and the constants it is specialised for."""

from __future__ import annotations

import ast
from typing import Any

from dala.gpu.compute.engines.cpu.native.express import Expressions
from dala.gpu.compute.engines.cpu.native.operations import describe
from dala.gpu.compute.engines.cpu.native.source import NativeFunction
from dala.gpu.compute.engines.cpu.native.types import Span, Term, Type, Value
from dala.gpu.compute.engines.cpu.native.unit import annotation


def bind(
    caller: Expressions, function: NativeFunction, args: list[Term], statics: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as their parameters want them, and all constants of the function."""
    for name, value in statics.items():
        if isinstance(value, (Value, Span)):
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
        elif isinstance(arg, Value):
            kind = arg.type.scalar
        else:
            continue
        if isinstance(node, ast.Name) and node.id in function.statics:
            found.setdefault(node.id, kind)
    return found
