"""Helper functions of row code that copy bytes and repeat pixels, as LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.text import FunctionText, Module

#: The key of the output in the ``exact`` argument of :func:`whole_and_rest`.
OUTPUT: Final = -1
#: How many rows ahead of a stage its inputs are prefetched. While the other stages compute, CPUs
#: forget that they are read in order.
ROWS_AHEAD: Final = 2

#: Copies bytes one by one: for the ends of rows.
_MOVE: Final = """\
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
#: Copies a row, 64 bytes at a time, and prefetches memory some bytes ahead of it.
_COPY: Final = """\
define internal void @copy{name}(ptr %to, ptr %from, i64 %bytes, i64 %ahead) noinline #0 {{
entry:
  %whole = and i64 %bytes, -64
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %line ]
  %more = icmp slt i64 %i, %whole
  br i1 %more, label %line, label %tail
line:
  %from.i = getelementptr i8, ptr %from, i64 %i
  %to.i = getelementptr i8, ptr %to, i64 %i{prefetch}
  %moved = load <64 x i8>, ptr %from.i, align 1
  store <64 x i8> %moved, ptr %to.i, align 1
  %i.next = add nuw nsw i64 %i, 64
  br label %head, !llvm.loop !2
tail:
  %j = phi i64 [ %whole, %head ], [ %j.next, %byte ]
  %rest = icmp slt i64 %j, %bytes
  br i1 %rest, label %byte, label %done
byte:
  %from.j = getelementptr i8, ptr %from, i64 %j
  %to.j = getelementptr i8, ptr %to, i64 %j
  %moved.j = load i8, ptr %from.j
  store i8 %moved.j, ptr %to.j
  %j.next = add nuw nsw i64 %j, 1
  br label %tail, !llvm.loop !2
done:
  ret void
}}
"""
_PREFETCH: Final = """
  %next.i = getelementptr i8, ptr %from.i, i64 %ahead
  call void @llvm.prefetch.p0(ptr %next.i, i32 0, i32 2, i32 1)"""
#: Fills memory with copies of one pixel.
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


def move_function(module: Module) -> str:
    """Return the name of ``move(to, from, bytes)``, for a few bytes."""
    module.helpers["@move"] = _MOVE
    return "@move"


def copy_function(module: Module, *, prefetch: bool) -> str:
    """Return the name of ``copy(to, from, bytes, ahead)``, for a row.

    With ``prefetch`` it prefetches the memory ``ahead`` bytes behind the row.
    """
    name, text = ("", "") if not prefetch else (".ahead", _PREFETCH)
    if prefetch:
        module.intrinsic("prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    module.helpers[f"@copy{name}"] = _COPY.format(name=name, prefetch=text)
    return f"@copy{name}"


def repeat_function(module: Module, size: int) -> str:
    """Return the name of ``repeat(to, from, count)``, for pixels of ``size`` bytes."""
    name = f"@repeat{size}"
    module.helpers[name] = _REPEAT.format(size=size, kind=_PIXELS[size])
    return name


def prefetch(f: FunctionText, row: str, offset: str, nbytes: int) -> None:
    """Prefetch bytes of an input; an invalid address does no harm.

    They are fetched to the second cache, since the first one holds the rows of the window.
    """
    name = f.module.intrinsic("prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    at = f.at(row, offset)
    for line in range(0, nbytes, 64):
        place = f.at(at, str(line)) if line else at
        f.do(f"call void {name}(ptr {place}, i32 0, i32 2, i32 1)")


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
