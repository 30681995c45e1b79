"""One module of native code: its functions, each written once for each set of constants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from dala.gpu.compute.engines.cpu.llvm.text import Module
from dala.gpu.compute.engines.cpu.native.types import Result

#: Functions that are written before the unit is refused as endless, and calls within calls.
MOST_FUNCTIONS: Final = 2000
MOST_CALLS: Final = 64


@dataclass(slots=True)
class EmittedFunction:
    """A function in the module: its name and what it gives."""

    name: str
    result: Result = None


@dataclass
class NativeModule:
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
    known: dict[tuple[Any, ...], EmittedFunction] = field(default_factory=dict)
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
