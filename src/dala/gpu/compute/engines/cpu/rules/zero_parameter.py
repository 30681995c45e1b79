"""The shorter program that is left of one that stores bytes where a parameter is 0.

Many filters add something times an amount. With an amount of 0, whole channels are often copies of
the input, and what they would have needed is not computed. Row functions test this for every row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.analysis import Form, ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.row import RowSpec, RowWithOther
from dala.gpu.compute.engines.cpu.rules.program import PixelProgram, PlainForm
from dala.gpu.compute.engines.cpu.rules.sums import needed_values
from dala.gpu.compute.engines.cpu.rules.values import kept_channels
from dala.gpu.compute.engines.cpu.vector.text import constant
from dala.gpu.compute.lang.ir import FLOATS, Block, Value

#: Uniform factors of what is left out must not exceed 2 to this power: their product with 0 is 0.
UNIFORM_BITS: Final = 10
#: Operations whose result is bounded if their operands are.
_SIZED: Final = frozenset({"add", "sub", "mul", "neg", "abs", "min", "max", "select"})
#: Numbers up to 2 to this power are finite.
_MOST_BITS: Final = 120


@dataclass
class ZeroVariant(Form):
    """A packed program, and the shorter one for a parameter that is 0."""

    name = "packed"
    #: The index of the parameter.
    param: int
    block: Block
    result: tuple[Value, ...]
    kept: dict[int, tuple[int, int]]
    #: Uniform values of the whole program that must be small for this to hold.
    guarded: list[Value]

    def text(self, spec: RowSpec) -> str:
        """Return the row function of the program, which calls that of the variant."""
        return _ZeroParameterRow(spec, self).text()

    def analysis(self, whole: ProgramAnalysis) -> ProgramAnalysis:
        """Return the analysis of the variant."""
        made = replace(
            whole, block=self.block, result=self.result, kept=self.kept, varying=set(),
            form=PlainForm("packed"),
        )  # fmt: skip
        made.find_varying()
        return made


def zero_parameter(source: PixelProgram) -> ProgramAnalysis | None:
    """Return the analysis of a program that keeps more channels where a parameter is 0."""
    program = source.program
    if program.out.dtype != "u8":
        return None
    if any(not isinstance(s, Value) or s.op == "get" for s in source.block.body):
        return None
    whole = source.whole(PlainForm("packed"))
    whole.find_varying()
    best: ZeroVariant | None = None
    for index, param in enumerate(program.params):
        if param.type != "f32":
            continue
        folder = _Folder(index, whole.varying)
        made = tuple(folder.fold(v) for v in source.result)
        found = kept_channels(made, program)
        if len(found) > len(source.kept if best is None else best.kept):
            needed = needed_values(made)  # LLVM drops what copied channels do not need
            best = ZeroVariant(index, Block([*needed]), made, found, folder.guarded)
    return None if best is None else replace(whole, form=best)


class _ZeroParameterRow(RowWithOther):
    """Emits a row function, and the one that it calls where a parameter is 0."""

    def __init__(self, spec: RowSpec, variant: ZeroVariant) -> None:
        zero = replace(spec, name=f"{spec.name}.zero", analysis=variant.analysis(spec.analysis))
        super().__init__(spec, zero)
        self.variant = variant

    def begin(self) -> None:
        """Call the other function, and return, where it computes the same."""
        f, variant = self.f, self.variant
        same = f.let(f"fcmp oeq float {self.params[variant.param]}, {constant(0.0, 'float')}")
        fabs = f.module.intrinsic("fabs.f32", "float", "float")
        for v in variant.guarded:
            size = f.let(f"call float {fabs}(float {self.emitter.operand(v, False)})")
            small = f.let(f"fcmp ole float {size}, {constant(2.0**UNIFORM_BITS, 'float')}")
            same = f.let(f"and i1 {same}, {small}")
        f.branch(same, "zero", "other")
        self.call_other("zero", "other")


@dataclass
class _Folder:
    """Replaces a parameter by 0, and folds the values that depend on it."""

    param: int
    varying: set[Value]
    guarded: list[Value] = field(default_factory=list)
    _made: dict[Value, Value] = field(default_factory=dict)
    _bits: dict[Value, float] = field(default_factory=dict)

    def fold(self, v: Value) -> Value:
        """Return a value with the parameter replaced."""
        if v not in self._made:
            self._made[v] = self._fold(v)
        return self._made[v]

    def _fold(self, v: Value) -> Value:
        if v.op == "param" and v.attr == self.param:
            return Value("const", v.type, (), 0.0)
        if not v.args:
            return v
        args = tuple(self.fold(a) for a in v.args)
        if v.type == "f32":
            zeros = [a.op == "const" and a.attr == 0 for a in args]
            if v.op == "mul" and any(zeros) and (all(zeros) or self._finite(v.args[zeros[0]])):
                return Value("const", "f32", (), 0.0)
            if v.op in ("add", "sub") and zeros[1]:
                return args[0]
            if v.op == "add" and zeros[0]:
                return args[1]
        if all(a is b for a, b in zip(args, v.args, strict=True)):
            return v
        return Value(v.op, v.type, args, v.attr)

    def _finite(self, v: Value) -> bool:
        """Return whether a value is finite, if the guarded values are small."""
        return self._size(v) <= _MOST_BITS

    def _size(self, v: Value) -> float:
        """Return the power of two that bounds a value; infinity where there is none."""
        if v not in self._bits:
            self._bits[v] = self._size_of(v)
        return self._bits[v]

    def _size_of(self, v: Value) -> float:
        if v.op == "const":
            number = abs(float(v.attr))
            return math.log2(max(number, 1e-30)) if math.isfinite(number) else math.inf
        if v not in self.varying:
            if v.type != "f32":
                return math.inf
            if v not in self.guarded:
                self.guarded.append(v)
            return UNIFORM_BITS
        if v.op == "cast" and v.args[0].type in ("s32", "u32") and v.type in FLOATS:
            return 32.0
        if v.type != "f32" or v.op not in _SIZED:
            return math.inf
        sizes = [self._size(a) for a in v.args[v.op == "select" :]]
        if v.op == "mul":
            return sum(sizes)
        return max(sizes) + (1.0 if v.op in ("add", "sub") else 0.0)
