"""A pixel program as the rules see it, and the forms that the plain row function emits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from dala.gpu.compute.engines.cpu.llvm.analysis import Form, ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.row import RowFunction, RowSpec
from dala.gpu.compute.engines.cpu.rules.per_channel import flatten
from dala.gpu.compute.lang.ir import Block, Program, Value


@dataclass
class PixelProgram:
    """A pixel program without short loops, before its form is chosen."""

    program: Program
    block: Block
    result: tuple[Value, ...]
    #: Output channels that always equal a channel of an argument at the same pixel.
    kept: dict[int, tuple[int, int]]
    #: Whether a table lookup beats any computation on this CPU.
    tables: bool
    #: The program for one channel, if it treats all alike; alpha may be kept.
    flat: tuple[Program, Block, tuple[Value, ...]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        mixed = self.alpha is None and self.program.out.channels == 4 and 3 in self.kept
        if not mixed:
            kept = self.alpha is not None
            self.flat = flatten(self.program, self.block, self.result, kept)

    @property
    def alpha(self) -> int | None:
        """The argument whose alpha is kept, if it is."""
        found = self.kept.get(3) if self.program.out.channels == 4 else None
        return found[0] if found is not None and found[1] == 3 else None

    @property
    def of_bytes(self) -> bool:
        """Whether bytes are read and stored, and nothing else."""
        return {self.program.out.dtype, *(a.dtype for a in self.program.args)} == {"u8"}

    def whole(self, form: Form) -> ProgramAnalysis:
        """Return the analysis of the whole program."""
        return ProgramAnalysis(self.program, self.program, self.block, self.result, form, self.kept)

    def one_channel(self, form: Form) -> ProgramAnalysis:
        """Return the analysis of the program for one channel."""
        assert self.flat is not None
        scale = self.program.out.channels
        return ProgramAnalysis(self.program, *self.flat, form, scale=scale, alpha=self.alpha)


#: Returns the analysis of a program in the rule's form, or None if it does not fit.
Rule: TypeAlias = Callable[[PixelProgram], ProgramAnalysis | None]


@dataclass
class PlainForm(Form):
    """A form that the plain row function emits.

    "packed": vectors of whole pixels, whose channels are taken apart: any program. "per_channel": a
    row is a run of elements: programs that treat all channels alike. "bytes": the same, on bytes
    that are never widened: ``min`` and ``max`` only.
    """

    name: str

    def text(self, spec: RowSpec) -> str:
        """Return the plain row function."""
        return RowFunction(spec).text()
