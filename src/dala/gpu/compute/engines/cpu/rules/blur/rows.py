"""The loops of a Gaussian blur over a row: first down the columns, then along the row of sums.

Channels are not distinguished: a row is a run of elements, and the neighbor of an element is
``channels`` elements away. Radius and channels determine the code; weights are in the job block.
Larger radii than EXACT_RADIUS are summed on a coarse grid, by ``ops/wide_blur.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final

from dala.gpu.compute.engines.cpu.loops.copies import (
    OUTPUT,
    ROWS_AHEAD,
    prefetch,
    repeat_function,
    whole_and_rest,
)
from dala.gpu.compute.engines.cpu.loops.plan import UNROLLED_RADIUS, RowStage, blur_radius
from dala.gpu.compute.engines.cpu.loops.row import fourths_from, row_writer
from dala.gpu.compute.engines.cpu.machine import Machine
from dala.gpu.compute.engines.cpu.vector.text import Module

#: The number of the image among the memory that ends with its last element.
_IMAGE: Final = 0
_BYTES: Final = {"i8": 1, "i16": 2, "float": 4}


class RowBlur(ABC):
    """Writes the row function of a blur; subclasses write the sums."""

    #: The types of a sum between the passes and of a stored number.
    sum: ClassVar[str]
    stored: ClassVar[str]

    def __init__(
        self, module: Module, name: str, stage: RowStage, weights: int, width: int, machine: Machine
    ) -> None:
        """Begin a function; ``weights`` and ``width`` are words of the job block."""
        assert stage.blur is not None
        self.f = row_writer(module, name)
        self.machine = machine
        self.sum_bytes, self.item = _BYTES[self.sum], _BYTES[self.stored]
        self.radius = blur_radius(stage.blur)
        self.sigma = float(stage.blur["sigma"])
        self.channels = stage.channels
        #: Channels that are summed; without alpha if the rows have none.
        self.summed = stage.channels - (len(stage.sources) - 1)
        self.weights = weights
        self.width = width
        self.direct = stage.sources[0].stage is None
        #: Whether alpha is read from the caller's memory.
        self.direct_alpha = stage.sources[-1].stage is None
        self.exact_out = not stage.ring
        self.looped = self.radius > UNROLLED_RADIUS
        #: Elements of a vector of sums, and vectors of an iteration: down the columns, and along.
        self.lanes = machine.vector // self.sum_bytes
        self.block = 1
        self.splats: list[str] = []
        self.pointers: list[str] = []
        #: The row to prefetch, if rows are read from the caller's memory.
        self.later = ""

    @abstractmethod
    def blocks(self) -> tuple[int, int]:
        """Return the vectors of an iteration: down the columns, and along the row."""

    @abstractmethod
    def load_weights(self) -> list[str]:
        """Load the weights that are used outside of loops over taps."""

    @abstractmethod
    def sum_columns(self, at: str) -> list[str]:
        """Return a block of sums of columns; ``at`` is the offset in the rows, in bytes."""

    @abstractmethod
    def sum_along(self, x: str) -> list[str]:
        """Return a block of the output, as vectors of stored numbers."""

    def text(self) -> str:
        """Return the finished function."""
        f, r, c = self.f, self.radius, self.summed
        self.middle = self.row(str(r))
        image = self.middle if c == self.channels else self.row(str(2 * r + 1))
        at = f.let(f"getelementptr ptr, ptr %rows, i64 {2 * r + 1 + self.channels - c}")
        self.sums = f.let(f"load ptr, ptr {at}", "sums")
        self.splats = self.load_weights()
        self.pointers = [] if self.looped else [self.row(str(i)) for i in range(2 * r + 1)]
        self.numbers = f.let(f"mul i64 %count, {c}")
        if self.direct:
            pitch = f.let(f"mul i64 {f.word(self.width)}, {ROWS_AHEAD * c * self.item}")
            self.later = f.at(self.row(str(2 * r)), pitch)
        self.block, across = self.blocks()
        if self.direct:
            self.down_inside()
        else:
            # The sums start a radius before the row and end a radius after it.
            wide = f.let(f"add i64 {self.numbers}, {2 * r * c}")
            self.along("down", "0", self.rounded(wide), lambda x: self.down(x, str(-r * c), "0"))
        self.block, self.numbers = across, f.let(f"mul i64 %count, {self.channels}")
        exact = {OUTPUT: ("%out", self.item)} if self.exact_out else {}
        if self.direct_alpha and self.channels == 4:
            exact[_IMAGE] = (image, self.item)
        if exact:
            with whole_and_rest(f, self.numbers, self.step, exact) as (begin, stop, pointers):
                out, alpha = pointers.get(OUTPUT, "%out"), pointers.get(_IMAGE, image)
                self.along("across", begin, stop, lambda x: self.across(x, out, alpha))
        else:
            whole = self.rounded(self.numbers)
            self.along("across", "0", whole, lambda x: self.across(x, "%out", image))
        f.do("ret void")
        return f.text()

    @property
    def kind(self) -> str:
        """The type of a vector of sums."""
        return f"<{self.lanes} x {self.sum}>"

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

    def above_and_below(self, i: str | int) -> tuple[str, str]:
        """Return the rows ``i`` above and below the middle one."""
        f, r = self.f, self.radius
        if isinstance(i, int) and self.pointers:
            return self.pointers[r - i], self.pointers[r + i]
        return self.row(f.let(f"sub i64 {r}, {i}")), self.row(f.let(f"add i64 {i}, {r}"))

    def before_and_after(self, i: str | int) -> tuple[str, str]:
        """Return the offsets of the sums ``i`` pixels before and after that of a pixel."""
        f, r, c = self.f, self.radius, self.summed
        if isinstance(i, int):
            return str((r - i) * c), str((r + i) * c)
        offset = f.let(f"mul nsw i64 {i}, {c}")
        return f.let(f"sub nsw i64 {r * c}, {offset}"), f.let(f"add nsw i64 {offset}, {r * c}")

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
        wide = self.lanes, self.block, self.splats, self.looped, self.pointers
        self.lanes = self.block = 1
        self.looped, self.pointers = self.radius > 0, []
        self.splats = self.load_weights()
        self.along("single", "0", numbers, lambda x: self.down(x, back, skip))
        self.lanes, self.block, self.splats, self.looped, self.pointers = wide
        f.jump("summed")
        f.start("summed")
        size = c * self.sum_bytes
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
        """Sum a block of columns.

        The numbers start at offset ``back`` of the rows, their sums at ``skip``.
        """
        f = self.f
        at = f.let(f"mul nsw i64 {f.let(f'add nsw i64 {x}, {back}')}, {self.item}")
        if self.direct and self.lanes > 1:
            prefetch(f, self.later, at, self.step * self.item)
        sums = self.sum_columns(at)
        self.store(sums, self.sums, f.let(f"add nsw i64 {x}, {skip}"))

    def across(self, x: str, out: str, image: str) -> None:
        """Emit a block of the output; ``image`` is the row that alpha is taken from."""
        values = self.sum_along(x)
        lanes = self.step // len(values)
        if self.channels == 4:
            at = self.f.let(f"mul nsw i64 {x}, {self.item}")
            values = [self.with_alpha(v, image, at, k, lanes) for k, v in enumerate(values)]
        self.store(values, out, x, lanes=lanes, item=self.stored)

    def taps(
        self, name: str, sums: list[str], stop: int, add: Callable[[str, list[str]], list[str]],
        kind: str,
    ) -> list[str]:  # fmt: skip
        """Emit a loop over taps 1 to ``stop``, from the center outwards."""
        f, before = self.f, self.f.here
        f.jump(name)
        f.start(name)
        i = f.let(f"phi i64 [ 1, %{before} ], [ %{name}.next, %{name} ]", "tap")
        first = len(f.lines)
        held = [f.let(f"phi {kind} [ {s}, %{before} ], [ ?, %{name} ]") for s in sums]
        sums = add(i, held)
        for k, s in enumerate(sums):  # the name is known only now
            f.lines[first + k] = f.lines[first + k].replace("?", s)
        f.do(f"%{name}.next = add nuw nsw i64 {i}, 1")
        done = f.let(f"icmp sgt i64 %{name}.next, {stop}")
        f.do(f"br i1 {done}, label %{name}.done, label %{name}, !llvm.loop !2")
        f.start(f"{name}.done")
        return sums

    def with_alpha(self, value: str, image: str, at: str, k: int, lanes: int) -> str:
        """Replace every fourth element of vector ``k`` by that of the image."""
        old = self.loaded(image, at, k, lanes)
        return fourths_from(self.f, f"<{lanes} x {self.stored}>", value, old, lanes)

    # memory -------------------------------------------------------------------------------------
    def weight_word(self, index: str, kind: str) -> str:
        """Load a word of the weights."""
        f = self.f
        first = f.let(f"getelementptr i64, ptr %job, i64 {self.weights}")
        at = f.let(f"getelementptr i64, ptr {first}, i64 {index}")
        return f.let(f"load {kind}, ptr {at}")

    def loaded(self, row: str, offset: str, k: int, lanes: int) -> str:
        """Load vector ``k`` of a block of a row as it is stored."""
        f = self.f
        at = f.let(f"getelementptr i8, ptr {row}, i64 {offset}")
        if k:
            at = f.let(f"getelementptr i8, ptr {at}, i64 {k * lanes * self.item}")
        return f.let(f"load <{lanes} x {self.stored}>, ptr {at}, align 1")

    def load_sums(self, x: str, offset: str) -> list[str]:
        """Load the sums between the passes for a block that begins with element ``x``."""
        f, block = self.f, self.block
        if self.summed < self.channels:
            x, block = f.let(f"sub nsw i64 {x}, {f.let(f'lshr i64 {x}, 2')}"), block * 3 // 4
        at = f.let(f"add nsw i64 {x}, {offset}")
        found = []
        for k in range(block):
            place = f.let(f"add nsw i64 {at}, {k * self.lanes}") if k else at
            pointer = f.let(f"getelementptr {self.sum}, ptr {self.sums}, i64 {place}")
            found.append(f.let(f"load {self.kind}, ptr {pointer}, align {self.sum_bytes}"))
        return found

    def store(
        self, values: list[str], base: str, x: str, *, lanes: int = 0, item: str = ""
    ) -> None:
        """Store the vectors of a block, sums if nothing else is said."""
        f, lanes, item = self.f, lanes or self.lanes, item or self.sum
        for k, value in enumerate(values):
            place = f.let(f"add nsw i64 {x}, {k * lanes}") if k else x
            at = f.let(f"getelementptr {item}, ptr {base}, i64 {place}")
            f.do(f"store <{lanes} x {item}> {value}, ptr {at}, align 1")
