"""Helper functions of row code that copy bytes and repeat pixels, as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dala.gpu.compute.engines.cpu.vector.text import FunctionText, Module

#: The key of the output in the ``exact`` argument of :func:`whole_and_rest`.
OUTPUT: Final = -1
#: How many rows ahead of a stage its inputs are prefetched. While the other stages compute, CPUs
#: forget that they are read in order.
ROWS_AHEAD: Final = 2

_PIXELS: Final = {
    1: "i8", 2: "i16", 3: "<3 x i8>", 4: "i32", 6: "<3 x i16>", 8: "i64", 12: "<3 x i32>",
    16: "<4 x i32>",
}  # fmt: skip


def _helper(
    module: Module, name: str, parameters: str, write: Callable[[FunctionText], None]
) -> str:
    """Write a function to a module, unless it has it; return its name."""
    if name not in module.helpers:
        f = FunctionText(module, f"define internal void {name}({parameters}) noinline #0")
        write(f)
        f.do("ret void")
        module.helpers[name] = f.text()
    return name


def _copied(f: FunctionText, kind: str, i: str) -> None:
    """Copy one element of ``%from`` to ``%to``."""
    moved = f.let(f"load {kind}, ptr {f.at('%from', i)}, align 1")
    f.do(f"store {kind} {moved}, ptr {f.at('%to', i)}, align 1")


def move_function(module: Module) -> str:
    """Return the name of ``move(to, from, bytes)``, for a few bytes."""

    def write(f: FunctionText) -> None:
        with f.loop("0", "%bytes") as i:
            _copied(f, "i8", i)

    return _helper(module, "@move", "ptr %to, ptr %from, i64 %bytes", write)


def copy_function(module: Module) -> str:
    """Return the name of ``copy(to, from, bytes)``, for a row: 64 bytes at a time."""

    def write(f: FunctionText) -> None:
        whole = f.let("and i64 %bytes, -64")
        with f.loop("0", whole, 64) as i:
            _copied(f, "<64 x i8>", i)
        with f.loop(whole, "%bytes") as i:
            _copied(f, "i8", i)

    return _helper(module, "@copy", "ptr %to, ptr %from, i64 %bytes", write)


def colors_function(module: Module) -> str:
    """Return the name of ``colors(to, from, pixels, ahead)``: copy the colors of RGBA pixels.

    It writes a little beyond their end, and prefetches the memory ``ahead`` bytes behind.
    """
    in_lane = [p + 4 * (k // 3) + k % 3 for p in (0, 16) for k in range(12)]
    places = in_lane[:12] + [15] * 4 + in_lane[12:] + [31] * 4

    def write(f: FunctionText) -> None:
        def ends(i: str) -> tuple[str, str]:
            source = f.at("%from", f.let(f"mul nuw nsw i64 {i}, 4"))
            return source, f.at("%to", f.let(f"mul nuw nsw i64 {i}, 3"))

        whole = f.let("and i64 %count, -8")
        with f.loop("0", whole, 8) as i:
            source, target = ends(i)
            prefetch(f, source, "%ahead", 32)
            pixels = f.let(f"load <32 x i8>, ptr {source}, align 1")
            colors = f.shuffle("<32 x i8>", pixels, "poison", places)
            eight = f.let(f"bitcast <32 x i8> {colors} to <8 x i32>")
            dense = f.shuffle("<8 x i32>", eight, "poison", (0, 1, 2, 4, 5, 6, 7, 7))
            f.do(f"store <8 x i32> {dense}, ptr {target}, align 1")
        with f.loop(whole, "%count") as i:
            source, target = ends(i)
            pixel = f.let(f"load i32, ptr {source}, align 1")
            f.do(f"store i32 {pixel}, ptr {target}, align 1")

    return _helper(module, "@colors", "ptr %to, ptr %from, i64 %count, i64 %ahead", write)


def repeat_function(module: Module, size: int) -> str:
    """Return the name of ``repeat(to, from, count)``, for pixels of ``size`` bytes."""
    kind = _PIXELS[size]

    def write(f: FunctionText) -> None:
        pixel = f.let(f"load {kind}, ptr %from, align 1")
        with f.loop("0", "%count") as i:
            place = f.at("%to", f.let(f"mul nuw nsw i64 {i}, {size}"))
            f.do(f"store {kind} {pixel}, ptr {place}, align 1")

    return _helper(module, f"@repeat{size}", "ptr %to, ptr %from, i64 %count", write)


def point_function(module: Module) -> str:
    """Return the name of a function that fills a table with the addresses of ``count`` rows.

    From ``row`` on they are ``step`` apart, and each begins ``shift`` bytes after the one before.
    Rows are clamped to 0 and ``last``. Every ``depth`` of them have the same address.
    """

    def write(f: FunctionText) -> None:
        with f.loop("0", "%count") as i:
            row = f.let(f"add i64 %row, {f.let(f'mul i64 {i}, %step')}")
            row = f.larger(f.smaller(row, "%last"), 0)
            # Rows and depths have 32 bits, which are divided faster.
            few, depth = (f.let(f"trunc i64 {v} to i32") for v in (row, "%depth"))
            slot = f.let(f"zext i32 {f.let(f'urem i32 {few}, {depth}')} to i64")
            place = f.at("%base", f.let(f"mul i64 {slot}, %stride"))
            place = f.at(place, f.let(f"mul i64 {i}, %shift"))
            f.do(f"store ptr {place}, ptr {f.at('%table', i, 'ptr')}")

    numbers = ", ".join(f"i64 %{name}" for name in ("count", "row", "last", "step", "shift"))
    given = f"ptr %table, {numbers}, ptr %base, i64 %stride, i64 %depth"
    return _helper(module, "@point", given, write)


def prefetch(f: FunctionText, row: str, offset: str, nbytes: int, *, write: bool = False) -> None:
    """Prefetch bytes of an input, or those to write; an invalid address does no harm.

    Inputs are fetched to the second cache, since the first one holds the rows of the window.
    """
    name = f.module.intrinsic("prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    at = f.at(row, offset)
    for line in range(0, nbytes, 64):
        place = f.at(at, str(line)) if line else at
        f.do(f"call void {name}(ptr {place}, i32 {'1, i32 3' if write else '0, i32 2'}, i32 1)")


@contextmanager
def whole_and_rest(
    f: FunctionText, count: str, step: int, exact: Mapping[int, tuple[str, int]]
) -> Iterator[tuple[str, str, dict[int, str]]]:
    """Emit the code of a ``with`` block twice: for whole blocks in place, and for the rest.

    The rest is copied to scratch memory of one block, computed there, and copied back, so that
    nothing is read or written beyond the end.

    Args:
        f: The function to write to.
        count: The number of elements, an i64.
        step: Elements of a block.
        exact: Memory that ends with its last element: (pointer, bytes of an element) for each
            input, by number, and for :data:`OUTPUT`.

    Yields:
        The first element, the end, and the pointers to use instead.
    """
    move = move_function(f.module)
    scratch = {
        i: f.alloca(f"[{step * size} x i8]", f"scratch{i}".replace("-1", ".out"), 64)
        for i, (_, size) in exact.items()
    }
    whole = f.let(f"and i64 {count}, {-step}")
    rest = f.let(f"sub i64 {count}, {whole}")
    end = f.let(f"add i64 {whole}, {step}")
    before = f.here
    f.jump("part")
    f.start("part")
    first = f.let(f"phi i1 [ true, %{before} ], [ false, %rest ]")
    begin = f.let(f"phi i64 [ 0, %{before} ], [ {whole}, %rest ]")
    stop = f.let(f"phi i64 [ {whole}, %{before} ], [ {end}, %rest ]")
    shifted = {i: f"%shift{i}".replace("-1", ".out") for i in exact}
    yield (
        begin,
        stop,
        {
            i: f.let(f"phi ptr [ {pointer}, %{before} ], [ {shifted[i]}, %rest ]")
            for i, (pointer, _) in exact.items()
        },
    )
    f.branch(first, "check", "finish")
    f.start("check")
    f.branch(f.let(f"icmp eq i64 {rest}, 0"), "leave", "rest")
    f.start("rest")
    for i, (pointer, size) in exact.items():
        skip = f.let(f"mul i64 {whole}, {size}")
        if i != OUTPUT:
            nbytes = f.let(f"mul i64 {rest}, {size}")
            f.do(f"call void {move}(ptr {scratch[i]}, ptr {f.at(pointer, skip)}, i64 {nbytes})")
        back = f.let(f"sub i64 0, {skip}")
        f.do(f"{shifted[i]} = getelementptr i8, ptr {scratch[i]}, i64 {back}")
    f.jump("part")
    f.start("finish")
    if OUTPUT in exact:
        pointer, size = exact[OUTPUT]
        target = f.at(pointer, f.let(f"mul i64 {whole}, {size}"))
        nbytes = f.let(f"mul i64 {rest}, {size}")
        f.do(f"call void {move}(ptr {target}, ptr {scratch[OUTPUT]}, i64 {nbytes})")
    f.jump("leave")
    f.start("leave")
