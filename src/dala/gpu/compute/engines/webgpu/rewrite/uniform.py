"""Floats that are the same at all positions: the host computes them, once for each parameters.

Every invocation would compute them again, and quotients and roots of exact programs take dozens of
operations. The host computes in f32, operation by operation, as programs are defined. Results are
parameters of the program, behind its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import numpy as np

from dala.gpu.compute.engines.base import Geometry, Values
from dala.gpu.compute.engines.unroll import has_loops, loop_params, unroll, wrap
from dala.gpu.compute.engines.webgpu.rewrite.simplify import Shortener
from dala.gpu.compute.engines.webgpu.wgsl.shader import MAX_SOFTWARE_COPIED, length
from dala.gpu.compute.lang.exact.uniform import INEXACT, OPERATIONS
from dala.gpu.compute.lang.ir import (
    For,
    If,
    Param,
    Program,
    SetSlot,
    Slot,
    Value,
    arguments_first,
    make_program,
    statements,
    values,
)
from dala.gpu.compute.lang.rewrite import Copier

#: The most numbers of a program: uniform blocks are small.
_MOST: Final = 64
_KINDS: Final = {"f32": np.float32, "bool": bool}


class Uniforms:
    """A program that reads such floats, and their expressions."""

    def __init__(self, program: Program, geometry: Geometry) -> None:
        self._geometry = geometry
        self._same: dict[Value, bool] = {}
        self._keys: dict[Value, int] = {}
        self._known: dict[tuple[Hashable, ...], int] = {}
        self._wanted: dict[int, Value] = {}
        #: Operations, the steps that give their arguments, what has none, and types of results.
        self._steps: list[tuple[str, tuple[int, ...], Any, Any]] = []
        self._numbers: dict[int, int] = {}
        self.program = program
        if program.exact:
            self._find(program)
        self._add_steps()
        self._results = [self._numbers[key] for key in self._wanted]
        if self._wanted:
            self.program = self._rewritten(program)
        used = {v.attr for v in values(self.program.body) if v.op == "param"}
        #: The types of parameters; none for those that are not read.
        self.types = [p.type if i in used else "" for i, p in enumerate(self.program.params)]

    def _find(self, program: Program) -> None:
        needed = list(program.result)
        for s in statements(program.body):
            if isinstance(s, SetSlot):
                needed.append(s.value)
            elif isinstance(s, Value) and not self._is_same(s):
                needed.extend(s.args)
        for v in needed:
            if v.type == "f32" and v.op not in ("const", "param") and self._is_same(v):
                self._wanted.setdefault(self._key(v), v)
        if len(self._wanted) > _MOST:
            self._wanted.clear()

    def _is_same(self, v: Value) -> bool:
        """Return whether a value depends on parameters, sizes and constants alone.

        Statements are visited in order, so that their arguments are known.
        """
        if v not in self._same:
            self._same[v] = v.op in ("const", "param", "dim") or (
                (v.op == "cast" or (v.op in OPERATIONS and v.op not in INEXACT))
                and v.type in ("f32", "bool")
                and all(a.op in ("param", "dim") or a.type in ("f32", "bool") for a in v.args)
                and all(map(self._is_same, v.args))
            )
        return self._same[v]

    def _key(self, v: Value) -> int:
        """Return a number that is equal for equal computations."""
        for part in arguments_first([v], self._keys):
            # As text, as 0.0 and -0.0 are equal.
            made = (part.op, part.type, repr(part.attr), *(self._keys[a] for a in part.args))
            self._keys[part] = self._known.setdefault(made, len(self._known))
        return self._keys[v]

    def _rewritten(self, program: Program) -> Program:
        first = len(program.params)
        read = {key: Value("param", "f32", (), first + i) for i, key in enumerate(self._wanted)}

        def shorter(v: Value, args: tuple[Value, ...]) -> Value | None:
            return read.get(self._key(v)) if v.type == "f32" and self._is_same(v) else None

        rewriter = Shortener(shorter)
        body = rewriter.block(program.body)
        return make_program(
            program.name, program.args, program.out,
            (*program.params, *(Param(f"uniform_{i}", None, "f32") for i in range(len(read)))),
            body, tuple(map(rewriter.of, program.result)), program.rank,
        )  # fmt: skip

    def _add_steps(self) -> None:
        """Add a step for each computation that is needed, after those of its arguments."""
        for v in arguments_first(self._wanted.values()):
            key = self._key(v)
            if key in self._numbers:
                continue
            known = self._geometry.extent(*v.attr) if v.op == "dim" else v.attr
            self._numbers[key] = len(self._steps)
            args = tuple(self._numbers[self._key(a)] for a in v.args)
            self._steps.append((v.op, args, known, _KINDS.get(v.type)))

    def values(self, params: Values) -> Values:
        """Return the parameters, and the floats behind them."""
        if not self._wanted:
            return params
        found: list[Any] = []
        with np.errstate(all="ignore"):
            for op, places, known, kind in self._steps:
                args = [found[i] for i in places]
                if op in OPERATIONS:
                    number = OPERATIONS[op](*args)
                else:
                    number = params[known] if op == "param" else args[0] if args else known
                found.append(number if kind is None else kind(number))
        return (*params, *(float(found[i]) for i in self._results))


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
