"""Code specialized for the values of parameters that loop bounds depend on.

A loop whose length is unknown at compile time keeps the loop over positions from vectorizing. Where
the length is a parameter (a radius, a number of steps), work that has run long enough with one
value is compiled again for that value, with its loops unrolled. Results are bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from dala import budget, forks
from dala.gpu.compute.engines.base import Runner, Storage
from dala.gpu.compute.engines.unroll import wrap

#: The most sets of values that one runner keeps code for.
MAX_VARIANTS: Final = 32
#: The most sets of values whose work is counted.
_MAX_COUNTED: Final = 1000


class CountedVariant:
    """A runner that selects code which counts iterations while ``dala.limits(iterations=)`` holds.

    Args:
        plain: The runner without a limit.
        make: Returns the runner with one.
    """

    def __init__(self, plain: Runner, make: Callable[[], Runner]) -> None:
        self._plain = plain
        self._counted = cache(make)

    def __call__(
        self, inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]
    ) -> None:
        """Run the work."""
        runner = self._plain
        scope = budget.find_scope()
        if scope is not None and scope.limits.iterations is not None:
            runner = self._counted()
        runner(inputs, output, params)


class Variants:
    """A runner that selects general code, or code specialized for the current values.

    Args:
        types: IR types of the parameters that loop bounds depend on, by index.
        make: Returns a runner for given values, or None if specialized code is no faster.
        general: Returns a runner for all values.
        work_ns: Estimated work of a call.
        specialize_ns: Work after which code is specialized; 0 specializes at once.
    """

    def __init__(
        self,
        types: Mapping[int, str],
        make: Callable[[Mapping[int, int]], Runner | None],
        general: Callable[[], Runner],
        work_ns: float = 0.0,
        specialize_ns: float = 0.0,
    ) -> None:
        self._types = types
        self._make = make
        self._make_general = general
        self._work = work_ns
        self._specialize = specialize_ns
        self._general: Runner | None = None
        self._lock = forks.rlock()
        self._spent: dict[tuple[float, ...], float] = {}
        self._specialized: dict[tuple[float, ...], Runner] = {}

    def __call__(
        self, inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]
    ) -> None:
        """Run the work with the code for these parameters."""
        values = tuple([params[i] for i in self._types])
        runner = self._specialized.get(values) or self._choose(values)
        runner(inputs, output, params)

    def _choose(self, values: tuple[float, ...]) -> Runner:
        spent = self._spent.get(values, 0.0) + self._work
        if spent < self._specialize:
            if len(self._spent) >= _MAX_COUNTED:
                self._spent.clear()
            self._spent[values] = spent
            return self._general_runner()
        with self._lock:
            runner = self._specialized.get(values)
            if runner is None:
                pairs = zip(self._types.items(), values, strict=True)
                known = {i: wrap(int(v), t) for (i, t), v in pairs}
                runner = self._make(known) or self._general_runner()
                if len(self._specialized) >= MAX_VARIANTS:
                    oldest = next(iter(self._specialized))
                    del self._specialized[oldest]
                    self._spent.pop(oldest, None)
                self._specialized[values] = runner
        return runner

    def _general_runner(self) -> Runner:
        general = self._general  # without the lock, which another thread may hold to compile
        if general is None:
            with self._lock:
                general = self._general = self._general or self._make_general()
        return general
