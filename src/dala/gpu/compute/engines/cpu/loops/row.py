"""Row functions: compute part of a row of a pixel program, one vector of pixels at a time.

``row(ptr job, ptr out, ptr rows, i64 count, i64 x, i64 y)`` writes ``count`` pixels to ``out``,
whose position in the image is (x, y). ``rows`` is a table of pointers: for each argument, in order,
one for each row that is read, top to bottom, to the pixel at the position of the first output
pixel. Memory of the window extends at least a vector beyond the pixels asked for, or these are
whole vectors. Memory of the caller is *exact*: the last pixels, too few for a vector, are copied to
and from a scratch vector. Only arguments that are read at their own pixel may be exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.emitter import Emitter, ValueReader, allocate_slots
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter
from dala.gpu.compute.engines.cpu.loops.copies import OUTPUT, ROWS_AHEAD, prefetch, whole_and_rest
from dala.gpu.compute.engines.cpu.loops.strips import in_two_loops
from dala.gpu.compute.engines.cpu.machine import Machine
from dala.gpu.compute.engines.cpu.rules.sums import find_color_sum
from dala.gpu.compute.engines.cpu.vector.text import (
    NONTEMPORAL,
    STORED,
    TYPES,
    FunctionText,
    Module,
)
from dala.gpu.compute.lang.ir import Arg, Out, Value

_PARAMETERS: Final = "ptr %job, ptr %out, ptr %rows, i64 %count, i64 %x0, i64 %y"

#: A loaded vector: ("column",), (argument, dx, dy) or (argument, dx, dy, channel).
_Loaded: TypeAlias = "tuple[int | str, ...]"


@dataclass(frozen=True)
class RowSpec:
    """Everything that a row function depends on."""

    #: Receives helper functions.
    module: Module
    name: str
    analysis: ProgramAnalysis
    machine: Machine
    #: The word of the job block with an extent: ``attr`` of a ``dim`` operation -> its index.
    dims: Callable[[tuple[int, int]], int]
    #: The word of the first parameter.
    first_param: int
    #: For each argument, whether its rows end with their last pixel.
    exact_args: Sequence[bool]
    #: Whether the output does.
    exact_out: bool
    #: The entry of ``rows`` that points to the output of a later stage, to be prefetched.
    prefetch: int | None = None
    #: Whether the output is written with non-temporal stores; its rows are on 64-byte boundaries.
    stream: bool = False
    #: Arguments that are read from far memory, and prefetched some rows ahead.
    far: Sequence[int] = ()
    #: Whether the program is a part of one of bytes.
    part: bool = False


def row_writer(module: Module, name: str) -> FunctionText:
    """Return a writer for a row function."""
    module.vectors = True
    return FunctionText(module, f"define internal void {name}({_PARAMETERS}) noinline #0")


class RowFunction(ValueReader):
    """Emits a row function with vectors of pixels."""

    def __init__(self, spec: RowSpec) -> None:
        analysis = spec.analysis
        self.f = row_writer(spec.module, spec.name)
        self.spec = spec
        self.analysis = analysis
        self.program = analysis.emitted
        self.machine = spec.machine
        self.vector = spec.machine.vector
        self.words32 = f"<{self.vector // 4} x i32>"
        self.words16 = f"<{self.vector // 2} x i16>"
        self.lanes = self.vector if analysis.bytes else self.vector // 4
        slots = allocate_slots(self.f, analysis.block, self.lanes, analysis.varying_slots)
        self.meter = LoopMeter(self.f, analysis.block)
        self.emitter = Emitter(
            self.f, self, slots, self.meter, self.lanes, analysis.varying, analysis.varying_slots,
            analysis.program.exact or spec.part,
        )  # fmt: skip
        #: Pixels to write; in a per-channel form, elements.
        self.count = "%count"
        self.params: list[str] = []
        #: Pointers by argument and row. Those of exact arguments move to the scratch vector.
        self.rows: dict[tuple[int, int], str] = {}
        #: Index of each argument's first row in ``rows``.
        self.first: list[int] = []
        at = 0
        for reach in analysis.reach:
            self.first.append(at)
            at += reach.down - reach.up + 1
        self.out = "%out"
        self.x = ""
        self.prefetched = ""
        #: For each argument that is read from far memory, how many bytes ahead it is prefetched.
        self.ahead: dict[int, str] = {}
        self.loaded: dict[_Loaded, str] = {}
        self.outer: list[dict[_Loaded, str]] = []

    def size(self, argument: int) -> int:
        """Return the bytes of a pixel of an argument or of the output."""
        a = self.program.out if argument == OUTPUT else self.program.args[argument]
        return ITEMSIZE[a.dtype] * a.channels

    def text(self) -> str:
        """Return the finished function."""
        f = self.f
        for i, p in enumerate(self.program.params):
            self.params.append(f.param(self.spec.first_param + i, TYPES[p.type], p.name))
        for i, reach in enumerate(self.analysis.reach):
            for dy in range(reach.up, reach.down + 1):
                self.rows[i, dy] = self.entry(str(self.first[i] + dy - reach.up))
        if self.analysis.scale > 1:
            self.count = f.let(f"mul i64 %count, {self.analysis.scale}")
        if self.spec.prefetch is not None:
            self.prefetched = self.entry(str(self.spec.prefetch))
        for i in self.spec.far:
            width, pixel = f.word(self.spec.dims((i, 1))), self.analysis.scale * self.size(i)
            self.ahead[i] = f.let(f"mul i64 {width}, {ROWS_AHEAD * pixel}")
        self.block = self.analysis.block
        self.emitter.hoist(self.block)
        self.begin()
        ends = enumerate(self.spec.exact_args)
        exact = {i: (self.rows[i, 0], self.size(i)) for i, e in ends if e}
        if self.spec.exact_out:
            exact[OUTPUT] = ("%out", self.size(OUTPUT))
        if exact:
            with whole_and_rest(f, self.count, self.lanes, exact) as (begin, stop, pointers):
                self.out = pointers.pop(OUTPUT, self.out)
                self.rows |= {(i, 0): pointer for i, pointer in pointers.items()}
                self.vectors(begin, stop)
        else:
            last = f.let(f"add i64 {self.count}, {self.lanes - 1}")
            self.vectors("0", f.let(f"and i64 {last}, {-self.lanes}"))
        f.do("ret void")
        return f.text()

    def begin(self) -> None:
        """Emit code ahead of the loop, once all uniform values are computed."""

    def entry(self, index: str) -> str:
        """Load an entry of the table of rows."""
        return self.f.let(f"load ptr, ptr {self.f.at('%rows', index, 'ptr')}", "row")

    def vectors(self, begin: str, stop: str) -> None:
        """Emit the loop over vectors."""

        def vector(x: str) -> None:
            self.x, self.loaded = x, {}
            self.prefetch()
            self.put(self.computed())

        if not in_two_loops(self, begin, stop, vector):
            self.meter.positions(begin, stop, vector, self.lanes)

    def results(self) -> list[Value]:
        """Return the values that are stored, apart from channels that stay in place."""
        return [v for c, v in enumerate(self.analysis.result) if self.stays(c) is None]

    def stays(self, channel: int) -> int | None:
        """Return the argument whose bytes a channel of packed pixels keeps; None for others."""
        argument, source = self.analysis.kept.get(channel, (0, -1))
        packed = self.program.out.dtype == "u8" and self.program.out.channels in (3, 4)
        if not packed or source != channel or self.program.args[argument].channels not in (3, 4):
            return None
        return argument

    def prefetch(self) -> None:
        """Prefetch memory that will be written, and the pixels of rows below."""
        if self.prefetched:
            offset = self.f.let(f"mul nsw i64 {self.x}, {self.size(OUTPUT)}")
            prefetch(self.f, self.prefetched, offset, 1, write=True)
        for i, ahead in self.ahead.items():
            offset = self.f.let(f"mul nsw i64 {self.x}, {self.size(i)}")
            row = self.f.at(self.rows[i, self.analysis.reach[i].down], ahead)
            prefetch(self.f, row, offset, self.lanes * self.size(i))

    # reads --------------------------------------------------------------------------------------
    def enter(self) -> None:
        """Enter a scope."""
        self.outer.append(dict(self.loaded))

    def leave(self) -> None:
        """Leave a scope: vectors loaded in it are not visible after it."""
        self.loaded = self.outer.pop()

    def read(self, value: Value, args: list[str]) -> str:
        """Return the operand of a read."""
        f, v = self.f, value
        if v.op == "param":
            index: int = v.attr
            return self.params[index]
        if v.op == "position":
            return self.position(v.attr)
        if v.op == "dim":
            return self.dim(v)
        i, channel = v.attr
        if v.op == "pixel":
            return self.channel(i, "0", "0", channel)
        if v.args[0].op == "const":
            dx = str(v.args[0].attr * self.analysis.scale)
        else:
            dx = f.let(f"sext i32 {args[0]} to i64")
            dx = f.let(f"mul nsw i64 {dx}, {self.analysis.scale}")
        return self.channel(i, dx, args[1], channel, v.args[1].op == "const")

    def position(self, axis: int) -> str:
        """Return the row, or the columns of the vector's pixels."""
        f, n = self.f, self.lanes
        if axis == 0:
            return f.let("trunc i64 %y to i32")
        key = ("column",)
        if key not in self.loaded:
            first = f.let(f"trunc i64 {f.let(f'add i64 %x0, {self.x}')} to i32")
            steps = ", ".join(f"i32 {i}" for i in range(n))
            self.loaded[key] = f.let(f"add <{n} x i32> {f.splat('i32', first, n)}, <{steps}>")
        return self.loaded[key]

    def dim(self, v: Value) -> str:
        """Return an extent of the image or its number of channels."""
        argument, axis = v.attr
        if axis == 2:
            of = self.program.out if argument < 0 else self.program.args[argument]
            return self.f.let(f"add i32 {of.channels}, 0")
        return self.f.let(f"trunc i64 {self.f.word(self.spec.dims(v.attr))} to i32")

    def row(self, i: int, dy: str, constant: bool) -> str:
        """Return a pointer to the row of an argument ``dy`` below the current one."""
        f = self.f
        if constant:
            return self.rows[i, int(dy)]
        index = f.let(f"add i32 {dy}, {self.first[i] - self.analysis.reach[i].up}")
        return self.entry(f.let(f"zext i32 {index} to i64"))

    def channel(self, i: int, dx: str, dy: str, channel: int, constant: bool = True) -> str:
        """Return one channel of a vector of pixels, u8 as i32."""
        arg = self.program.args[i]
        part = (i, dx, dy, channel)
        if part not in self.loaded:
            pixels = self.pixels(i, dx, dy, constant)
            self.loaded[part] = self.part(pixels, arg.dtype, arg.channels, channel)
        return self.loaded[part]

    def pixels(self, i: int, dx: str = "0", dy: str = "0", constant: bool = True) -> str:
        """Load a vector of pixels of an argument, once per scope."""
        f, arg, key = self.f, self.program.args[i], (i, dx, dy)
        if key not in self.loaded:
            at = f.at(self.row(i, dy, constant), self.offset(dx, self.size(i)))
            if _three_bytes(arg):
                self.loaded[key] = self.widened(at)
            else:
                kind = _vector_in_memory(arg.dtype, arg.channels, self.lanes)
                self.loaded[key] = f.let(f"load {kind}, ptr {at}, align 1", arg.name)
        return self.loaded[key]

    def offset(self, dx: str, size: int) -> str:
        """Return the offset of a vector of elements of some bytes, once per scope."""
        f, key = self.f, ("offset", dx, size)
        if key not in self.loaded:
            x = self.x if dx == "0" else f.let(f"add nsw i64 {self.x}, {dx}")
            self.loaded[key] = f.let(f"mul nsw i64 {x}, {size}") if size > 1 else x
        return self.loaded[key]

    def pairs(self, i: int, dx: str = "0", dy: str = "0") -> tuple[str, str]:
        """Return red and blue, and green and alpha, of pixels of bytes: pairs of 16 bits."""
        f, first, second = self.f, (i, dx, dy, "rb"), (i, dx, dy, "ga")
        if first not in self.loaded:
            words = f.let(f"bitcast {self.words32} {self.pixels(i, dx, dy)} to {self.words16}")
            self.loaded[first] = f.let(f"and {self.words16} {words}, splat (i16 255)")
            self.loaded[second] = f.let(f"lshr {self.words16} {words}, splat (i16 8)")
        return self.loaded[first], self.loaded[second]

    def times(self, a: str, b: str) -> str:
        """Multiply pairs of 16-bit numbers, and add the products of each pair in 32 bits."""
        return self.f.intrinsic(self.machine.pair_product, self.words32, self.words16, a, b)

    def color_sum(self, value: Value) -> str:
        """Emit a sum of one pixel's bytes with constant weights; "" for other values."""
        found = find_color_sum(value) if self.machine.pair_product else None
        if found is None or self.analysis.bytes:
            return ""
        (i, dx, dy), weights = found
        if self.program.args[i].dtype != "u8" or self.program.args[i].channels not in (3, 4):
            return ""
        place = (i, str(dx * self.analysis.scale), str(dy))
        factors = [(weights[0], weights[2]), (weights[1], weights[3])]
        total = ""
        for pixels, (low, high) in zip(self.pairs(*place), factors, strict=True):
            if low or high:
                both = ", ".join([f"i16 {low}, i16 {high}"] * (self.vector // 4))
                product = self.times(pixels, f"<{both}>")
                total = self.f.let(f"add {self.words32} {total}, {product}") if total else product
        return total

    def widened(self, at: str) -> str:
        """Load pixels of three bytes, each into a 32-bit word whose upper byte is 0.

        Four pixels at a time, which CPUs shuffle best. Nothing is read beyond the last.
        """
        f, n = self.f, self.lanes
        kind, size, parts = "<16 x i8>", 16, []
        for first in range(0, n, 4):
            begin = min(3 * first, 3 * n - 16)
            pointer = f.at(at, str(begin)) if begin else at
            four = f.let(f"load {kind}, ptr {pointer}, align 1")
            skip = 3 * first - begin
            places = [skip + 3 * k + c if c < 3 else 16 for k in range(4) for c in range(4)]
            parts.append(f.shuffle(kind, four, "zeroinitializer", places))
        while len(parts) > 1:
            kind, size = f"<{size} x i8>", 2 * size
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [f.shuffle(kind, a, b, range(size)) for a, b in pairs]
        return f.let(f"bitcast <{size} x i8> {parts[0]} to <{n} x i32>")

    def narrowed(self, words: str) -> str:
        """Drop the upper byte of every 32-bit word."""
        f, n = self.f, self.lanes
        kind = f"<{4 * n} x i8>"
        pixels = f.let(f"bitcast <{n} x i32> {words} to {kind}")
        return f.shuffle(kind, pixels, "poison", [4 * k + c for k in range(n) for c in range(3)])

    def part(self, pixels: str, dtype: str, channels: int, channel: int) -> str:
        """Extract one channel of loaded pixels."""
        f, n = self.f, self.lanes
        if dtype == "u8" and channels in (3, 4):
            if channel:
                pixels = f.let(f"lshr <{n} x i32> {pixels}, splat (i32 {8 * channel})")
            if channel == channels - 1:
                return pixels
            return f.let(f"and <{n} x i32> {pixels}, splat (i32 255)")
        if channels > 1:
            kind = f"<{n * channels} x {STORED[dtype]}>"
            pixels = f.shuffle(kind, pixels, "poison", range(channel, n * channels, channels))
        if dtype != "u8" or self.analysis.bytes:
            return pixels
        return f.let(f"zext <{n} x i8> {pixels} to <{n} x i32>")

    # the store ----------------------------------------------------------------------------------
    def computed(self) -> str:
        """Emit the program; return the vector of results as it is stored."""
        out, emitter = self.program.out, self.emitter
        mark = emitter.mark()
        emitter.zero_slots()
        emitter.block(self.block)
        if out.dtype == "u8" and out.channels in (3, 4):
            value = self.packed()
            value = self.narrowed(value) if _three_bytes(out) else value
        else:
            values = [emitter.operand(r, True) for r in self.analysis.result]
            if out.dtype == "u8" and not self.analysis.bytes:
                values = [
                    self.f.let(f"trunc {self.words32} {v} to <{self.lanes} x i8>") for v in values
                ]
            value = self.f.interleaved(STORED[out.dtype], values, self.lanes)
        emitter.rewind(mark)
        return value

    def put(self, value: str) -> None:
        """Store a vector of results."""
        f, out, n = self.f, self.program.out, self.lanes
        if self.analysis.alpha is not None:
            value = self.with_alpha(value, self.analysis.alpha)
        size = self.size(OUTPUT)
        offset = f.let(f"mul nsw i64 {self.x}, {size}") if size > 1 else self.x
        kind = _vector_in_memory(out.dtype, out.channels, n)
        f.do(f"store {kind} {value}, ptr {f.at(self.out, offset)}, {self.access()}")

    def access(self) -> str:
        """Return how the output is stored: its alignment, and whether the caches keep it."""
        nbytes = self.lanes * self.size(OUTPUT)
        if self.spec.stream and nbytes in (16, 32, 64):
            return f"align {nbytes}{NONTEMPORAL}"
        return "align 1"

    def packed(self) -> str:
        """Pack u8 channels into 32-bit words; channels kept from an input are masked in place."""
        f, n = self.f, self.lanes
        parts: list[str] = []
        masks: dict[int, int] = {}
        for channel, result in enumerate(self.analysis.result):
            source = self.stays(channel)
            if source is not None:
                masks[source] = masks.get(source, 0) | 255 << 8 * channel
                continue
            value = self.emitter.operand(result, True)
            if channel:
                value = f.let(f"shl <{n} x i32> {value}, splat (i32 {8 * channel})")
            parts.append(value)
        for argument, mask in masks.items():
            signed = mask - (1 << 32) if mask >> 31 else mask
            pixels = self.pixels(argument)
            parts.append(f.let(f"and <{n} x i32> {pixels}, splat (i32 {signed})"))
        total = parts[0]
        for part in parts[1:]:
            total = f.let(f"or <{n} x i32> {total}, {part}")
        return total

    def with_alpha(self, value: str, argument: int) -> str:
        """Replace every fourth element by that of an argument."""
        kind = _vector_in_memory(self.program.out.dtype, 1, self.lanes)
        return fourths_from(self.f, kind, value, self.pixels(argument), self.lanes)


class RowWithOther(RowFunction):
    """Emits a row function, and another one that it calls in some cases."""

    def __init__(self, spec: RowSpec, other: RowSpec) -> None:
        super().__init__(spec)
        self.other = other

    def text(self) -> str:
        """Return both functions."""
        return RowFunction(self.other).text() + "\n" + super().text()

    def call_other(self, label: str, after: str) -> None:
        """Emit a block that calls the other function and returns, and begin the one after it."""
        self.f.start(label)
        self.f.do(f"call void {self.other.name}({_PARAMETERS})")
        self.f.do("ret void")
        self.f.start(after)


def fourths_from(f: FunctionText, kind: str, value: str, other: str, lanes: int) -> str:
    """Return a vector with every fourth element from another one."""
    return f.shuffle(kind, value, other, [lanes + i if i % 4 == 3 else i for i in range(lanes)])


def interleave(f: FunctionText, kind: str, a: str, b: str, n: int, group: int, half: int) -> str:
    """Interleave half of the elements of two vectors, within groups."""
    each = [p + half * group // 2 + i for p in range(0, n, group) for i in range(group // 2)]
    return f.shuffle(kind, a, b, [place for i in each for place in (i, n + i)])


def _three_bytes(of: Arg | Out) -> bool:
    """Return whether pixels have three bytes in memory, and four in a vector."""
    return of.dtype == "u8" and of.channels == 3


def _vector_in_memory(dtype: str, channels: int, lanes: int) -> str:
    if dtype == "u8" and channels == 4:
        return f"<{lanes} x i32>"
    return f"<{lanes * channels} x {STORED[dtype]}>"
