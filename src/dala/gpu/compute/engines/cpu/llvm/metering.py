"""Emit the checks that end long loops: on Ctrl-C, when cancelled, at a deadline, beyond a budget.

Every call of native code has a *stop cell*, whose address is in its job block. Its words are

===  ========  ================================================================================
0    state     0 to continue, 1 to ask the calling thread, 2 to end (atomic)
1    frame     a stack address of the calling thread, stored when the call begins
2    ask       the function ``i32 ask()`` for state 1, which returns nonzero to end; or null
3    exceeded  set to 1 by code that has used up its iterations
4    limit     iterations at one position, for code that counts them
===  ========  ================================================================================

An innermost loop runs in strips of some ten thousand statements, so that the loop itself stays as
simple as before. The state is loaded after each strip. Positions, and iterations of loops around
others, spend fuel instead, since the loops in them may be shorter than a strip; the state is loaded
where it runs out. Loops that are short by their constant bounds are not metered. Code that ends
early returns from its function; the caller of the engine raises the error.

Code with a budget of iterations counts every iteration of every loop instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.text import FunctionText
from dala.gpu.compute.lang.ir import Block, For, If, Value

#: The word of the job block with the address of the stop cell.
STOP_WORD: Final = 9
#: Words of a stop cell.
CELL_WORDS: Final = 5

#: Statements of a strip.
STRIP: Final = 1 << 16
#: Positions or iterations, with metered loops inside, between two looks at the stop cell.
FUEL: Final = 8
#: Programs with fewer statements at a position, counting iterations, are not metered.
SHORT_PROGRAM: Final = 1 << 15
#: Loops with fewer statements are not metered in longer programs either.
SHORT_LOOP: Final = 1 << 10

# Several threads may run a job. Only the calling thread may be asked: on the main thread, that runs
# Python's signal handlers. It is recognized by its stack.
CHECK: Final = f"""\
define internal void @dala.enter(ptr %job) noinline #0 {{
entry:
  %stop.p = getelementptr i64, ptr %job, i64 {STOP_WORD}
  %stop = load ptr, ptr %stop.p
  %ask.p = getelementptr i64, ptr %stop, i64 2
  %ask = load ptr, ptr %ask.p
  %some = icmp ne ptr %ask, null
  br i1 %some, label %note, label %leave
note:
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %frame.p = getelementptr i64, ptr %stop, i64 1
  store ptr %frame, ptr %frame.p
  br label %leave
leave:
  ret void
}}

define internal i1 @dala.check(ptr %stop) noinline cold #0 {{
entry:
  %state = load atomic i64, ptr %stop monotonic, align 8
  switch i64 %state, label %ended [ i64 0, label %go i64 1, label %look ]
look:
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %here = ptrtoint ptr %frame to i64
  %frame.p = getelementptr i64, ptr %stop, i64 1
  %base = load i64, ptr %frame.p
  %above = add i64 %base, 65536
  %depth = sub i64 %above, %here
  %mine = icmp ult i64 %depth, 2097152
  br i1 %mine, label %question, label %go
question:
  %ask.p = getelementptr i64, ptr %stop, i64 2
  %ask = load ptr, ptr %ask.p
  %answer = call i32 %ask()
  %end = icmp ne i32 %answer, 0
  br i1 %end, label %ended, label %go
go:
  ret i1 false
ended:
  ret i1 true
}}

declare ptr @llvm.frameaddress.p0(i32)
"""


def block_work(block: Block, known: Mapping[int, int] | None = None) -> int | None:
    """Return the most statements that a block runs, counting iterations; None if unknown.

    ``known`` are values of parameters by index.
    """
    total = 0
    for s in block.body:
        inside: int | None = 1
        if isinstance(s, For):
            inside = loop_work(s, known)
        elif isinstance(s, If):
            parts = [block_work(part, known) for part in (s.then, s.otherwise)]
            inside = None if None in parts else 1 + sum(p or 0 for p in parts)
        if inside is None:
            return None
        total += inside
    return total


def loop_work(s: For, known: Mapping[int, int] | None = None) -> int | None:
    """Return the most statements that a loop runs, or None if its bounds are unknown."""
    start, stop = _bound(s.start, known or {}), _bound(s.stop, known or {})
    each = block_work(s.body, known)
    if start is None or stop is None or each is None:
        return None
    return 1 + len(range(start, stop, s.step)) * (each + 1)


def _bound(v: Value, known: Mapping[int, int]) -> int | None:
    if v.op == "const":
        return int(v.attr)
    return known.get(v.attr) if v.op == "param" else None


def is_long(block: Block, known: Mapping[int, int] | None = None) -> bool:
    """Return whether a program has loops that may run long, which are metered."""
    work = block_work(block, known)
    return work is None or work > SHORT_PROGRAM


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
        #: For each metered loop, the statements of an iteration, without metered loops inside.
        self.loops: dict[For, int] = {}
        #: Loops without a metered loop inside, which run in strips.
        self.innermost: set[For] = set()
        if counting or is_long(block):
            self._find(block)
        if self.loops:
            self._begin()

    def _find(self, block: Block) -> tuple[int, bool]:
        """Find the metered loops of a block; return its other statements, and if there are any."""
        total, found = 0, False
        for s in block.body:
            total += 1
            if isinstance(s, If):
                for part in (s.then, s.otherwise):
                    inside, metered = self._find(part)
                    total, found = total + inside, found or metered
            elif isinstance(s, For):
                inside, metered = self._find(s.body)
                work = loop_work(s)
                if metered or self.counting or work is None or work > SHORT_LOOP:
                    self.loops[s] = inside + 1
                    found = True
                    if not metered and not self.counting:
                        self.innermost.add(s)
                else:
                    total += work
        return total, found

    def _begin(self) -> None:
        f = self.f
        f.module.helpers["@dala.check"] = CHECK
        if f.metered:
            return
        f.metered = True
        f.entry += [
            "  %fuel = alloca i64",
            f"  store i64 {FUEL}, ptr %fuel",
            f"  %stop.p = getelementptr i64, ptr %job, i64 {STOP_WORD}",
            "  %stop = load ptr, ptr %stop.p",
        ]
        if self.counting:
            f.entry += [
                "  %left = alloca i64",
                "  %limit.p = getelementptr i64, ptr %stop, i64 4",
                "  %limit = load i64, ptr %limit.p",
            ]

    def begin_position(self) -> None:
        """Emit the start of a position."""
        if self.counting and self.loops:
            self.f.do("store i64 %limit, ptr %left")
        if self.loops:
            self._spend()

    def strip(self, s: For, at: str, last: str) -> str:
        """Emit the start of a strip of a loop; return where it stops."""
        count = max(STRIP // self.loops[s], 1)
        far = self.f.let(f"add nsw i64 {at}, {count * s.step}")
        return self.f.smaller(far, last) if s.step > 0 else self.f.larger(far, last)

    def iteration(self, s: For) -> None:
        """Emit the start of an iteration of a loop that does not run in strips."""
        if self.counting:
            self._count()
        self._spend()

    def _spend(self) -> None:
        f = self.f
        slow, on = f.label("look"), f.label("on")
        left = f.let(f"sub i64 {f.let('load i64, ptr %fuel')}, 1")
        f.do(f"store i64 {left}, ptr %fuel")
        f.do(f"br i1 {f.let(f'icmp slt i64 {left}, 0')}, label %{slow}, label %{on}")
        f.start(slow)
        f.do(f"store i64 {FUEL}, ptr %fuel")
        self.check(on)

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

    def _count(self) -> None:
        f = self.f
        over, on = f.label("over"), f.label("counted")
        left = f.let(f"sub i64 {f.let('load i64, ptr %left')}, 1")
        f.do(f"store i64 {left}, ptr %left")
        f.do(f"br i1 {f.let(f'icmp slt i64 {left}, 0')}, label %{over}, label %{on}, !prof !6")
        f.start(over)
        exceeded = f.let("getelementptr i64, ptr %stop, i64 3")
        f.do(f"store atomic i64 1, ptr {exceeded} monotonic, align 8")
        f.do("store atomic i64 2, ptr %stop monotonic, align 8")
        f.do("ret void")
        f.start(on)
