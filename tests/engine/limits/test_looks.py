"""Kernels of the CPU engine look at their stop cell often enough to end within 100 ms."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dala.gpu.compute import buffer, buffer_zeros, kernel
from dala.gpu.compute.engines.cpu.llvm import loops
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter

LOOP = """
def looks(x, a: Array, *, n: int = 1, outer: int = 1):
    for i in range(n):
        {}
    return x
"""
NESTED = """
def looks(x, a: Array, *, n: int = 1, outer: int = 1):
    for i in range(outer):
        for j in range(n):
            x = pow(x, 1.1) * 0.5
    return x
"""
ROW_OF_LOOPS = "\n".join(
    [
        "def looks(x, a: Array, *, n: int = 1, outer: int = 1):",
        *("    for i in range(n):\n        x = pow(x, 1.1) * 0.5" for _ in range(40)),
        "    return x",
    ]
)
#: The slowest operations of their kinds, and loops in and after loops.
TEXTS = {
    "sums": LOOP.format("x = x * 0.5 + 1.0"),
    "divisions": LOOP.format("x = 1.0 / (x + 1.5)"),
    "powers": LOOP.format("x = pow(x, 1.1) * 0.5"),
    "reads": LOOP.format("x = x + a[int(x * 1664525.0) & 4194303]"),
    "nested": NESTED,
    "many": ROW_OF_LOOPS,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_most_work_between_two_looks(name, monkeypatch):
    """As many positions, and as many iterations, as run without a look.

    CPU time, so that other processes do not matter. It is 2 to 14 ms.
    """
    meters: list[LoopMeter] = []

    class Recorded(LoopMeter):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            meters.append(self)

    monkeypatch.setattr(loops, "LoopMeter", Recorded)
    made = kernel(TEXTS[name])
    table = buffer(np.zeros(1 << 22), dtype="f32", device="cpu")

    def run(count: int, n: int, outer: int) -> float:
        x = buffer(np.full(count, 1.25), dtype="f64", device="cpu")
        out = buffer_zeros((count,), "f64", device="cpu")
        begin = time.process_time()
        made.run([x, table], out, {"n": n, "outer": outer})
        return time.process_time() - begin

    run(2, 1, 1)
    meter = meters[0]
    strips = list(meter.strips.values())
    inner, outer = strips[0], strips[-1] if name == "nested" else 2
    took = run(meter.positions_in_strip, max(inner - 1, 1), outer - 1)
    assert took < 0.1
    if meter.short:
        short = list(meter.short.values())
        inner, outer = short[0], short[-1] if name == "nested" else 1
        assert run(meter.short_positions, inner, outer) < 0.1
