"""Parse kernel source into a :class:`KernelDecl`: signature, checked body, resolved names."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NoReturn, TypeGuard

from dala.errors import did_you_mean
from dala.gpu.compute.lang.check import check_body, check_math, inside, is_math, is_method
from dala.gpu.compute.lang.declaration import (
    CONSTANTS,
    EXACT_TYPES,
    KINDS,
    ROLES,
    ArgDecl,
    KernelDecl,
    Number,
    ParamDecl,
)
from dala.gpu.compute.lang.functions import FUNCTIONS
from dala.gpu.compute.lang.library.habits import advice_for_name
from dala.gpu.compute.lang.limits import MAX_LIST
from dala.gpu.compute.lang.source import KernelSource

#: Looks up a free name; returns a kernel, a number, a tuple of numbers, another object, or None.
Lookup = Callable[[str], object]


def declare(
    source: KernelSource,
    *,
    lookup: Lookup = lambda name: None,
    inputs: int | None = None,
    params: Sequence[str] | None = None,
) -> KernelDecl:
    """Parse and check a kernel; raise KernelSyntaxError at the first error.

    Args:
        source: the text; its last function is the kernel, earlier functions are helpers.
        lookup: looks up free names.
        inputs: the expected number of inputs, or None.
        params: names of arguments before the ``*`` that are parameters.
    """
    functions = functions_of(source)
    helpers = helpers_of(source, functions[:-1], lookup)
    return declare_function(source, functions[-1], source.kernel, lookup, helpers, inputs, params)


def declare_all(source: KernelSource, known: Mapping[str, KernelDecl]) -> dict[str, KernelDecl]:
    """Return the declarations of all functions of a text; they may call those before them."""
    return helpers_of(source, functions_of(source), lambda name: None, known)


def helpers_of(
    source: KernelSource,
    functions: Sequence[ast.FunctionDef],
    lookup: Lookup,
    known: Mapping[str, KernelDecl] = {},
) -> dict[str, KernelDecl]:
    """Return the declarations of functions; each may call those before it."""
    found = dict(known)
    for function in functions:
        found[function.name] = declare_function(source, function, function.name, lookup, found)
    return found


def functions_of(source: KernelSource) -> list[ast.FunctionDef]:
    """Return the functions of a text, which has at least one; imports of the language are allowed.

    Raises:
        KernelSyntaxError: there is something else, or no function.
    """
    tree = source.parse()
    functions = [
        s if isinstance(s, ast.FunctionDef) else check_top(source, s)
        for s in tree.body
        if not _means_nothing(s)
    ]
    if not functions:
        source.fail_at(1, 0, "there is no function", "Write def name(x): return ...")
    return functions


def _means_nothing(statement: ast.stmt) -> bool:
    """Return True for the language's own imports, ``import math``, and the text of a module."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return isinstance(statement.value.value, str)
    if isinstance(statement, ast.ImportFrom):
        return statement.module in ("dala.gpu.compute", "dala.gpu.compute.language", "__future__")
    return isinstance(statement, ast.Import) and [a.name for a in statement.names] == ["math"]


def check_top(source: KernelSource, statement: ast.stmt) -> NoReturn:
    """Raise KernelSyntaxError for a statement outside a function."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        source.fail(
            statement,
            "a kernel cannot import",
            "The functions of the language need no import. Remove the line.",
        )
    source.fail(
        statement,
        "kernel text must consist of functions",
        "Write one def, with helper functions before it.",
    )


def declare_function(
    source: KernelSource,
    function: ast.FunctionDef,
    name: str,
    lookup: Lookup,
    outer: Mapping[str, KernelDecl],
    inputs: int | None = None,
    params: Sequence[str] | None = None,
) -> KernelDecl:
    """Return the checked declaration of a function of a text; ``outer`` are its helpers."""
    for decorator in function.decorator_list:
        if last_name(decorator) not in ("kernel", "picture_filter"):
            problem = "the only decorator of a kernel is @kernel"
            source.fail(decorator, problem, "Remove the decorator.")
    args, parameters = _signature(source, function, inputs, params)
    check_body(source, function)
    helpers = dict(outer)
    for statement in function.body:
        if isinstance(statement, ast.FunctionDef):
            helpers[statement.name] = declare_function(
                source, statement, statement.name, lookup, helpers
            )
    for node in inside(function.body):
        if isinstance(node, ast.FunctionDef) and node not in function.body:
            problem = "a helper function must be at the top of the body"
            source.fail(node, problem, "Move it up and outdent it.")
    made = KernelDecl(
        name=name,
        source=source,
        function=function,
        args=args,
        params=parameters,
        doc=(ast.get_docstring(function) or "").strip(),
        returns_pixel=last_name(function.returns) == "Pixel" or _returns_pixel(function),
        helpers=helpers,
    )
    _resolve(made, lookup)
    sampled, levels = _sampled(made)
    found = (
        replace(a, sampled=a.name in sampled, levels=a.name in levels) if a.kind == "image" else a
        for a in args
    )
    return replace(made, args=tuple(found))


def _sampled(decl: KernelDecl) -> tuple[set[str], set[str]]:
    """Return the images that the body, or a helper it gives them to, samples, and with levels."""
    found: set[str] = set()
    levels: set[str] = set()
    for node in inside(decl.function.body):
        if isinstance(node, ast.Call) and is_method(node):
            name = node.func.value.id  # type: ignore[attr-defined]
            found.add(name)
            levels |= {name for keyword in node.keywords if keyword.arg == "lod"}
        elif isinstance(node, ast.Call) and last_name(node) in decl.helpers:
            given = zip(node.args, decl.helpers[last_name(node)].args, strict=False)
            named = [(v.id, arg) for v, arg in given if isinstance(v, ast.Name)]
            found |= {name for name, arg in named if arg.sampled}
            levels |= {name for name, arg in named if arg.levels}
    return found, levels


def _returns_pixel(function: ast.FunctionDef) -> bool:
    """Return True if a return is clearly a pixel: ``return rgba(...)``, ``return r, g, b``."""
    return any(
        isinstance(node, ast.Return)
        and (
            isinstance(node.value, ast.Tuple)
            or (
                isinstance(node.value, ast.Call)
                and last_name(node.value) in ("rgba", "vec3", "vec4")
            )
        )
        for node in inside(function.body)
    )


def last_name(node: ast.expr | None) -> str:
    """Return the last part of a dotted name, by which annotations and decorators are matched."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.rpartition(".")[2]
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return ""


def _signature(
    source: KernelSource,
    function: ast.FunctionDef,
    inputs: int | None,
    params: Sequence[str] | None,
) -> tuple[tuple[ArgDecl, ...], tuple[ParamDecl, ...]]:
    a = function.args
    if a.vararg or a.kwarg:
        source.fail(
            a.vararg or a.kwarg,
            "* and ** arguments are not part of the language",
            "Name every input, then *, then the parameters.",
        )
    listed = list(params or ())
    positional = [*a.posonlyargs, *a.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(a.defaults))
    defaults += a.defaults
    used_as_int = _int_names(function)
    args: list[ArgDecl] = []
    declared: list[ParamDecl] = []
    for arg, default in zip(positional, defaults, strict=True):
        if arg.arg in listed:
            declared.append(_param(source, arg, default, used_as_int))
        elif default is not None:
            source.fail(
                default,
                f"the input {arg.arg!r} has a default; only parameters have defaults",
                "Put parameters after a *: def name(x, *, amount=1.0).",
            )
        elif declared:
            source.fail(arg, "an input follows a parameter", "Put the inputs first.")
        else:
            args.append(_arg(source, arg))
    for arg, default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        declared.append(_param(source, arg, default, used_as_int))
    names = {p.name for p in declared}
    for name in listed:
        if name not in names:
            source.fail(
                function,
                f"params names {name!r}, which is not a parameter of the function",
                "Name the function's parameters, or leave params out.",
            )
    if params is not None and len(listed) != len(names):
        missing = ", ".join(sorted(names - set(listed)))
        source.fail(function, f"params leaves out {missing}", "Name all parameters, or none.")
    if inputs is not None and inputs != len(args):
        source.fail(
            function,
            f"inputs is {inputs}, but the function has {len(args)}: "
            f"{', '.join(x.name for x in args) or 'none'}",
            "Make the two agree, or leave inputs out.",
        )
    return tuple(args), tuple(declared)


#: Annotations that only type checkers use: elements of any dtype, and vectors of helpers.
_VALUES: Final = ("IntOrFloat", "float", "int", "Vector", "vec2", "vec3", "vec4")


def _arg(source: KernelSource, arg: ast.arg) -> ArgDecl:
    label = last_name(arg.annotation)
    if arg.annotation is None or label in _VALUES:
        return ArgDecl(arg.arg, "element")
    if label in KINDS:
        return ArgDecl(arg.arg, KINDS[label])
    if label in EXACT_TYPES or label == "u8":
        return ArgDecl(arg.arg, "element", label)
    source.fail(
        arg.annotation,
        f"{ast.unparse(arg.annotation)!r} is not a type of input",
        "Write Pixel, Image, Array, IntOrFloat, a dtype (f32 f64 s32 s64 u32 u8), or nothing.",
    )


def _param(
    source: KernelSource, arg: ast.arg, default: ast.expr | None, used_as_int: set[str]
) -> ParamDecl:
    value = None if default is None else _literal(source, default, MAX_LIST)
    first = value[0] if isinstance(value, tuple) else value
    size = len(value) if isinstance(value, tuple) else 0
    annotation, low, high = _within(source, arg.annotation)
    listed = isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "list"
    if listed and isinstance(annotation, ast.Subscript):
        annotation, size = annotation.slice, 0
        if not isinstance(value, tuple | None):
            source.fail(default, f"the default of {arg.arg!r} must be a tuple of numbers")
    label = last_name(annotation)
    exact = EXACT_TYPES.get(label)
    role, kind, size_of_role = ROLES.get(label, ("", "", 0))
    if role:
        size = size_of_role
        value = value if default is not None else (0.0,) * size if size else 0
    elif label in ("int", "float", "bool"):
        kind = label
    elif label == "IntOrFloat":
        kind = "number"
    elif exact is not None:
        kind = "float" if exact in ("f32", "f64") else "int"
    elif label == "Pixel" or label in ("vec2", "vec3", "vec4"):
        kind = "float"
        size = size or (4 if label == "Pixel" else int(label[-1]))
    elif annotation is not None:
        source.fail(
            annotation,
            f"{ast.unparse(annotation)!r} is not a type of parameter",
            "Write int, float, bool, vec2, vec3, vec4, Within[int, 0, 16], or no annotation.",
        )
    elif isinstance(first, bool):
        kind = "bool"
    elif isinstance(value, tuple):
        kind = "float"
    elif first is not None:
        kind = "int" if isinstance(first, int) else "float"
    else:
        kind = "int" if arg.arg in used_as_int else "float"
    if kind == "int" and isinstance(first, float):
        source.fail(default, f"the default of {arg.arg!r} must be an int, got {first}")
    if kind == "float" and value is not None:
        value = tuple(float(v) for v in value) if isinstance(value, tuple) else float(value)
    if kind == "float" and low is not None and high is not None:
        low, high = float(low), float(high)
    if not listed and size > 4:
        source.fail(
            default, "a default must be a number or a tuple of numbers", "Write the number."
        )
    if listed and kind not in ("int", "float"):
        source.fail(annotation, "a list has floats or ints", "Write weights: list[float].")
    made = ParamDecl(arg.arg, kind, exact, size, value, low, high, listed, role)
    _check_range(source, arg, made)
    return made


def _within(
    source: KernelSource, annotation: ast.expr | None
) -> tuple[ast.expr | None, int | float | None, int | float | None]:
    """Split ``Within[type, low, high]`` into its parts; other annotations have no bounds."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            text = ast.parse(annotation.value, mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return annotation, None, None
        source.check_depth(text)
        annotation = ast.copy_location(text.body, annotation)
    if not isinstance(annotation, ast.Subscript) or last_name(annotation.value) != "Within":
        return annotation, None, None
    advice = "Write Within[int, 0, 16] or Within[float, 0.001, inf]."
    given = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if len(given) != 3:
        source.fail(annotation, "Within takes a type, a minimum and a maximum", advice)
    ends: list[int | float] = []
    for node in given[1:]:
        end = _number(node)
        if end is None or math.isnan(end):
            source.fail(annotation, f"{ast.unparse(node)!r} is not a bound of a range", advice)
        ends.append(end)
    if ends[0] > ends[1]:
        source.fail(annotation, f"the range ends at {ends[1]}, below its start {ends[0]}", advice)
    return given[0], ends[0], ends[1]


def _check_range(source: KernelSource, arg: ast.arg, p: ParamDecl) -> None:
    """Raise KernelSyntaxError if a range does not match the parameter's type or default."""
    if p.low is None or p.high is None:
        return
    if p.type == "bool":
        source.fail(arg.annotation, f"{p.name!r} is a bool, which has no range", "Remove Within.")
    if p.type == "int":
        for end in (p.low, p.high):
            if math.isfinite(end) and end != int(end):
                source.fail(arg.annotation, f"the range of the int {p.name!r} has the bound {end}")
    values = p.default if isinstance(p.default, tuple) else (p.default,)
    for value in values:
        if value is not None and not p.allows(value):
            source.fail(
                arg.annotation,
                f"the default of {p.name!r} must be {p.expected}, got {value}",
            )


def _number(node: ast.expr) -> int | float | None:
    """Return the value of a node that is a number, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _number(node.operand)
        return -inner if inner is not None and isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return None if isinstance(node.value, bool) else node.value
    if isinstance(node, ast.Attribute) and last_name(node.value) == "math":
        return CONSTANTS.get(node.attr)
    return CONSTANTS.get(node.id) if isinstance(node, ast.Name) else None


def _literal(source: KernelSource, node: ast.expr, most: int = 4) -> Number | tuple[Number, ...]:
    """Return a default value: a number, or a tuple of numbers."""
    if isinstance(node, ast.Tuple) and 1 <= len(node.elts) <= most:
        items = [_literal(source, item) for item in node.elts]
        return tuple(item for item in items if not isinstance(item, tuple))
    value = node.value if isinstance(node, ast.Constant) else _number(node)
    if isinstance(value, bool | int | float):
        return value
    source.fail(node, "a default must be a number or a tuple of numbers", "Write the number.")


def _int_names(function: ast.FunctionDef) -> set[str]:
    """Return names used as loop bounds or indices; untyped parameters among them are ints."""
    found: set[str] = set()
    for node in inside(function.body):
        places: list[ast.AST] = []
        if isinstance(node, ast.Subscript):
            places = [node.slice]
        elif isinstance(node, ast.Call) and last_name(node.func) == "range":
            places = list(node.args)
        for place in places:
            found.update(n.id for n in ast.walk(place) if isinstance(n, ast.Name))
    return found


def _resolve(decl: KernelDecl, lookup: Lookup) -> None:
    """Find the helpers and constants that a body names, or raise KernelSyntaxError."""
    source, helpers, constants = decl.source, decl.helpers, decl.constants
    nodes = inside(decl.function.body)
    local = {a.name for a in decl.args} | decl.param_names
    local |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    for name in (*local, *helpers):
        if name.startswith("__"):
            source.fail(decl.function, f"the name {name!r} is not allowed", "Choose another name.")
    skip = {
        id(inner) for n in nodes if isinstance(n, ast.AnnAssign) for inner in ast.walk(n.annotation)
    }
    for node in sorted(
        (n for n in nodes if isinstance(n, ast.Name | ast.Attribute)),
        key=lambda n: (n.lineno, n.col_offset),
    ):
        if id(node) in skip:
            continue
        if isinstance(node, ast.Attribute):
            if is_math(node):
                skip.add(id(node.value))
                if "math" in local:
                    source.fail(node, "math is a variable here", "Rename the variable.")
                check_math(source, node, id(node) in called)
            continue
        name = node.id
        if id(node) in called:
            if name in local:
                source.fail(node, f"{name!r} is a variable, not a function", "Rename one of them.")
            known = FUNCTIONS.get(name)
            if name in helpers or name == "range" or (known and not known.prelude):
                continue
            found = lookup(name)  # before the prelude, whose names may be those of kernels
            if isinstance(found, KernelDecl):
                helpers[name] = found
            if known or name in helpers:
                continue
            source.fail(
                node,
                f"the language has no function {name!r}",
                advice_for_name(name)
                or did_you_mean(name, [*FUNCTIONS, *helpers])
                or "A kernel may call functions of the language and other kernels.",
            )
        if name in local or name in CONSTANTS or name in constants:
            continue
        found = lookup(name)
        if _is_number(found) or (
            isinstance(found, tuple) and 2 <= len(found) <= 4 and all(map(_is_number, found))
        ):
            constants[name] = found
            continue
        if name in FUNCTIONS or name in helpers:
            source.fail(node, f"{name!r} is a function", f"Call it: {name}(...).")
        source.fail(
            node,
            f"the name {name!r} is not defined",
            advice_for_name(name)
            or did_you_mean(name, [*local, *CONSTANTS])
            or "A kernel may use its inputs, parameters, variables and numeric constants.",
        )
    for call in nodes:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            _check_given(source, call, helpers.get(call.func.id))


def _check_given(source: KernelSource, call: ast.Call, helper: KernelDecl | None) -> None:
    """Raise KernelSyntaxError for a literal outside the range of a helper's parameter."""
    ranges = {p.name: p for p in helper.params} if helper is not None else {}
    for keyword in call.keywords:
        p, value = ranges.get(keyword.arg or ""), _number(keyword.value)
        if p is not None and value is not None and not p.allows(value):
            source.fail(
                keyword.value,
                f"{p.name!r} of {ast.unparse(call.func)} must be {p.expected}, got {value}",
            )


def _is_number(value: object) -> TypeGuard[Number]:
    return isinstance(value, bool | int | float) and not (
        isinstance(value, float) and math.isnan(value)
    )
