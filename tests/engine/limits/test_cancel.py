"""Runaway kernels end: on Ctrl-C, when cancelled, at deadlines, with their surface and at exit.

Every test here would hang if its kernel did not end. Upper bounds are generous; docs/limits.md has
the measured latency.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dala
from dala import gpu
from dala.gpu.compute import Stream, buffer, buffer_zeros, kernel, matmul, relu, submit
from dala.gpu.compute.engines.cpu import guard
from dala.gpu.render import thread as render_thread
from dala.gpu.render import worker

FOREVER = 2_000_000_000
SPIN = """
def spin(x, *, n: int = 2):
    for _ in range(n):
        for _ in range(n):
            x = x * 0.5 + 1.0
    return x
"""
SPIN_PIXELS = """
def spin(px: Pixel, *, n: int = 2000000000):
    v = px.r
    for _ in range(n):
        for _ in range(n):
            v = v * 0.5 + 0.25
    return rgba(v, v, v, px.a)
"""
spin = kernel(SPIN, name="cancel_spin")


def spec(a, out, n=FOREVER):
    return {"op": "run_kernel", "kernel": spin, "inputs": [a], "output": out, "params": {"n": n}}


@pytest.fixture
def pair():
    """An input and an output on the CPU."""
    return buffer([1.0, 2.0], device="cpu"), buffer_zeros((2,), device="cpu")


def wait_until_native(seconds=60):
    """Wait until a kernel runs in native code."""
    end = time.monotonic() + seconds
    while not guard._active:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_cancelling_a_command_that_runs(pair):
    with Stream(workers=1) as stream:
        running = stream.submit(spec(*pair))
        wait_until_native()
        assert running.cancel()
        with pytest.raises(dala.Cancelled, match=r"command \d+, run_kernel.*: cancelled. Its out"):
            running.result(60)
        assert not running.cancel()
        assert isinstance(running.error, dala.Cancelled)
        again = stream.submit(spec(*pair, n=1))
        again.result(60)
        assert not again.cancel()
        again.result()
    assert pair[1].read_list() == [1.5, 2.0]


def test_cancelling_a_command_that_waits(pair):
    a, out = pair
    with Stream(workers=1) as stream:
        running = stream.submit(spec(a, out))
        waiting = stream.submit({"op": "copy_buffer", "src": out, "dst": a})
        later = stream.submit(spec(a, out, n=1))
        assert waiting.cancel()
        with pytest.raises(dala.Cancelled):
            waiting.result(60)  # it does not wait for the one that runs
        assert not later.done()
        running.cancel()
        later.result(60)
        with pytest.raises(dala.Cancelled):
            running.result(60)
    assert a.read_list() == [1.0, 2.0]
    assert out.read_list() == [1.5, 2.0]


def test_a_cancelled_command_that_is_dropped_is_not_an_error(pair, caplog):
    with Stream(workers=1) as stream:
        command = stream.submit(spec(*pair))
        command.cancel()
        del command
        stream.synchronize(60)
    assert not caplog.records


def test_awaiting_a_cancelled_command(pair):
    import asyncio

    async def main():
        command = submit(spec(*pair))
        asyncio.get_running_loop().call_soon(command.cancel)
        with pytest.raises(dala.Cancelled):
            await command

    asyncio.run(main())


def test_a_timeout_of_submit_ends_the_command(pair):
    command = submit(spec(*pair), timeout=0.05)
    with pytest.raises(dala.CommandTimeout, match=r"run_kernel.*: ended after the 0.05 s"):
        command.result(60)
    with pytest.raises(dala.ParameterError, match="submit: timeout must be a number of seconds"):
        submit(spec(*pair, n=1), timeout="soon")
    submit(spec(*pair, n=1), timeout=1000).result(60)
    assert pair[1].read_list() == [1.5, 2.0]


def test_the_timeout_of_a_wait_leaves_the_command_alone(pair):
    command = submit(spec(*pair))
    with pytest.raises(dala.CommandTimeout, match="It continues"):
        command.wait(0.02)
    assert not command.done()
    command.cancel()
    with pytest.raises(dala.Cancelled):
        command.wait(60)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
@pytest.mark.parametrize("count", [1, 100_000])
def test_ctrl_c_ends_a_kernel(count):
    a = buffer(np.ones(count, np.float32), device="cpu")
    spin(a, n=1)

    def interrupt():
        wait_until_native()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        spin(a, n=FOREVER)
    thread.join()
    assert not guard._active
    assert spin(a, n=1).numpy().tolist() == [1.5] * count


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals of POSIX")
def test_signal_handlers_run_while_a_kernel_runs():
    a = buffer([1.0], device="cpu")
    seen = []

    def handler(number, frame):
        seen.append(spin(a, n=1).read_list())  # handlers may run kernels
        if len(seen) == 3:
            raise LookupError("third")

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
    try:
        with pytest.raises(LookupError, match="third"):
            spin(a, n=FOREVER)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert seen == [[1.5]] * 3


def test_tiles_that_have_not_started_are_dropped():
    a = buffer(np.ones(1 << 22, np.float32), device="cpu")
    out = buffer_zeros((1 << 22,), device="cpu")
    with Stream(workers=1) as stream:
        command = stream.submit(spec(a, out, n=300))  # minutes of short loops
        wait_until_native()
        command.cancel()
        with pytest.raises(dala.Cancelled):
            command.result(60)
    assert (out.numpy() == 0).any()


def test_threads_are_independent(pair):
    errors = []

    def work():
        with dala.limits(time=0.05):
            try:
                spin(pair[0], n=FOREVER)
            except dala.CommandTimeout as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 4
    assert not guard._active


def test_a_shader_in_a_stream_has_a_default_budget(monkeypatch):
    monkeypatch.setattr(render_thread, "MAX_SECONDS", 0.1)
    with gpu.create_surface(8, 8) as s:
        s.clear("red")
        s.dispatch_compute(SPIN_PIXELS)
        with pytest.raises(dala.CommandTimeout, match=r"spin: ended after the 0.1 s"):
            s.synchronize()
        assert s.get_pixels() == b"\xff\x00\x00\xff" * 64  # no pixel has changed
        monkeypatch.undo()
        s.dispatch_compute("def dark(px: Pixel): return rgba(0.0, 0.0, 0.0, 1.0)")
        assert s.get_pixels() == b"\x00\x00\x00\xff" * 64


def test_a_surface_takes_the_limits_of_its_block():
    with dala.limits(iterations=50), gpu.create_surface(2, 2) as s:
        s.clear("lime")
        s.dispatch_compute(SPIN_PIXELS, {"n": 6})
        s.synchronize()
        drawn = s.get_pixels()
        s.dispatch_compute(SPIN_PIXELS, {"n": 7})
        with pytest.raises(dala.LimitExceeded, match="at most 50"):
            s.synchronize()
        assert s.get_pixels() == drawn


def test_closing_a_surface_ends_its_shader(monkeypatch):
    monkeypatch.setattr(render_thread, "MAX_SECONDS", 1000)
    monkeypatch.setattr(worker, "CLOSE_TIMEOUT", 1000)
    s = gpu.create_surface(8, 8)
    s.dispatch_compute(SPIN_PIXELS)
    wait_until_native()
    begin = time.monotonic()
    s.close()
    assert time.monotonic() - begin < 500
    with pytest.raises(dala.FreedError):
        s.get_pixels()


EXIT = """
import threading, time
import dala
from dala import gpu
from dala.gpu.compute import buffer, buffer_zeros, kernel, submit
from dala.gpu.compute.engines.cpu import guard
dala.use("cpu")
spin = kernel('''{spin}''')
a, out = buffer([1.0]), buffer_zeros((1,))
if {surface}:
    s = gpu.create_surface(4, 4)
    s.dispatch_compute('''{pixels}''')
else:
    submit({{"op": "run_kernel", "kernel": spin, "inputs": [a], "output": out,
            "params": {{"n": 2000000000}}}})
    threading.Thread(target=lambda: spin(a, n=2000000000), daemon=True).start()
while len(guard._active) < {count}:
    time.sleep(0.001)
print("left", flush=True)
{ending}
"""


@pytest.mark.parametrize(
    ("surface", "ending"), [(False, ""), (True, ""), (False, "raise SystemExit(3)")]
)
def test_exit_ends_runaways(surface, ending):
    text = EXIT.format(
        spin=SPIN, pixels=SPIN_PIXELS, surface=surface, count=1 if surface else 2, ending=ending
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == (3 if ending else 0)
    assert done.stdout == "left\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_can_end_kernels_too(pair):
    a = pair[0]
    with dala.limits(time=60):
        spin(a, n=1)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with dala.limits(time=0.05):
                spin(a, n=FOREVER)
        except dala.CommandTimeout:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_operations_end_between_their_tiles():
    a = buffer(np.ones((800, 800), np.float32), device="cpu")
    out = buffer_zeros((800, 800), device="cpu")
    matmul(a, a, out)
    with dala.limits(time=0.01), pytest.raises(dala.CommandTimeout):
        for _ in range(10_000):
            matmul(a, a, out)
    assert matmul(a, a, out).numpy()[5, 5] == 800.0


def test_calls_after_the_deadline_are_refused(dala_device):
    a, out = buffer([-1.0, 2.0], device=dala_device), buffer_zeros((2,), device=dala_device)
    relu(a, out)  # its text is read
    with dala.limits(time=1e-6), pytest.raises(dala.CommandTimeout, match="relu: ended after"):
        for _ in range(10_000):
            relu(a, out)
    assert relu(a, out).read_list() == [0.0, 2.0]
