"""Code made for the values of parameters that loops depend on.

A loop whose length is only known when it runs keeps the loop over positions from vectorising. Where
that length is a parameter (a radius, a number of steps), a program that has run long enough with
one value gets code of its own for it, with the loops unrolled; results are the same to the bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dala.gpu.compute.engines.base import Runner, Storage
from dala.gpu.compute.engines.cpu.llvm.unroll import wrap
from dala.gpu.compute.lang.ir import Program

#: Work (estimated) after which code of its own pays for the time it takes to compile.
WORTH_NS: Final = 20e6
#: Values that one runner makes code for.
MOST: Final = 32


class Variants:
    """A runner that chooses among code for all values and code for this one."""

    def __init__(
        self,
        program: Program,
        wanted: tuple[int, ...],
        make: Callable[[Mapping[int, int]], Runner | None],
        work_ns: float,
        worth_ns: float | None = None,
    ) -> None:
        self._program = program
        self._wanted = wanted
        self._types = [program.params[i].type for i in wanted]
        self._make = make
        self._work = work_ns
        #: Work after which code of its own is made; WORTH_NS if not given.
        self._worth = worth_ns
        self._for_all: Runner | None = None
        self._lock = threading.Lock()
        self._spent: dict[tuple[int, ...], float] = {}
        self._made: dict[tuple[int, ...], Runner] = {}

    def __call__(self, inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        """Runs the program."""
        values = tuple(params[i] for i in self._wanted)
        runner = self._made.get(values)
        if runner is None:
            runner = self._choose(values)
        runner(inputs, output, params)

    @property
    def _general(self) -> Runner:
        """Code for all values, made when it is first needed."""
        if self._for_all is None:
            self._for_all = self._make({})
            assert self._for_all is not None
        return self._for_all

    def _choose(self, values: tuple[int, ...]) -> Runner:
        spent = self._spent.get(values, 0.0) + self._work
        if len(self._made) >= MOST:
            return self._general
        if spent < (WORTH_NS if self._worth is None else self._worth):
            if len(self._spent) > 1000:  # values that keep changing are not worth remembering
                self._spent.clear()
            self._spent[values] = spent
            return self._general
        with self._lock:
            runner = self._made.get(values)
            if runner is None:
                wrapped = (wrap(int(v), t) for v, t in zip(values, self._types, strict=True))
                known = dict(zip(self._wanted, wrapped, strict=True))
                runner = self._make(known) or self._general
                self._made[values] = runner
        return runner
