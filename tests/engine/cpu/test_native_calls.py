"""Native functions: parallel calls, arguments, checked builds, compiling."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from dala.errors import DtypeMismatch, ParameterError
from dala.gpu.compute.engines.cpu.jit import jit
from dala.gpu.compute.engines.cpu.memory import Memory, address_of
from dala.gpu.compute.engines.cpu.native import OutOfBounds, compile_native, compiled, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    f64,
    gather,
    i8,
    i16,
    i32,
    i64,
    load,
    local,
    store,
    u8,
    u16,
    u32,
    u64,
    vec,
    view,
)
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from tests.engine.cpu.records import fast_sum, filtered

# parallel calls -----------------------------------------------------------------------------------


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


# arguments ----------------------------------------------------------------------------------------


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


# checked builds -----------------------------------------------------------------------------------


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


# compiling ----------------------------------------------------------------------------------------


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
