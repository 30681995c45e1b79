"""The row function of a Gaussian blur: first down the columns, then along the row of sums.

Channels are not distinguished: a row is a run of elements, and the neighbor of an element is
``channels`` elements away. u8 is summed in 16-bit fixed point, as high halves of products
with weights in 1/65536. Every product loses less than 1/256 of a step; half the number of taps is
added to compensate. f32 is summed in f32: each tap contributes its difference from the center, so
that constant areas stay exactly constant. Radius and channels determine the code; weights are in
the job block. Larger radii than EXACT_RADIUS are summed on a coarse grid, by ``ops/wide_blur.py``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.cpu.llvm.text import Module, element_type
from dala.gpu.compute.engines.cpu.rows.copies import (
    OUTPUT,
    ROWS_AHEAD,
    prefetch,
    repeat_function,
    whole_and_rest,
)
from dala.gpu.compute.engines.cpu.rows.machine import Machine
from dala.gpu.compute.engines.cpu.rows.plan import RowStage, blur_radius
from dala.gpu.compute.engines.cpu.rows.row import row_writer
from dala.gpu.compute.engines.sampling.gauss import EXACT_RADIUS

#: The largest radius whose taps are unrolled.
_UNROLLED: Final = 12
#: Vectors per iteration where taps are looped over, so that a weight is loaded once for all.
_VECTORS: Final = 4


#: The number of the image among the memory that ends with its last element.
_IMAGE: Final = 0


def blur_fits(task: Task) -> bool:
    """Return whether a task is a blur that this module supports."""
    if task.op != "blur" or len(task.inputs) != 1 or task.inputs[0] != task.output:
        return False
    shape = task.output.shape
    if task.output.dtype not in ("u8", "f32") or len(shape) not in (2, 3):
        return False
    if len(shape) == 3 and shape[2] not in (1, 3, 4):
        return False
    return 0 <= blur_radius(task) <= EXACT_RADIUS and float(task["sigma"]) > 0.0


def _fixed(task: Task) -> bool:
    return task.output.dtype == "u8"


def blur_weights(task: Task) -> bytes:
    """Return the packed weights, one per word, from the center outwards."""
    radius, sigma = blur_radius(task), float(task["sigma"])
    # Divide first: the square of a small sigma would be 0. Weights beyond 40 sigmas are 0.
    shares = [math.exp(-0.5 * min(d / sigma, 40.0) ** 2) for d in range(radius + 1)]
    total = math.fsum([shares[0], *(2.0 * s for s in shares[1:])])
    shares = [s / total for s in shares]
    if not _fixed(task):
        return b"".join(struct.pack("=f4x", s) for s in shares)
    doubled = [round(s * 131072.0) for s in shares[1:]]
    # The center absorbs rounding errors. A sum of 65536 would exceed 16 bits.
    middle = min(65536 - sum(doubled), 65535)
    return struct.pack(f"={radius + 1}q", middle, *doubled)


def blur_row(
    module: Module, name: str, stage: RowStage, weights: int, width: int, machine: Machine,
    exact_out: bool,
) -> str:  # fmt: skip
    """Return the row function of a blur, as LLVM IR.

    Args:
        module: Receives helper functions.
        name: Name of the function.
        stage: The stage.
        weights: The word of the first weight in the job block.
        width: The word of the image's width.
        machine: The CPU.
        exact_out: Whether the output's rows end with their last pixel.
    """
    return _Blur(module, name, stage, weights, width, machine, exact_out).text()


class _Blur:
    def __init__(
        self, module: Module, name: str, stage: RowStage, weights: int, width: int,
        machine: Machine, exact_out: bool,
    ) -> None:  # fmt: skip
        assert stage.blur is not None
        self.f = row_writer(module, name)
        self.radius = blur_radius(stage.blur)
        self.channels = stage.channels
        self.fixed = _fixed(stage.blur)
        self.weights = weights
        self.width = width
        self.direct = stage.sources[0].stage is None
        self.exact_out = exact_out
        self.lanes = machine.vector // (2 if self.fixed else 4)
        self.product = machine.upper_product
        self.byte_product = machine.byte_product
        self.looped = self.radius > _UNROLLED
        self.block = _VECTORS if self.looped else 1
        # With two or more taps beside the center no weight exceeds a quarter, so it can be doubled.
        self.paired = self.fixed and bool(self.byte_product) and 2 <= self.radius <= _UNROLLED
        self.sum = "i16" if self.fixed else "float"
        self.item = 1 if self.fixed else 4
        self.splats: list[str] = []
        #: The row to prefetch, if rows are read from the caller's memory.
        self.later = ""
        #: The doubled weights, for sums of bytes in pairs.
        self.doubled: list[str] = []

    def text(self) -> str:
        """Return the finished function."""
        f, r, c = self.f, self.radius, self.channels
        self.middle = self.row(str(r))
        at = f.let(f"getelementptr ptr, ptr %rows, i64 {2 * r + 1}")
        self.sums = f.let(f"load ptr, ptr {at}", "sums")
        self.splats = [self.weight(str(i)) for i in range(1 if self.looped else r + 1)]
        self.pointers = [] if self.looped else [self.row(str(i)) for i in range(2 * r + 1)]
        self.numbers = f.let(f"mul i64 %count, {c}")
        if self.direct:
            pitch = f.let(f"mul i64 {f.word(self.width)}, {ROWS_AHEAD * c * self.item}")
            self.later = f.at(self.row(str(2 * r)), pitch)
        if self.paired:
            self.doubled = [f.let(f"shl {self.kind} {w}, splat (i16 1)") for w in self.splats]
            self.block = 2
        if self.direct:
            self.down_inside()
        else:
            # The sums start a radius before the row and end a radius after it.
            wide = f.let(f"add i64 {self.numbers}, {2 * r * c}")
            self.along("down", "0", self.rounded(wide), lambda x: self.down(x, str(-r * c), "0"))
        self.block = _VECTORS if self.looped else 1
        exact = {OUTPUT: ("%out", self.item)} if self.exact_out else {}
        if self.direct and c == 4:  # alpha is read from the caller's memory
            exact[_IMAGE] = (self.middle, self.item)
        if exact:
            with whole_and_rest(f, self.numbers, self.step, exact) as (begin, stop, pointers):
                out, image = pointers.get(OUTPUT, "%out"), pointers.get(_IMAGE, self.middle)
                self.along("across", begin, stop, lambda x: self.across(x, out, image))
        else:
            whole = self.rounded(self.numbers)
            self.along("across", "0", whole, lambda x: self.across(x, "%out", self.middle))
        f.do("ret void")
        return f.text()

    @property
    def kind(self) -> str:
        """The type of a vector of sums."""
        return f"<{self.lanes} x {self.sum}>"

    @property
    def stored(self) -> str:
        """The type of a vector of stored numbers."""
        return f"<{self.lanes} x {'i8' if self.fixed else 'float'}>"

    # helpers ------------------------------------------------------------------------------------
    @property
    def step(self) -> int:
        return self.lanes * self.block

    def rounded(self, count: str) -> str:
        more = self.f.let(f"add i64 {count}, {self.step - 1}")
        return self.f.let(f"and i64 {more}, {-self.step}")

    def row(self, index: str) -> str:
        at = self.f.let(f"getelementptr ptr, ptr %rows, i64 {index}")
        return self.f.let(f"load ptr, ptr {at}", "row")

    def weight(self, index: str) -> str:
        """Load a weight into every lane."""
        f = self.f
        first = f.let(f"getelementptr i64, ptr %job, i64 {self.weights}")
        at = f.let(f"getelementptr i64, ptr {first}, i64 {index}")
        return f.splat(self.sum, f.let(f"load {self.sum}, ptr {at}"), self.lanes)

    def along(self, name: str, begin: str, stop: str, write: Callable[[str], None]) -> None:
        """Emit a loop over blocks of vectors."""
        with self.f.loop(begin, stop, self.step, name) as x:
            write(x)

    def down_inside(self) -> None:
        """Sum the columns inside the image, then repeat the outermost sums beyond it.

        The rows belong to the caller, so the last block ends where they end: it overlaps the block
        before it or, if there is none, is computed number by number.
        """
        f, r, c = self.f, self.radius, self.channels
        width = f.word(self.width, hint="width")
        end = f.let("add i64 %x0, %count")
        left = f.smaller("%x0", r)
        right = f.smaller(f.let(f"sub i64 {width}, {end}"), r)
        inside = f.let(f"add i64 %count, {f.let(f'add i64 {left}, {right}')}")
        numbers = f.let(f"mul i64 {inside}, {c}")
        back = f.let(f"mul i64 {left}, {-c}")
        skip = f.let(f"mul i64 {f.let(f'sub i64 {r}, {left}')}, {c}")
        last = f.let(f"sub i64 {numbers}, {self.step}")
        f.branch(f.let(f"icmp slt i64 {last}, 0"), "few", "many")
        f.start("many")
        self.along("down", "0", numbers, lambda x: self.down(f.smaller(x, last), back, skip))
        f.jump("summed")
        f.start("few")
        wide = self.lanes, self.block, self.splats, self.looped
        self.lanes = self.block = 1
        self.splats, self.looped = [self.weight("0")], self.radius > 0
        self.along("single", "0", numbers, lambda x: self.down(x, back, skip))
        self.lanes, self.block, self.splats, self.looped = wide
        f.jump("summed")
        f.start("summed")
        size = c * (2 if self.fixed else 4)
        name = repeat_function(f.module, size)
        missing = f.let(f"sub i64 {r}, {left}")
        first = f.let(f"getelementptr {self.sum}, ptr {self.sums}, i64 {skip}")
        f.do(f"call void {name}(ptr {self.sums}, ptr {first}, i64 {missing})")
        missing = f.let(f"sub i64 {r}, {right}")
        after = f.let(f"getelementptr {self.sum}, ptr {first}, i64 {numbers}")
        final = f.let(f"getelementptr {self.sum}, ptr {after}, i64 {-c}")
        f.do(f"call void {name}(ptr {after}, ptr {final}, i64 {missing})")

    # the two passes -----------------------------------------------------------------------------
    def down(self, x: str, back: str, skip: str) -> None:
        """Sum a block of columns: rows above and below in pairs.

        The numbers start at offset ``back`` of the rows, their sums at ``skip``.
        """
        f, r = self.f, self.radius
        at = f.let(f"mul nsw i64 {f.let(f'add nsw i64 {x}, {back}')}, {self.item}")
        if self.direct and self.lanes > 1:
            prefetch(f, self.later, at, self.step * self.item)
        if self.paired and self.lanes > 1:
            x = f.let(f"add nsw i64 {x}, {skip}")
            for k, value in enumerate(self.down_in_pairs(at)):
                self.store(self.kind, value, self.sums, x, k)
            return
        center = self.load_all(self.middle, at)

        def pair(weight: str, upper: str, lower: str, sums: list[str]) -> list[str]:
            above, below = self.load_all(upper, at), self.load_all(lower, at)
            return [
                self.add_pair(s, a, b, m, weight, first=True)
                for s, a, b, m in zip(sums, above, below, center, strict=True)
            ]

        sums = [self.begin(m, first=True) for m in center]
        if self.looped:

            def tap_pair(i: str, sums: list[str]) -> list[str]:
                upper = self.row(f.let(f"sub i64 {r}, {i}"))
                lower = self.row(f.let(f"add i64 {i}, {r}"))
                return pair(self.weight(i), upper, lower, sums)

            sums = self.taps(f.label("down.taps"), sums, tap_pair)
        else:
            for i in range(1, r + 1):
                sums = pair(self.splats[i], self.pointers[r - i], self.pointers[r + i], sums)
        x = f.let(f"add nsw i64 {x}, {skip}")
        for k, value in enumerate(sums):
            self.store(self.kind, value, self.sums, x, k)

    def down_in_pairs(self, at: str) -> list[str]:
        """Sum two vectors of columns without widening, with results equal to ``down``.

        The bytes of the rows above and below are interleaved, and one instruction adds adjacent
        ones, each times 64. The result is in the order of that instruction and is shuffled at the
        end.
        """
        f, r, n = self.f, self.radius, self.lanes
        kind, pixels = self.kind, f"<{2 * n} x i8>"
        name = f.module.intrinsic(self.byte_product, kind, pixels, pixels)

        def interleave(a: str, b: str) -> list[str]:
            """Interleave the bytes of two vectors, within groups of 16."""
            found = []
            for half in (0, 8):
                pieces = [p + half + i for p in range(0, 2 * n, 16) for i in range(8)]
                listed = ", ".join(f"i32 {i}, i32 {2 * n + i}" for i in pieces)
                text = f"shufflevector {pixels} {a}, {pixels} {b}, <{2 * n} x i32> <{listed}>"
                found.append(f.let(text))
            return found

        def bytes_of(row: str) -> str:
            pointer = f.let(f"getelementptr i8, ptr {row}, i64 {at}")
            return f.let(f"load {pixels}, ptr {pointer}, align 1")

        sums = []
        for part in interleave("zeroinitializer", bytes_of(self.middle)):
            center = f.let(f"bitcast {pixels} {part} to {kind}")
            more = f"splat (i16 {(r + 1) // 2})"
            sums.append(f.let(f"add {kind} {self.upper(center, self.splats[0])}, {more}"))
        for i in range(1, r + 1):
            both = interleave(bytes_of(self.pointers[r - i]), bytes_of(self.pointers[r + i]))
            for k, part in enumerate(both):
                added = f.let(f"call {kind} {name}({pixels} {part}, {pixels} splat (i8 64))")
                product = self.upper(added, self.doubled[i])
                sums[k] = f.let(f"add {kind} {sums[k]}, {product}")
        ordered = []
        for first in (0, n):
            places = [
                (i // 16) * 8 + i % 8 + (n if i % 16 >= 8 else 0) for i in range(first, first + n)
            ]
            listed = ", ".join(f"i32 {p}" for p in places)
            text = f"shufflevector {kind} {sums[0]}, {kind} {sums[1]}, <{n} x i32> <{listed}>"
            ordered.append(f.let(text))
        return ordered

    def across(self, x: str, out: str, image: str) -> None:
        """Emit a block of the output; taps before and after are added in pairs.

        ``image`` is the row that alpha is taken from.
        """
        f, r, c = self.f, self.radius, self.channels
        center = self.load_sums(x, str(r * c))

        def pair(weight: str, before: str, after: str, sums: list[str]) -> list[str]:
            left, right = self.load_sums(x, before), self.load_sums(x, after)
            return [
                self.add_pair(s, a, b, m, weight, first=False)
                for s, a, b, m in zip(sums, left, right, center, strict=True)
            ]

        sums = [self.begin(m, first=False) for m in center]
        if self.looped:

            def tap_pair(i: str, sums: list[str]) -> list[str]:
                offset = f.let(f"mul nsw i64 {i}, {c}")
                before = f.let(f"sub nsw i64 {r * c}, {offset}")
                return pair(self.weight(i), before, f.let(f"add nsw i64 {offset}, {r * c}"), sums)

            sums = self.taps(f.label("across.taps"), sums, tap_pair)
        else:
            for i in range(1, r + 1):
                sums = pair(self.splats[i], str((r - i) * c), str((r + i) * c), sums)
        for k, value in enumerate(sums):
            value = self.to_stored(value)
            if c == 4:
                value = self.with_alpha(value, image, x, k)
            self.store(self.stored, value, out, x, k)

    def taps(
        self, name: str, sums: list[str], tap_pair: Callable[[str, list[str]], list[str]]
    ) -> list[str]:
        """Emit a loop over the taps, from the center outwards."""
        f, before = self.f, self.f.here
        f.jump(name)
        f.start(name)
        i = f.let(f"phi i64 [ 1, %{before} ], [ %{name}.next, %{name} ]", "tap")
        first = len(f.lines)
        held = [f.let(f"phi {self.kind} [ {s}, %{before} ], [ ?, %{name} ]") for s in sums]
        sums = tap_pair(i, held)
        for k, s in enumerate(sums):  # the name is known only now
            f.lines[first + k] = f.lines[first + k].replace("?", s)
        f.do(f"%{name}.next = add nuw nsw i64 {i}, 1")
        done = f.let(f"icmp sgt i64 %{name}.next, {self.radius}")
        f.do(f"br i1 {done}, label %{name}.done, label %{name}, !llvm.loop !2")
        f.start(f"{name}.done")
        return sums

    # sums ---------------------------------------------------------------------------------------
    def begin(self, center: str, first: bool) -> str:
        """Return the center tap and the compensation for rounding."""
        if not self.fixed:
            return center
        more = (self.radius + 1) // 2 + (0 if first else 128)
        if first:
            center = self.f.let(f"shl {self.kind} {center}, splat (i16 8)")
        product = self.upper(center, self.splats[0])
        return self.f.let(f"add {self.kind} {product}, splat (i16 {more})")

    def add_pair(self, s: str, a: str, b: str, middle: str, weight: str, first: bool) -> str:
        """Add two taps of equal weight."""
        f, kind = self.f, self.kind
        if not self.fixed:
            both = f.let(f"fadd {kind} {a}, {b}")
            twice = f.let(f"fadd {kind} {middle}, {middle}")
            apart = f.let(f"fsub {kind} {both}, {twice}")
            name = f.module.intrinsic(f"fmuladd.v{self.lanes}f32", kind, kind, kind, kind)
            return f.let(f"call {kind} {name}({kind} {apart}, {kind} {weight}, {kind} {s})")
        if first:
            both = f.let(f"add {kind} {a}, {b}")
            mean = f.let(f"shl {kind} {both}, splat (i16 7)")
        else:
            wide = f"<{self.lanes} x i32>"
            x, y = (f.let(f"zext {kind} {v} to {wide}") for v in (a, b))
            both = f.let(f"add {wide} {f.let(f'add {wide} {x}, {y}')}, splat (i32 1)")
            half = f.let(f"lshr {wide} {both}, splat (i32 1)")
            mean = f.let(f"trunc {wide} {half} to {kind}")
        return f.let(f"add {kind} {s}, {self.upper(mean, weight)}")

    def upper(self, a: str, b: str) -> str:
        """Return the high half of a product of 16-bit numbers."""
        f, kind, wide = self.f, self.kind, f"<{self.lanes} x i32>"
        if self.product and self.lanes > 1:
            name = f.module.intrinsic(self.product, kind, kind, kind)
            return f.let(f"call {kind} {name}({kind} {a}, {kind} {b})")
        x, y = (f.let(f"zext {kind} {v} to {wide}") for v in (a, b))
        product = f.let(f"lshr {wide} {f.let(f'mul {wide} {x}, {y}')}, splat (i32 16)")
        return f.let(f"trunc {wide} {product} to {self.kind}")

    def to_stored(self, value: str) -> str:
        """Convert a sum to the stored type."""
        f = self.f
        if not self.fixed:
            return value
        value = f.let(f"lshr {self.kind} {value}, splat (i16 8)")
        return f.let(f"trunc {self.kind} {value} to {self.stored}")

    def with_alpha(self, value: str, image: str, x: str, k: int) -> str:
        """Replace every fourth element by that of the image."""
        f, n = self.f, self.lanes
        at = f.let(f"mul nsw i64 {x}, {self.item}")
        old = self.loaded(image, at, k)
        places = ", ".join(f"i32 {n + i if i % 4 == 3 else i}" for i in range(n))
        kind = self.stored
        return f.let(f"shufflevector {kind} {value}, {kind} {old}, <{n} x i32> <{places}>")

    # memory -------------------------------------------------------------------------------------
    def loaded(self, row: str, offset: str, k: int) -> str:
        """Load a vector of a row as it is stored."""
        f = self.f
        at = f.let(f"getelementptr i8, ptr {row}, i64 {offset}")
        if k:
            at = f.let(f"getelementptr i8, ptr {at}, i64 {k * self.lanes * self.item}")
        return f.let(f"load {self.stored}, ptr {at}, align 1")

    def load_all(self, row: str, offset: str) -> list[str]:
        """Load a block of a row, converted for summing."""
        found = [self.loaded(row, offset, k) for k in range(self.block)]
        if not self.fixed:
            return found
        return [self.f.let(f"zext {self.stored} {v} to {self.kind}") for v in found]

    def load_sums(self, x: str, offset: str) -> list[str]:
        """Load a block of the sums between the passes."""
        f = self.f
        at = f.let(f"add nsw i64 {x}, {offset}")
        found = []
        for k in range(self.block):
            place = f.let(f"add nsw i64 {at}, {k * self.lanes}") if k else at
            pointer = f.let(f"getelementptr {self.sum}, ptr {self.sums}, i64 {place}")
            found.append(f.let(f"load {self.kind}, ptr {pointer}, align {2 if self.fixed else 4}"))
        return found

    def store(self, kind: str, value: str, base: str, x: str, k: int) -> None:
        """Store one vector of a block."""
        f = self.f
        item = element_type(kind)
        place = f.let(f"add nsw i64 {x}, {k * self.lanes}") if k else x
        at = f.let(f"getelementptr {item}, ptr {base}, i64 {place}")
        f.do(f"store {kind} {value}, ptr {at}, align 1")
