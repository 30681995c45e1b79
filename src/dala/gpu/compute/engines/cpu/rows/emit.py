"""The function that computes a piece of a row of a pixel program, a vector of pixels at a time.

``row(ptr job, ptr out, ptr rows, i64 count, i64 x, i64 y)`` writes ``count`` pixels to ``out``;
their place in the picture is (x, y). ``rows`` points to pointers: for each argument, in order, one
for each row it is read from, top to bottom, to the pixel that stands where the first one of the
output does. Arguments and output are either *loose*, in memory of ours that goes on for at least a
vector beyond what is asked for, or *tight*: then the last few pixels, too few for a vector, are
moved to and from a scratch vector. Only what is read at its own pixel alone may be tight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.cpu.llvm.facts import Facts
from dala.gpu.compute.engines.cpu.llvm.text import STORED, TYPES, Function, Module
from dala.gpu.compute.engines.cpu.llvm.vector import Vectors
from dala.gpu.compute.lang.ir import Arg, Out, Value

#: Copies bytes one by one: the ends of rows.
MOVE: Final = """\
define internal void @move(ptr %to, ptr %from, i64 %bytes) noinline #0 {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %byte ]
  %more = icmp slt i64 %i, %bytes
  br i1 %more, label %byte, label %done
byte:
  %from.i = getelementptr i8, ptr %from, i64 %i
  %to.i = getelementptr i8, ptr %to, i64 %i
  %moved = load i8, ptr %from.i
  store i8 %moved, ptr %to.i
  %next = add nuw nsw i64 %i, 1
  br label %head, !llvm.loop !2
done:
  ret void
}
"""
#: Repeats the pixel at the end of a row.
_REPEAT: Final = """\
define internal void @repeat{size}(ptr %to, ptr %from, i64 %count) noinline #0 {{
entry:
  %pixel = load {kind}, ptr %from, align 1
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %skip = mul nuw nsw i64 %i, {size}
  %to.i = getelementptr i8, ptr %to, i64 %skip
  store {kind} %pixel, ptr %to.i, align 1
  %next = add nuw nsw i64 %i, 1
  br label %head, !llvm.loop !2
done:
  ret void
}}
"""
_PIXELS: Final = {
    1: "i8", 2: "i16", 3: "<3 x i8>", 4: "i32", 6: "<3 x i16>", 8: "i64", 12: "<3 x i32>",
    16: "<4 x i32>",
}  # fmt: skip


def repeat_function(module: Module, size: int) -> str:
    """The name of the function that fills memory with a pixel of so many bytes."""
    name = f"@repeat{size}"
    module.helpers[name] = _REPEAT.format(size=size, kind=_PIXELS[size])
    return name


@dataclass(frozen=True)
class Machine:
    """What code of rows depends on of the machine."""

    #: Bytes of the vectors it is written with; LLVM cuts what is wider than the machine's own.
    vector: int
    #: The intrinsic for the upper half of products of such vectors of 16-bit numbers, or "": the
    #: compiler loses sight of the instruction where one factor is made outside of a loop.
    upper_product: str
    #: The intrinsic that looks 64 bytes up in 128, or "".
    lookup: str = ""
    #: The intrinsic for products of such vectors of signed 16-bit fractions, rounded, or "".
    rounded_product: str = ""
    #: The intrinsic for products of signed 16-bit numbers, added up in pairs, or "".
    pair_product: str = ""
    #: The intrinsic for products of bytes and signed ones, added up in pairs, or "".
    byte_product: str = ""

    @staticmethod
    def of(features: Mapping[str, bool]) -> Machine:
        """The best for what a processor has."""
        if features.get("avx512f") and features.get("avx512bw"):
            lookup = "x86.avx512.vpermi2var.qi.512" if features.get("avx512vbmi") else ""
            names = ("pmulhu.w", "pmul.hr.sw", "pmaddw.d", "pmaddubs.w")
            products = [f"x86.avx512.{name}.512" for name in names]
            return Machine(64, products[0], lookup, *products[1:])
        if features.get("avx512f"):
            return Machine(64, "")
        if features.get("avx2"):
            names = ("pmulhu.w", "pmul.hr.sw", "pmadd.wd", "pmadd.ub.sw")
            products = [f"x86.avx2.{name}" for name in names]
            return Machine(32, products[0], "", *products[1:])
        return Machine(32, "")


@dataclass(frozen=True)
class Words:
    """Where a row function finds its numbers in the job block, in words of eight bytes."""

    #: The word of an extent: ``attr`` of a ``dim`` operation -> its place.
    dims: Callable[[tuple[int, int]], int]
    first_param: int
    #: The entry of ``rows`` that points to memory which will be written soon, as wide as the
    #: output: fetched ahead.
    ahead: int | None = None


class Row:
    """Writes one row function."""

    def __init__(
        self,
        module: Module,
        name: str,
        facts: Facts,
        words: Words,
        vector: int,
        tight_args: Sequence[bool],
        tight_out: bool,
    ) -> None:
        self.f = Function(
            module,
            f"define internal void {name}(ptr %job, ptr %out, ptr %rows, i64 %count, "
            "i64 %x0, i64 %y) noinline #0",
        )
        self.facts = facts
        self.program = facts.form
        self.words = words
        self.lanes = vector if facts.bytes else vector // 4
        self.tight_args, self.tight_out = tight_args, tight_out
        self.vectors = Vectors(self.f, self, facts, self.lanes)
        #: Pixels to write; in the flat form, numbers.
        self.count = "%count"
        self.params: list[str] = []
        #: Pointers by argument and row; those of tight arguments move to the scratch vector.
        self.rows: dict[tuple[int, int], str] = {}
        #: Number of each argument's first row in ``rows``.
        self.first: list[int] = []
        at = 0
        for reach in facts.reach:
            self.first.append(at)
            at += reach.down - reach.up + 1
        self.out = "%out"
        self.x = ""
        self.ahead = ""
        self.loaded: dict[object, str] = {}
        self.outer: list[dict[object, str]] = []

    @property
    def tight(self) -> bool:
        return self.tight_out or any(self.tight_args)

    def size(self, argument: int) -> int:
        """Bytes of a pixel; -1 is the output."""
        a = self.program.out if argument < 0 else self.program.args[argument]
        return ITEMSIZE[a.dtype] * a.channels

    def text(self) -> str:
        """The finished function."""
        f, v = self.f, self.vectors
        v.make_slots()
        for i, p in enumerate(self.program.params):
            kind = TYPES[p.type]
            name = self.word(self.words.first_param + i, "i8" if kind == "i1" else kind, p.name)
            self.params.append(f.let(f"icmp ne i8 {name}, 0") if kind == "i1" else name)
        for i, reach in enumerate(self.facts.reach):
            for dy in range(reach.up, reach.down + 1):
                at = f.let(f"getelementptr ptr, ptr %rows, i64 {self.first[i] + dy - reach.up}")
                self.rows[i, dy] = f.let(f"load ptr, ptr {at}", "row")
        if self.facts.scale > 1:
            self.count = f.let(f"mul i64 %count, {self.facts.scale}")
        if self.words.ahead is not None:
            at = f.let(f"getelementptr ptr, ptr %rows, i64 {self.words.ahead}")
            self.ahead = f.let(f"load ptr, ptr {at}", "soon")
        v.before()
        self.begin()
        if self.tight:
            self.both_rounds()
        else:
            last = f.let(f"add i64 {self.count}, {self.lanes - 1}")
            self.loop("0", f.let(f"and i64 {last}, {-self.lanes}"))
        f.do("ret void")
        return f.text()

    def begin(self) -> None:
        """Written ahead of the loop, once parameters and all that is made of them are known."""

    def word(self, at: int, kind: str = "i64", hint: str = "word") -> str:
        """Loads a word of the job block."""
        pointer = self.f.let(f"getelementptr i64, ptr %job, i64 {at}")
        return self.f.let(f"load {kind}, ptr {pointer}", hint)

    def both_rounds(self) -> None:
        """The whole vectors in place, then the rest in scratch, through one copy of the code."""
        f, lanes = self.f, self.lanes
        moved = [i for i, tight in enumerate(self.tight_args) if tight]
        scratch = {i: self.scratch(i) for i in (*moved, *((-1,) if self.tight_out else ()))}
        f.module.helpers["@move"] = MOVE
        whole = f.let(f"and i64 {self.count}, {-lanes}")
        rest = f.let(f"sub i64 {self.count}, {whole}")
        end = f.let(f"add i64 {whole}, {lanes}")
        real = {i: self.rows[i, 0] for i in moved}
        before = f.here
        f.jump("round")
        f.start("round")
        first = f.let(f"phi i1 [ true, %{before} ], [ false, %ends ]")
        begin = f.let(f"phi i64 [ 0, %{before} ], [ {whole}, %ends ]")
        stop = f.let(f"phi i64 [ {whole}, %{before} ], [ {end}, %ends ]")
        for i in moved:
            text = f"phi ptr [ {real[i]}, %{before} ], [ %shift{i}, %ends ]"
            self.rows[i, 0] = f.let(text)
        if self.tight_out:
            self.out = f.let(f"phi ptr [ %out, %{before} ], [ %shift.out, %ends ]")
        self.loop(begin, stop)
        f.branch(first, "check", "finish")
        f.start("check")
        f.branch(f.let(f"icmp eq i64 {rest}, 0"), "leave", "ends")
        f.start("ends")
        for i, space in scratch.items():
            skip = f.let(f"mul i64 {whole}, {self.size(i)}")
            if i >= 0:
                source = f.let(f"getelementptr i8, ptr {real[i]}, i64 {skip}")
                count = f.let(f"mul i64 {rest}, {self.size(i)}")
                f.do(f"call void @move(ptr {space}, ptr {source}, i64 {count})")
            back = f.let(f"sub i64 0, {skip}")
            name = f"%shift{i}" if i >= 0 else "%shift.out"
            f.do(f"{name} = getelementptr i8, ptr {space}, i64 {back}")
        f.jump("round")
        f.start("finish")
        if self.tight_out:
            target = f.let(f"mul i64 {whole}, {self.size(-1)}")
            target = f.let(f"getelementptr i8, ptr %out, i64 {target}")
            count = f.let(f"mul i64 {rest}, {self.size(-1)}")
            f.do(f"call void @move(ptr {target}, ptr {scratch[-1]}, i64 {count})")
        f.jump("leave")
        f.start("leave")

    def scratch(self, argument: int) -> str:
        """A vector's worth of pixels on the stack."""
        name = f"scratch{argument}" if argument >= 0 else "scratch.out"
        return self.f.alloca(f"[{self.lanes * self.size(argument)} x i8]", name, 64)

    def loop(self, begin: str, stop: str) -> None:
        """Vectors from one pixel of the row to another."""
        f = self.f
        before = f.here
        f.jump("along")
        f.start("along")
        self.x = f.let(f"phi i64 [ {begin}, %{before} ], [ %x.next, %ahead ]", "x")
        f.branch(f.let(f"icmp slt i64 {self.x}, {stop}"), "vector", "endalong")
        f.start("vector")
        self.loaded = {}
        if self.ahead:
            self.fetch()
        self.put(self.computed())
        f.jump("ahead")
        f.start("ahead")
        f.do(f"%x.next = add nuw nsw i64 {self.x}, {self.lanes}")
        f.jump("along", ", !llvm.loop !2")
        f.start("endalong")

    def fetch(self) -> None:
        """Asks for memory that will be written; an address that is none does no harm."""
        f = self.f
        name = f.module.intrinsic("prefetch.p0", "void", "ptr", "i32", "i32", "i32")
        skip = f.let(f"mul nsw i64 {self.x}, {self.size(-1)}")
        at = f.let(f"getelementptr i8, ptr {self.ahead}, i64 {skip}")
        f.do(f"call void {name}(ptr {at}, i32 1, i32 3, i32 1)")

    # reads --------------------------------------------------------------------------------------
    def enter(self) -> None:
        """Begins a scope: what is loaded in it is not known after it."""
        self.outer.append(dict(self.loaded))

    def leave(self) -> None:
        """Ends a scope."""
        self.loaded = self.outer.pop()

    def read(self, v: Value, args: list[str]) -> str:
        """The operand of a read."""
        f = self.f
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
            dx = str(v.args[0].attr * self.facts.scale)
        else:
            dx = f.let(f"sext i32 {args[0]} to i64")
            dx = f.let(f"mul nsw i64 {dx}, {self.facts.scale}")
        return self.channel(i, dx, args[1], channel, v.args[1].op == "const")

    def position(self, axis: int) -> str:
        """The row, or the columns of the vector's pixels."""
        f, n = self.f, self.lanes
        if axis == 0:
            return f.let("trunc i64 %y to i32")
        if "column" not in self.loaded:
            first = f.let(f"trunc i64 {f.let(f'add i64 %x0, {self.x}')} to i32")
            one = f.let(f"insertelement <{n} x i32> poison, i32 {first}, i64 0")
            spread = f.let(
                f"shufflevector <{n} x i32> {one}, <{n} x i32> poison, <{n} x i32> zeroinitializer"
            )
            steps = ", ".join(f"i32 {i}" for i in range(n))
            self.loaded["column"] = f.let(f"add <{n} x i32> {spread}, <{steps}>")
        return self.loaded["column"]

    def dim(self, v: Value) -> str:
        """An extent of the picture or the number of its channels."""
        argument, axis = v.attr
        if axis == 2:
            of = self.program.out if argument < 0 else self.program.args[argument]
            return self.f.let(f"add i32 {of.channels}, 0")
        return self.f.let(f"trunc i64 {self.word(self.words.dims(v.attr))} to i32")

    def row(self, i: int, dy: str, fixed: bool) -> str:
        """A pointer to the row of an argument dy below."""
        f, up = self.f, self.facts.reach[i].up
        if fixed:
            return self.rows[i, int(dy)]
        offset = f.let(f"add i32 {dy}, {self.first[i] - up}")
        at = f.let(f"getelementptr ptr, ptr %rows, i64 {f.let(f'zext i32 {offset} to i64')}")
        return f.let(f"load ptr, ptr {at}", "row")

    def channel(self, i: int, dx: str, dy: str, channel: int, fixed: bool = True) -> str:
        """A channel of a vector of pixels, u8 as i32."""
        f, arg, n = self.f, self.program.args[i], self.lanes
        key = (i, dx, dy)
        if key not in self.loaded:
            x = self.x if dx == "0" else f.let(f"add nsw i64 {self.x}, {dx}")
            offset = f.let(f"mul nsw i64 {x}, {self.size(i)}") if self.size(i) > 1 else x
            at = f.let(f"getelementptr i8, ptr {self.row(i, dy, fixed)}, i64 {offset}")
            if _spaced(arg):
                self.loaded[key] = self.widened(at)
            else:
                kind = _memory(arg.dtype, arg.channels, n)
                self.loaded[key] = f.let(f"load {kind}, ptr {at}, align 1", arg.name)
        part = (i, dx, dy, channel)
        if part not in self.loaded:
            self.loaded[part] = self.part(self.loaded[key], arg.dtype, arg.channels, channel)
        return self.loaded[part]

    def widened(self, at: str) -> str:
        """Pixels of three bytes, each in a word of its own, whose upper byte is 0.

        Four at a time, which machines shuffle best; nothing is read beyond the last.
        """
        f, n = self.f, self.lanes
        kind, zero = "<16 x i8>", "<16 x i8> zeroinitializer"
        parts = []
        for first in range(0, n, 4):
            begin = min(3 * first, 3 * n - 16)
            pointer = f.let(f"getelementptr i8, ptr {at}, i64 {begin}") if begin else at
            four = f.let(f"load {kind}, ptr {pointer}, align 1")
            skip = 3 * first - begin
            places = [skip + 3 * k + c if c < 3 else 16 for k in range(4) for c in range(4)]
            listed = ", ".join(f"i32 {p}" for p in places)
            parts.append(f.let(f"shufflevector {kind} {four}, {zero}, <16 x i32> <{listed}>"))
        size = 16
        while len(parts) > 1:
            kind, size = f"<{size} x i8>", 2 * size
            listed = ", ".join(f"i32 {p}" for p in range(size))
            parts = [
                f.let(f"shufflevector {kind} {a}, {kind} {b}, <{size} x i32> <{listed}>")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        return f.let(f"bitcast <{size} x i8> {parts[0]} to <{n} x i32>")

    def narrowed(self, words: str) -> str:
        """The other way round."""
        f, n = self.f, self.lanes
        kind = f"<{4 * n} x i8>"
        pixels = f.let(f"bitcast <{n} x i32> {words} to {kind}")
        places = ", ".join(f"i32 {4 * k + c}" for k in range(n) for c in range(3))
        return f.let(f"shufflevector {kind} {pixels}, {kind} poison, <{3 * n} x i32> <{places}>")

    def part(self, pixels: str, dtype: str, channels: int, channel: int) -> str:
        """One channel out of loaded pixels."""
        f, n = self.f, self.lanes
        if dtype == "u8" and channels in (3, 4):
            if channel:
                pixels = f.let(f"lshr <{n} x i32> {pixels}, splat (i32 {8 * channel})")
            return (
                pixels
                if channel == channels - 1
                else f.let(f"and <{n} x i32> {pixels}, splat (i32 255)")
            )
        if channels > 1:
            places = ", ".join(f"i32 {k * channels + channel}" for k in range(n))
            kind = f"<{n * channels} x {STORED[dtype]}>"
            text = f"shufflevector {kind} {pixels}, {kind} poison, <{n} x i32> <{places}>"
            pixels = f.let(text)
        if dtype != "u8" or self.facts.bytes:
            return pixels
        return f.let(f"zext <{n} x i8> {pixels} to <{n} x i32>")

    # the store ----------------------------------------------------------------------------------
    def computed(self) -> str:
        """The vector of results, as it is stored."""
        out, v = self.program.out, self.vectors
        v.program()
        names, v.names = v.names, v.finished
        if out.dtype == "u8" and out.channels in (3, 4):
            value = self.packed()
            value = self.narrowed(value) if _spaced(out) else value
        else:
            value = self.interleaved([v.operand(r, True) for r in self.facts.result])
        v.names = names
        return value

    def put(self, value: str) -> None:
        """Stores a vector of results."""
        f, out, n = self.f, self.program.out, self.lanes
        if self.facts.alpha is not None:
            value = self.with_alpha(value, self.facts.alpha)
        offset = self.x if self.size(-1) == 1 else f.let(f"mul nsw i64 {self.x}, {self.size(-1)}")
        at = f.let(f"getelementptr i8, ptr {self.out}, i64 {offset}")
        f.do(f"store {_memory(out.dtype, out.channels, n)} {value}, ptr {at}, align 1")

    def packed(self) -> str:
        """Channels of u8 in one word; what is kept of an input stays where it is."""
        f, n, kept = self.f, self.lanes, self.facts.kept
        parts: list[str] = []
        masks: dict[int, int] = {}
        for channel, result in enumerate(self.facts.result):
            source = kept.get(channel)
            if (
                source is not None
                and source[1] == channel
                and self.program.args[source[0]].channels in (3, 4)
            ):
                masks[source[0]] = masks.get(source[0], 0) | 255 << 8 * channel
                continue
            value = self.vectors.operand(result, True)
            if channel:
                value = f.let(f"shl <{n} x i32> {value}, splat (i32 {8 * channel})")
            parts.append(value)
        for argument, mask in masks.items():
            self.channel(argument, "0", "0", 0)
            pixels = self.loaded[argument, "0", "0"]
            signed = mask - (1 << 32) if mask >> 31 else mask
            parts.append(f.let(f"and <{n} x i32> {pixels}, splat (i32 {signed})"))
        total = parts[0]
        for part in parts[1:]:
            total = f.let(f"or <{n} x i32> {total}, {part}")
        return total

    def with_alpha(self, value: str, argument: int) -> str:
        """Every fourth number as it is in an argument."""
        n = self.lanes
        self.channel(argument, "0", "0", 0)
        old = self.loaded[argument, "0", "0"]
        kind = _memory(self.program.out.dtype, 1, n)
        places = ", ".join(f"i32 {n + i if i % 4 == 3 else i}" for i in range(n))
        text = f"shufflevector {kind} {value}, {kind} {old}, <{n} x i32> <{places}>"
        return self.f.let(text)

    def interleaved(self, values: list[str]) -> str:
        """Channels side by side, as they are stored."""
        f, n, channels = self.f, self.lanes, len(values)
        dtype = self.program.out.dtype
        item = STORED[dtype]
        if dtype == "u8" and not self.facts.bytes:
            values = [f.let(f"trunc <{n} x i32> {v} to <{n} x i8>") for v in values]
        if channels == 1:
            return values[0]
        kind, double = f"<{n} x {item}>", f"<{2 * n} x {item}>"
        both = ", ".join(f"i32 {k}" for k in range(2 * n))
        values = [*values, "poison"][: 2 * ((channels + 1) // 2)]
        low, high = (
            f.let(f"shufflevector {kind} {a}, {kind} {b}, <{2 * n} x i32> <{both}>")
            for a, b in zip(values[::2], values[1::2], strict=True)
        )
        places = ", ".join(f"i32 {c * n + k}" for k in range(n) for c in range(channels))
        total = n * channels
        return f.let(f"shufflevector {double} {low}, {double} {high}, <{total} x i32> <{places}>")


def _spaced(of: Arg | Out) -> bool:
    """Whether pixels have three bytes in memory, and four in a vector."""
    return of.dtype == "u8" and of.channels == 3


def _memory(dtype: str, channels: int, lanes: int) -> str:
    """The type of a vector of pixels in memory."""
    if dtype == "u8" and channels == 4:
        return f"<{lanes} x i32>"
    return f"<{lanes * channels} x {STORED[dtype]}>"
