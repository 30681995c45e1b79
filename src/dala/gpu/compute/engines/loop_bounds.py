"""Bounds of the iterations of a program at a position, from its parameters and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dala.gpu.compute.engines.base import Geometry, Values
from dala.gpu.compute.engines.unroll import FOLD
from dala.gpu.compute.lang.ir import Block, For, If, Program, Value

_INT32: Final = 1 << 31
#: The operations of bounds that are computed.
_FOLDED: Final = frozenset({"add", "sub", "mul", "neg", "min", "max", "idiv"})


def count_work(block: Block, number: Callable[[Value], int | None]) -> tuple[int, int] | None:
    """Return the most iterations and statements of a block; None if a loop's length is unknown.

    Args:
        block: the block. Of a branch both sides count as statements.
        number: returns the value of a loop's start or stop, or None.
    """
    iterations = statements = 0
    for s in block.body:
        statements += 1
        if not isinstance(s, (If, For)):
            continue
        count = 1
        if isinstance(s, If):
            parts = [s.then, s.otherwise]
        else:
            start, stop = number(s.start), number(s.stop)
            if start is None or stop is None:
                return None
            count, parts = len(range(start, stop, s.step)), [s.body]
            iterations, statements = iterations + count, statements + count
        inside = [count_work(part, number) for part in parts]
        known = [found for found in inside if found is not None]
        if len(known) < len(inside):
            return None
        iterations += count * max((found[0] for found in known), default=0)
        statements += count * sum(found[1] for found in known)
    return iterations, statements


def turns(s: For) -> int | None:
    """Return how often a loop with constant bounds runs; None for others."""
    counted = s.start.op == "const" and s.stop.op == "const"
    return len(range(s.start.attr, s.stop.attr, s.step)) if counted else None


def repeated(block: Block, unknown: int, times: int = 1) -> Iterator[tuple[Value, int]]:
    """Yield the values of a block, with how often each is computed at a position.

    Loops of unknown length run ``unknown`` times, and both sides of a branch are computed.
    """
    for s in block.body:
        if isinstance(s, Value):
            yield s, times
        elif isinstance(s, If):
            yield from repeated(s.then, unknown, times)
            yield from repeated(s.otherwise, unknown, times)
        elif isinstance(s, For):
            known = turns(s)
            yield from repeated(s.body, unknown, times * (unknown if known is None else known))


class LoopBounds:
    """The most iterations and statements of a program at one position, for given parameters.

    ``iterations`` and ``statements`` are None where a loop's length depends on data.
    """

    def __init__(self, program: Program, geometry: Geometry, params: Values) -> None:
        self._geometry = geometry
        self._params = params
        found = count_work(program.body, self._number)
        self.iterations: int | None = None if found is None else found[0]
        self.statements: int | None = None if found is None else found[1]

    def _number(self, v: Value) -> int | None:
        """Return the value of an int, or None if it depends on data."""
        if v.op == "const":
            return int(v.attr)
        if v.op == "param":
            return int(self._params[v.attr]) if v.type == "s32" else None
        if v.op == "dim":
            return self._geometry.extent(*v.attr)
        args = [self._number(a) for a in v.args]
        known = [a for a in args if a is not None]
        if v.type != "s32" or len(known) < len(args) or not args:
            return None
        if any(a.type != "s32" for a in v.args):
            return None
        if v.op not in _FOLDED or (v.op == "idiv" and not known[1]):
            return None
        found = FOLD[v.op](*known)
        return found if -_INT32 <= found < _INT32 else None
