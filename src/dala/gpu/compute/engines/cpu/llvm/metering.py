"""Emit the checks that end long loops: on Ctrl-C, when cancelled, at a deadline, beyond a budget.

Every call of native code has a *stop cell*, whose address is in its job block. Its words are

===  ========  ================================================================================
0    state     0 to continue, 1 to ask the calling thread, 2 to end (atomic)
1    frame     a stack address of the calling thread, stored when the call begins
2    ask       the function ``i32 ask()`` for state 1, which returns nonzero to end; or null
3    exceeded  set to 1 by code that has used up its iterations
4    limit     iterations at one position, for code that counts them
===  ========  ================================================================================

A loop runs in strips, and so do the loops around it and the positions of a row: their strips are
longer, since the loops in them may end before their first. Loops themselves stay as simple as they
were, and strips are long enough that vectorized loops do not notice. The state is loaded between
strips.

Where most loops are short, that still costs. So a small program has two copies. A position first
runs without strips, where each loop only tests that it is short. If it is longer, the position
starts again in the copy with strips, and so do some after it: a position writes nothing before its
end. Loops that are short by their constant bounds are not metered. Code that ends early returns
from its function; the caller of the engine raises the error.

Code with a budget of iterations counts every iteration of every loop instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.engines.cpu.vector.text import PLAIN_LOOP, ROLLED_LOOP, FunctionText, runtime
from dala.gpu.compute.engines.loop_bounds import count_work
from dala.gpu.compute.engines.unroll import has_loops
from dala.gpu.compute.lang.ir import FLOATS, Block, For, If, Value, statements, values

#: The word of the job block with the address of the stop cell.
STOP_WORD: Final = 9
#: Words of a stop cell.
CELL_WORDS: Final = 5

#: The most operations between two looks at the stop cell, by weight: in an innermost loop, in a
#: loop around it, in the loops around that one, and in the positions of a row. An operation of
#: weight 1 takes up to a nanosecond, and a tenth of that where LLVM makes vectors.
STRIPS: Final = (1 << 17, 1 << 20, 1 << 22)
ROW_STRIP: Final = 1 << 22
#: The same in the copy without strips.
SHORT_LOOPS: Final = (1 << 13, 1 << 16, 1 << 18)
SHORT_ROW: Final = 1 << 21
#: The most weight of operations between two looks at the end of counted iterations.
COUNTED_STRIP: Final = 1 << 12
#: In a program of more loops, which may follow each other, all of these are less.
MANY_LOOPS: Final = 8
#: The most positions between two looks.
MAX_POSITIONS: Final = 256
#: Weights of operations that take longer than others. A function such as ``sin`` counts for as many
#: where copies are made, too.
FUNCTION_SIZE: Final = 40
WEIGHTS: Final = {
    "div": 4, "sqrt": 4, "idiv": 16, "mod": 16, "image": 16, "array": 16,
    **dict.fromkeys(FUNCTIONS, FUNCTION_SIZE),
}  # fmt: skip
#: Programs of at most so many statements have a copy without strips.
SMALL_PROGRAM: Final = 128
#: Those of so many run two positions at a time there, as LLVM does with loops that nothing leaves.
TINY_PROGRAM: Final = 16
#: Their innermost loops of fewer iterations are not compared with the length of a strip: LLVM tells
#: them apart anyhow, to unroll the others.
TINY_LOOP: Final = 8
#: Programs with fewer statements at a position, counting iterations, are not metered.
SHORT_PROGRAM: Final = 1 << 15
#: Loops with fewer statements are not metered in longer programs either.
SHORT_LOOP: Final = 1 << 10


def check_text() -> str:
    """Return the functions that begin a call and look at its stop cell.

    Several threads may run a job. Only the calling thread may be asked: on the main thread, that
    runs Python's signal handlers. It is recognized by its stack.
    """
    return runtime("check", stop=STOP_WORD)


def work_of(block: Block, known: Mapping[int, int] | None = None) -> float:
    """Return the most statements that a block runs, counting iterations; infinity if unknown.

    ``known`` are parameters whose values are known, by index.
    """

    def number(v: Value) -> int | None:
        if v.op == "const":
            return int(v.attr)
        return (known or {}).get(v.attr) if v.op == "param" else None

    found = count_work(block, number)
    return math.inf if found is None else found[1]


def is_long(block: Block, known: Mapping[int, int] | None = None) -> bool:
    """Return whether a program has loops that may run long, which are metered."""
    return work_of(block, known) > SHORT_PROGRAM


def before(s: For) -> str:
    """Return LLVM's comparison by which the counter of a loop has not reached a bound."""
    return "slt" if s.step > 0 else "sgt"


class LoopMeter:
    """The metered loops of a block, and the code that meters them.

    Args:
        f: The function that the block is emitted to.
        block: The block.
        counting: Whether to count iterations against the limit in the stop cell.
    """

    def __init__(self, f: FunctionText, block: Block, counting: bool = False) -> None:
        self.f = f
        self.counting = counting
        #: For each metered loop, the weight of an iteration between two looks.
        self.loops: dict[For, int] = {}
        #: For each loop that runs in strips, the iterations of one.
        self.strips: dict[For, int] = {}
        #: The most iterations of each in the copy without strips.
        self.short: dict[For, int] = {}
        #: Innermost loops whose tiny lengths have code of their own in the copy without strips.
        self.doubled: set[For] = set()
        #: Where loops continue that are longer than a strip, in the copy without strips; else "".
        self.leave = ""
        #: Positions at a time of the copy without strips; 0 if there is none.
        self.copies = 0
        #: Positions between two looks: with strips, and in the copy without them.
        self.positions_in_strip = self.short_positions = 1
        #: Counted iterations between two looks, a power of two.
        self.looks_every = 1
        if counting or is_long(block):
            self._plan(block)
        if self.loops:
            self._begin()

    def _plan(self, block: Block) -> None:
        size = loops = 0
        for s in statements(block):
            loops += isinstance(s, For)
            size += FUNCTION_SIZE if isinstance(s, Value) and s.op in FUNCTIONS else 1
        less = max(loops // MANY_LOOPS, 1)
        found = _Weigher(STRIPS, less, self.counting)
        total = found.block(block)[0]
        self.loops = found.loops
        if self.counting:
            if self.loops:
                each = max(self.loops.values())
                self.looks_every = 1 << (max(COUNTED_STRIP // each, 1).bit_length() - 1)
                total += self.looks_every * each
        else:
            self.strips = found.strips
        self.positions_in_strip = min(max(ROW_STRIP // max(total, 1), 1), MAX_POSITIONS)
        if self.counting or size > SMALL_PROGRAM:
            return
        # Loops over ints become vectors instead; floats are added in their order.
        floats = any(v.type in FLOATS for s in self.loops for v in values(s.body))
        self.copies = 2 if size <= TINY_PROGRAM and floats else 1
        short = _Weigher(SHORT_LOOPS, less)
        total = short.block(block)[0]
        self.short = short.strips
        self.short_positions = min(max(SHORT_ROW // max(total, 1), 1), MAX_POSITIONS)
        if size <= TINY_PROGRAM:
            self.doubled = {s for s in self.strips if not has_loops(s.body)}

    def _begin(self) -> None:
        f = self.f
        f.module.helpers["@dala.check"] = check_text()
        if f.metered:
            return
        f.metered = True
        f.entry += [
            f"  %stop.p = getelementptr i64, ptr %job, i64 {STOP_WORD}",
            "  %stop = load ptr, ptr %stop.p",
        ]
        if self.counting:
            f.entry += [
                "  %left = alloca i64",
                "  %limit.p = getelementptr i64, ptr %stop, i64 4",
                "  %limit = load i64, ptr %limit.p",
            ]

    def positions(
        self,
        begin: str,
        stop: str,
        position: Callable[[str], None],
        step: int = 1,
        tail: str = PLAIN_LOOP,
        *,
        twice: bool = False,
    ) -> None:
        """Emit the loop over positions, in strips if it is metered.

        It looks at the stop cell before the first position, too: rows may be short.

        Args:
            begin: The first position.
            stop: The position after the last.
            position: Emits one, given its number.
            step: Positions that are computed at a time.
            tail: Metadata of the loop.
            twice: Whether ``position`` may be called a second time, for a copy without strips.
        """
        f = self.f

        def one(x: str) -> None:
            if self.counting and self.loops:
                f.do("store i64 %limit, ptr %left")
            position(x)

        if not self.loops:
            with f.loop(begin, stop, step, "along", tail) as x:
                one(x)
            return
        if not (twice and self.copies):
            length = self.positions_in_strip * step
            with f.loop(begin, stop, length, "strip") as first:
                self.check(f.label("on"))
                end = f.smaller(f.let(f"add nsw i64 {first}, {length}"), stop)
                with f.loop(first, end, step, "along", tail) as x:
                    one(x)
            return
        strip, on, after = (f.label(h) for h in ("strip", "some", "endstrips"))
        before, back = f.here, f.label("back")
        f.jump(strip)
        f.start(strip)
        first = f.let(f"phi i64 [ {begin}, %{before} ], [ %{back}.x, %{back} ]", "x")
        f.branch(f.let(f"icmp slt i64 {first}, {stop}"), on, after)
        f.start(on)
        self.check(f.label("on"))
        length = self.short_positions * step
        end = f.smaller(f.let(f"add nsw i64 {first}, {length}"), stop)
        left = self._without_strips(first, end, one, step, tail)
        # The position at which it was left and some more, or what is left where it runs two.
        length = max(self.positions_in_strip, self.copies) * step
        end = f.smaller(f.let(f"add nsw i64 {left}, {length}"), end)
        with f.loop(left, end, step, "along") as x:
            one(x)
        f.jump(back)
        f.start(back)
        f.do(f"%{back}.x = add nsw i64 {end}, 0")
        f.jump(strip, PLAIN_LOOP)
        f.start(after)

    def _without_strips(
        self, first: str, end: str, position: Callable[[str], None], step: int, tail: str
    ) -> str:
        """Emit the copy without strips; return the position at which it was left."""
        f, slow = self.f, self.f.label("slow")
        left = []
        bound = f.let(f"sub nsw i64 {end}, {(self.copies - 1) * step}")
        with f.loop(first, bound, self.copies * step, "along", tail) as x:
            for n in range(self.copies):
                at = f.let(f"add nsw i64 {x}, {n * step}") if n else x
                self.leave = f.label("leave")
                left.append((at, self.leave))
                position(at)
        self.leave = ""
        left.append((x, f.here))
        f.jump(slow)
        for _, label in left[:-1]:
            f.start(label)
            f.jump(slow)
        f.start(slow)
        return f.let("phi i64 " + ", ".join(f"[ {at}, %{label} ]" for at, label in left))

    def guard(self, s: For, first: str, last: str, after: str, loop: Callable[[str], None]) -> None:
        """Emit a loop of the copy without strips: it is left out, run, or too long.

        That it has iterations is found as in code without metering, and by itself: where that
        differs from position to position, the processor guesses wrong often, and must know soon.

        Args:
            s: The loop.
            first: Its first index.
            last: Where it stops.
            after: Where the code continues after it.
            loop: Emits it, given its metadata. It has an iteration for certain.
        """
        f = self.f
        some, on = f.label("some"), f.label("few")
        f.branch(f.let(f"icmp {before(s)} i64 {first}, {last}"), some, after)
        f.start(some)
        ends = (last, first) if s.step > 0 else (first, last)
        span = f.let(f"sub nuw nsw i64 {ends[0]}, {ends[1]}")
        if s in self.doubled:
            tiny, more = f.label("tiny"), f.label("more")
            few = f.let(f"icmp ult i64 {span}, {TINY_LOOP * abs(s.step)}")
            f.branch(few, tiny, more)
            f.start(tiny)
            loop(ROLLED_LOOP)
            f.jump(after)
            f.start(more)
        many = f.let(f"icmp ugt i64 {span}, {self.short[s] * abs(s.step)}")
        f.do(f"br i1 {many}, label %{self.leave}, label %{on}, !prof !6")
        f.start(on)
        loop("")
        f.jump(after)
        f.start(after)

    def check(self, on: str) -> None:
        """Emit a look at the stop cell, and continue at a label."""
        f = self.f
        asked, gone = f.label("asked"), f.label("gone")
        state = f.let("load atomic i64, ptr %stop monotonic, align 8")
        f.do(f"br i1 {f.let(f'icmp ne i64 {state}, 0')}, label %{asked}, label %{on}, !prof !6")
        f.start(asked)
        f.branch(f.let("call i1 @dala.check(ptr %stop)"), gone, on)
        f.start(gone)
        f.do("ret void")
        f.start(on)

    def iteration(self, s: For) -> None:
        """Emit the start of an iteration of a loop."""
        if not self.counting or s not in self.loops:
            return
        f = self.f
        over, within, look, on = (f.label(h) for h in ("over", "within", "look", "on"))
        left = f.let(f"sub i64 {f.let('load i64, ptr %left')}, 1")
        f.do(f"store i64 {left}, ptr %left")
        f.do(f"br i1 {f.let(f'icmp slt i64 {left}, 0')}, label %{over}, label %{within}, !prof !6")
        f.start(over)
        exceeded = f.let("getelementptr i64, ptr %stop, i64 3")
        f.do(f"store atomic i64 1, ptr {exceeded} monotonic, align 8")
        f.do("store atomic i64 2, ptr %stop monotonic, align 8")
        f.do("ret void")
        f.start(within)
        part = f.let(f"and i64 {left}, {self.looks_every - 1}")
        f.branch(f.let(f"icmp eq i64 {part}, 0"), look, on)
        f.start(look)
        self.check(on)


class _Weigher:
    """Finds the metered loops of a block, and the iterations of their strips.

    Args:
        longest: The most weight of a strip, by how deep metered loops are nested in its loop.
        less: By how much these are divided.
        counting: Whether iterations are counted, so that there are no strips.
    """

    def __init__(self, longest: tuple[int, ...], less: int, counting: bool = False) -> None:
        self.longest = longest
        self.less = less
        self.counting = counting
        self.loops: dict[For, int] = {}
        self.strips: dict[For, int] = {}

    def block(self, block: Block) -> tuple[int, int]:
        """Weigh a block.

        Returns:
            The most that it weighs between two looks, and how deep metered loops are nested in it.
        """
        total = depth = 0
        for s in block.body:
            total += WEIGHTS.get(s.op, 1) if isinstance(s, Value) else 1
            parts = []
            if isinstance(s, If):
                parts = [self.block(s.then), self.block(s.otherwise)]
            elif isinstance(s, For):
                parts = [self._loop(s)]
            for inside, levels in parts:
                total, depth = total + inside, max(depth, levels)
        return total, depth

    def _loop(self, s: For) -> tuple[int, int]:
        inside, levels = self.block(s.body)
        each = inside + 1
        if not levels and not self.counting and work_of(Block([s])) <= SHORT_LOOP:
            return len(range(s.start.attr, s.stop.attr, s.step)) * each, 0
        self.loops[s] = each
        if self.counting:
            return 0, levels + 1
        most = self.longest[min(levels, len(self.longest) - 1)] // self.less
        self.strips[s] = count = max(most // each, 1)
        return count * each, levels + 1
