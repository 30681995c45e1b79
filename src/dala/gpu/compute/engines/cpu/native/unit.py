"""One module of native code: its functions, each written once for each set of constants."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dala.gpu.compute.engines.cpu.llvm.text import Module
from dala.gpu.compute.engines.cpu.native.source import NativeFunction
from dala.gpu.compute.engines.cpu.native.types import Span, Term, Type, Value

#: The type of an argument: a number's, or an array's (its element, its alignment).
ArgType: TypeAlias = "Type | tuple[Type, int]"
#: None for no result, a type, or a tuple of them.
Result: TypeAlias = "Type | tuple[Type, ...] | None"

#: Functions that are written before the unit is refused as endless, and calls within calls.
MOST_FUNCTIONS: Final = 2000
MOST_CALLS: Final = 64


@dataclass(slots=True)
class Written:
    """A function in the module: its name and what it gives."""

    name: str
    result: Result = None


@dataclass
class Unit:
    """What the functions of a module share."""

    checked: bool = False
    #: Whether this machine can store past its caches; and whether a function wants to.
    streams: bool = False
    #: The intrinsic of ``portion`` and the lanes that it takes; none where there is none.
    portion: str = ""
    portion_lanes: int = 0
    streamed: bool = False
    module: Module = field(default_factory=Module)
    functions: list[str] = field(default_factory=list)
    globals: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    known: dict[tuple[Any, ...], Written] = field(default_factory=dict)
    #: Functions being written, outermost first: to refuse recursion.
    open: list[tuple[Any, ...]] = field(default_factory=list)
    #: Constant arrays, by their text.
    tables: dict[str, str] = field(default_factory=dict)
    #: Bytes of all local arrays: the most that one call can need of the stack.
    stack: int = 0
    #: Names of functions, by the number that a fault carries.
    names: list[str] = field(default_factory=list)

    def meta(self, text: str) -> str:
        """A node of metadata; ``$`` in the text is the node itself."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = {text.replace('$', name)}")
        return name

    def text(self, attributes: str) -> str:
        """The module as LLVM IR."""
        # Nothing may be called that the linker would have to find: no memset, no stack probe.
        shared = f'attributes #0 = {{ nounwind "no-builtins" "no-stack-arg-probe" {attributes}}}'
        parts = [*self.globals, *self.functions, self.module.text(), shared, *self.metadata]
        return "\n".join(parts) + "\n"


def llvm_result(result: Result) -> str:
    """LLVM's type for a result."""
    if result is None:
        return "void"
    if isinstance(result, tuple):
        return "{ " + ", ".join(t.llvm for t in result) + " }"
    return result.llvm


def arg_type(term: Term) -> ArgType | None:
    """The type of an argument, None if it cannot be one."""
    if isinstance(term, Value):
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
