"""Histograms on the CPU: each piece has its own counters, which are summed at the end.

Bytes are counted by value, and the counts are assigned to bins afterwards. For other dtypes the bin
is estimated, a vector at a time, and then corrected by the bin edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    f32,
    f64,
    i32,
    i64,
    in_range,
    independent,
    local,
    u8,
    u32,
    u64,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import memories, native_type
from dala.gpu.compute.engines.cpu.threads import pool

#: Elements whose bins are estimated before they are counted.
BATCH: Final = 512
#: The least elements of a piece.
PIECE: Final = 1 << 17


@native
def count_bytes(a: Array[u8], counts: Array[u32], length: i64, start: i64, end: i64) -> None:
    """Count pieces of ``length`` bytes; adjacent bytes use different counters, to avoid stalls."""
    own = local(u32, 1024)
    for job in range(start, end):
        for k in independent(range(1024)):
            own[k] = u32(0)
        i = job * length
        last = min(i + length, len(a))
        while i + 4 <= last:
            own[i64(a[i])] += 1
            own[i64(a[i + 1]) + 256] += 1
            own[i64(a[i + 2]) + 512] += 1
            own[i64(a[i + 3]) + 768] += 1
            i += 4
        while i < last:
            own[i64(a[i])] += 1
            i += 1
        here = counts[job * 256 :]
        for k in independent(range(256)):
            here[k] = own[k] + own[k + 256] + own[k + 512] + own[k + 768]


@native
def guess_bin(x: Vector, low: Vector, scale: f64, most: i32, *, kind: int) -> Vector:
    """Estimate the bin of a number; numbers below ``low`` are not counted."""
    if kind == 0:
        g = in_range(i32, min(max((x - low) * f32(scale), 0.0), f32(most)))
    elif kind == 1:
        g = in_range(i32, min(max((x - low) * scale, 0.0), f64(most)))
    else:
        g = in_range(i32, min(f64(u64(i64(x) - i64(low))) * scale, f64(most)))
    return min(g, most)


@native
def count(
    a: Array[T],
    edges: Array[T],
    counts: Array[u32],
    bins: i64,
    length: i64,
    scale: f64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    kind: int,
) -> None:
    """Count pieces of ``length`` elements into the bins between the edges."""
    at = local(i32, BATCH)
    used = len(edges) - 1
    low = edges[0]
    top = edges[used]
    most = i32(used - 1)
    for job in range(start, end):
        here = counts[job * bins :]
        i = job * length
        last = min(i + length, len(a))
        while i < last:
            many = min(i64(BATCH), last - i)
            x = a[i:]
            for k in independent(range(many)):
                at[k] = guess_bin(x[k], low, scale, most, kind=kind)
            for k in range(many):
                v = x[k]
                if low <= v and v <= top:
                    g = at[k]
                    while v < edges[g]:
                        g -= 1
                    while g < most and v >= edges[g + 1]:
                        g += 1
                    here[g] += 1
            i += many


@implements("histogram")
def make_histogram(engine: Engine, task: Task) -> Runner:
    """Return the runner of a histogram, with a few pieces per thread."""
    dtype, bins = task.inputs[0].dtype, task["bins"]
    total = 1
    for n in task.inputs[0].shape:
        total *= n
    edges = np.frombuffer(task["edges"], NUMPY[dtype]).copy()
    tables = 256 if dtype == "u8" else bins
    pieces = max(1, min(total // max(PIECE, 8 * tables), 4 * pool().threads))
    length = -(-total // pieces)
    pieces = -(-total // length)
    if dtype == "u8":
        of_bytes = compile_native(count_bytes).parallel(pieces, 1)
        values = np.arange(256)
        inside = values[(values >= edges[0]) & (values <= edges[-1])] if len(edges) > 1 else []
        starts = np.asarray(edges[:-1])
        bin_of = np.searchsorted(starts, inside, side="right") - 1
    else:
        t = native_type(dtype)
        kind = 2 if not t.floating else 0 if t.size == 4 else 1
        code = compile_native(count, T=t, kind=kind)
        of_others = code.parallel(pieces, 1)
        scale = min(bins / (task["high"] - task["low"]), 3e38)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (a,), target = memories(inputs, output)
        out = target.array.view(np.uint32)
        if dtype == "u8":
            counts = np.empty((pieces, 256), np.uint32)
            of_bytes(a, counts, length)
            out[...] = 0
            found = counts.sum(axis=0, dtype=np.uint32)
            np.add.at(out, bin_of, found[inside])
        elif len(edges) < 2:
            out[...] = 0
        else:
            counts = np.zeros((pieces, bins), np.uint32)
            of_others(a, edges, counts, bins, length, scale)
            np.sum(counts, axis=0, dtype=np.uint32, out=out)

    return run
