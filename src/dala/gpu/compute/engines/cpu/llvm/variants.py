"""Code specialized for the values of parameters that loop bounds depend on.

A loop whose length is unknown at compile time keeps the loop over positions from vectorizing. Where
the length is a parameter (a radius, a number of steps), a program that has run long enough with one
value is compiled again for that value, with its loops unrolled. Results are equal to the bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dala.gpu.compute.engines.base import Runner, Storage
from dala.gpu.compute.engines.cpu.llvm.unroll import wrap
from dala.gpu.compute.lang.ir import Program

#: Estimated work after which specialized code pays for its compile time.
WORTH_NS: Final = 20e6
#: The most values that one runner compiles code for.
MAX_VARIANTS: Final = 32


class Variants:
    """A runner that selects general code, or code specialized for the current values."""

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
        #: Work after which code is specialized; WORTH_NS by default.
        self._worth = worth_ns
        self._for_all: Runner | None = None
        self._lock = threading.Lock()
        self._spent: dict[tuple[float, ...], float] = {}
        self._made: dict[tuple[float, ...], Runner] = {}

    def __call__(
        self, inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]
    ) -> None:
        """Run the program."""
        values = tuple(params[i] for i in self._wanted)
        runner = self._made.get(values)
        if runner is None:
            runner = self._choose(values)
        runner(inputs, output, params)

    @property
    def _general(self) -> Runner:
        """Code for all values, compiled on first use."""
        if self._for_all is None:
            self._for_all = self._make({})
            assert self._for_all is not None
        return self._for_all

    def _choose(self, values: tuple[float, ...]) -> Runner:
        spent = self._spent.get(values, 0.0) + self._work
        if len(self._made) >= MAX_VARIANTS:
            return self._general
        if spent < (WORTH_NS if self._worth is None else self._worth):
            if len(self._spent) > 1000:  # values that keep changing are not worth counting
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
