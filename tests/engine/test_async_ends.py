"""Commands that are submitted: refusals, what stays behind, asyncio, threads and ends."""

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
    Kernel,
    Stream,
    buffer,
    buffer_zeros,
    poll,
    read_list,
    run_kernel,
    run_kernel_async,
    submit,
    wait,
)
from dala.gpu.compute.stream import command as commands
from tests.engine.commands import LONG, awaited, broken, hooked, spec
from tests.support.engines import complaints


def pending_commands():
    return dala.diagnostics()["objects"].get("command", {"count": 0})["count"]


# refusals -----------------------------------------------------------------------------------------


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


# nothing stays behind -----------------------------------------------------------------------------


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


# asyncio and threads ------------------------------------------------------------------------------


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


# ends ---------------------------------------------------------------------------------------------

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


@pytest.mark.third
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
