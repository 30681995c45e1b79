"""The LLVM module under construction while native functions are emitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dala.gpu.compute.engines.cpu.machine import Machine
from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.types import ArgType, Result
from dala.gpu.compute.engines.cpu.vector.text import Module

#: The most functions in a module, and the deepest nesting of calls.
MAX_FUNCTIONS: Final = 2000
MAX_CALL_DEPTH: Final = 64


#: A function, the types of its arguments, and its constants.
FunctionKey: TypeAlias = "tuple[NativeFunction, tuple[ArgType, ...], tuple[object, ...]]"


@dataclass(slots=True)
class EmittedFunction:
    """A function in the module: its name in LLVM IR and its result type."""

    name: str
    result: Result = None


@dataclass
class NativeModule:
    """The functions, globals and metadata of a module; each function once per set of constants."""

    checked: bool = False
    machine: Machine = field(default_factory=Machine)
    #: Whether a function uses nontemporal stores.
    streamed: bool = False
    module: Module = field(default_factory=Module)
    functions: list[str] = field(default_factory=list)
    globals: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    known: dict[FunctionKey, EmittedFunction] = field(default_factory=dict)
    #: Functions being emitted, outermost first, to detect recursion.
    open: list[FunctionKey] = field(default_factory=list)
    #: Constant arrays, by their text.
    tables: dict[str, str] = field(default_factory=dict)
    #: Bytes of all local arrays: an upper bound on the stack use of a call.
    stack: int = 0
    #: Names of functions, by the number in a fault report.
    names: list[str] = field(default_factory=list)

    def meta(self, text: str) -> str:
        """Add a metadata node and return its name; ``$`` in the text is the node itself."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = {text.replace('$', name)}")
        return name

    def text(self, attributes: str) -> str:
        """Return the module as LLVM IR."""
        # No external symbols: the code must not need memset or stack probes.
        shared = f'attributes #0 = {{ nounwind "no-builtins" "no-stack-arg-probe" {attributes}}}'
        parts = [*self.globals, *self.functions, self.module.text(), shared, *self.metadata]
        return "\n".join(parts) + "\n"
