"""Move expressions of single neighbors into separate stages, so that they run once per pixel.

A Sobel filter computes the luma of eight neighbors, a bilateral filter scales the channels of
twenty-five. Without this, the same work is repeated for each pixel that reads the neighbor. Such an
expression of one neighbor becomes a stage, and the program reads its rows of f32.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dala.gpu.compute.engines.base import Link, Tensor
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.lang.ir import (
    Arg,
    Block,
    For,
    If,
    Out,
    Program,
    SetSlot,
    Statement,
    Value,
    make_program,
    values,
)

#: The least number of operations that a stage must save to be worth its rows.
MIN_SAVED: Final = 60
#: Iterations assumed for a loop of unknown length.
_LOOP_ITERATIONS: Final = 4

_PURE: Final = frozenset({"add", "sub", "mul", "div", "neg", "abs", "sqrt", "cast", "min", "max"})

#: The description of each value; see :func:`_describe`.
_Described: TypeAlias = "dict[Value, tuple[int, Hashable, int] | None]"


@dataclass
class _Group:
    """An expression of one neighbor, and all values that compute it, for any neighbor."""

    size: int
    argument: int
    found: list[Value] = field(default_factory=list)
    #: How often it is computed per pixel.
    times: int = 0


def add_neighbor_stages(links: Sequence[Link], worth: Sequence[bool]) -> list[Link]:
    """Return the links, with neighbor stages before those that benefit.

    ``worth`` selects the links to try.
    """
    made: list[Link] = []
    numbers: list[int] = []
    for link, try_it in zip(links, worth, strict=True):
        sources = tuple(n if n >= 0 else -1 - numbers[-1 - n] for n in link.sources)
        parts = _split(link.work) if try_it and isinstance(link.work, Program) else None
        if parts is None:
            made.append(Link(link.work, sources, link.out, link.store))
        else:
            rest, before = parts
            size = link.out.shape[:2]
            extra = []
            for program, argument in before:
                extra.append(-1 - len(made))
                made.append(Link(program, (sources[argument],), Tensor(size, "f32")))
            made.append(Link(rest, (*sources, *extra), link.out, link.store))
        numbers.append(len(made) - 1)
    return made


def _split(program: Program) -> tuple[Program, list[tuple[Program, int]]] | None:
    """Split a program; return its rest, and the new programs before it with their arguments."""
    if not program.out.pixels or any(a.kind == "array" for a in program.args):
        return None
    groups = _groups(program)
    saved = sum(g.size * (g.times - 1) for g in groups)
    if not groups or saved < MIN_SAVED:
        return None
    args, before = list(program.args), []
    replaced: dict[Value, tuple[int, Value]] = {}
    for k, g in enumerate(groups):
        before.append((_before(program, g), g.argument))
        for v in g.found:
            replaced[v] = (len(args), _read(v))
        args.append(Arg(f"{program.args[g.argument].name}{k}", "image", "f32", 2))
    copied = _Copy(replaced)
    body = copied.block(program.body)
    result = tuple(copied.of(v) for v in program.result)
    rest = make_program(
        program.name, tuple(args), program.out, program.params, body, result, program.rank
    )
    return rest, before


def _read(v: Value) -> Value:
    """Return the read in an expression of one neighbor."""
    while v.op != "image":
        v = next(a for a in v.args if a.op != "const")
    return v


# analysis -------------------------------------------------------------------------------------
def _groups(program: Program) -> list[_Group]:
    """Return expressions that are computed for several neighbors."""
    described: _Described = {}
    numbers: dict[Hashable, int] = {}
    every = list(values(program.body))
    for v in every:
        described[v] = _describe(v, described, numbers)
    inner = set()
    users: dict[Value, list[Value]] = {}
    for v in every:
        for a in v.args:
            users.setdefault(a, []).append(v)
    for v, using in users.items():
        # It is only used in a larger expression of the same neighbor.
        if described.get(v) and all(described[u] for u in using):
            inner.add(v)
    outside = set(program.result) | set(_slotted(program.body))
    counts = _counts(program.body)
    found: dict[int, _Group] = {}
    for v in every:
        about = described[v]
        if about is None or v.type != "f32" or v.op == "image" or (v in inner and v not in outside):
            continue
        same, _, size = about
        group = found.setdefault(same, _Group(size, _read(v).attr[0]))
        group.found.append(v)
    for group in found.values():
        sites = {(_offset_of(described[v]), counts[v]) for v in group.found}
        group.times = sum(t for _, t in sites)
    return [g for g in found.values() if g.times > 3]


def _offset_of(about: tuple[int, Hashable, int] | None) -> Hashable:
    return None if about is None else about[1]


def _describe(
    v: Value, described: _Described, numbers: dict[Hashable, int]
) -> tuple[int, Hashable, int] | None:
    """Describe an expression of one neighbor: an id that equal ones share, its offset, its cost."""
    if v.op == "image":
        offsets = tuple(("const", a.attr) if a.op == "const" else a for a in v.args)
        same = numbers.setdefault(("image", v.attr), len(numbers))
        return same, (v.attr[0], offsets), 2
    if v.op not in _PURE or v.op in FUNCTIONS:
        return None
    parts: list[Hashable] = []
    place: Hashable = None
    size = 1
    for a in v.args:
        if a.op == "const":
            parts.append(repr(a.attr))
            continue
        about = described.get(a)
        if about is None or (place is not None and about[1] != place):
            return None
        parts.append(about[0])
        place, size = about[1], size + about[2]
    if place is None:
        return None
    key = (v.op, v.type, v.attr, *parts)
    return numbers.setdefault(key, len(numbers)), place, min(size, 1000)


def _slotted(block: Block) -> list[Value]:
    found = []
    for s in block.body:
        if isinstance(s, SetSlot):
            found.append(s.value)
        elif isinstance(s, If):
            found += [s.condition, *_slotted(s.then), *_slotted(s.otherwise)]
        elif isinstance(s, For):
            found += _slotted(s.body)
    return found


def _counts(block: Block, times: int = 1) -> dict[Value, int]:
    """Estimate how often each value is computed per pixel."""
    found: dict[Value, int] = {}
    for s in block.body:
        if isinstance(s, Value):
            found[s] = times
        elif isinstance(s, If):
            found |= _counts(s.then, times) | _counts(s.otherwise, times)
        elif isinstance(s, For):
            counted = s.start.op == "const" and s.stop.op == "const"
            counts = len(range(s.start.attr, s.stop.attr, s.step)) if counted else _LOOP_ITERATIONS
            found |= _counts(s.body, times * counts)
    return found


# rewriting ------------------------------------------------------------------------------------
def _before(program: Program, group: _Group) -> Program:
    """Return the program of one expression, which reads its own pixel."""
    arg = program.args[group.argument]
    body: list[Statement] = []
    made: dict[Value, Value] = {}

    def copy(v: Value) -> Value:
        if v.op == "const":
            return v
        if v not in made:
            if v.op == "image":
                made[v] = Value("pixel", v.type, (), (0, v.attr[1]))
            else:
                made[v] = Value(v.op, v.type, tuple(copy(a) for a in v.args), v.attr)
            body.append(made[v])
        return made[v]

    result = copy(group.found[0])
    pixel = Arg(arg.name, "pixel", arg.dtype, arg.rank, arg.channels)
    return make_program(
        f"{program.name} before", (pixel,), Out("f32", 2, 1, True), (), Block(body), (result,), 2
    )


class _Copy:
    """Copies blocks, replacing some values by reads of the rows of a neighbor stage."""

    def __init__(self, replaced: dict[Value, tuple[int, Value]]) -> None:
        self.replaced = replaced
        self.made: dict[Value, Value] = {}

    def of(self, v: Value) -> Value:
        return self.made.get(v, v)

    def block(self, block: Block) -> Block:
        body: list[Statement] = []
        for s in block.body:
            if isinstance(s, Value):
                if s in self.replaced:
                    argument, read = self.replaced[s]
                    places = tuple(self.of(a) for a in read.args)
                    new = Value("image", "f32", places, (argument, 0))
                else:
                    new = Value(s.op, s.type, tuple(self.of(a) for a in s.args), s.attr)
                self.made[s] = new
                body.append(new)
            elif isinstance(s, SetSlot):
                body.append(SetSlot(s.slot, self.of(s.value)))
            elif isinstance(s, If):
                body.append(If(self.of(s.condition), self.block(s.then), self.block(s.otherwise)))
            elif isinstance(s, For):
                bounds = self.of(s.start), self.of(s.stop)
                body.append(For(s.index, *bounds, s.step, self.block(s.body)))
            else:
                body.append(s)
        return Block(body)
