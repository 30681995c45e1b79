"""The text form of programs: a function whose inner functions are the passes."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar, overload

from dala.errors import ParameterError
from dala.gpu.compute.kernel import Kernel, KernelFunction, function_lookup, registered
from dala.gpu.compute.lang.check import inside
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.markers import outside_kernel
from dala.gpu.compute.lang.parser import (
    Lookup,
    declare,
    declare_function,
    functions_of,
    helpers_of,
    last_name,
)
from dala.gpu.compute.lang.source import KernelSource, from_function, from_text
from dala.gpu.compute.passes.program import KernelProgram, ProgramPass
from dala.gpu.compute.passes.sizes import PassSize

_Function = TypeVar("_Function", bound=KernelFunction)

#: What a text can be.
Shader: TypeAlias = "Kernel | KernelProgram"

_TARGET: Final = "Write @target(size=0.5, dtype='f32')."


@overload
def program(
    source: KernelFunction | str | Sequence[ProgramPass], *, name: str | None = None
) -> KernelProgram: ...
@overload
def program(*, name: str | None = None) -> Callable[[KernelFunction], KernelProgram]: ...
def program(
    source: KernelFunction | str | Sequence[ProgramPass] | None = None, *, name: str | None = None
) -> KernelProgram | Callable[[KernelFunction], KernelProgram]:
    """Create a program of several passes from a function, its text, or a list of passes.

    The functions inside it are the passes, in order; the last one makes the picture, each other one
    fills a buffer of its name. An input with the name of a pass reads its buffer: what an earlier
    pass made in this frame, or, of the pass itself and of later ones, the result of the frame
    before, which is 0 at first. The parameters and inputs of the outer function are those of every
    pass that uses them. Functions that others call are helpers. A function without inner ones is
    one pass, which may read its own last result by its own name.

    Args:
        source: the function or its text, or passes; without it, a decorator is returned.
        name: the name; by default the function's.

    >>> @program
    ... def trails(px: Pixel, *, decay=0.9):
    ...     @target(dtype="f32")
    ...     def light(light: Pixel):
    ...         return max(px.rgb, light.rgb * decay)
    ...     def picture(light: Pixel):
    ...         return light.rgb
    >>> trails.inputs, [p.target for p in trails.passes], trails.remembers
    (('px',), ['light', 'picture'], True)
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise ParameterError.invalid("program", "name", "a non-empty str or None", name)
    if source is None:
        return lambda function: program(function, name=name)
    if isinstance(source, list | tuple):
        return KernelProgram(name or "program", source)
    if isinstance(source, str):
        text = from_text(source, name or "program")
        lookup: Lookup = registered
    elif callable(source):
        called = name or str(getattr(source, "__name__", "program"))
        text, lookup = from_function(source, called), function_lookup(source)
    else:
        expected = "a function, its text or a list of passes"
        raise ParameterError.invalid("program", "source", expected, source)
    return program_from(text, lookup, name)


def shader_from(source: KernelSource) -> Shader:
    """Return the kernel of a text, or the program if it has ``@program``."""
    last = functions_of(source)[-1]
    source = replace(source, kernel=last.name)
    if any(last_name(d) == "program" for d in last.decorator_list):
        return program_from(source, registered)
    return Kernel(source.kernel, declare(source, lookup=registered))


def program_from(source: KernelSource, lookup: Lookup, name: str | None = None) -> KernelProgram:
    """Return the program of a text; its last function is the program, earlier ones are helpers."""
    functions = functions_of(source)
    outer = functions[-1]
    helpers = helpers_of(source, functions[:-1], lookup)
    called = name or outer.name
    inner = [s for s in outer.body if isinstance(s, ast.FunctionDef)]
    uses = {n.func.id for f in inner for n in ast.walk(f) if isinstance(n, ast.Call)
            and isinstance(n.func, ast.Name)}  # fmt: skip
    passes = [f for f in inner if f.name not in uses]
    if not passes or isinstance(outer.body[-1], ast.Return):
        return KernelProgram(called, [_pass(source, outer, None, helpers, lookup)], _doc(outer))
    for statement in outer.body:
        if not isinstance(statement, ast.FunctionDef | ast.Expr | ast.Pass):
            problem = "a program has functions only"
            source.fail(statement, problem, "Move the statement into a pass.")
    for f in inner:
        if f.name in uses:
            helpers[f.name] = declare_function(source, f, f.name, lookup, helpers)
    made = [_pass(source, f, outer, helpers, lookup) for f in passes]
    inputs = [a.arg for a in (*outer.args.posonlyargs, *outer.args.args)]
    return KernelProgram(called, made, _doc(outer), inputs)


def _doc(function: ast.FunctionDef) -> str:
    return (ast.get_docstring(function) or "").strip()


def _pass(
    source: KernelSource,
    function: ast.FunctionDef,
    outer: ast.FunctionDef | None,
    helpers: Mapping[str, KernelDecl],
    lookup: Lookup,
) -> ProgramPass:
    size, dtype = _settings(source, function)
    made = copy.copy(function)
    made.decorator_list = []
    if outer is not None:
        made.args = _arguments(function, outer)
    decl = declare_function(source, made, function.name, lookup, helpers)
    try:
        return ProgramPass(Kernel(function.name, decl), function.name, size, dtype)
    except ParameterError as error:
        source.fail(function, str(error), _TARGET)


def _arguments(function: ast.FunctionDef, outer: ast.FunctionDef) -> ast.arguments:
    """Return a pass's arguments with those of the program that its body uses."""
    args = copy.copy(function.args)
    own = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    used = {n.id for n in inside(function.body) if isinstance(n, ast.Name)} - own
    args.args = [
        *(a for a in (*outer.args.posonlyargs, *outer.args.args) if a.arg in used), *args.args
    ]  # fmt: skip
    shared = [
        (a, d)
        for a, d in zip(outer.args.kwonlyargs, outer.args.kw_defaults, strict=True)
        if a.arg in used
    ]
    args.kwonlyargs = [*args.kwonlyargs, *(a for a, _ in shared)]
    args.kw_defaults = [*args.kw_defaults, *(d for _, d in shared)]
    return args


def _settings(source: KernelSource, function: ast.FunctionDef) -> tuple[PassSize, str]:
    """Return size and dtype that ``@target`` gives."""
    found: dict[str, object] = {}
    for decorator in function.decorator_list:
        if last_name(decorator) == "program":
            continue
        if (
            not isinstance(decorator, ast.Call)
            or last_name(decorator) != "target"
            or decorator.args
        ):
            source.fail(decorator, "the decorator of a pass is @target", _TARGET)
        for keyword in decorator.keywords:
            if keyword.arg not in ("size", "dtype"):
                source.fail(keyword.value, f"a target has no {keyword.arg!r}", _TARGET)
            try:
                found[keyword.arg] = ast.literal_eval(keyword.value)
            except (ValueError, TypeError, MemoryError, RecursionError):
                source.fail(keyword.value, "a number, or a tuple of numbers and strs", _TARGET)
    return found.get("size", 1.0), found.get("dtype", "")  # type: ignore[return-value]


def target(*, size: PassSize = 1.0, dtype: str = "") -> Callable[[_Function], _Function]:
    """Give the buffer that a pass of a program writes a size and a dtype; works only there.

    Args:
        size: a scale of the output's size, or (width, height), each a number or a formula of width,
            height and the program's parameters, such as ``("width // 2", 256)``.
        dtype: "u8" or "f32"; by default the output's.

    >>> from dala.gpu.compute import program
    >>> @program
    ... def soft(img: Image):
    ...     @target(size=0.5)
    ...     def small():
    ...         y, x = position()
    ...         return img.sample(x * 2 + 0.5, y * 2 + 0.5)
    ...     def picture(small: Image):
    ...         y, x = position()
    ...         return small.sample(x / 2 - 0.25, y / 2 - 0.25)
    >>> soft.passes[0].size
    0.5
    """
    outside_kernel("target")
