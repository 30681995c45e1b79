"""The cost of one kernel call on 1,000 elements, including all checks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dala
from benchmarks.harness import write
from dala.gpu.compute import add, buffer_zeros, from_array, kernel, run_kernel


def _contestants() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    x, y = (rng.random(1000, np.float32) for _ in range(2))
    z = np.zeros_like(x)
    a, b, c = from_array(x), from_array(y), buffer_zeros(1000)
    fused = kernel("def calls_fused(a, b, *, gain=2.0): return max(a * b, 0.0) * gain")
    found: dict[str, Callable[[], Any]] = {
        "dala add(a, b, out)": lambda: add(a, b, c),
        "dala run_kernel by name": lambda: run_kernel("elementwise_add", [a, b], c),
        "dala kernel(a, b, out=, gain=)": lambda: fused(a, b, out=c, gain=3.0),
        "dala a + b, computed": lambda: (a + b).storage("benchmark"),
        "numpy add(x, y, out)": lambda: np.add(x, y, z),
    }
    try:
        import numba
    except ImportError:
        print("numba is not installed: left out")
    else:

        @numba.njit
        def numba_add(x: Any, y: Any, z: Any) -> None:
            for i in range(x.size):
                z[i] = x[i] + y[i]

        found["numba add, one thread"] = lambda: numba_add(x, y, z)
    return found


def main(rounds: int = 60, calls: int = 500) -> None:
    """Time batches of calls, contestants in turn."""
    dala.use("cpu")
    contestants = _contestants()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            for _ in range(calls):
                run()
            times[name].append((time.perf_counter() - start) / calls * 1e6)
    rows = {n: {"min_us": min(t), "median_us": statistics.median(t)} for n, t in times.items()}
    print("microseconds a call, 1,000 f32")
    for name, row in rows.items():
        print(f"  {name:32s} min {row['min_us']:6.2f}  median {row['median_us']:6.2f}")
    write("calls", rows, ("numba",))
