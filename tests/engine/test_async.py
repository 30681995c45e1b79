"""Commands that are submitted: running, order, limits and errors."""

from __future__ import annotations

import asyncio
import gc
import threading

import numpy as np
import pytest

import dala
from dala.gpu.compute import (
    Command,
    Stream,
    buffer,
    buffer_zeros,
    from_dlpack,
    kernel,
    poll,
    read_list,
    submit,
    wait,
)
from tests.engine.commands import LONG, awaited, broken, hooked, spec

# running ------------------------------------------------------------------------------------------


def test_command_is_an_int_to_wait_for(engine_id):
    a, out = buffer([1.0, 2.0]), buffer_zeros((2,))
    command = submit(spec("scalar_mul", [a], out, {"scalar": 3.0}))
    assert isinstance(command, int)
    assert isinstance(command, Command)
    assert command.name == "run_kernel('scalar_mul')"
    assert command.result(LONG) is None
    assert command.done()
    assert command.error is None
    assert read_list(out) == [3.0, 6.0]
    assert repr(command) == f"<Command {int(command)} run_kernel('scalar_mul') completed>"
    assert str(command) == f"{int(command)}"
    assert {command: 1}[int(command)] == 1
    assert submit({"op": "barrier"}) > command


def test_poll_and_wait_accept_a_command_or_its_id(engine_id, gate):
    a, out = buffer([1.0]), buffer_zeros((1,))
    with Stream() as stream:
        command = stream.submit(spec(hooked("gated", [a], out, gate), [a], out))
        gate.arrived()
        assert poll(command) == poll(int(command)) == "pending"
        assert not command.done()
        assert command.error is None
        assert "pending" in repr(command)
        for call in (lambda: wait(command, 0), lambda: wait(int(command), timeout=0.001)):
            with pytest.raises(dala.CommandTimeout, match=r"wait: command \d+, run_kernel\('gate"):
                call()
        with pytest.raises(TimeoutError):
            command.result(-1)
        gate.open.set()
        wait(int(command), LONG)
        wait(command)
        assert poll(command) == poll(int(command)) == "completed"
    assert read_list(out) == [2.0]


def test_copies_and_barriers(engine_id):
    a, b, c = buffer([1.0, 2.0]), buffer_zeros((2,)), buffer_zeros((2,))
    submit({"op": "copy_buffer", "src": a, "dst": b})
    submit({"op": "barrier"})
    command = submit(spec("elementwise_add", [a, b], c), priority="background")
    command.result(LONG)
    assert read_list(b) == [1.0, 2.0]
    assert read_list(c) == [2.0, 4.0]


def test_params_are_read_at_submit(engine_id, gate):
    a, out = buffer([1.0]), buffer_zeros((1,))
    params, inputs = {"scalar": 2.0}, [a]
    with Stream(workers=1) as stream:
        stream.submit(spec(hooked("gated", [a], a, gate), [a], a))
        command = stream.submit(spec("scalar_mul", inputs, out, params))
        params["scalar"] = 100.0
        inputs.clear()
        gate.open.set()
        command.result(LONG)
    assert read_list(out) == [4.0]


# order --------------------------------------------------------------------------------------------


def test_commands_on_one_buffer_keep_their_order(engine_id):
    a = buffer([1.0, -2.0])
    k = kernel("def ordered(x, *, m=1.0, c=0.0):\n    return x * m + c")
    wanted = np.array([1.0, -2.0], "<f4")
    with Stream(workers=4) as stream:
        for turn in range(60):
            params = {"m": float(turn % 3 - 1) or 2.0, "c": float(turn % 7)}
            priority = "background" if turn % 2 else "realtime"
            stream.submit(spec(k, [a], a, params), priority)
            wanted = wanted * np.float32(params["m"]) + np.float32(params["c"])
            if turn % 5 == 4:
                stream.submit(spec(k, [a], a, {"m": 0.125, "c": 0.0}))
                wanted = wanted * np.float32(0.125)
        last = stream.submit({"op": "barrier"})
        last.result(LONG)
    np.testing.assert_allclose(a.numpy(), wanted, rtol=1e-5)


def test_writers_wait_for_readers_and_readers_for_writers(engine_id, gate):
    a, b, c = buffer([1.0]), buffer_zeros((1,)), buffer_zeros((1,))
    order = []
    reader = hooked("reader", [a], b, lambda: (gate(), order.append("read a")))
    writer = hooked("writer", [c], a, lambda: order.append("write a"))
    again = hooked("again", [a], c, lambda: order.append("read a again"))
    with Stream(workers=3) as stream:
        first = stream.submit(spec(reader, [a], b))
        gate.arrived()
        second = stream.submit(spec(writer, [c], a))
        third = stream.submit(spec(again, [a], c))
        assert [poll(first), poll(second), poll(third)] == ["pending"] * 3
        gate.open.set()
    assert order == ["read a", "write a", "read a again"]
    assert [read_list(x) for x in (b, a, c)] == [[2.0], [1.0], [2.0]]


def test_buffers_over_one_memory_keep_their_order(engine_id, gate):
    shared = np.zeros(8, "<f4")
    a, b = from_dlpack(shared[:6]), from_dlpack(shared[4:])
    if not np.shares_memory(np.asarray(a), shared):
        pytest.skip("buffers of this device never share memory")
    first_out, order = buffer_zeros((6,)), []
    reader = hooked("reader", [a], first_out, lambda: (gate(), order.append("read")))
    one = buffer([1.0, 1.0, 1.0, 1.0])
    writer = hooked("writer", [one], b, lambda: order.append("write"))
    with Stream(workers=2) as stream:
        stream.submit(spec(reader, [a], first_out))
        gate.arrived()
        stream.submit(spec(writer, [one], b))
        gate.open.set()
    assert order == ["read", "write"]
    assert read_list(first_out) == [1.0] * 6
    assert shared.tolist() == [0.0] * 4 + [2.0] * 4


def test_independent_commands_overlap(engine_id):
    """Each command waits until the others run too, so they end only if they overlap."""
    together = threading.Barrier(3)
    buffers = [(buffer([1.0]), buffer_zeros((1,))) for _ in range(3)]
    with Stream(workers=3) as stream:
        for n, (a, out) in enumerate(buffers):
            k = hooked(f"together_{n}", [a], out, lambda: together.wait(LONG))
            stream.submit(spec(k, [a], out))
    assert [read_list(out) for _, out in buffers] == [[2.0]] * 3


def test_readers_of_one_buffer_overlap(engine_id):
    together = threading.Barrier(2)
    a, outs = buffer([1.0]), [buffer_zeros((1,)), buffer_zeros((1,))]
    k = hooked("together", [a], outs[0], lambda: together.wait(LONG))
    with Stream(workers=2) as stream:
        made = [stream.submit(spec(k, [a], out)) for out in outs]
    assert [m.error for m in made] == [None, None]


def test_realtime_runs_before_background(engine_id, gate):
    a, order = buffer([1.0]), []
    with Stream(workers=1) as stream:
        blocker = hooked("blocker", [a], a, gate)
        stream.submit(spec(blocker, [a], a))
        gate.arrived()
        for name, priority in [
            ("b1", "background"),
            ("r1", "realtime"),
            ("b2", "background"),
            ("r2", "realtime"),
        ]:
            own = buffer([1.0])
            k = hooked(name, [own], own, lambda name=name: order.append(name))
            stream.submit(spec(k, [own], own), priority)
        gate.open.set()
    assert order == ["r1", "r2", "b1", "b2"]


def test_barrier_orders_earlier_and_later_commands(engine_id, gate):
    a, b, order = buffer([1.0]), buffer([1.0]), []
    first = hooked("first", [a], a, lambda: (gate(), order.append("first")))
    second = hooked("second", [b], b, lambda: order.append("second"))
    with Stream(workers=4) as stream:
        stream.submit(spec(first, [a], a))
        gate.arrived()
        barrier = stream.submit({"op": "barrier"})
        after = stream.submit(spec(second, [b], b))
        assert [poll(barrier), poll(after)] == ["pending", "pending"]
        assert order == []
        gate.open.set()
        after.result(LONG)
        assert barrier.done()
    assert order == ["first", "second"]


# limits -------------------------------------------------------------------------------------------


def test_submit_waits_while_the_queue_is_full(engine_id, gate):
    a, b = buffer([1.0]), buffer([1.0])
    k = hooked("gated", [a], a, gate)
    other = kernel("def other(x):\n    return x + 1")
    with Stream(workers=1, limit=2) as stream:
        stream.submit(spec(k, [a], a))
        gate.arrived()
        stream.submit(spec(other, [b], b))
        assert stream.pending == 2
        asking, done = threading.Event(), threading.Event()
        checked = hooked("checked", [b], b, lambda: None)

        class Spec(dict):
            def __iter__(self):  # submit reads the keys just before it enqueues the job
                asking.set()
                return super().__iter__()

        def third():
            stream.submit(Spec(spec(checked, [b], b)))
            done.set()

        thread = threading.Thread(target=third)
        thread.start()
        assert asking.wait(LONG)
        assert not done.is_set()
        assert stream.pending == 2
        gate.open.set()
        thread.join(LONG)
        assert done.is_set()
        stream.synchronize(LONG)
        assert stream.pending == 0
    assert read_list(b) == [3.0]


def test_run_async_awaits_room_in_the_queue(engine_id, gate):
    a, b = buffer([1.0]), buffer([1.0])
    k = hooked("gated", [a], a, gate)

    async def main(stream):
        stream.submit(spec(k, [a], a))
        task = asyncio.create_task(stream.run_async(spec("scalar_mul", [b], b, {"scalar": 2.0})))
        for _ in range(10):
            await asyncio.sleep(0)  # the event loop runs although the queue is full
        assert not task.done()
        assert stream.pending == 1
        gate.open.set()
        await asyncio.wait_for(task, LONG)

    with Stream(workers=1, limit=1) as stream:
        asyncio.run(main(stream))
    assert read_list(b) == [2.0]


def test_closing_raises_in_threads_that_wait_for_room(engine_id, gate):
    a = buffer([1.0])
    stream = Stream(workers=1, limit=1)
    stream.submit(spec(hooked("gated", [a], a, gate), [a], a))
    gate.arrived()
    refused = []

    def another():
        try:
            stream.submit({"op": "barrier"})
        except dala.FreedError as error:
            refused.append(str(error))

    waiting = threading.Thread(target=another)
    waiting.start()
    closing = threading.Thread(target=stream.close)
    closing.start()
    waiting.join(LONG)
    assert refused == ["submit: the stream was closed. Make a new one."]
    assert closing.is_alive()  # it waits for the running command
    gate.open.set()
    closing.join(LONG)
    assert stream.closed
    stream.close()
    assert "closed" in repr(stream)


# errors -------------------------------------------------------------------------------------------


def test_error_is_raised_by_every_wait_and_other_commands_run(engine_id):
    a, out = buffer([1.0]), buffer_zeros((1,))
    k = hooked("broken", [a], out, broken)
    with Stream() as stream:
        bad = stream.submit(spec(k, [a], out))
        good = stream.submit(spec("scalar_mul", [out], out, {"scalar": 2.0}))
        message = rf"^command {bad:d}, run_kernel\('broken'\): the device is on fire$"
        for ask in (
            lambda: bad.result(LONG),
            lambda: wait(bad),
            lambda: wait(int(bad)),
            lambda: poll(bad),
            lambda: poll(int(bad)),
            lambda: asyncio.run(awaited(bad)),
        ):
            with pytest.raises(dala.DeviceError, match=message):
                ask()
        good.result(LONG)
        assert type(bad.error) is dala.DeviceError
        assert "failed" in repr(bad)
        assert stream.submit({"op": "barrier"}).result(LONG) is None


@pytest.mark.parametrize("when", ["before the end", "after the end"])
def test_unchecked_error_is_logged(engine_id, gate, when, caplog):
    a = buffer([1.0])

    def fail():
        gate()
        broken()

    with Stream() as stream:
        command = stream.submit(spec(hooked("broken", [a], a, fail), [a], a))
        number = int(command)
        if when == "before the end":
            del command
        gate.open.set()
    command = None
    assert caplog.messages == [
        f"dala: command {number}, run_kernel('broken'): the device is on fire. "
        "The Command was dropped without checking its error."
    ]
    with pytest.raises(dala.DeviceError, match="on fire"):
        poll(number)


def test_checked_error_is_not_logged(engine_id, caplog):
    a = buffer([1.0])
    with Stream() as stream:
        command = stream.submit(spec(hooked("broken", [a], a, broken), [a], a))
    with pytest.raises(dala.DeviceError):
        wait(int(command))
    del command
    assert caplog.messages == []


@pytest.mark.parametrize("kind", [MemoryError, ZeroDivisionError, TimeoutError, KeyError])
def test_other_exceptions_keep_their_type_and_get_a_note(engine_id, kind):
    def fail():
        raise kind("no more")

    a = buffer([1.0])
    with Stream() as stream:
        bad = stream.submit(spec(hooked("broken", [a], a, fail), [a], a))
        with pytest.raises(kind, match="no more") as caught:
            bad.result(LONG)
    assert type(caught.value) is kind
    assert caught.value.__notes__ == [f"in command {bad:d}, run_kernel('broken')"]


def test_error_keeps_no_buffer_alive(engine_id, dala_device):
    def bytes_now():
        gc.collect()
        return dala.diagnostics()["objects"]["buffer"]["by_engine"].get(dala_device)

    before = bytes_now()
    a, out = buffer([1.0]), buffer_zeros((1,))
    k = hooked("broken", [a], out, broken)
    with Stream() as stream:
        bad = stream.submit(spec(k, [a], out))
    with pytest.raises(dala.DeviceError):
        wait(bad)
    del a, out
    assert bytes_now() == before
    assert bad.error is not None


def test_freeing_a_pending_buffer_fails_and_dropping_it_does_not(engine_id, gate):
    a, out = buffer([1.0]), buffer_zeros((1,))
    k = hooked("gated", [a], a, gate)
    with Stream(workers=1) as stream:
        stream.submit(spec(k, [a], a))
        gate.arrived()
        early, late, kept = buffer([5.0]), buffer_zeros((1,)), buffer([7.0])
        freed = stream.submit(spec("scalar_mul", [early], late, {"scalar": 2.0}))
        early.free()
        gone = stream.submit({"op": "copy_buffer", "src": kept, "dst": out})
        del kept
        gate.open.set()
        with pytest.raises(dala.FreedError, match=rf"^command {freed:d}, run_kernel.*was freed"):
            freed.result(LONG)
        gone.result(LONG)
    assert read_list(out) == [7.0]
    assert read_list(late) == [0.0]
