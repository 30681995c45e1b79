"""Native functions: arrays, vectors and loops that are vectorized."""

from __future__ import annotations

import math
import platform
import re

import numpy as np
import pytest

from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.jit import Jit
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
from tests.engine.cpu.records import fast_sum, filtered

X86 = platform.machine().lower() in ("x86_64", "amd64")


# memory -------------------------------------------------------------------------------------------


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


# vectors ------------------------------------------------------------------------------------------


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
def byte_pairs(a: Array[u8], b: Array[i8], out: Array[i16], *, lanes: int) -> None:
    store(out, 0, multiply_pairs(load(a, 0, lanes), load(b, 0, lanes)))


@pytest.mark.parametrize("cpu", ["", "haswell", "x86-64"])
@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_pairs_of_bytes(lanes, cpu):
    """Sums that fit 16 bits, up to the largest and the smallest."""
    host = Jit(ObjectCache(None))
    if cpu and not (X86 and host.features.get("avx2")):
        pytest.skip("for an x86 processor")
    compiler = Jit(ObjectCache(None), cpu) if cpu else host
    if cpu:
        compiler.features = {"avx2": True} if cpu == "haswell" else {}
    rng = np.random.default_rng(lanes)
    a = rng.integers(0, 256, lanes).astype(np.uint8)
    b = rng.integers(-64, 65, lanes).astype(np.int8)
    a[:4], b[:4] = 255, (127, 1, -128, 0)
    out = np.zeros(lanes // 2, np.int16)
    compile_native(byte_pairs, compiler=compiler, lanes=lanes)(a, b, out)
    products = a.astype(np.int64) * b
    np.testing.assert_array_equal(out, products[::2] + products[1::2])


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


# vectorization ------------------------------------------------------------------------------------


@native
def plus(a: f32, b: f32) -> f32:
    return a + b


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
    for code in (fast_sum, exact_sum):  # sums keep their order
        assert not packed(compile_native(code), "add")
    assert packed(compile_native(greatest), "max")
    assert packed(compile_native(filtered, taps=5), "mul")
    assert packed(compile_native(shifted_apart), "add")
    assert not packed(compile_native(scattered), "(?:mul|add)")


def test_sums():
    a = np.random.default_rng(5).random(10_001, np.float32)
    running = np.float32(0)
    for x in a:
        running += x
    assert compile_native(exact_sum)(a) == running
    assert compile_native(fast_sum)(a) == running
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
