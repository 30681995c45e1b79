"""The LLVM module of a kernel: the layout of its job block, and its functions.

The module exports ``body(ptr job, ptr out, i64 start, i64 end)``, which computes the positions
[start, end), and ``all(ptr job)``, which computes all of them. Both only read the job block. Large
jobs are split into tiles by the functions of :mod:`dala.gpu.compute.engines.cpu.llvm.tiles`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.cpu.effort import LOOPS_NOTE, VECTORS_NOTE
from dala.gpu.compute.engines.cpu.llvm.loops import KernelLoops
from dala.gpu.compute.engines.cpu.llvm.tiles import HEAD_WORDS, OUT_WORD
from dala.gpu.compute.engines.cpu.vector.text import Module, runtime
from dala.gpu.compute.engines.unroll import has_loops
from dala.gpu.compute.lang.ir import Program, values

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
    from dala.gpu.compute.engines.cpu.machine import Machine

#: A number in the job block: ("dim" | "stride" | "shape", argument, axis).
Word: TypeAlias = tuple[str, int, int]


class JobLayout:
    """The layout of a job block, as eight-byte words: head, inputs, shapes, parameters."""

    def __init__(self, program: Program, axes: int) -> None:
        self.inputs = len(program.args)
        self.first_input = HEAD_WORDS
        first = HEAD_WORDS + self.inputs
        self.words = {w: first + i for i, w in enumerate(_geometry_words(program, axes))}
        self.first_param = first + len(self.words)

    def geometry_values(self, geometry: Geometry) -> list[int]:
        """Return the shapes and strides of the block, which are the same in every call."""
        found = []
        for kind, index, axis in self.words:
            if kind == "dim":
                found.append(geometry.dims[axis])
            elif kind == "stride":
                found.append(geometry.strides[index][axis])
            else:
                shape = geometry.out_shape if index < 0 else geometry.shapes[index]
                found.append(shape[axis])
        return found


def _geometry_words(program: Program, axes: int) -> Iterator[Word]:
    if axes > 1:
        yield from (("dim", 0, axis) for axis in range(axes))
        for i, arg in enumerate(program.args):
            if arg.kind == "element":
                yield from (("stride", i, axis) for axis in range(axes - 1))
    wanted: dict[Word, None] = {}
    for v in values(program.body):
        if v.op == "dim":
            wanted["shape", v.attr[0], v.attr[1]] = None
        elif v.op == "image":
            wanted["shape", v.attr[0], 0] = wanted["shape", v.attr[0], 1] = None
        elif v.op == "array":
            for axis in range(program.args[v.attr].rank):
                wanted["shape", v.attr, axis] = None
    yield from wanted


def module_text(
    program: Program,
    layout: tuple[int, tuple[int, ...]],
    attributes: str,
    known: Mapping[int, int] | None = None,
    analysis: ProgramAnalysis | None = None,
    machine: Machine | None = None,
    counting: bool = False,
) -> str:
    """Return the module of a program for a layout (see ``Geometry.layout``), as LLVM IR.

    Args:
        program: The program.
        layout: The number of axes, and each argument's step along the last one.
        attributes: Function attributes of this CPU.
        known: Parameters, by index, whose values this code is compiled for.
        analysis: The analysis of a pointwise pixel program, to be emitted with vectors.
        machine: The CPU; without it positions are emitted one by one.
        counting: Whether to count iterations against a limit.
    """
    module = Module()
    job = JobLayout(program, layout[0])
    if analysis is not None and machine is not None:
        # Imported here because element programs, which most processes run first, do not need it.
        from dala.gpu.compute.engines.cpu.loops.pointwise import pointwise_body

        body = pointwise_body(module, analysis, job, machine)
    else:
        loops = KernelLoops(module, program, layout, job, known or {}, counting)
        images = any(a.kind == "image" for a in program.args)
        if machine is not None and not counting and (images or has_loops(loops.unrolled)):
            from dala.gpu.compute.engines.cpu.llvm.masked import MaskedLoops

            masked = MaskedLoops(module, program, layout, job, known or {})
            loops = masked if masked.useful(machine.vector) else loops
        body = loops.text()
    return assemble(module, _heading(program, job), body, attributes)


def assemble(module: Module, heading: str, body: str, attributes: str) -> str:
    """Return the text of a module, given its functions."""
    # The linker provides no functions, so LLVM must not insert calls of memset or stack probes.
    shared = f'attributes #0 = {{ nounwind "no-builtins" "no-stack-arg-probe" {attributes}}}\n'
    metered = "@dala.check" in module.helpers
    enter = "call void @dala.enter(ptr %job)" if metered else ""
    whole = runtime("all", enter=enter, out=OUT_WORD)
    notes = (LOOPS_NOTE if module.loops else VECTORS_NOTE) if module.vectors else ""
    return "\n".join([heading, body, whole, module.text(), shared, notes + runtime("metadata")])


def _heading(p: Program, job: JobLayout) -> str:
    name = p.name if p.name.isprintable() else repr(p.name)
    lines = [f"; kernel {name}; its job block after the first {HEAD_WORDS} words:"]
    for at, a in enumerate(p.args, job.first_input):
        lines.append(f"; {at} input {a.name} ({a.kind} {a.dtype})")
    for (kind, index, axis), at in job.words.items():
        of = "" if kind == "dim" else " of the output" if index < 0 else f" of {p.args[index].name}"
        lines.append(f"; {at} {kind} {axis}{of}")
    for at, q in enumerate(p.params, job.first_param):
        part = "" if q.component is None else f"[{q.component}]"
        lines.append(f"; {at} parameter {q.name}{part} ({q.type})")
    return "\n".join(lines) + "\n"
