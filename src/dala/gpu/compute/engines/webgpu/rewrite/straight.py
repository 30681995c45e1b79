"""Programs without loops: loops unrolled for given parameters, and slots replaced by values.

A filter with a small radius becomes straight-line code with constant offsets. Then neighbors can be
shared between positions (``wgsl/offsets.py``), and it is known what each value is computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from dala.gpu.compute.engines.base import Values
from dala.gpu.compute.engines.unroll import has_loops, loop_params, unroll, wrap
from dala.gpu.compute.engines.webgpu.wgsl.shader import MAX_SOFTWARE_COPIED, length
from dala.gpu.compute.lang.ir import For, If, Program, SetSlot, Slot, Value, statements, values
from dala.gpu.compute.lang.rewrite import Copier

K = TypeVar("K")
V = TypeVar("V")

#: The most statements of an unrolled program, because longer ones compile slowly.
MAX_UNROLLED: Final = 3500
#: The most variants of a program that are remembered.
MAX_VARIANTS: Final = 64


class LoopVariants:
    """The variants of a program with its loops unrolled, by the parameters that decide about them.

    Only programs that read neighbors are unrolled: others gain nothing. ``software`` is for
    adapters that compile on a processor, which takes longer.
    """

    def __init__(self, program: Program, *, software: bool = False) -> None:
        self._program = program
        self._software = software
        reads = any(v.op == "image" for v in values(program.body))
        self._known = loop_params(program.body)
        #: Whether any parameters give a program without loops.
        self.useful = reads and has_loops(program.body)
        self._made: dict[Values, Program] = {}

    def program(self, params: Values) -> Program:
        """Return the program for these parameters; the general one if it would be too long."""
        if not self.useful:
            return self._program
        given = tuple(params[i] for i in self._known)
        return remembered(self._made, given, lambda: self._unrolled(given))

    def _unrolled(self, given: Values) -> Program:
        program = self._program
        known = {
            i: wrap(int(n), program.params[i].type) for i, n in zip(self._known, given, strict=True)
        }
        body, result = unroll(program.body, program.result, known, MAX_UNROLLED)
        if has_loops(body):
            return program
        found = without_slots(program.with_body(body, result))
        return program if self._software and length(found) > MAX_SOFTWARE_COPIED else found


def remembered(cache: dict[K, V], key: K, make: Callable[[], V], most: int = MAX_VARIANTS) -> V:
    """Return the cached value of a key, made if it is missing; a full cache is emptied."""
    found = cache.get(key)
    if found is None:
        if len(cache) >= most:
            cache.clear()
        found = cache[key] = make()
    return found


def without_slots(program: Program) -> Program:
    """Return an equivalent program without slots, if it has no branches and no loops."""
    every = list(statements(program.body))
    if any(isinstance(s, If | For) for s in every):
        return program
    if not any(isinstance(s, SetSlot) for s in every):
        return program
    return _Slotless().program(program)


class _Slotless(Copier):
    """Replaces reads of slots by the values stored there."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[Slot, Value] = {}

    def store(self, s: SetSlot) -> None:
        self._held[s.slot] = self.of(s.value)

    def value(self, s: Value) -> Value:
        if s.op != "get":
            return super().value(s)
        zero = Value("const", s.type, (), False if s.type == "bool" else 0)
        return self._held.get(s.attr, zero)
