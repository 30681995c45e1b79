"""Softmax and layer normalization on the CPU, over rows or tiles of columns that fit the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    bits,
    exp,
    f32,
    f64,
    fma,
    hsum,
    i32,
    i64,
    independent,
    load,
    local,
    maximum,
    select,
    splat,
    sqrt,
    store,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import (
    BLOCK,
    MAX,
    PIECE,
    first_lanes,
    memories,
    native_type,
    row_extreme,
    row_total,
)

#: Columns of a tile: few enough that it stays in the cache between passes.
TILE: Final = 256
#: Rows summed in the narrow type before the sums are added in a wider one.
ROWS: Final = 64


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
        p = fma(p, r, 8.3334519073e-3)
        p = fma(p, r, 4.1665795894e-2)
        p = fma(p, r, 1.6666665459e-1)
        p = fma(p, r, 5.0000001201e-1)
        p = fma(p * r, r, r) + 1.0
        e = p * bits(f32, (bits(i32, turns) << 23) + 0x3F800000)
        found = select(x < -87.336544, 0.0, e)
    else:
        found = exp(x)
    return found


@native
def exponentials(
    x: Array[T],
    y: Array[T],
    m: T,
    *,
    T: type,  # noqa: N803
    lanes: int,
    short: bool,
) -> Vector:
    """Write exp(x - m) and return the sum."""
    s0 = splat(T(0), lanes)
    s1 = s0
    i = i64(0)
    while i + 2 * lanes <= len(x):
        e0 = exp_below(load(x, i, lanes) - m, short=short)
        e1 = exp_below(load(x, i + lanes, lanes) - m, short=short)
        store(y, i, e0)
        store(y, i + lanes, e1)
        s0 += e0
        s1 += e1
        i += 2 * lanes
    while i < len(x):
        left = min(len(x) - i, i64(lanes))
        e0 = exp_below(load(x, i, lanes, left) - m, short=short)
        store(y, i, e0, left)
        s0 += select(first_lanes(left, lanes=lanes), e0, 0.0)
        i += lanes
    return hsum(s0 + s1)


@native
def softmax_rows(
    a: Array[T],
    out: Array[T],
    n: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    short: bool,
) -> None:
    """Compute the softmax along the last axis."""
    for row in range(start, end):
        x, y = a[row * n : row * n + n], out[row * n : row * n + n]
        m = row_extreme(x, kind=MAX, lanes=lanes)
        total = f64(0)
        i = i64(0)
        while i < n:
            last = min(i + BLOCK, n)
            total += f64(exponentials(x[i:last], y[i:last], m, lanes=lanes, short=short))
            i = last
        scale = T(1 / total)
        i = i64(0)
        while i + lanes <= n:
            store(y, i, load(y, i, lanes) * scale)
            i += lanes
        if i < n:
            store(y, i, load(y, i, lanes, n - i) * scale, n - i)


@native
def softmax_columns(
    a: Array[T],
    out: Array[T],
    n: i64,
    inner: i64,
    tiles: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    short: bool,
) -> None:
    """Compute the softmax along another axis, a tile of columns at a time."""
    top = local(T, TILE)
    narrow = local(T, TILE)
    wide = local(f64, TILE)
    for job in range(start, end):
        c0 = (job % tiles) * TILE
        width = min(inner - c0, i64(TILE))
        x = a[(job // tiles) * n * inner + c0 :]
        y = out[(job // tiles) * n * inner + c0 :]
        for c in independent(range(width)):
            top[c] = x[c]
            wide[c] = f64(0)
        for k in range(1, n):
            row = x[k * inner :]
            for c in independent(range(width)):
                top[c] = maximum(top[c], row[c])
        k = i64(0)
        while k < n:
            stop = min(k + ROWS, n)
            for c in independent(range(width)):
                narrow[c] = T(0)
            while k < stop:
                row, to = x[k * inner :], y[k * inner :]
                for c in independent(range(width)):
                    e = exp_below(row[c] - top[c], short=short)
                    to[c] = e
                    narrow[c] += e
                k += 1
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
    outer, n, inner = task["layout"]
    t = native_type(task.inputs[0].dtype)
    numbers: tuple[int, ...]
    if inner == 1:
        code = compile_native(softmax_rows, T=t, lanes=64 // t.size, short=t.size == 4)
        go = code.parallel(outer, max(1, PIECE // 4 // n))
        numbers = (n,)
    else:
        tiles = -(-inner // TILE)
        code = compile_native(softmax_columns, T=t, short=t.size == 4)
        go = code.parallel(outer * tiles, max(1, PIECE // 4 // (n * min(inner, TILE))))
        numbers = (n, inner, tiles)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (a,), target = memories(inputs, output)
        go(a, target, *numbers)

    return run


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
        d0 = select(first_lanes(left, lanes=lanes), load(x, i, lanes, left) - m, 0.0)
        s0 += d0
        q0 = fma(d0, d0, q0)
        i += lanes
    return hsum(s0 + s1), hsum(q0 + q1)


@native
def layer_norm_rows(
    a: Array[T],
    gamma: Array[T],
    beta: Array[T],
    out: Array[T],
    n: i64,
    epsilon: f64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    scaled: bool,
    shifted: bool,
) -> None:
    """Normalize rows. The subtracted mean is rounded to the dtype; the error is corrected."""
    for row in range(start, end):
        x, y = a[row * n : row * n + n], out[row * n : row * n + n]
        m = T(row_total(x, narrow=T, wide=f64, lanes=lanes) / f64(n))
        first = f64(0)
        second = f64(0)
        i = i64(0)
        while i < n:
            last = min(i + BLOCK, n)
            one, two = deviations(x[i:last], m, lanes=lanes)
            first += f64(one)
            second += f64(two)
            i = last
        left = first / f64(n)
        variance = max(second / f64(n) - left * left, f64(0))
        scale = T(1 / sqrt(variance + epsilon))
        rest = T(left)
        i = i64(0)
        while i < n:
            many = min(n - i, i64(lanes))
            v = (load(x, i, lanes, many) - m - rest) * scale
            if scaled:
                v = v * load(gamma, i, lanes, many)
            if shifted:
                v = v + load(beta, i, lanes, many)
            store(y, i, v, many)
            i += lanes


@implements("layer_norm")
def make_layer_norm(engine: Engine, task: Task) -> Runner:
    """Return the runner of a layer normalization over the last axis."""
    a = task.inputs[0]
    t, n, given = native_type(a.dtype), a.shape[-1], len(task.inputs)
    outer = 1
    for length in a.shape[:-1]:
        outer *= length
    code = compile_native(
        layer_norm_rows, T=t, lanes=64 // t.size, scaled=given > 1, shifted=given > 2
    )
    go = code.parallel(outer, max(1, PIECE // 2 // n))
    epsilon = task["epsilon"]

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        held, target = memories(inputs, output)
        a, gamma, beta = (*held, (0, 0), (0, 0))[:3]
        go(a, gamma, beta, target, n, epsilon)

    return run
