"""Cut long programs in two: processors look ahead only a few hundred instructions.

A long chain of dependent operations fills what a processor looks at, and it waits. The values in
the middle of the chain are stored for a strip of vectors, and a second loop computes the rest from
them. Both loops have chains of half the length, so that more vectors are computed at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.lang.ir import Block, Statement, Value

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.loops.row import RowFunction

#: Vectors of a strip.
STRIP: Final = 64
#: Cycles that most operations on floats take, those that take longer, and those of one cycle.
_CYCLES: Final = 4
_SLOW: Final = {"sqrt": 16, "div": 14, "pixel": 8, "image": 8}
_QUICK: Final = frozenset({"select", "lt", "gt", "le", "ge", "eq", "ne", "bits", "and", "or"})
#: The shortest chain that is cut, and the longest that may remain, as a share of it.
_SHORTEST: Final = 85
_LONGEST: Final = 0.75
#: The most values that are stored, and how much more both loops may compute than one.
_MOST: Final = 2
_REPEATED: Final = 1.15


def in_two_loops(row: RowFunction, begin: str, stop: str, vector: Callable[[str], None]) -> bool:
    """Emit the loop over vectors of a long program as two; return whether it is one.

    Args:
        row: The row function.
        begin: The first position.
        stop: The position after the last.
        vector: Emits what is left of ``row.block`` for one vector, given its position.
    """
    stored = find_cut(row.block, row.results(), row.analysis.varying)
    if not stored:
        return False
    f, emitter, kind = row.f, row.emitter, row.emitter.kind("f32")
    length, lanes = STRIP * row.lanes, row.lanes
    buffers = [f.alloca(f"[{length} x float]", f"middle{i}", 64) for i in range(len(stored))]
    before, row.block = needed_for(stored, row.block), needed_for(row.results(), row.block, stored)
    with f.loop(begin, stop, length, "strip") as first:
        end = f.smaller(f.let(f"add nsw i64 {first}, {length}"), stop)
        for half in (0, 1):
            with f.loop(first, end, lanes, "along") as x:
                at, mark = f.let(f"sub nsw i64 {x}, {first}"), emitter.mark()
                places = [f.at(buffer, at, "float") for buffer in buffers]
                if half:
                    for v, place in zip(stored, places, strict=True):
                        emitter.names[v] = f.let(f"load {kind}, ptr {place}, align 4")
                    vector(x)
                else:
                    row.x, row.loaded = x, {}
                    emitter.block(before)
                    for v, place in zip(stored, places, strict=True):
                        f.do(f"store {kind} {emitter.names[v]}, ptr {place}, align 4")
                emitter.rewind(mark)
    return True


def find_cut(block: Block, results: Sequence[Value], varying: Collection[Value]) -> list[Value]:
    """Return the values in the middle of a program's longest chains; none for short programs."""
    every = [s for s in block.body if isinstance(s, Value)]
    if len(every) < len(block.body):
        return []
    chain = _ends(every, varying, ())
    whole = max((chain.get(v, 0) for v in results), default=0)
    if whole < _SHORTEST:
        return []
    middle = [v for v in every if v.type == "f32" and 0.35 < chain.get(v, 0) / whole < 0.65]
    found: list[Value] = []
    best = whole
    for _ in range(_MOST):
        lengths: list[tuple[int, int]] = []
        for v in middle:
            after = _ends(every, varying, (*found, v))
            left = max(after.get(r, 0) for r in results)
            lengths.append((max(left, chain[v], *(chain[f] for f in found)), len(lengths)))
        best, at = min(lengths, default=(best, 0))
        if lengths:
            found.append(middle[at])
        if best <= _LONGEST * whole:
            halves = needed_for(found, block), needed_for(results, block, found)
            work = sum(len(half.body) for half in halves)
            return found if work <= _REPEATED * len(needed_for(results, block).body) else []
    return []


def needed_for(wanted: Sequence[Value], block: Block, known: Collection[Value] = ()) -> Block:
    """Return the statements of a straight block that values need, given those already known."""
    needed = {v for v in wanted if v not in known}
    made: list[Statement] = []
    for s in reversed(block.body):
        if s in needed and isinstance(s, Value):
            made.append(s)
            needed.update(a for a in s.args if a not in known)
    return Block(made[::-1])


def _ends(
    every: Sequence[Value], varying: Collection[Value], stored: Collection[Value]
) -> dict[Value, int]:
    """Return the cycle in which each value that differs between pixels is ready."""
    found: dict[Value, int] = {}
    for v in every:
        if v in stored:
            found[v] = _SLOW["pixel"]
        elif v in varying:
            begin = max((found.get(a, 0) for a in v.args), default=0)
            found[v] = begin + (1 if v.op in _QUICK else _SLOW.get(v.op, _CYCLES))
    return found
