"""What metering costs, and how fast runaway kernels end: the figures of docs/limits.md.

Costs are CPU times of one thread. Compare two checkouts in turn::

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
from collections.abc import Callable

import numpy as np

import dala
from dala import gpu
from dala.gpu.compute import buffer, buffer_zeros, kernel, relu, submit

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


def cost() -> None:
    """Print the CPU milliseconds of kernels with loops."""
    random = np.random.default_rng(1)
    a, out = buffer(random.random((256, 256), np.float32)), buffer_zeros((256, 256))
    y, x = np.mgrid[-1.2:1.2:300j, -2:1:400j].astype(np.float32)  # type: ignore[misc]
    plane = [buffer(np.ascontiguousarray(x)), buffer(np.ascontiguousarray(y))]
    counts = buffer_zeros(x.shape)
    threes = buffer(np.full(1 << 18, 3.0, np.float32))
    sums = buffer_zeros(threes.shape)
    picture = buffer(random.integers(0, 255, (360, 640, 4), np.uint8))
    result = buffer_zeros(picture.shape, "u8")
    two, two_out = buffer([1.0, 2.0]), buffer_zeros((2,))
    product, mandelbrot, three, box = map(kernel, (PRODUCT, MANDELBROT, THREE, BOX))
    cases: dict[str, Callable[[], object]] = {
        "matrix product, 256": lambda: product.run([a, a], out, {"k": 256}),
        "Mandelbrot, 100": lambda: mandelbrot.run(plane, counts, {"n": 100}),
        "Mandelbrot, 3000": lambda: mandelbrot.run(plane, counts, {"n": 3000}),
        "loops of three": lambda: three.run([threes], sums),
        "box, radius 12": lambda: box.run([picture], result, {"r": 12}),
        "200 calls on two numbers": lambda: [relu(two, two_out) for _ in range(200)],
    }
    for name, run in cases.items():
        for _ in range(3):
            run()
        times = []
        while sum(times) < 0.25 or len(times) < 5:
            begin = time.thread_time()
            run()
            times.append(time.thread_time() - begin)
        print(f"{name:26} {sorted(times)[len(times) // 10] * 1e3:9.3f} ms")


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
