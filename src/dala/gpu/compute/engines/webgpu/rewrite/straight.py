"""Programs without loops: loops unrolled for given parameters, and slots replaced by values.

A filter with a small radius becomes straight-line code with constant offsets. Then neighbors can be
shared between positions (``wgsl/offsets.py``), and it is known what each value is computed from.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.base import Values
from dala.gpu.compute.engines.unroll import has_loops, loop_params, unroll, wrap
from dala.gpu.compute.engines.webgpu.wgsl.shader import MAX_SOFTWARE_COPIED, length
from dala.gpu.compute.lang.ir import (
    Block,
    For,
    If,
    Program,
    SetSlot,
    Slot,
    Statement,
    Value,
    make_program,
    statements,
    values,
)

#: The most statements of an unrolled program, because longer ones compile slowly.
MAX_UNROLLED: Final = 2500
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
        found = self._made.get(given)
        if found is None:
            if len(self._made) >= MAX_VARIANTS:
                self._made.clear()
            types = [self._program.params[i].type for i in self._known]
            numbers = [wrap(int(n), type_) for n, type_ in zip(given, types, strict=True)]
            found = _unrolled(self._program, dict(zip(self._known, numbers, strict=True)))
            if self._software and length(found) > MAX_SOFTWARE_COPIED:
                found = self._program
            self._made[given] = found
        return found


def _unrolled(program: Program, known: dict[int, int]) -> Program:
    body, result = unroll(program.body, program.result, known, MAX_UNROLLED)
    if has_loops(body):
        return program
    made = make_program(
        program.name, program.args, program.out, program.params, body, result, program.rank
    )
    return without_slots(made)


def without_slots(program: Program) -> Program:
    """Return an equivalent program without slots, if it has no branches and no loops."""
    every = list(statements(program.body))
    if any(isinstance(s, If | For) for s in every):
        return program
    if not any(isinstance(s, SetSlot) for s in every):
        return program
    held: dict[Slot, Value] = {}
    became: dict[Value, Value] = {}
    done: list[Statement] = []

    def now(v: Value) -> Value:
        return became.get(v, v)

    for s in every:
        if isinstance(s, SetSlot):
            held[s.slot] = now(s.value)
        elif isinstance(s, Value):
            if s.op == "get":
                slot: Slot = s.attr
                zero = Value("const", s.type, (), False if s.type == "bool" else 0)
                became[s] = held.get(slot, zero)
                continue
            args = tuple(map(now, s.args))
            if args != s.args:
                became[s] = Value(s.op, s.type, args, s.attr)
            done.append(now(s))
    result = tuple(map(now, program.result))
    return make_program(
        program.name, program.args, program.out, program.params, Block(done), result, program.rank
    )
