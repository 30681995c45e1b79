"""How a chain of stages goes over a picture in one pass: who reads whose rows, how many are kept.

A tile is a strip of rows, or a piece of one. Within it every stage but the last keeps its newest
rows in a *ring*, as many as its readers reach; they are computed just ahead of the readers. Columns
and rows around the tile that readers need are computed once more in the tiles beside it. Outside
inputs that are read around a pixel are copied into a ring too, so that every row read at an offset
has its edges repeated beyond its ends and no reader has to look where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Link, Task, Tensor
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis, Reach
from dala.gpu.compute.engines.cpu.rows.forms.table import SIZE
from dala.gpu.compute.engines.cpu.rows.planes import PlaneStage, planes_of

#: Rings and other rows of a tile, on the stack of the thread that computes it.
SPACE: Final = 240 << 10
#: Rings go to the next cache line, and a vector of the widest pixels beyond the last pixel.
LINE: Final = 64


@dataclass
class RowSource:
    """Where an input comes from: the ring of a stage, or (stage None) an outside input."""

    stage: int | None
    outside: int
    reach: Reach


@dataclass
class RowStage:
    """One stage: a program, a blur, planes, or (none of them) a copy of an outside input."""

    sources: list[RowSource]
    out: Tensor
    analysis: ProgramAnalysis | None = None
    blur: Task | None = None
    #: Makes rows of an outside picture's planes, or planes of rows.
    planes: PlaneStage | None = None
    #: Number of the first parameter among the chain's.
    first_param: int = 0
    #: Outside output that keeps the rows besides.
    store: int | None = None
    #: Whether anybody reads it, that is, whether it has a ring.
    ring: bool = False
    #: Rows that the newest one is ahead of the last stage's; rows before a strip that it begins at.
    lead: int = 0
    first: int = 0
    depth: int = 1
    #: Columns computed on either side of a tile.
    around: int = 0
    #: Whether it asks for the memory of the output ahead of the last stage, which stores there.
    ahead: bool = False

    @property
    def channels(self) -> int:
        return self.out.shape[2] if len(self.out.shape) == 3 else 1

    @property
    def pixel(self) -> int:
        """Bytes of a pixel."""
        return self.channels * ITEMSIZE[self.out.dtype]

    @property
    def scratch(self) -> bool:
        """Whether its row function is given scratch of its own."""
        return self.blur is not None or (self.analysis is not None and self.analysis.table)

    @property
    def read(self) -> list[int]:
        """Bytes of a pixel of each source."""
        if self.planes is not None:
            return [self.planes.pixel]
        if self.analysis is None:
            return [self.pixel]
        return [ITEMSIZE[a.dtype] * a.channels for a in self.analysis.program.args]


@dataclass
class RowPlan:
    """A chain planned for a width."""

    stages: list[RowStage]
    height: int
    width: int
    #: Columns of a tile.
    columns: int = 0
    #: For each stage: where its ring starts and the bytes of a row of it.
    rings: list[tuple[int, int]] = field(default_factory=list)
    #: For each stage: where its own scratch starts (a blur's sums between its passes, a table).
    scratch: list[int] = field(default_factory=list)
    space: int = 0

    @property
    def halo(self) -> int:
        """Rows that a strip computes beyond its own, at most."""
        return max(s.lead - s.first for s in self.stages)


def blur_radius(task: Task) -> int:
    """How far a blur reaches."""
    return int(task["radius"])


def make_stages(
    links: Sequence[Link], analysis: Sequence[ProgramAnalysis | None], inputs: Sequence[Tensor]
) -> list[RowStage]:
    """The stages of a chain, copies of outside inputs first; what nobody asks for is left out."""
    reaches = [_reaches(link, found) for link, found in zip(links, analysis, strict=True)]
    wanted = _wanted(links)
    stages: list[RowStage] = []
    copies: dict[int, int] = {}
    for i in wanted:
        for n, reach in zip(links[i].sources, reaches[i], strict=True):
            if n >= 0 and n not in copies and not reach.pointwise and analysis[i] is not None:
                copies[n] = len(stages)
                stages.append(RowStage([RowSource(None, n, Reach())], inputs[n]))
    numbers: dict[int, int] = {}
    param = 0
    for i, (link, found) in enumerate(zip(links, analysis, strict=True)):
        if i in wanted:
            sources = []
            for n, reach in zip(link.sources, reaches[i], strict=True):
                stage = copies.get(n) if n >= 0 else numbers[-1 - n]
                sources.append(RowSource(stage, n, reach))
            numbers[i] = len(stages)
            task = link.work if isinstance(link.work, Task) else None
            planes = None if task is None else planes_of(task, link.sources)
            blur = task if planes is None else None
            if blur is not None and link.sources[0] >= 0:
                sources[0].stage = None  # a blur looks after the edges itself
            made = RowStage(sources, link.out, found, blur, planes, param, link.store)
            if planes is not None and planes.last:
                made.first = 1  # at every second row, with the one above
            stages.append(made)
        param += 0 if isinstance(link.work, Task) else len(link.work.params)
    _connect(stages)
    _look_ahead(stages)
    return stages


def _look_ahead(stages: list[RowStage]) -> None:
    """Chooses the stage that has the output's lines fetched while it computes.

    The last stage is often too quick to hide how long memory takes to come.
    """
    last = stages[-1]
    for s in reversed(stages[:-1]):
        computes = s.analysis is not None and not s.analysis.table
        if computes and s.ring and (s.out.dtype, s.pixel) == (last.out.dtype, last.pixel):
            s.ahead = True
            return


def _wanted(links: Sequence[Link]) -> set[int]:
    wanted: set[int] = set()
    for i in reversed(range(len(links))):
        if i == len(links) - 1 or links[i].store is not None or i in wanted:
            wanted.add(i)
            wanted.update(-1 - n for n in links[i].sources if n < 0)
    return wanted


def _reaches(link: Link, analysis: ProgramAnalysis | None) -> list[Reach]:
    if analysis is not None:
        return analysis.reach
    assert isinstance(link.work, Task)
    if link.work.op != "blur":
        return [Reach(up=-1 if n < 0 else 0) for n in link.sources]
    r = blur_radius(link.work)
    return [Reach(-r, r, -r, r)]


def _connect(stages: list[RowStage]) -> None:
    """Finds how far ahead of its readers each stage must be, from the last one back."""
    low = [0] * len(stages)
    for i in reversed(range(len(stages))):
        s = stages[i]
        s.depth = s.lead - low[i] + 1
        for source in s.sources:
            if source.stage is None:
                continue
            q, reach = stages[source.stage], source.reach
            if not q.ring:
                q.ring, q.lead, low[source.stage], q.first = True, -(1 << 30), 1 << 30, 0
            q.lead = max(q.lead, s.lead + reach.down)
            low[source.stage] = min(low[source.stage], s.lead + reach.up)
            q.first = min(q.first, s.first + reach.up)
            q.around = max(q.around, s.around + max(-reach.left, reach.right))


def lay_out(stages: list[RowStage], height: int, width: int, lanes: int) -> RowPlan | None:
    """Tiles narrow enough that their rings fit; None if even the narrowest do not."""
    columns = max(width, 1)
    while True:
        plan = RowPlan(stages, height, width, columns)
        at = 0
        for s in stages:
            stride = _line((columns + 2 * s.around + lanes) * s.pixel + 4 * LINE)
            plan.rings.append((at, stride))
            at += s.depth * stride if s.ring else 0
        for s in stages:
            plan.scratch.append(at)
            if s.blur is not None:
                # Between the passes a number takes at most four bytes.
                wide = columns + 2 * (s.around + blur_radius(s.blur)) + 4 * LINE
                at += _line(wide * s.channels * 4)
            elif s.analysis is not None and s.analysis.table:
                at += SIZE
        plan.space = at
        if at <= SPACE:
            return plan
        if any(s.planes is not None for s in stages):
            return None  # they go over whole rows
        narrower = LINE * (columns // 2 // LINE)
        if narrower < LINE or narrower < 4 * max(s.around for s in stages):
            return None
        columns = narrower


def _line(nbytes: int) -> int:
    return -(-nbytes // LINE) * LINE
