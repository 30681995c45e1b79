"""Compute values that two pixels share once: the weights of a bilateral filter.

A weight depends on two pixels and does not change if they are exchanged, bit by bit. Each of the
two reads the other as a neighbor, at opposite offsets. Such a weight becomes a stage that computes
it for one of the offsets, and the program reads its rows twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from dala.gpu.compute.engines.base import Link, Task
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.neighbor_stages import (
    Split,
    Stage,
    rest_program,
    split_links,
    stage_program,
    used_outside,
)
from dala.gpu.compute.engines.unroll import unroll
from dala.gpu.compute.lang.ir import *

#: The least operations of a stage, which are more than writing and reading its rows, and the least
#: number of stages.
_MIN_SIZE: Final = 30
_MIN_STAGES: Final = 4
#: The most statements of a program with its loops unrolled; most of them become parts.
_UNROLL_LIMIT: Final = 4000
#: The most statements in all programs of a chain; more would take too long to compile.
MAX_STATEMENTS: Final = 1500
#: What a part does not compute: it has neither the slots nor all arguments of its program.
_ELSEWHERE: Final = frozenset({"get", "pixel", "position", "dim", "element", "array"})

_ZERO, _ONE = (Value("const", "s32", (), n) for n in (0, 1))

_Offset: TypeAlias = tuple[int, int]
#: The number of a stage's expression, a value that has it, all values that are read from its rows,
#: with their offsets, and the offset of its neighbor.
_Pair: TypeAlias = tuple[int, Value, list[tuple[Value, _Offset]], _Offset]


@dataclass(frozen=True)
class Part(Link):
    """A stage that computes a part of the next whole link's program, with the same parameters.

    Its rows go on beyond the edges of the image, where they are computed from repeated pixels. Its
    program reads the neighbor as the pixel below, so that parts of several offsets share code.
    """

    #: Where that neighbor is: dx and dy.
    neighbor: _Offset = (0, 1)


class _Described(NamedTuple):
    """An expression of a pixel and at most one neighbor; equal ones have equal numbers."""

    number: int
    #: The number of the same expression with both pixels exchanged.
    exchanged: int
    #: Where the neighbor is, and the operations.
    offset: _Offset
    size: int

    @property
    def symmetric(self) -> bool:
        return self.offset != (0, 0) and self.number == self.exchanged


def add_pair_stages(
    links: Sequence[Link], analysis: Sequence[ProgramAnalysis | None]
) -> list[Link]:
    """Return the links, with stages of pairs before the programs of bytes that benefit."""

    def split(i: int, work: Program | Task) -> Split | None:
        found = analysis[i]
        if found is None or not found.program.exact or found.form.name != "packed":
            return None
        block, result = unroll(found.block, found.result, limit=_UNROLL_LIMIT)
        pairs = _pairs(block, result)
        if not pairs:
            return None
        # Parts of several offsets are one program: it is made and analyzed once.
        shared = {number: value for number, value, *_ in pairs}
        parts = {number: _part(found.program, value) for number, value in shared.items()}
        before: list[Stage] = [
            (*parts[number], partial(Part, neighbor=offset)) for number, *_, offset in pairs
        ]
        return _rest(found.program, block, result, pairs), before

    return split_links(links, split)


def first_params(links: Sequence[Link]) -> list[int]:
    """Return the index of each link's first parameter among the chain's."""
    found, at = [], 0
    for link in links:
        found.append(at)
        if isinstance(link.work, Program) and not isinstance(link, Part):
            at += len(link.work.params)
    return found


# analysis -------------------------------------------------------------------------------------
def _pairs(block: Block, result: tuple[Value, ...]) -> list[_Pair]:
    """Return the symmetric values of a program without loops; none if there are few."""
    described: dict[Value, _Described] = {}
    numbers: dict[Hashable, int] = {}
    every = list(values(block))
    for v in arguments_first(every):
        about = _describe(v, described, numbers)
        if about is not None:
            described[v] = about
    symmetric = {v: about for v, about in described.items() if about.symmetric}
    # Results of symmetric expressions: something else uses them.
    used = used_outside(block, result, symmetric)
    groups: dict[tuple[int, _Offset], list[tuple[Value, _Offset]]] = {}
    for v in every:
        about = symmetric.get(v)
        if v in used and v.type == "f32" and about and about.size >= _MIN_SIZE:
            dx, dy = about.offset
            first = (dy, dx) > (0, 0)
            key = about.number, (dx, dy) if first else (-dx, -dy)
            groups.setdefault(key, []).append((v, (0, 0) if first else (dx, dy)))
    found = []
    for (number, neighbor), group in groups.items():
        here = [v for v, offset in group if offset == (0, 0)]
        if here and len(here) < len(group):
            found.append((number, here[0], group, neighbor))
    # What needs several neighbors stays in the program. Its parts may be too much beside it.
    size = sum(a.op != "const" for _, v, *_ in found for a in arguments_first([v]))
    size += sum(v not in described for v in every)
    return found if len(found) >= _MIN_STAGES and size <= MAX_STATEMENTS else []


def _describe(
    v: Value, described: dict[Value, _Described], numbers: dict[Hashable, int]
) -> _Described | None:
    """Describe an expression of its own pixel, one neighbor and numbers that all pixels share."""

    def number(*key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers))

    if v.op == "image":
        if any(a.op != "const" for a in v.args):
            return None
        offset = v.args[0].attr, v.args[1].attr
        here, there = (number("image", v.attr, near) for near in (True, False))
        if offset == (0, 0):
            return _Described(here, there, offset, 0)
        return _Described(there, here, offset, 0)
    if v.op in _ELSEWHERE:
        return None
    parts, offset, size = [], (0, 0), 0 if v.op == "const" else 1
    for a in v.args:
        about = described.get(a)
        if about is None or ((0, 0) != about.offset != offset != (0, 0)):
            return None
        parts.append(about)
        offset, size = max(offset, about.offset, key=any), min(size + about.size, 1000)
    own, other = [p.number for p in parts], [p.exchanged for p in parts]
    op = v.op
    if v.op in ("mul", "abs") and v.args[0].op == "sub" and len(set(v.args)) == 1:
        # The square or size of a difference is that of the opposite one.
        op += " of difference"
        parts = [described[a] for a in v.args[0].args]
        own, other = sorted(p.number for p in parts), sorted(p.exchanged for p in parts)
    same = op, v.type, repr(v.attr)
    return _Described(number(*same, *own), number(*same, *other), offset, size)


# rewriting ------------------------------------------------------------------------------------
def _part(program: Program, value: Value) -> tuple[Program, tuple[int, ...]]:
    """Return the program of a value, and which arguments of the whole it reads."""
    order = list(arguments_first([value]))
    arguments = tuple(dict.fromkeys(v.attr[0] for v in order if v.op == "image"))

    def read(v: Value) -> Value:
        places = _ZERO, _ONE if any(a.attr for a in v.args) else _ZERO
        return Value(v.op, v.type, places, (arguments.index(v.attr[0]), v.attr[1]))

    args = tuple(program.args[i] for i in arguments)
    name = f"{program.name} of pairs"
    return stage_program(name, args, program.params, order, read), arguments


def _rest(program: Program, block: Block, result: tuple[Value, ...], pairs: list[_Pair]) -> Program:
    """Return a program that reads the rows of its parts."""
    args = list(program.args)
    replaced: dict[Value, tuple[int, tuple[Value, ...]]] = {}
    for *_, group, _ in pairs:
        for v, offset in group:
            replaced[v] = len(args), tuple(Value("const", "s32", (), n) for n in offset)
        args.append(Arg(f"pairs{len(args)}", "image", "f32", 2))
    return rest_program(program, block, result, args, replaced)
