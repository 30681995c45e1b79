"""Native code: memory, vectors, parallel calls, arguments, checked builds."""

from __future__ import annotations

import gc
import math
import os
import platform
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.jit import Jit, jit
from dala.gpu.compute.engines.cpu.memory import Memory, address_of
from dala.gpu.compute.engines.cpu.native import OutOfBounds, compile_native, compiled, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    add_saturate,
    all_of,
    any_of,
    exp,
    f32,
    f64,
    gather,
    hinted,
    hmax,
    hmin,
    hsum,
    i8,
    i16,
    i32,
    i64,
    independent,
    insert,
    load,
    local,
    look_up,
    maximum,
    minimum,
    multiply_pairs,
    multiply_q15,
    narrow_fours,
    prefetch,
    saturate,
    select,
    shuffle,
    splat,
    sqrt,
    static,
    store,
    stream,
    table,
    u8,
    u16,
    u32,
    u64,
    vec,
    view,
)
from dala.gpu.compute.engines.cpu.threads import ThreadPool

X86 = platform.machine().lower() in ("x86_64", "amd64")


# memory ---------------------------------------------------------------------------------------
@native
def records(a: Array[u8], out: Array[f64], at: i64) -> None:
    out[0] = f64(view(a, u16, at)[0])
    out[1] = f64(view(a, f32, at + 2)[0])
    out[2] = view(a, f64, at + 6)[0]
    out[3] = f64(view(a, i64, at + 14)[1])
    out[4] = f64(len(view(a, u32, at)))
    view(a, i32, at + 1)[0] = -5


@pytest.mark.parametrize("at", [0, 1, 3, 7])
def test_unaligned_views(at):
    a = np.arange(80, dtype=np.uint8)
    a[at + 2 : at + 6] = np.frombuffer(np.float32(2.5).tobytes(), np.uint8)
    a[at + 6 : at + 14] = np.frombuffer(np.float64(-1.25).tobytes(), np.uint8)
    a[at + 22 : at + 30] = np.frombuffer(np.int64(-77).tobytes(), np.uint8)
    first = int(a[at]) + 256 * int(a[at + 1])
    out = np.zeros(5)
    compile_native(records, checked=True)(a, out, at)
    assert out.tolist() == [first, 2.5, -1.25, -77, (80 - at) // 4]
    assert a[at + 1 : at + 5].view(np.int32)[0] == -5
    assert a[at] == at


@native
def reversed_through_scratch(a: Array[u8], out: Array[u8]) -> None:
    scratch = local(u8, 256)
    n = len(a)
    for i in range(n):
        scratch[n - 1 - i] = a[i]
    squares = table(i32, (0, 1, 4, 9, 16))
    for i in range(n):
        out[i] = scratch[i] + u8(squares[i % 5])
    out[0] += 1
    out[1] ^= 0xFF


def test_locals_and_tables():
    a = np.arange(100, 120, dtype=np.uint8)
    out = np.zeros(20, np.uint8)
    compile_native(reversed_through_scratch)(a, out)
    expected = a[::-1] + np.array([0, 1, 4, 9, 16] * 4, np.uint8)
    expected[0] += 1
    expected[1] ^= 255
    np.testing.assert_array_equal(out, expected)


@native
def big_scratch(out: Array[i64], start: i64, end: i64) -> None:
    scratch = local(i64, 32768)
    for i in range(start, end):
        for k in range(32768):
            scratch[k] = i * k
        out[i] = scratch[(i * 7919) % 32768] + scratch[32767]


def test_local_arrays_on_every_thread():
    out = np.zeros(16, np.int64)
    compile_native(big_scratch).parallel(16, 1)(out)
    i = np.arange(16)
    np.testing.assert_array_equal(out, i * ((i * 7919) % 32768) + i * 32767)


def test_touching_the_stack_first(monkeypatch):
    """Windows needs large stack frames touched page by page; elsewhere this is harmless."""
    monkeypatch.setattr(compiled, "TOUCH_FROM", 1)
    code = compile_native(native(big_scratch.function))
    assert "call void @dala.touch(i64 68)" in code.text
    out = np.zeros(16, np.int64)
    code.parallel(16, 4)(out)
    i = np.arange(16)
    np.testing.assert_array_equal(out, i * ((i * 7919) % 32768) + i * 32767)


@native
def ping_pong(a: Array[f32], b: Array[f32], rounds: i64) -> f32:
    source = a[:]
    target = b[:]
    for _ in range(rounds):
        for i in range(len(source)):
            target[i] = source[i] + 1
        source, target = target, source
    return source[0]


def test_reassigned_arrays():
    a, b = np.array([1, 2], np.float32), np.zeros(2, np.float32)
    assert compile_native(ping_pong)(a, b, 5) == 6
    assert compile_native(ping_pong)(a.copy(), b, 0) == a[0]


# vectors --------------------------------------------------------------------------------------
@native
def vectors(a: Array[f32], i: Array[i32], out: Array[f32]) -> None:
    v = load(a, 1, 4)
    w = vec(a[0], 2.0, 3.0, a[4])
    store(out, 0, v * w + 1)
    store(out, 4, select(v > w, v, w))
    store(out, 8, shuffle(v, w, (0, 4, 3, 7)))
    store(out, 12, insert(splat(a[2], 4), 2, f32(9)))
    store(out, 16, gather(a, load(i, 0, 4)))
    store(out, 20, f32(i32(v) >> 1))
    out[24] = hsum(v)
    out[25] = hmin(v)
    out[26] = hmax(v)
    out[27] = v[3]
    out[28] = f32(any_of(v > 15)) + 2 * f32(all_of(v > 1))
    store(out, 29, minimum(sqrt(v), exp(v)))
    prefetch(a, 4)


def test_vectors():
    a = np.array([1, 2, 4, 8, 16], np.float32)
    i = np.array([4, 0, 3, 3], np.int32)
    for checked in (False, True):
        out = np.zeros(33, np.float32)
        compile_native(vectors, checked=checked)(a, i, out)
        v, w = a[1:], np.array([1, 2, 3, 16], np.float32)
        expected = [
            *(v * w + 1), *np.maximum(v, w), v[0], w[0], v[3], w[3], 4, 4, 9, 4, *a[i],
            *(v.astype(np.int32) >> 1), v.sum(), 2, 16, 16, 3, *np.sqrt(v),
        ]  # fmt: skip
        np.testing.assert_allclose(out, np.array(expected, np.float32), rtol=1e-6)


@native
def saturating(a: Array[i32], out: Array[u8]) -> None:
    store(out, 0, saturate(u8, load(a, 0, 16)))


def test_wide_vectors():
    a = np.arange(-800, 800, 100, dtype=np.int32)
    out = np.zeros(16, np.uint8)
    compile_native(saturating)(a, out)
    np.testing.assert_array_equal(out, np.clip(a, 0, 255))


@native
def fractions(a: Array[i16], b: Array[i16], out: Array[i16], *, lanes: int) -> None:
    store(out, 0, multiply_q15(load(a, 0, lanes), load(b, 0, lanes)))
    store(out, lanes, add_saturate(load(a, 0, lanes), load(b, 0, lanes)))


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
def test_q15_products(lanes, cpu):
    """CPUs with an instruction for as many lanes, for fewer lanes, and with none."""
    host = Jit(ObjectCache(None))
    if cpu and not (X86 and host.features.get("avx2")):
        pytest.skip("for an x86 processor")
    compiler = Jit(ObjectCache(None), cpu) if cpu else host
    if cpu:
        compiler.features = {"avx2": True} if cpu == "haswell" else {}
    rng = np.random.default_rng(lanes)
    a, b = rng.integers(-32768, 32768, (2, lanes)).astype(np.int16)
    a[:3], b[:3] = (-32768, 32767, 32767), (32767, 32767, 1)
    out = np.zeros(2 * lanes, np.int16)
    compile_native(fractions, compiler=compiler, lanes=lanes)(a, b, out)
    wide, other = a.astype(np.int64), b.astype(np.int64)
    np.testing.assert_array_equal(out[:lanes], (wide * other + 16384) >> 15)
    np.testing.assert_array_equal(out[lanes:], np.clip(wide + other, -32768, 32767))


@native
def pairs(a: Array[i16], b: Array[i16], out: Array[i32], less: Array[i16], *, lanes: int) -> None:
    x, y = load(a, 0, lanes), load(b, 0, lanes)
    store(out, 0, multiply_pairs(x, y))
    store(less, 0, narrow_fours(i32(x) + i32(y), i32(x) - i32(y)))


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
@pytest.mark.parametrize("lanes", [4, 8, 16, 32, 64])
def test_pairs_and_fours(lanes, cpu):
    """Vectors of as many lanes as an instruction has, of more, and of fewer."""
    host = Jit(ObjectCache(None))
    if cpu and not (X86 and host.features.get("avx2")):
        pytest.skip("for an x86 processor")
    compiler = Jit(ObjectCache(None), cpu) if cpu else host
    if cpu:
        compiler.features = {"avx2": True} if cpu == "haswell" else {}
    rng = np.random.default_rng(lanes)
    a, b = rng.integers(-32768, 32768, (2, lanes)).astype(np.int16)
    a[:2], b[:2] = (32767, 32767), (32767, 32767)
    out, less = np.zeros(lanes // 2, np.int32), np.zeros(2 * lanes, np.int16)
    compile_native(pairs, compiler=compiler, lanes=lanes)(a, b, out, less)
    wide, other = a.astype(np.int64), b.astype(np.int64)
    np.testing.assert_array_equal(out, (wide * other).reshape(-1, 2).sum(axis=1))
    both = np.stack([wide + other, wide - other]).clip(-32768, 32767)
    np.testing.assert_array_equal(less, both.reshape(2, -1, 4).swapaxes(0, 1).reshape(-1))


@native
def looked_up(a: Array[u8], table: Array[u8], out: Array[u8]) -> None:
    p, q, r, s = load(table, 0, 64), load(table, 64, 64), load(table, 128, 64), load(table, 192, 64)
    for i in range(0, len(a), 64):
        store(out, i, look_up(p, q, r, s, load(a, i, 64)))


@pytest.mark.parametrize("cpu", ["", "haswell"])
def test_lookups_of_bytes(cpu):
    """CPUs with an instruction for it, and without."""
    host = Jit(ObjectCache(None))
    if cpu and not (X86 and host.features.get("avx2")):
        pytest.skip("for an x86 processor")
    compiler = Jit(ObjectCache(None), cpu) if cpu else host
    rng = np.random.default_rng(1)
    a, table = rng.permutation(256).astype(np.uint8), rng.permutation(256).astype(np.uint8)
    out = np.zeros(256, np.uint8)
    compile_native(looked_up, compiler=compiler)(a, table, out)
    np.testing.assert_array_equal(out, table[a])


@native
def partly(a: Array[f32], out: Array[f32], i: i64, n: i64) -> None:
    store(out, i, load(a, i, 8, n) + 1, n)
    store(out, 16, load(a, i, 8, n))


@pytest.mark.parametrize("n", [-3, 0, 1, 5, 8, 11])
def test_first_lanes_only(n):
    a, out = np.arange(1, 11, dtype=np.float32), np.zeros(24, np.float32)
    for checked in (False, True):
        out[:] = 0
        compile_native(partly, checked=checked)(a, out, 2, n)
        count = min(max(n, 0), 8)
        expected = np.zeros(24, np.float32)
        expected[2 : 2 + count] = a[2 : 2 + count] + 1
        expected[16 : 16 + count] = a[2 : 2 + count]
        np.testing.assert_array_equal(out, expected)
    fine = compile_native(partly, checked=True)
    fine(a, out, 10, 0)
    with pytest.raises(OutOfBounds):
        fine(a, out, 4, 7)
    with pytest.raises(OutOfBounds):
        fine(a, out, -1, 2)


@native
def streamed(a: Array[f32], out: Array[f32], start: i64, end: i64) -> None:
    for i in range(start, end):
        stream(out, i * 16, load(a, i * 16, 16) + 1)


@pytest.mark.parametrize("skew", [0, 1, 4, 15])
def test_nontemporal_stores(skew):
    a = np.arange(3200, dtype=np.float32)
    space = np.zeros(3200 + 48, np.float32)
    first = (-space.ctypes.data // 4) % 16 + skew
    for checked in (False, True):
        code = compile_native(streamed, checked=checked)
        space[:] = 0
        code.parallel(200, 30)(a, space[first : first + 3200])
        np.testing.assert_array_equal(space[first : first + 3200], a + 1)
        assert (space[:first] == 0).all()
        assert (space[first + 3200 :] == 0).all()
    if X86:
        assert re.search(r"movntps[^\n]*(.*\n)*?.*sfence", compile_native(streamed).assembly())


# vectorization --------------------------------------------------------------------------------
@native
def plus(a: f32, b: f32) -> f32:
    return a + b


@native
def filtered(a: Array[f32], out: Array[f32], start: i64, end: i64, *, taps: int) -> None:
    for i in range(start, end):
        acc = f32(0)
        for k in static(range(taps)):
            acc += a[i + k] * (k + 1)
        out[i] = acc


@native(fast=True)
def fast_sum(a: Array[f32]) -> f32:
    acc = f32(0)
    for i in range(len(a)):
        acc += a[i]
    return acc


@native
def exact_sum(a: Array[f32]) -> f32:
    acc = f32(0)
    for i in range(len(a)):
        acc += a[i]
    return acc


@native
def greatest(a: Array[f32]) -> f32:
    best = a[0]
    for i in range(len(a)):
        best = maximum(best, a[i])
    return best


@native
def scattered(a: Array[f32], b: Array[i64], n: i64) -> None:
    for i in hinted(range(n), scalar=True):
        a[b[i]] = a[b[i]] * 2


@native(aliasing=True)
def shifted(a: Array[f32], b: Array[f32], n: i64) -> None:
    for i in range(n):
        b[i] = a[i] + 1


@native(aliasing=True)
def shifted_apart(a: Array[f32], b: Array[f32], n: i64) -> None:
    for i in independent(range(n), width=8):
        b[i] = plus(a[i], 1.0)


def packed(code, op):
    return re.findall(rf"\bv?{op}ps\b", code.assembly())


@pytest.mark.skipif(not X86, reason="reads x86 assembly")
def test_loops_are_vectorized(unsanitized):
    assert packed(compile_native(fast_sum), "add")
    assert not re.findall(r"\bv?addps\b", compile_native(exact_sum).assembly())
    assert packed(compile_native(greatest), "max")
    assert packed(compile_native(filtered, taps=5), "mul")
    assert packed(compile_native(shifted_apart), "add")
    assert not packed(compile_native(scattered), "(?:mul|add)")


def test_sums():
    a = np.random.default_rng(5).random(10_001, np.float32)
    assert compile_native(fast_sum)(a) == pytest.approx(a.sum(dtype=np.float64), rel=1e-5)
    running = np.float32(0)
    for x in a:
        running += x
    assert compile_native(exact_sum)(a) == running
    assert compile_native(greatest)(a) == a.max()
    a[77] = np.nan
    assert math.isnan(compile_native(greatest)(a))


def test_overlapping_arrays():
    a = np.arange(100, dtype=np.float32)
    compile_native(shifted)(a[:-1], a[1:], 99)  # each step reads what the last one wrote
    np.testing.assert_array_equal(a, np.arange(100))
    b = np.zeros(100, np.float32)
    compile_native(shifted_apart)(a, b, 100)
    np.testing.assert_array_equal(b, a + 1)


@native
def gathered(a: Array[u8], places: Array[i32], words: Array[u64], floats: Array[f32]) -> None:
    store(words, 0, gather(a, load(places, 0, 4), u64))
    store(floats, 0, gather(a, load(places, 0, 4), f32))


def test_gather_of_wider_numbers():
    a = np.random.default_rng(3).integers(0, 256, 40, np.uint8)
    places = np.array([3, 0, 32, 17], np.int32)
    for checked in (False, True):
        words, floats = np.zeros(4, np.uint64), np.zeros(4, np.float32)
        compile_native(gathered, checked=checked)(a, places, words, floats)
        assert words.tobytes() == b"".join(a[p : p + 8].tobytes() for p in places)
        assert floats.tobytes() == b"".join(a[p : p + 4].tobytes() for p in places)


# parallel calls ----------------------------------------------------------------------------------
@native
def counted(seen: Array[u8], sizes: Array[i64], chunk: i64, start: i64, end: i64) -> None:
    sizes[start // chunk] = end - start
    for i in range(start, end):
        seen[i] += 1


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("total", "chunk"), [(0, 4), (1, 4), (1000, 7), (64, 64), (100_000, 333)])
def test_parallel_runs_every_index_once(threads, total, chunk):
    crew = ThreadPool(threads)
    seen = np.zeros(total + 8, np.uint8)
    tiles = -(-total // chunk)
    sizes = np.zeros(max(tiles, 1), np.int64)
    run = compile_native(counted).parallel(total, chunk, threads=crew)
    for _ in range(3):
        run(seen, sizes, chunk)
    crew.close()
    assert (seen[:total] == 3).all()
    assert (seen[total:] == 0).all()
    if total:
        assert (sizes[:-1] == chunk).all()
        assert sizes[-1] == total - (tiles - 1) * chunk


def test_direct_call_of_a_range():
    seen, sizes = np.zeros(10, np.uint8), np.zeros(4, np.int64)
    compile_native(counted)(seen, sizes, 3, 3, 6)
    assert seen.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
    assert sizes.tolist() == [0, 3, 0, 0]


@pytest.mark.parametrize("checked", [False, True])
def test_calls_with_fixed_arguments(checked):
    seen, sizes = np.zeros(1000, np.uint8), np.zeros(10, np.int64)
    code = compile_native(counted, checked=checked)
    run = code.parallel(1000, 100, fixed=(seen, sizes, 100))
    for _ in range(3):
        run()
    assert (seen == 3).all()
    at = np.zeros(1, np.int64)
    call = compile_native(marked, checked=checked).prepare(seen, at)
    for i in (5, 7):
        at[0] = i
        call()
    assert np.flatnonzero(seen == 9).tolist() == [5, 7]
    if checked:
        at[0] = 1000
        with pytest.raises(OutOfBounds):
            call()
        at[0] = 6
        call()  # the fault is reset
        assert seen[6] == 9


@native
def marked(seen: Array[u8], at: Array[i64]) -> None:
    seen[at[0]] = 9


def test_concurrent_callers():
    run = compile_native(counted).parallel(5000, 100)
    arrays = [np.zeros(5000, np.uint8) for _ in range(4)]

    def call(seen):
        for _ in range(20):
            run(seen, np.zeros(50, np.int64), 100)

    callers = [threading.Thread(target=call, args=(a,)) for a in arrays]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert all((a == 20).all() for a in arrays)


@native
def between(a: Array[i64], low: Array[i64], gain: f32, more: i64, start: i64, end: i64) -> None:
    for i in range(start, end):
        a[i] = i64(f32(i) * gain) + low[i] + more


@pytest.mark.parametrize("threads", [1, 3])
def test_fixed_last_arguments(threads):
    crew = ThreadPool(threads)
    code = compile_native(between)
    low = np.arange(100, dtype=np.int64)
    expected = 3 * low + 7
    for fixed in ((), (7,), (2.0, 7), (low, 2.0, 7)):
        given = (low, 2.0, 7)[: 3 - len(fixed)]
        run = code.parallel(100, 9, threads=crew, fixed=fixed)
        for _ in range(2):
            a = np.zeros(100, np.int64)
            run(a, *given)
            np.testing.assert_array_equal(a, expected)
        with pytest.raises(ParameterError, match=r"expected . arguments"):
            run(a, *given, 1)
    run = code.parallel(100, 9, threads=crew, fixed=(np.arange(100), 2.0, 7))
    a = np.zeros(100, np.int64)
    run(a)  # the call keeps the fixed array alive
    np.testing.assert_array_equal(a, expected)
    with pytest.raises(ParameterError, match="does not fit"):
        code.parallel(100, 9, threads=crew, fixed=(1 << 70,))
    with pytest.raises(DtypeMismatch, match="low must be an array of i64"):
        code.parallel(100, 9, threads=crew, fixed=(np.zeros(100), 2.0, 7))
    crew.close()


# arguments ------------------------------------------------------------------------------------
@native
def every_kind(
    a: bool, b: u8, c: i8, d: u16, e: i16, f: u32, g: i32, h: u64, i: i64, j: f32, k: f64
) -> tuple[bool, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64]:
    return not a, b, c, d, e, f, g, h, i, j, k


def test_numbers_as_arguments_and_results():
    given = (True, 200, -100, 60000, -30000, 1 << 31, -5, 1 << 63, -(1 << 62), 0.5, 0.1)
    assert compile_native(every_kind)(*given) == (False, *given[1:])


def test_memory_and_addresses():
    code = compile_native(fast_sum)
    a = np.arange(6, dtype=np.float32)
    assert code((a.ctypes.data, 4)) == 6

    memory = Memory(a.view(np.uint8), a.ctypes.data)
    assert code(memory) == 15


def test_argument_errors():
    code = compile_native(fast_sum)
    with pytest.raises(
        DtypeMismatch,
        match=r"a must be an array of f32, got an array of shape .* and dtype float64",
    ):
        code(np.zeros(3))
    with pytest.raises(ParameterError, match="a must be a contiguous array"):
        code(np.zeros(6, np.float32)[::2])
    with pytest.raises(
        ParameterError, match=r"a must be an array, Memory or \(address, length\), got list"
    ):
        code([1.0])
    with pytest.raises(ParameterError, match=r"expected 1 arguments \(a\), got 2"):
        code(1, 2)
    with pytest.raises(ParameterError, match="does not fit"):
        compile_native(every_kind)(True, 300, *range(9))
    with pytest.raises(ParameterError, match="can run in parallel"):
        code.parallel(3, 1)
    with pytest.raises(ParameterError, match="chunk at least 1, got 3 and 0"):
        compile_native(counted).parallel(3, 0)


# checked builds -------------------------------------------------------------------------------
@native
def peek(a: Array[i32], i: i64) -> i32:
    return a[i]


@native
def poke(a: Array[i32], b: Array[i32], i: i64, *, how: int) -> i32:
    b[0] = 1
    if how == 0:
        b[1] = peek(a, i)
    elif how == 1:
        a[i] = 5
    elif how == 2:
        b[1] = load(a, i, 4)[0]
    elif how == 3:
        b[1] = a[i:][0]
    elif how == 4:
        b[1] = i32(view(a, u8, i * 4)[3])
    elif how == 5:
        b[1] = gather(a, vec(0, i))[1]
    elif how == 6:
        scratch = local(i32, 8)
        scratch[i] = 3
        b[1] = scratch[i]
    elif how == 8:
        b[1] = i32(gather(view(a, u8), vec(0, i * 4), u64)[1])
    else:
        store(a, i, load(a, 0, 2))
    b[0] = 2
    return 7


@pytest.mark.parametrize("how", range(9))
def test_checked_builds(how):
    code = compile_native(poke, checked=True, how=how)
    width = {2: 4, 7: 2, 8: 2}.get(how, 1)
    fine = 8 - width + 1
    whole = np.arange(24, dtype=np.int32)
    for i in (0, 1, fine - 1):
        assert code(whole[8:16], np.zeros(2, np.int32), i) == 7
    for i in (-1, fine, 9, -(1 << 60), 1 << 60):
        before, b = whole.copy(), np.zeros(2, np.int32)
        with pytest.raises(OutOfBounds) as caught:
            code(whole[8:16], b, i)
        assert caught.value.function == ("peek" if how == 0 else "poke")
        lines = Path(__file__).read_text().splitlines()
        assert any(w in lines[caught.value.line - 1] for w in ("a[i", "a,", "scratch[i]"))
        assert b[0] == 1  # the function ends at the fault
        np.testing.assert_array_equal(whole, before)
    assert compile_native(poke, how=how)(whole[8:16], np.zeros(2, np.int32), 1) == 7


@native
def tiles_out(a: Array[i32], start: i64, end: i64) -> None:
    for i in range(start, end):
        a[i] = 1


def test_checked_build_on_threads():
    a = np.zeros(1100, np.int32)
    run = compile_native(tiles_out, checked=True).parallel(2000, 50)
    with pytest.raises(OutOfBounds) as caught:
        run(a[:1000])
    assert 1000 <= caught.value.index < 2000
    assert caught.value.length == 1000
    assert (a[1000:] == 0).all()
    compile_native(tiles_out, checked=True).parallel(1000, 50)(a[:1000])
    assert a.sum() == 1000


@native
def tiles_from(a: Array[i32], b: Array[i32], more: i32, start: i64, end: i64) -> None:
    for i in range(start, end):
        a[i] = b[i] + more


@pytest.mark.parametrize("checked", [False, True])
def test_prepared_call_of_a_range(checked):
    b = np.arange(10, dtype=np.int32)
    run = compile_native(tiles_from, checked=checked).prepare(b, 5)
    for size, start, end in ((10, 0, 10), (7, 2, 5), (9, 9, 9)):
        a = np.zeros(size, np.int32)
        run((a.ctypes.data, size), start, end)
        want = np.zeros(size, np.int32)
        want[start:end] = b[start:end] + 5
        np.testing.assert_array_equal(a, want)
    if checked:
        with pytest.raises(OutOfBounds):
            run((a.ctypes.data, 4), 0, 5)


def test_unchecked_builds_have_no_checks(unsanitized):
    assert "fault" not in compile_native(poke, how=1).text
    assert "fault" in compile_native(poke, how=1, checked=True).text


FORKS = """
import os
import numpy as np
from dala.gpu.compute.engines.cpu.native import compile_native, compiled, native
from dala.gpu.compute.engines.cpu.native.names import Array, i64

@native
def total(a: Array[i64], out: Array[i64], start: i64, end: i64, *, gain: int) -> None:
    for i in range(start, end):
        out[i] = a[i] * gain

def check(gain):
    a, out = np.arange(100), np.zeros(100, np.int64)
    compile_native(total, gain=gain).parallel(100, 5)(a, out)
    return (out == a * gain).all()

assert check(1)
compiled._compiling.acquire()
child = os.fork()
if child == 0:
    os._exit(0 if check(2) else 1)
assert os.waitpid(child, 0)[1] == 0
"""


# compiling ------------------------------------------------------------------------------------
def test_code_is_cached():
    assert compile_native(fast_sum) is compile_native(fast_sum)
    assert compile_native(filtered, taps=2) is not compile_native(filtered, taps=3)
    compiler = jit()
    hits, compiled = compiler.cache_hits, compiler.compiled
    text = compile_native(fast_sum).text
    compiler.compile(text, ("all",))
    assert compiler.cache_hits + compiler.compiled == hits + compiled + 1


@native
def times(a: Array[i64], out: Array[i64], start: i64, end: i64, *, gain: int) -> None:
    for i in range(start, end):
        out[i] = a[i] * gain


@native
def times_all(a: Array[i64], out: Array[i64], *, gain: int) -> None:
    for i in range(len(a)):
        out[i] = a[i] * gain


def test_prepared_calls_keep_the_code_alive(unsanitized, monkeypatch):
    """A prepared call works after its code was dropped from the cache."""
    monkeypatch.setattr(compiled, "MAX_CACHED", 1)
    monkeypatch.setattr(compiled, "_known", {})
    a, out = np.arange(4096), np.zeros(4096, np.int64)
    places = [(address_of(x), x.size) for x in (a, out)]
    shared, alone = compile_native(times, gain=3), compile_native(times_all, gain=3)
    held = weakref.ref(shared), weakref.ref(alone)
    calls = [
        alone.prepare(*places, keep_gil=True), shared.parallel(4096, 64, fixed=places),
        shared.parallel(4096, 4096, fixed=places),
    ]  # fmt: skip
    del shared, alone
    for gain in (4, 5, 6):
        compile_native(times, gain=gain).parallel(4096, 64)(a, out)
        compile_native(times_all, gain=gain)(a, out)
    gc.collect()
    assert [ref() for ref in held] == [None, None]
    for call in calls:
        out[:] = 0
        call()
        assert (out == 3 * a).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(tmp_path):
    """A child forked while another thread compiles can compile."""
    script = tmp_path / "forks.py"
    script.write_text(FORKS)
    done = subprocess.run([sys.executable, script], timeout=300, check=False)
    assert done.returncode == 0


def test_native_names_raise_in_python():
    with pytest.raises(TypeError, match="compile_native"):
        fast_sum(3)
    with pytest.raises(TypeError, match="works in native code only"):
        local(f32, 3)
    with pytest.raises(TypeError, match="conversion of native code"):
        u64(3)
