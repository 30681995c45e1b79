"""Submitted commands: order, overlap, limits, errors and cleanup, on every engine.

No test sleeps. Where a test needs a running command, its kernel waits at a gate that the test
opens; where two must run at once, they wait for each other. The long timeouts only keep a failing
test from hanging.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import inspect
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dala
from dala.gpu.compute import (
    Command,
    Kernel,
    Stream,
    buffer,
    buffer_zeros,
    from_dlpack,
    kernel,
    poll,
    read_list,
    run_kernel,
    run_kernel_async,
    submit,
    wait,
)
from dala.gpu.compute.stream import command as commands
from tests.support.engines import complaints

LONG = 60.0


def spec(kernel, inputs, output, params=None):
    found = {"op": "run_kernel", "kernel": kernel, "inputs": inputs, "output": output}
    return found if params is None else {**found, "params": params}


def hooked(name, inputs, output, before, text="def f(x):\n    return x + 1"):
    """Return a kernel that calls ``before()`` first when it runs on buffers like these."""
    made = Kernel.register(name, text)
    plan = made.plan(inputs, output)[0]

    def run(*args):
        before()
        plan.run(*args)

    (key,) = made._plans
    made._plans[key] = dataclasses.replace(plan, run=run)
    return made


class Gate:
    """A gate that a kernel waits at; tests see when the kernel arrives."""

    def __init__(self):
        self.reached = threading.Semaphore(0)
        self.open = threading.Event()

    def __call__(self):
        self.reached.release()
        assert self.open.wait(LONG)

    def arrived(self):
        assert self.reached.acquire(timeout=LONG)


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.open.set()  # release the kernels of a failed test


def pending_commands():
    return dala.diagnostics()["objects"].get("command", {"count": 0})["count"]


# running -----------------------------------------------------------------------------------------


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


# order -------------------------------------------------------------------------------------------


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


# limits ------------------------------------------------------------------------------------------


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


# errors ------------------------------------------------------------------------------------------


def broken():
    raise dala.DeviceError("the device is on fire")


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


async def awaited(command):
    return await command


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


# refusals ----------------------------------------------------------------------------------------


def refusals():
    a, out, wide = buffer([1.0]), buffer_zeros((1,)), buffer_zeros((1,), "s32")
    long, away = buffer_zeros((2,)), buffer([1.0], device="null")
    freed = buffer([1.0])
    freed.free()
    good = spec("relu", [a], out)
    make = "Make one with buffer(...) or from_array(...)."
    gone = "(buffer f32 (1,)) was freed. Make a new one, or free it later."
    ops = "op must be one of 'run_kernel', 'copy_buffer', 'barrier', got"
    dst = "submit: dst of copy_buffer must be"
    yield (
        {**good, "kernel": "rellu"},
        dala.UnknownKernel,
        "submit: no kernel 'rellu'. Did you mean 'relu'?",
    )
    yield {**good, "inputs": [a, a]}, dala.ArityError, "relu: inputs must be 1 buffer (x), got 2."
    yield (
        {**good, "inputs": a},
        dala.ArityError,
        "relu: inputs must be a list of buffers, got Buffer. Write [a] for one input.",
    )
    yield (
        {**good, "output": None},
        dala.ArityError,
        f"relu: output must be a Buffer, got None. {make}",
    )
    yield {**good, "inputs": [freed]}, dala.FreedError, f"relu: x {gone}"
    yield {**good, "output": freed}, dala.FreedError, f"relu: output {gone}"
    yield (
        {**good, "inputs": [long]},
        dala.ShapeMismatch,
        "relu: x must be of a shape that broadcasts to the output's (1,), got (2,). "
        "Axes must be equal or 1, counted from the last.",
    )
    yield (
        {**good, "inputs": [away]},
        dala.DeviceMismatch,
        f"relu: x must be on the output's device {a.device!r}, got 'null'. "
        f"Move it: x.to({a.device!r}).",
    )
    yield (
        {**good, "params": {"slop": 1.0}},
        dala.UnknownParameter,
        "relu: no parameter 'slop'. Did you mean 'slope'?",
    )
    yield (
        {**good, "params": {"slope": float("nan")}},
        dala.ParameterError,
        "relu: slope must be a number, got nan.",
    )
    yield (
        {**good, "params": [1]},
        dala.ParameterError,
        "relu: params must be a dict, got list. Write {'name': value}.",
    )
    yield (
        {"op": "run_kernel", "kernel": "relu"},
        dala.ParameterError,
        "submit: run_kernel requires 'inputs' and 'output'.",
    )
    yield (
        {**good, "param": {}},
        dala.ParameterError,
        "submit: run_kernel has no key 'param'. Did you mean 'params'?",
    )
    yield {"op": "jump"}, dala.ParameterError, f"submit: {ops} 'jump'."
    yield {"op": ["barrier"]}, dala.ParameterError, f"submit: {ops} ['barrier']."
    yield {}, dala.ParameterError, f"submit: {ops} None."
    yield (
        "barrier",
        dala.ParameterError,
        "submit: spec must be a dict such as {'op': 'run_kernel', ...}, got str.",
    )
    yield (
        {"op": "barrier", "src": a},
        dala.ParameterError,
        "submit: barrier has no key 'src'. It takes: op.",
    )
    yield (
        {"op": "copy_buffer", "src": a},
        dala.ParameterError,
        "submit: copy_buffer requires 'dst'.",
    )
    copy = {"op": "copy_buffer", "src": a}
    yield {**copy, "dst": 3}, dala.ArityError, f"{dst} a Buffer, got 3. {make}"
    yield (
        {**copy, "dst": wide},
        dala.DtypeMismatch,
        f"{dst} of the dtype of src, 'f32', got 's32'.",
    )
    yield {**copy, "dst": long}, dala.ShapeMismatch, f"{dst} of the shape of src, (1,), got (2,)."
    yield (
        {**copy, "dst": away},
        dala.DeviceMismatch,
        f"{dst} on the device of src, {a.device!r}, got 'null'. Move one: src.to('null').",
    )
    yield {**copy, "src": freed, "dst": a}, dala.FreedError, f"submit: src of copy_buffer {gone}"


def test_submit_refuses_invalid_specs(engine_id):
    before = pending_commands()
    for bad, error, message in refusals():
        with pytest.raises(error) as caught:
            submit(bad)
        assert str(caught.value) == message
    assert pending_commands() == before


def test_submit_refuses_an_image_input_as_output(engine_id):
    image = buffer_zeros((4, 4, 4), "u8")
    with pytest.raises(dala.ShapeMismatch, match="output must not be the input 'img'"):
        submit(spec("sharpen", [image], image))


def test_invalid_arguments(engine_id):
    with pytest.raises(dala.ParameterError, match="priority must be 'realtime' or 'background'"):
        submit({"op": "barrier"}, "urgent")
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(dala.ParameterError, match="workers must be an int of at least 1"):
            Stream(workers=wrong)
        with pytest.raises(dala.ParameterError, match="limit must be"):
            Stream(limit=wrong)
    done = submit({"op": "barrier"})
    for wrong in ("soon", float("nan"), True):
        with pytest.raises(dala.ParameterError, match="timeout must be a number of seconds"):
            wait(done, wrong)
    wait(done, 1e300)
    for call in (poll, wait):
        with pytest.raises(dala.UnknownCommand, match="no command -5"):
            call(-5)
        with pytest.raises(KeyError, match="command must be a Command or its id, got"):
            call("7")
        with pytest.raises(KeyError):
            call(True)


# nothing stays behind ----------------------------------------------------------------------------


def test_dropped_commands_release_everything(engine_id, dala_device):
    def counts():
        gc.collect()
        found = dala.diagnostics()
        return (
            found["objects"]["buffer"]["by_engine"].get(dala_device, {"count": 0})["count"],
            found["engines"].get(dala_device, {}).get("live_buffers", 0),
            found["objects"].get("command", {"count": 0})["count"],
            found["objects"].get("stream", {"count": 0})["count"],
        )

    run_kernel("relu", [buffer([1.0])], buffer_zeros((1,)))
    before = counts()
    with Stream() as stream:
        for _ in range(200):
            stream.submit(spec("relu", [buffer([1.0])], buffer_zeros((1,))))
        assert counts()[3] == before[3] + 1
    assert counts() == before


def test_diagnostics_counts_pending_commands(engine_id, gate, dala_device):
    a = buffer([1.0])
    with Stream(workers=1) as stream:
        before = pending_commands()
        for _ in range(3):
            stream.submit(spec(hooked("gated", [a], a, gate), [a], a))
        assert pending_commands() == before + 3
        assert dala.diagnostics()["objects"]["command"]["by_engine"][dala_device]["count"] >= 3
        gate.open.set()
        stream.synchronize(LONG)
        assert pending_commands() == before


def test_dropped_stream_finishes_its_commands(engine_id):
    a, out = buffer([1.0]), buffer_zeros((1,))
    stream = Stream(workers=2)
    command = stream.submit(spec("scalar_mul", [a], out, {"scalar": 4.0}))
    threads = list(stream._queue._threads)
    assert threads
    del stream
    gc.collect()
    command.result(LONG)
    assert read_list(out) == [4.0]
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_old_ids_are_unknown(engine_id, monkeypatch):
    monkeypatch.setattr(commands, "_ended", {})
    monkeypatch.setattr(commands, "ENDED_KEPT", 3)
    with Stream(workers=1) as stream:
        made = [stream.submit({"op": "barrier"}) for _ in range(5)]
    assert [poll(m) for m in made] == ["completed"] * 5
    assert [poll(int(m)) for m in made[2:]] == ["completed"] * 3
    with pytest.raises(dala.UnknownCommand, match="the last 3 are kept"):
        poll(int(made[0]))


# asyncio and threads -----------------------------------------------------------------------------


def test_sync_and_async_calls_have_the_same_signature():
    other, plain = inspect.signature(run_kernel_async), inspect.signature(run_kernel)
    assert other.parameters == plain.parameters
    assert inspect.iscoroutinefunction(run_kernel_async)


def test_many_commands_in_asyncio(engine_id):
    buffers = [(buffer([float(n), 1.0]), buffer_zeros((2,))) for n in range(100)]

    async def main():
        await asyncio.gather(
            *(run_kernel_async("scalar_mul", [a], out, {"scalar": 2.0}) for a, out in buffers)
        )
        made = [submit(spec("relu", [out], out)) for _, out in buffers]
        assert await asyncio.gather(*made) == [None] * 100

    asyncio.run(asyncio.wait_for(main(), LONG))
    assert [read_list(out) for _, out in buffers] == [[2.0 * n, 2.0] for n in range(100)]


def test_errors_are_raised_in_the_coroutine(engine_id):
    a = buffer([1.0])

    async def main():
        with pytest.raises(dala.UnknownKernel):
            await run_kernel_async("nothing", [a], a)
        with pytest.raises(dala.DeviceError, match=r"command \d+, run_kernel\('broken'\)"):
            await run_kernel_async(hooked("broken", [a], a, broken), [a], a)

    asyncio.run(main())


def test_cancelled_task_does_not_cancel_the_work(engine_id, gate):
    a = buffer([1.0])

    async def main(command):
        task = asyncio.create_task(awaited(command))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Stream() as stream:
        command = stream.submit(spec(hooked("gated", [a], a, gate), [a], a))
        gate.arrived()
        asyncio.run(main(command))
        assert poll(command) == "pending"
        gate.open.set()
        command.result(LONG)
    assert read_list(a) == [2.0]


def test_many_threads_submit(engine_id, dala_device):
    total, threads, turns = buffer_zeros((4,)), 8, 25
    start = threading.Barrier(threads)

    def work(n):
        start.wait(LONG)
        with dala.device(dala_device):
            own = buffer([float(n)])
        for _ in range(turns):
            stream.submit(spec("elementwise_add", [total, own], total))
            stream.submit(spec("scalar_mul", [own], own, {"scalar": 1.0}), "background")

    with Stream(workers=4, limit=16) as stream, ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    assert read_list(total) == [float(turns * sum(range(threads)))] * 4


def test_gil_is_free_while_a_kernel_runs():
    """Count on this thread while native code runs on another.

    This thread releases the GIL after every count, the worker only while the kernel runs. With a
    kernel that held the GIL, the count would not change.
    """
    text = """
def busy(x, *, n: s32 = 1):
    y = x
    for i in range(n):
        y = sin(y) + 1.0
    return y
"""
    with dala.device("cpu"):
        a, out = buffer(np.linspace(0, 1, 1 << 14, dtype="<f4")), buffer_zeros((1 << 14,))
    k = Kernel.register("busy", text)
    plan, storages, target, values = k.plan([a], out, {"n": 1000})
    plan.run(storages, target, values)  # compile first
    (key,) = k._plans
    count, counted = [0], []

    def run(*args):
        before = count[0]
        plan.run(*args)
        counted.append(count[0] - before)

    k._plans[key] = dataclasses.replace(plan, run=run)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(30.0)
    try:
        with Stream(workers=1) as stream:
            command = stream.submit(spec(k, [a], out, {"n": 1000}))
            while not command.done():
                count[0] += 1
                time.sleep(0)
    finally:
        sys.setswitchinterval(interval)
        Kernel.unregister("busy")
    assert counted[0] > 100


# ends --------------------------------------------------------------------------------------------


EXIT = """
import dala
from dala.gpu.compute import buffer_zeros, kernel, submit, Stream
dala.use({device!r})
k = kernel('''
def busy(x, *, n: s32 = 1):
    y = x
    for i in range(n):
        y = sin(y) + 1.0
    return y
''')
a = [buffer_zeros((1 << {size},)) for _ in range(4)]
stream = Stream(workers=2)
for n in range(60):
    for to in (submit, stream.submit):
        to({{"op": "run_kernel", "kernel": k, "inputs": [a[n % 4]], "output": a[(n + n // 4) % 4],
            "params": {{"n": 20}}}}, "background" if n % 3 else "realtime")
print("left", flush=True)
"""


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "a.clear(); del stream, k"])
def test_exit_with_pending_work_is_clean(engine_id, dala_device, ending):
    size = 12 if engine_id == "reference" else 16
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXIT.format(device=dala_device, size=size) + ending],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, complaints(done.stderr)) == (0, "left\n", "")


FORK = """
import dataclasses, os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of fork() while threads run
import dala
from dala.gpu.compute import buffer, submit
from dala.gpu.compute.kernel import get as find
dala.use("cpu")
a, b = buffer([1.0]), buffer([1.0])
spec = {"op": "run_kernel", "kernel": "scalar_mul", "inputs": [a], "output": a,
        "params": {"scalar": 2.0}}
submit(spec).result(60)
here, go = threading.Event(), threading.Event()
(key, plan), = find("scalar_mul")._plans.items()
held = lambda *args: (here.set(), go.wait(300))
find("scalar_mul")._plans[key] = dataclasses.replace(plan, run=held)
stuck = submit({**spec, "inputs": [b], "output": b})
here.wait(300)
find("scalar_mul")._plans[key] = plan
child = os.fork()
if child == 0:
    try:
        stuck.result(60)
    except dala.FreedError as error:
        assert "belongs to the parent process" in str(error)
        submit(spec).result(60)
        os._exit(0 if a.read_list() == [4.0] else 1)
    os._exit(2)
go.set()
stuck.result(60)
_, status = os.waitpid(child, 0)
submit(spec).result(60)
sys.exit(status or a.read_list() != [4.0])
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_forked_child_starts_with_an_empty_queue():
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
