"""Plan a chain of stages as one pass over an image: the rows that each stage reads and keeps.

A tile is a strip of rows, or a part of one. Within it every stage but the last keeps its newest
rows in a *ring*, as many as its readers need, and computes them just ahead of its readers. Columns
and rows around a tile that readers need are computed again in the adjacent tiles. Inputs that are
read around a pixel are copied into a ring too, where rows are long only their ends: their middle is
read in place. Every row read at an offset thus has its edge pixels repeated beyond its ends, and no
reader has to test its position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Link, Task, Tensor
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis, Reach
from dala.gpu.compute.engines.cpu.loops.pair_stages import Part, first_params

#: The largest stack space for the rings and scratch rows of a tile.
MAX_STACK: Final = 240 << 10
#: Stack sizes that code reserves; the smallest sufficient one is used.
_STACK_SIZES: Final = (32 << 10, 64 << 10, 128 << 10, 240 << 10)
#: The largest radius of a blur whose taps are unrolled.
UNROLLED_RADIUS: Final = 12
#: Bytes of a cache line. Rows are padded to whole lines, with a vector beyond the last pixel.
LINE: Final = 64


@dataclass
class RowSource:
    """Where a stage reads rows: the ring of another stage, or an input of the chain.

    ``stage`` is None for an input, whose number is ``input``.
    """

    stage: int | None
    input: int
    reach: Reach
    #: The neighbor that is read as the row below, if it is another; see :class:`Part`.
    neighbor: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return 2 if self.neighbor else self.reach.down - self.reach.up + 1


@dataclass
class RowStage:
    """One stage: a program, a blur, or a copy of an input."""

    sources: list[RowSource]
    out: Tensor
    analysis: ProgramAnalysis | None = None
    blur: Task | None = None
    #: Index of its first parameter among the chain's.
    first_param: int = 0
    #: An output of the chain that its rows are stored to as well.
    store: int | None = None
    #: Whether another stage reads its rows, which are then kept in a ring.
    ring: bool = False
    #: How many rows it is ahead of the last stage, and its first row relative to a strip.
    lead: int = 0
    first: int = 0
    depth: int = 1
    #: Columns computed on either side of a tile.
    margin: int = 0
    #: Whether it prefetches the output, which the last stage will store.
    prefetches: bool = False
    #: Whether it copies colors only, from RGBA.
    colors: bool = False
    #: Whether its rows go on beyond the edges of the image; see :class:`Part`.
    beyond: bool = False

    @property
    def channels(self) -> int:
        return self.out.shape[2] if len(self.out.shape) == 3 else 1

    @property
    def pixel(self) -> int:
        """Bytes of a pixel."""
        return self.channels * ITEMSIZE[self.out.dtype]

    @property
    def shift(self) -> int:
        """The offset from the number of a row to its slot in the ring, never negative."""
        return -self.first * self.depth if self.beyond else 0

    @property
    def copies(self) -> bool:
        """Whether it copies rows of an input, or their ends, as they are."""
        return self.analysis is None and self.blur is None and not self.colors

    @property
    def table(self) -> int:
        """Bytes of scratch memory that its program fills before the first row."""
        return 0 if self.analysis is None else self.analysis.form.scratch

    @property
    def scratch(self) -> bool:
        """Whether its row function needs scratch memory."""
        return self.blur is not None or self.table > 0

    @property
    def read(self) -> list[int]:
        """Bytes of a pixel of each source."""
        if self.analysis is None:
            return [self.pixel + self.colors] * len(self.sources)
        return [ITEMSIZE[a.dtype] * a.channels for a in self.analysis.program.args]


@dataclass
class RowPlan:
    """A chain planned for an image size."""

    stages: list[RowStage]
    height: int
    width: int
    #: Columns of a tile.
    columns: int = 0
    #: For each stage: the offset of its ring and the bytes of a row.
    rings: list[tuple[int, int]] = field(default_factory=list)
    #: For each stage: the offset of its scratch memory (a blur's sums between its passes, a table).
    scratch: list[int] = field(default_factory=list)
    stack_bytes: int = 0

    @property
    def halo(self) -> int:
        """The most rows that a strip computes beyond its own."""
        return max(s.lead - s.first for s in self.stages)


def blur_radius(task: Task) -> int:
    """Return the radius of a blur."""
    return int(task["radius"])


def sums_colors(task: Task) -> bool:
    """Return whether a blur leaves out alpha, which stays as it is, where the CPU can."""
    rgba = task.output.dtype == "u8" and task.output.shape[2:] == (4,)
    return rgba and 1 <= blur_radius(task) <= UNROLLED_RADIUS


def make_stages(
    links: Sequence[Link],
    analysis: Sequence[ProgramAnalysis | None],
    inputs: Sequence[Tensor],
    colors: bool,
) -> list[RowStage]:
    """Return the stages of a chain, copies of its inputs first; unused stages are left out.

    With ``colors``, a blur of RGBA reads copies without alpha, and alpha from the picture.
    """
    reaches = [_reaches(link, found) for link, found in zip(links, analysis, strict=True)]
    wanted = _needed_links(links)
    stages: list[RowStage] = []
    copies: dict[int, int] = {}
    for i in wanted:
        for n, reach in zip(links[i].sources, reaches[i], strict=True):
            if n >= 0 and n not in copies and not reach.pointwise and analysis[i] is not None:
                copies[n] = len(stages)
                stages.append(RowStage([RowSource(None, n, Reach())], inputs[n]))
    numbers: dict[int, int] = {}
    params = first_params(links)
    for i, (link, found) in enumerate(zip(links, analysis, strict=True)):
        if i in wanted:
            sources = []
            for n, reach in zip(link.sources, reaches[i], strict=True):
                stage = copies.get(n) if n >= 0 else numbers[-1 - n]
                source = RowSource(stage, n, reach)
                if isinstance(link, Part) and not reach.pointwise:
                    source.neighbor = link.neighbor
                sources.append(source)
            blur = link.work if isinstance(link.work, Task) else None
            if blur is not None:
                given = sources[0]
                if link.sources[0] >= 0:
                    given.stage = None  # a blur handles edges itself
                if colors and sums_colors(blur):
                    alpha = RowSource(given.stage, given.input, Reach())
                    shape = (*link.out.shape[:2], 3)
                    stages.append(RowStage([alpha], Tensor(shape, "u8"), colors=True))
                    given.stage = len(stages) - 1
                    sources.append(alpha)
            row_stage = RowStage(sources, link.out, found, blur, params[i], link.store)
            row_stage.beyond = isinstance(link, Part)
            numbers[i] = len(stages)
            stages.append(row_stage)
    _connect(stages)
    _choose_prefetch(stages)
    return stages


def _choose_prefetch(stages: list[RowStage]) -> None:
    """Choose a stage that prefetches the output while it computes.

    The last stage is often too fast to hide the latency of memory.
    """
    last = stages[-1]
    for s in reversed(stages[:-1]):
        computes = s.analysis is not None and not s.table
        if computes and s.ring and (s.out.dtype, s.pixel) == (last.out.dtype, last.pixel):
            s.prefetches = True
            return


def _needed_links(links: Sequence[Link]) -> set[int]:
    wanted: set[int] = set()
    for i in reversed(range(len(links))):
        if i == len(links) - 1 or links[i].store is not None or i in wanted:
            wanted.add(i)
            wanted.update(-1 - n for n in links[i].sources if n < 0)
    return wanted


def _reaches(link: Link, analysis: ProgramAnalysis | None) -> list[Reach]:
    if analysis is not None and isinstance(link, Part):
        dx, dy = link.neighbor
        around = Reach(min(dx, 0), max(dx, 0), 0, dy)
        return [around if reach.down else reach for reach in analysis.reach]
    if analysis is not None:
        return analysis.reach
    assert isinstance(link.work, Task)
    r = blur_radius(link.work)
    return [Reach(-r, r, -r, r)]


def _connect(stages: list[RowStage]) -> None:
    """Compute how many rows each stage must be ahead of its readers, and keep for them."""
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
            q.margin = max(q.margin, s.margin + max(-reach.left, reach.right))


def original(stages: Sequence[RowStage], source: RowSource) -> RowSource | None:
    """Return the input that is read in place of a source, its copy; None for others."""
    if source.stage is None or not reads_in_place(stages):
        return None
    stage = stages[source.stage]
    return stage.sources[0] if stage.copies else None


def reads_in_place(stages: Sequence[RowStage]) -> bool:
    """Return whether inputs may be read in place: no stage begins beside the image."""
    return not any(s.beyond for s in stages)


def lay_out(stages: list[RowStage], height: int, width: int, lanes: int) -> RowPlan | None:
    """Return a plan whose tiles are narrow enough for their rings to fit the stack, or None."""
    columns = max(width, 1)
    while True:
        plan = RowPlan(stages, height, width, columns)
        at = 0
        for s in stages:
            stride = _line((columns + 2 * s.margin + lanes) * s.pixel + 4 * LINE)
            plan.rings.append((at, stride))
            at += s.depth * stride if s.ring else 0
        for s in stages:
            plan.scratch.append(at)
            if s.blur is not None:
                # A sum between the two passes has at most four bytes.
                wide = columns + 2 * (s.margin + blur_radius(s.blur)) + 4 * LINE
                at += _line(wide * s.channels * 4)
            else:
                at += s.table
        if at <= MAX_STACK:
            plan.stack_bytes = next(size for size in _STACK_SIZES if size >= at)
            return plan
        narrower = LINE * (columns // 2 // LINE)
        if narrower < LINE or narrower < 4 * max(s.margin for s in stages):
            return None
        columns = narrower


def _line(nbytes: int) -> int:
    return -(-nbytes // LINE) * LINE
