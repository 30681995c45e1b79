"""Softmax and layer normalization on the CPU, over rows or tiles of columns that fit the cache."""

from __future__ import annotations

from math import prod

from dala.gpu.compute.engines.cpu.loops.axis import *
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *

#: Columns of a tile: few enough that it stays in the cache between passes.
TILE: Final = 256


#: The lower numbers of a polynomial for exp.
_EXP: Final = (8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)


# softmax --------------------------------------------------------------------------------------
@native
def exp_below(x: Vector, *, short: bool) -> Vector:
    """Return exp(x) for x <= 0 or NaN; results below the smallest normal number are 0."""
    if short:
        low = max(x, -87.336544)
        turns = fma(low, 1.44269504, 12582912.0)  # rounded: the exponent is in its low bits
        n = turns - 12582912.0
        r = fma(n, -1.42860677e-6, fma(n, -0.693145751953125, low))
        p = fma(r, 1.9875691500e-4, 1.3981999507e-3)
        for number in static(_EXP):
            p = fma(p, r, number)
        p = fma(p * r, r, r) + 1.0
        e = p * bits(f32, (bits(i32, turns) << 23) + 0x3F800000)
        found = select(x < -87.336544, 0.0, e)
    else:
        found = exp(x)
    return found


@native
def exponentials(
    x: Array[T], y: Array[T], m: T,
    *, T: type, lanes: int, short: bool,  # noqa: N803
) -> Vector:  # fmt: skip
    """Write exp(x - m) and return the sum."""
    s0 = splat(T(0), lanes)
    s1 = s0
    i = i64(0)
    while i + 2 * lanes <= len(x):
        e0 = exp_below(load(x, i, lanes) - m)
        e1 = exp_below(load(x, i + lanes, lanes) - m)
        store(y, i, e0)
        store(y, i + lanes, e1)
        s0 += e0
        s1 += e1
        i += 2 * lanes
    while i < len(x):
        left = min(len(x) - i, i64(lanes))
        e0 = exp_below(load(x, i, lanes, left) - m)
        store(y, i, e0, left)
        s0 += select(first_lanes(left), e0, 0.0)
        i += lanes
    return hsum(s0 + s1)


@native
def softmax_parts(
    a: Array[T], out: Array[T], n: i64, inner: i64, step: i64, length: i64, splits: i64, tiles: i64,
    start: i64, end: i64,
    *, T: type, lanes: int, short: bool, rows: bool, tile: int,  # noqa: N803
) -> None:  # fmt: skip
    """Compute the softmax of rows, or of tiles of columns."""
    top, narrow, wide = local(T, tile), local(T, tile), local(f64, tile)
    for job in range(start, end):
        at, column, width, _, _, _ = part_of(job, n, inner, step, length, splits, tiles)
        x, y = a[at + column : at + step], out[at + column : at + step]
        if rows:
            m = row_block(x, narrow=T, kind=MAX)
            total = f64(0)
            for i in range(0, n, BLOCK):
                last = min(i + BLOCK, n)
                total += f64(exponentials(x[i:last], y[i:last], m))
            scale = T(1 / total)
            for k in independent(range(n)):
                y[k] = y[k] * scale
        else:
            column_fold(x, inner, 0, n, width, narrow, top, kind=MAX)
            for c in independent(range(width)):
                wide[c] = f64(0)
            for block in range(0, n, ROWS):
                for c in independent(range(width)):
                    narrow[c] = T(0)
                for k in range(block, min(block + ROWS, n)):
                    row, to = x[k * inner :], y[k * inner :]
                    for c in independent(range(width)):
                        e = exp_below(row[c] - top[c])
                        to[c] = e
                        narrow[c] += e
                for c in independent(range(width)):
                    wide[c] += f64(narrow[c])
            for c in independent(range(width)):
                narrow[c] = T(1 / wide[c])
            for k in range(n):
                to = y[k * inner :]
                for c in independent(range(width)):
                    to[c] = to[c] * narrow[c]


@implements("softmax")
def make_softmax(engine: Engine, task: Task) -> Runner:
    """Return the runner of a softmax: over rows if its axis is contiguous, else over columns."""
    t = native_type(task.inputs[0].dtype)
    schedule = Schedule.of(task["layout"], TILE, pieces=1)
    statics = {"T": t, "lanes": 64 // t.size, "short": t.size == 4}
    return array_runner(schedule.compile(softmax_parts, piece=PIECE // 4, **statics))


# layer_norm -----------------------------------------------------------------------------------
@native
def deviations(x: Array[T], m: T, *, T: type, lanes: int) -> tuple[T, T]:  # noqa: N803
    """Return the sum of the differences from m, and that of their squares."""
    s0 = splat(T(0), lanes)
    s1 = s0
    q0 = s0
    q1 = s0
    i = i64(0)
    while i + 2 * lanes <= len(x):
        d0 = load(x, i, lanes) - m
        d1 = load(x, i + lanes, lanes) - m
        s0 += d0
        s1 += d1
        q0 = fma(d0, d0, q0)
        q1 = fma(d1, d1, q1)
        i += 2 * lanes
    while i < len(x):
        left = min(len(x) - i, i64(lanes))
        d0 = select(first_lanes(left), load(x, i, lanes, left) - m, 0.0)
        s0 += d0
        q0 = fma(d0, d0, q0)
        i += lanes
    return hsum(s0 + s1), hsum(q0 + q1)


@native
def layer_norm_rows(
    a: Array[T], gamma: Array[T], beta: Array[T], out: Array[T], n: i64, epsilon: f64, start: i64,
    end: i64,
    *, T: type, lanes: int, scaled: bool, shifted: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Normalize rows. The subtracted mean is rounded to the dtype; the error is corrected."""
    for row in range(start, end):
        x, y = a[row * n : row * n + n], out[row * n : row * n + n]
        m = T(row_fold(x, narrow=T, wide=f64, kind=SUM) / f64(n))
        first = f64(0)
        second = f64(0)
        for i in range(0, n, BLOCK):
            one, two = deviations(x[i : min(i + BLOCK, n)], m)
            first += f64(one)
            second += f64(two)
        left = first / f64(n)
        variance = max(second / f64(n) - left * left, f64(0))
        scale = T(1 / sqrt(variance + epsilon))
        rest = T(left)
        for k in independent(range(n)):
            v = (x[k] - m - rest) * scale
            if scaled:
                v = v * gamma[k]
            if shifted:
                v = v + beta[k]
            y[k] = v


@implements("layer_norm")
def make_layer_norm(engine: Engine, task: Task) -> Runner:
    """Return the runner of a layer normalization over the last axis."""
    a = task.inputs[0]
    t, n, given = native_type(a.dtype), a.shape[-1], len(task.inputs)
    code = compile_native(
        layer_norm_rows, T=t, lanes=64 // t.size, scaled=given > 1, shifted=given > 2
    )
    go = code.parallel(prod(a.shape[:-1]), max(1, PIECE // 2 // n))
    epsilon = task["epsilon"]
    none = ((0, 0),) * (3 - given)
    return array_runner(lambda *held: go(*held[:-1], *none, held[-1], n, epsilon))
