"""Move expressions of single neighbors into separate stages, so that they run once per pixel.

A Sobel filter computes the luma of eight neighbors, a bilateral filter scales the channels of
twenty-five. Without this, the same work is repeated for each pixel that reads the neighbor. Such an
expression of one neighbor becomes a stage, and the program reads its rows of f32.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from dala.gpu.compute.engines.base import Link, Task, Tensor
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.engines.cpu.rules.sums import needed_values
from dala.gpu.compute.engines.loop_bounds import repeated
from dala.gpu.compute.lang.ir import *
from dala.gpu.compute.lang.rewrite import Copier, emit

#: The least number of operations that a stage must save to be worth its rows.
MIN_SAVED: Final = 60
#: Iterations assumed for a loop of unknown length.
_LOOP_ITERATIONS: Final = 4

_PURE: Final = frozenset({"add", "sub", "mul", "div", "neg", "abs", "sqrt", "cast", "min", "max"})

#: A new stage: its program, the arguments of the whole that it reads, and what makes its link.
Stage: TypeAlias = "tuple[Program, tuple[int, ...], Callable[..., Link]]"
#: What is left of a program, and the stages before it.
Split: TypeAlias = "tuple[Program, list[Stage]]"
#: The description of each value; see :func:`_describe`.
_Described: TypeAlias = "dict[Value, tuple[int, Hashable, int]]"


@dataclass
class _Group:
    """An expression of one neighbor, and all values that compute it, for any neighbor."""

    size: int
    argument: int
    found: list[Value] = field(default_factory=list)
    #: How often it is computed per pixel.
    times: int = 0


def add_neighbor_stages(links: Sequence[Link], worth: Sequence[bool]) -> list[Link]:
    """Return the links, with neighbor stages before the links that benefit.

    ``worth`` selects the links to try.
    """

    def split(i: int, work: Program | Task) -> Split | None:
        return _split(work) if worth[i] and isinstance(work, Program) else None

    return split_links(links, split)


def split_links(
    links: Sequence[Link], split: Callable[[int, Program | Task], Split | None]
) -> list[Link]:
    """Return the links, with the stages that ``split`` finds for a link before its rest."""
    made: list[Link] = []
    numbers: list[int] = []
    for i, link in enumerate(links):
        sources = tuple(n if n >= 0 else -1 - numbers[-1 - n] for n in link.sources)
        work, before = split(i, link.work) or (link.work, [])
        extra = tuple(-1 - len(made) - k for k in range(len(before)))
        for program, arguments, kind in before:
            given = tuple(sources[a] for a in arguments)
            made.append(kind(program, given, Tensor(link.out.shape[:2], "f32")))
        numbers.append(len(made))
        made.append(Link(work, sources + extra, link.out, link.store))
    return made


def _split(program: Program) -> Split | None:
    """Split a program into stages of neighbors and its rest."""
    if not program.out.pixels or any(a.kind == "array" for a in program.args):
        return None
    groups = _groups(program)
    saved = sum(g.size * (g.times - 1) for g in groups)
    if not groups or saved < MIN_SAVED:
        return None
    args: list[Arg] = list(program.args)
    before: list[Stage] = []
    replaced: dict[Value, tuple[int, tuple[Value, ...]]] = {}
    for k, g in enumerate(groups):
        arg, order = program.args[g.argument], needed_values(g.found[:1])
        pixel, name = replace(arg, kind="pixel"), f"{program.name} before"
        before.append((stage_program(name, (pixel,), (), order, _own), (g.argument,), Link))
        for v in g.found:
            replaced[v] = len(args), _read(v).args
        args.append(Arg(f"{arg.name}{k}", "image", "f32", 2))
    return rest_program(program, program.body, program.result, args, replaced), before


def _read(v: Value) -> Value:
    """Return the read in an expression of one neighbor."""
    while v.op != "image":
        v = next(a for a in v.args if a.op != "const")
    return v


def _own(read: Value) -> Value:
    """Return the read of a stage's own pixel, for that of a neighbor."""
    return Value("pixel", read.type, (), (0, read.attr[1]))


# analysis -------------------------------------------------------------------------------------
def _groups(program: Program) -> list[_Group]:
    """Return expressions that are computed for several neighbors."""
    described: _Described = {}
    numbers: dict[Hashable, int] = {}
    for v in values(program.body):
        about = _describe(v, described, numbers)
        if about is not None:
            described[v] = about
    used = used_outside(program.body, program.result, described)
    counts = dict(repeated(program.body, _LOOP_ITERATIONS))
    found: dict[int, _Group] = {}
    for v, (same, _, size) in described.items():
        if v.type == "f32" and v.op != "image" and v in used:
            found.setdefault(same, _Group(size, _read(v).attr[0])).found.append(v)
    for group in found.values():
        group.times = sum(t for _, t in {(described[v][1], counts[v]) for v in group.found})
    return [g for g in found.values() if g.times > 3]


def used_outside(block: Block, result: tuple[Value, ...], inside: Container[Value]) -> set[Value]:
    """Return results, and the operands of all statements but some values."""
    used = set(result)
    used.update(a for s in statements(block) if s not in inside for a in operands(s))
    return used


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


# rewriting ------------------------------------------------------------------------------------
def stage_program(
    name: str,
    args: tuple[Arg, ...],
    params: tuple[Param, ...],
    order: Iterable[Value],
    read: Callable[[Value], Value],
) -> Program:
    """Return the program of the last of some values, which come after their operands.

    ``read`` returns what takes the place of the read of an image.
    """

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        if old.op != "image":
            return None
        body.append(made := read(old))
        return made

    listed = [v for v in order if v.op != "const"]
    copier = Copier(change)
    body, result = copier.block(Block([*listed])), (copier.of(listed[-1]),)
    return make_program(name, args, Out("f32", 2, 1, True), params, body, result, 2)


def rest_program(
    program: Program,
    block: Block,
    result: tuple[Value, ...],
    args: list[Arg],
    replaced: Mapping[Value, tuple[int, tuple[Value, ...]]],
) -> Program:
    """Return a program that reads the rows of other stages: (argument, offset) for some values."""

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        if old not in replaced:
            return None
        argument, places = replaced[old]
        return emit(body, "image", "f32", *map(copier.of, places), attr=(argument, 0))

    copier = Copier(change)
    body, kept = copier.block(block), tuple(map(copier.of, result))
    return make_program(
        program.name, tuple(args), program.out, program.params, body, kept, program.rank
    )
