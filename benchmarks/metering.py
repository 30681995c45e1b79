"""What metering costs, and how fast runaway kernels end: the figures of docs/limits.md.

Costs are CPU times of one thread: each kernel as it is compiled, and compiled without metering, in
turn::

    DALA_THREADS=1 python -m benchmarks.metering cost
    python -m benchmarks.metering latency
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import sys
import threading
import time
from typing import NamedTuple

import numpy as np

import dala
from benchmarks.harness import write
from dala import gpu
from dala.gpu.compute import Buffer, Kernel, buffer, buffer_zeros, kernel, submit

FOREVER = 2_000_000_000

PRODUCT = """
def metering_product(a: Array, b: Array, *, k: int = 1):
    i, j = position()
    total = 0.0
    for q in range(k):
        total += a[i, q] * b[q, j]
    return total
"""
MANDELBROT = """
def metering_mandelbrot(x, y, *, n: int = 100):
    a = 0.0
    b = 0.0
    count = 0.0
    for i in range(n):
        t = a * a - b * b + x
        b = 2.0 * a * b + y
        a = t
        if a * a + b * b > 4.0:
            break
        count += 1.0
    return count
"""
THREE = """
def metering_three(x):
    total = 0.0
    for i in range(int(x)):
        total += x
    return total
"""
THREE_BY_THREE = """
def metering_three_by_three(x):
    total = 0.0
    for i in range(int(x)):
        for j in range(int(x)):
            total += x
    return total
"""
INTS = """
def metering_ints(n: s32):
    total = 0
    for i in range(n):
        total += (i ^ n) & 7
    return total
"""
TAPS = """
def metering_taps(n: s32, a: Array):
    y, x = position()
    total = 0.0
    for i in range(n):
        total += a[y, x + i] * 0.25
    return total
"""
SINES = """
def metering_sines(x):
    total = 0.0
    for i in range(int(x)):
        total += sin(total + x)
    return total
"""
BOX = """
def metering_box(img: Image, *, r: int = 3):
    total = img[0, 0] * 0.0
    for dy in range(-r, r + 1):
        for dx in range(-r, r + 1):
            total = total + img[dx, dy]
    return total / float((2 * r + 1) * (2 * r + 1))
"""
SPIN = """
def metering_spin(x, *, n: int = 2):
    for _ in range(n):
        for _ in range(n):
            x = x * 0.5 + 1.0
    return x
"""
SPIN_PIXELS = """
def metering_spin_pixels(px: Pixel, *, n: int = 2000000000):
    v = px.r
    for _ in range(n):
        for _ in range(n):
            v = v * 0.5 + 0.25
    return rgba(v, v, v, px.a)
"""


class Case(NamedTuple):
    """A kernel and what it runs on."""

    source: str
    inputs: list[Buffer]
    output: Buffer
    params: dict[str, float] = {}  # noqa: RUF012 - never changed


def _cases() -> dict[str, Case]:
    random = np.random.default_rng(1)
    a, product = buffer(random.random((256, 256), np.float32)), buffer_zeros((256, 256))
    y, x = np.mgrid[-1.2:1.2:300j, -2:1:400j].astype(np.float32)  # type: ignore[misc]
    plane = [buffer(np.ascontiguousarray(x)), buffer(np.ascontiguousarray(y))]
    counts = buffer_zeros(x.shape)
    picture = buffer(random.integers(0, 255, (360, 640, 4), np.uint8))
    result = buffer_zeros(picture.shape, "u8")

    def line(values: np.ndarray, source: str, dtype: str = "f32") -> Case:
        return Case(source, [buffer(values, dtype=dtype)], buffer_zeros(values.shape, dtype))

    def full(number: int, count: int = 1 << 18) -> np.ndarray:
        return np.full(count, number, np.float32)

    several = random.integers(0, 6, 1 << 18).astype(np.float32)
    taps = [buffer(np.full((256, 256), 3, np.int32), dtype="s32"), a]
    return {
        "matrix product, 256": Case(PRODUCT, [a, a], product, {"k": 256}),
        "Mandelbrot, 100": Case(MANDELBROT, plane, counts, {"n": 100}),
        "Mandelbrot, 3000": Case(MANDELBROT, plane, counts, {"n": 3000}),
        "box, radius 3": Case(BOX, [picture], result, {"r": 3}),
        "box, radius 12": Case(BOX, [picture], result, {"r": 12}),
        "3 additions": line(full(3), THREE),
        "0 to 5 additions": line(several, THREE),
        "10 additions": line(full(10), THREE),
        "100 additions": line(full(100, 1 << 15), THREE),
        "3 x 3 additions": line(full(3), THREE_BY_THREE),
        "6 operations on ints": line(full(6), INTS, "s32"),
        "100 operations on ints": line(full(100, 1 << 15), INTS, "s32"),
        "5000 operations on ints": line(full(5000, 1 << 12), INTS, "s32"),
        "3 reads of an array": Case(TAPS, taps, buffer_zeros((256, 256))),
        "3 sines": line(full(3, 1 << 16), SINES),
    }


def _compiled(source: str, case: Case, *, metered: bool) -> Kernel:
    """Return a kernel whose code is compiled, with metering or without."""
    from dala.gpu.compute.engines.cpu.llvm import metering
    from dala.gpu.compute.engines.instances import open_engine

    open_engine("cpu", "benchmark").close()  # forget its code, which would be used again
    usual = metering.is_long
    try:
        if not metered:
            metering.is_long = lambda block, known=None: False
        made = kernel(source)
        for _ in range(12):  # code for the values of parameters is compiled after some calls
            made.run(case.inputs, case.output, case.params)
    finally:
        metering.is_long = usual
    return made


def _milliseconds(made: Kernel, case: Case) -> float:
    begin = time.thread_time()
    made.run(case.inputs, case.output, case.params)
    return (time.thread_time() - begin) * 1e3


def cost(rounds: int = 400) -> None:
    """Print the CPU milliseconds of kernels with loops, and what of it is metering."""
    rows = {}
    for name, case in _cases().items():
        made = [_compiled(case.source, case, metered=metered) for metered in (True, False)]
        times: list[list[float]] = [[], []]
        # As many as take a second; a busy machine needs many for its minima.
        for turn in range(max(min(int(500 / _milliseconds(made[1], case)), rounds), 20)):
            for which in (0, 1) if turn % 2 else (1, 0):
                times[which].append(_milliseconds(made[which], case))
        least, middle = (list(map(f, times)) for f in (min, statistics.median))
        rows[name] = {
            "metered_ms": least[0],
            "unmetered_ms": least[1],
            "cost_of_minima": least[0] / least[1] - 1,
            "cost_of_medians": middle[0] / middle[1] - 1,
        }
        print(
            f"{name:24} {least[0]:9.3f} ms, without metering {least[1]:9.3f}: "
            f"{least[0] / least[1] - 1:+6.1%} (medians {middle[0] / middle[1] - 1:+6.1%})"
        )
    write("metering", rows, ())


def _wait_for_native() -> None:
    from dala.gpu.compute.engines.cpu import guard

    while not guard.running():
        time.sleep(0.001)
    time.sleep(0.05)


def latency(rounds: int = 15) -> None:
    """Print the milliseconds until runaway kernels end."""
    spin = kernel(SPIN)
    a, out = buffer(np.ones(100_000, np.float32)), buffer_zeros((100_000,))
    spec = {"op": "run_kernel", "kernel": spin, "inputs": [a], "output": out}
    spec["params"] = {"n": FOREVER}

    def cancel() -> float:
        command = submit(spec)
        _wait_for_native()
        begin = time.perf_counter()
        command.cancel()
        with contextlib.suppress(dala.Cancelled):
            command.wait()
        return time.perf_counter() - begin

    def deadline() -> float:
        begin = time.perf_counter()
        try:
            with dala.limits(time=0.1):
                spin(a, n=FOREVER)
        except dala.CommandTimeout:
            pass
        return time.perf_counter() - begin - 0.1

    def timeout() -> float:
        begin = time.perf_counter()
        with contextlib.suppress(dala.CommandTimeout):
            submit(spec, timeout=0.1).wait()
        return time.perf_counter() - begin - 0.1

    def interrupt() -> float:
        begin = []

        def send() -> None:
            _wait_for_native()
            begin.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=send)
        try:
            sender.start()
            spin(a, n=FOREVER)
        except KeyboardInterrupt:
            pass
        sender.join()
        return time.perf_counter() - begin[0]

    def closing() -> float:
        surface = gpu.create_surface(64, 64)
        surface.dispatch_compute(SPIN_PIXELS)
        _wait_for_native()
        begin = time.perf_counter()
        surface.close()
        return time.perf_counter() - begin

    for name, run in {
        "Command.cancel()": cancel,
        "Ctrl-C": interrupt,
        "dala.limits(time=)": deadline,
        "submit(timeout=)": timeout,
        "closing the surface": closing,
    }.items():
        times = sorted(run() * 1e3 for _ in range(rounds))
        print(f"{name:20} median {statistics.median(times):6.1f} largest {times[-1]:6.1f} ms")


if __name__ == "__main__":
    dala.use("cpu")
    {"cost": cost, "latency": latency}[sys.argv[1] if len(sys.argv) > 1 else "cost"]()
