"""Bounds of the iterations of a program at a position, from its parameters and shapes."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.base import Geometry, Values
from dala.gpu.compute.engines.unroll import FOLD
from dala.gpu.compute.lang.ir import Block, For, If, Program, Value

_INT32: Final = 1 << 31
#: The operations of bounds that are computed.
_FOLDED: Final = frozenset({"add", "sub", "mul", "neg", "min", "max", "idiv"})


class LoopBounds:
    """The most iterations and statements of a program at one position, for given parameters.

    ``iterations`` and ``statements`` are None where a loop's length depends on data.
    """

    def __init__(self, program: Program, geometry: Geometry, params: Values) -> None:
        self._geometry = geometry
        self._params = params
        found = self._block(program.body)
        self.iterations: int | None = None if found is None else found[0]
        self.statements: int | None = None if found is None else found[1]

    def _block(self, block: Block) -> tuple[int, int] | None:
        iterations = statements = 0
        for s in block.body:
            statements += 1
            if isinstance(s, If):
                inside = [self._block(part) for part in (s.then, s.otherwise)]
                for found in inside:
                    if found is None:
                        return None
                    statements += found[1]
                iterations += max(found[0] for found in inside if found is not None)
            elif isinstance(s, For):
                start, stop = self._number(s.start), self._number(s.stop)
                each = self._block(s.body)
                if start is None or stop is None or each is None:
                    return None
                turns = len(range(start, stop, s.step))
                iterations += turns * (each[0] + 1)
                statements += turns * (each[1] + 1)
        return iterations, statements

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
