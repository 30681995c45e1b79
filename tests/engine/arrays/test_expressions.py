"""Expressions: when they are computed, what they see, and what they keep."""

from __future__ import annotations

import copy
import gc
import threading
import weakref

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute import (
    Buffer,
    Pipeline,
    add,
    buffer,
    buffer_zeros,
    from_array,
    from_dlpack,
    kernel,
    relu,
    run_kernel,
    sigmoid,
    submit,
)


def live(device: str) -> int:
    """Return the number of live buffers on a device."""
    gc.collect()
    counts = dala.diagnostics()["objects"]["buffer"]["by_engine"]
    return counts.get(device, {"count": 0})["count"]


def test_one_pass(engine_id):
    a, b, c = buffer([1.0, -2.0, 3.0]), buffer([4.0, 5.0, 6.0]), buffer([0.5, 0.5, 0.5])
    d = relu(a * b + c) * 2 - 1
    assert isinstance(d, Buffer)
    assert repr(d) == f"<Buffer f32 (3,) on {a.device}>"
    assert d.nbytes == 12
    assert d.explain().splitlines() == [
        f"expression on {a.device}: 5 operations in 1 pass, not computed yet",
        "  pass 0: multiply + add + relu + multiply + subtract (3,), 48 bytes",
    ]
    assert d.node is not None  # neither repr nor explain computed it
    assert d.read_list() == [8.0, -1.0, 36.0]
    assert d.explain().splitlines() == [
        f"expression on {a.device}: computed",
        "  last pass: multiply + add + relu + multiply + subtract (3,), 48 bytes",
    ]
    assert a.explain() == f"buffer on {a.device}: its values are in memory"


def test_operands_of_another_shape_are_computed_first(engine_id):
    row, table = buffer([1.0, 2.0]), buffer([[1.0, 2.0], [3.0, 4.0]])
    d = (row * 3 + 1) * table
    assert d.explain().splitlines() == [
        f"expression on {row.device}: 3 operations in 2 passes, not computed yet",
        "  pass 0: multiply + add (2,), 16 bytes",
        "  pass 1: multiply (2, 2), 40 bytes",
    ]
    assert d.tolist() == [[4.0, 14.0], [12.0, 28.0]]


#: Ways to change a buffer of [1, 2, 3] to something else.
def _kernel_output(b):
    run_kernel("scalar_mul", [buffer([5.0, 5.0, 5.0])], b, {"scalar": 2})


def _called_kernel(b):
    kernel("def filled(x): return x + 7")(buffer([1.0, 1.0, 1.0]), out=b)


def _in_place_kernel(b):
    relu(b, out=b)
    run_kernel("elementwise_add", [b, b], b)


def _pipeline(b):
    spec = {"op": "run_kernel", "kernel": "relu", "inputs": [buffer([9.0, 9.0, 9.0])], "output": b}
    Pipeline().add(spec).run()


def _pipeline_submitted(b):
    spec = {"op": "copy_buffer", "src": buffer([9.0, 9.0, 9.0]), "dst": b}
    Pipeline().add(spec).submit().result(60)


def _copied(b):
    submit({"op": "copy_buffer", "src": buffer([9.0, 8.0, 7.0]), "dst": b}).result(60)


def _submitted(b):
    spec = {"op": "run_kernel", "kernel": "relu", "inputs": [buffer([4.0, 4.0, 4.0])], "output": b}
    submit(spec).result(60)


def _operation(b):
    ones = buffer([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    run_kernel("reduce_sum", [ones], b, {"axis": 1})


def _added(b):
    b += 1


def _added_itself(b):
    b *= b


def _element(b):
    b[1] = 50


def _slice(b):
    b[::-1] = [7, 8, 9]


def _through_numpy(b):
    view = np.asarray(b)
    if view.flags.writeable and b.device in ("cpu", "reference"):
        view[:] = 77
    else:
        b.write([77, 77, 77])


WRITES = [
    lambda b: b.write([9, 9, 9]), _kernel_output, _called_kernel, _in_place_kernel, _pipeline,
    _pipeline_submitted, _copied, _submitted, _operation, _added, _added_itself, _element, _slice,
    _through_numpy,
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_values_at_the_time_of_writing(engine_id, write):
    a, other = buffer([1.0, 2.0, 3.0]), buffer([10.0, 10.0, 10.0])
    direct = a + other
    through = direct * 2  # reads a through another expression
    dropped_middle = (a * 2 + 1) * 3
    row = a.reshape(1, 3) * buffer([[1.0], [2.0]])
    write(a)
    assert a.read_list() != [1.0, 2.0, 3.0]
    assert direct.read_list() == [11.0, 12.0, 13.0]
    assert through.read_list() == [22.0, 24.0, 26.0]
    assert dropped_middle.read_list() == [9.0, 15.0, 21.0]
    assert row.tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    after = a + 0
    assert after.read_list() == a.read_list()


@pytest.mark.parametrize("end", [Buffer.free, Buffer.close], ids=["free", "close"])
def test_freeing_an_operand(engine_id, end):
    a = buffer([1.0, 2.0])
    b = a + 1
    c = b * 2
    end(a)
    assert (b.read_list(), c.read_list()) == ([2.0, 3.0], [4.0, 6.0])
    with pytest.raises(dala.FreedError, match=r"a \+ b: a"):
        a + 1
    with buffer([5.0]) as inside:
        d = inside * 2
    assert d.read_list() == [10.0]
    b.free()
    assert c.read_list() == [4.0, 6.0]


def test_freeing_a_result(engine_id):
    a = buffer([1.0, 2.0])
    b = a + 1
    c = b * 2
    b.free()
    assert b.freed
    with pytest.raises(dala.FreedError):
        b.read()
    assert c.read_list() == [4.0, 6.0]


def test_results_as_outputs_of_kernels(engine_id):
    a = buffer([1.0, 2.0])
    b = a + 1
    c = b * 10
    run_kernel("relu", [buffer([-1.0, 6.0])], b)
    assert (b.read_list(), c.read_list()) == ([0.0, 6.0], [20.0, 30.0])
    d = a + 1
    run_kernel("scalar_mul", [d], d, {"scalar": 3})
    assert d.read_list() == [6.0, 9.0]


def test_outputs_are_fused_with_their_operands(engine_id):
    a, b, out = buffer([1.0, -2.0]), buffer([3.0, 4.0]), buffer_zeros(2)
    part = a * b + 1
    before = out + 5
    assert relu(part, out=out) is out
    assert part.node is not None  # it was part of one kernel
    assert out.read_list() == [4.0, 0.0]
    assert before.read_list() == [5.0, 5.0]
    assert add(part, b, out) is out
    assert out.read_list() == [7.0, -3.0]
    assert relu(out * -1, out=out) is out  # reads what it writes
    assert out.read_list() == [0.0, 3.0]
    with pytest.raises(dala.ShapeMismatch, match="relu"):
        relu(part, out=buffer_zeros(3))
    with pytest.raises(dala.DtypeMismatch, match="relu"):
        relu(part, out=buffer_zeros(2, "s32"))
    with pytest.raises(dala.ArityError, match="output must be a Buffer"):
        relu(part, out=np.zeros(2))
    out.free()
    with pytest.raises(dala.FreedError, match="relu: output"):
        relu(part * 2, out=out)


def test_in_place_operators(engine_id):
    a = buffer([[1.0, 2.0], [3.0, 4.0]])
    same = a
    a += [10, 20]
    a -= 1
    a *= buffer([[2.0], [3.0]])
    a /= 2
    a **= 2
    a //= 3
    a %= 100
    assert a is same
    expected = np.array([[10, 21], [18, 34.5]])
    assert a.tolist() == ((expected**2) // 3 % 100).tolist()
    n = buffer([5, 6], dtype="s32")
    n &= 4
    n |= 1
    n ^= 2
    assert n.read_list() == [7, 7]
    with pytest.raises(dala.DtypeMismatch, match="a float, as the result is f32"):
        n /= 2
    with pytest.raises(dala.DtypeMismatch, match="a float, as the result is f32"):
        n += 0.5
    with pytest.raises(dala.ShapeMismatch, match="broadcasts to a of"):
        n += buffer([[1, 2], [3, 4]], dtype="s32")
    assert n.read_list() == [7, 7]
    u = buffer([250, 3], dtype="u8")
    u += buffer([10, -5], dtype="s32")
    assert u.read_list() == [255, 0]


def test_in_place_on_an_expression(engine_id):
    a = buffer([1.0, 2.0])
    b = a * 2
    before = b + 0
    b += 1
    after = b + 0
    a.write([100, 100])
    assert before.read_list() == [2.0, 4.0]
    assert after.read_list() == [3.0, 5.0]
    assert b.read_list() == [3.0, 5.0]


def test_memory_of_others_is_read_at_once(engine_id):
    array = np.array([1.0, 2.0], np.float32)
    shared = from_dlpack(array)
    b = shared * 2
    array[:] = 50
    assert b.read_list() == [2.0, 4.0]
    own = buffer([1.0, 2.0])
    view = np.asarray(own)
    c = own * 2
    if own.device in ("cpu", "reference"):
        view[:] = 50
    assert c.read_list() == [2.0, 4.0]
    del view
    d = own * 2
    assert d.node is not None  # the view is gone
    own.write([1, 2])
    own += from_dlpack(np.array([5.0, 6.0], np.float32))
    assert own.read_list() == [6.0, 8.0]


def test_reading_does_not_stop_fusing(engine_id):
    a = buffer([1.0, 2.0])
    assert a.read_list() == [1.0, 2.0]
    assert np.asarray(a).sum() == 3.0
    assert a.read() == np.array([1, 2], "<f4").tobytes()
    assert "2 operations in 1 pass" in (a * 2 + 1).explain()


def test_only_what_reads_a_buffer_is_computed(engine_id):
    a = buffer([1.0, 2.0])
    first = a + 1
    first.read()
    second = first * 2  # reads first, no longer a
    other = buffer([3.0]) + 1
    a.write([9, 9])
    assert second.node is not None
    assert other.node is not None
    assert compute.shape(second) == (2,)
    assert compute.dtype(second) == "f32"
    assert compute.size(second) == 8
    assert len(second) == 2
    assert second.node is not None
    first.write([7, 7])
    assert second.node is None
    assert second.read_list() == [4.0, 6.0]


def test_long_expressions_are_computed_in_parts(engine_id):
    x = buffer([0.0, 1.0])
    for _ in range(300):
        x = x + 1
    assert x.read_list() == [300.0, 301.0]
    x = buffer([1], dtype="s32")
    for _ in range(30):
        x = x + x
    assert x.read_list() == [1 << 30]
    many = [buffer([float(i)]) for i in range(40)]
    total = many[0]
    for b in many[1:]:
        total = total + b
    assert total.read_list() == [sum(range(40))]
    left = sum(many[:20], 0)
    right = sum(many[20:], 0)
    assert (left * right).read_list() == [sum(range(20)) * sum(range(20, 40))]


def test_devices_with_few_inputs(monkeypatch):
    with dala.device("reference"):
        monkeypatch.setattr(buffer([0.0]).engine, "max_inputs", 2)
        table, row, column = buffer([[1.0, 2.0], [3.0, 4.0]]), buffer([5.0, 6.0]), buffer([[7.0]])
        part = table * row - column
        results = [part + table, part * row + column, (part - row) * (table + column)]
        assert part.tolist() == [[-2.0, 5.0], [8.0, 17.0]]
        assert results[0].tolist() == [[-1.0, 7.0], [11.0, 21.0]]
        assert results[1].tolist() == [[-3.0, 37.0], [47.0, 109.0]]
        assert results[2].tolist() == [[-56.0, -9.0], [30.0, 121.0]]


def test_parts_of_several_results_are_kept(engine_id):
    a = buffer([1.0, 2.0])
    part = sigmoid(a)
    results = [part + i for i in range(4)]
    values = [r.read_list() for r in results]
    expected = 1 / (1 + np.exp(-np.array([1.0, 2.0])))
    np.testing.assert_allclose(values, [expected + i for i in range(4)], rtol=1e-6)
    assert part.node is None  # computed for the second result, and kept
    part += 1
    np.testing.assert_allclose(part.read_list(), expected + 1, rtol=1e-6)
    np.testing.assert_allclose(results[3].read_list(), expected + 3, rtol=1e-6)


def test_memory_is_released(engine_id):
    device = buffer([0.0]).device
    before = live(device)
    a = buffer([1.0, 2.0])
    operand = weakref.ref(a)
    b = a + 1
    c = b * 2
    assert live(device) == before + 1
    del a
    gc.collect()
    assert operand() is not None  # the expression keeps it
    assert c.read_list() == [4.0, 6.0]
    del b
    gc.collect()
    assert operand() is None
    assert live(device) == before + 1
    del c
    assert live(device) == before
    for _ in range(3):
        dropped = buffer([1.0]) + 1
    del dropped
    assert live(device) == before


def test_copies(engine_id):
    a = buffer([1.0, 2.0])
    b = a + 1
    assert copy.copy(b).read_list() == [2.0, 3.0]
    assert copy.deepcopy(a + 2).read_list() == [3.0, 4.0]
    assert (a + 3).copy().read_list() == [4.0, 5.0]
    assert buffer(a + 4).read_list() == [5.0, 6.0]
    assert from_array(a + 5).read_list() == [6.0, 7.0]
    assert (a + 6).to("cpu").read_list() == [7.0, 8.0]
    assert np.asarray(a + 7).tolist() == [8.0, 9.0]
    assert np.from_dlpack(a + 8).tolist() == [9.0, 10.0]
    assert bytes(memoryview((a + 9).read_binary())) == np.array([10, 11], "<f4").tobytes()
    assert (a + 10).read_async().result() == np.array([11, 12], "<f4").tobytes()


def test_expressions_in_pipelines_and_commands(engine_id):
    a, out = buffer([1.0, -2.0]), buffer_zeros(2)
    Pipeline().add({"op": "run_kernel", "kernel": "relu", "inputs": [a + 1], "output": out}).run()
    assert out.read_list() == [2.0, 0.0]
    pipe = Pipeline().add({"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": out})
    pipe.rebind(a, a * -1).run()
    assert out.read_list() == [0.0, 2.0]
    submit({"op": "copy_buffer", "src": a * 3, "dst": out}).result(60)
    assert out.read_list() == [3.0, -6.0]
    pending = out * 2
    pipe.run()
    assert pending.read_list() == [6.0, -12.0]


def test_threads(engine_id):
    a = buffer(np.arange(64, dtype=np.float32))
    shared = a * 2 + 1
    failures = []

    def work(number):
        try:
            for i in range(12):
                own = shared * number + i
                if own.read_list() != [(2 * x + 1) * number + i for x in range(64)]:
                    failures.append(number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


def test_read_only_buffers(engine_id):
    array = np.array([1.0, 2.0], np.float32)
    array.flags.writeable = False
    b = from_dlpack(array)
    if not b.readonly:
        return  # a copy on this device
    assert (b + 1).read_list() == [2.0, 3.0]
    with pytest.raises(dala.ReadOnlyError):
        b += 1
    with pytest.raises(dala.ReadOnlyError):
        b[0] = 1


def test_too_large_is_refused_when_it_is_written():
    a = buffer_zeros((1 << 24, 1), "u8", device="cpu")
    b = buffer_zeros((1, 1 << 24), "u8", device="cpu")
    with pytest.raises(dala.BufferTooLarge, match=r"a \+ b"):
        a + b


def test_devices_do_not_mix():
    a, b = buffer([1.0], device="cpu"), buffer([1.0], device="reference")
    with pytest.raises(dala.DeviceMismatch, match=r"b\.to\('cpu'\)"):
        a + b
    with pytest.raises(dala.DeviceMismatch, match=r"b\.to\('cpu'\)"):
        a @ b
