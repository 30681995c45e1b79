"""An elementwise kernel on 2^28 f32 on a GPU, against the copy bandwidth of the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import dala
from benchmarks.harness import write
from dala.gpu.compute import buffer_zeros, gpu_available, kernel, run_kernel

N = 1 << 28


def _per_run(
    run: Callable[[], Any], wait: Callable[[], Any], few: int = 2, many: int = 22
) -> float:
    """Seconds a run: the difference between many and few, so that waiting cancels out."""
    times = {}
    for count in (few, many):
        wait()
        start = time.perf_counter()
        for _ in range(count):
            run()
        wait()
        times[count] = time.perf_counter() - start
    return (times[many] - times[few]) / (many - few)


def _race(
    contestants: dict[str, tuple[Callable[[], Any], Callable[[], Any]]], rounds: int
) -> dict[str, dict[str, float]]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run, wait in contestants.values():
        run()
        wait()
    for _ in range(rounds):
        for name, (run, wait) in contestants.items():
            times[name].append(_per_run(run, wait) * 1e3)
    return {n: {"min_ms": min(t), "median_ms": statistics.median(t)} for n, t in times.items()}


def _ours(n: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    a, b, out = buffer_zeros(n), buffer_zeros(n), buffer_zeros(n)
    engine = out.engine
    gain = kernel("def gpu_gain(x): return max(x * 2 + 1, 0.0)")
    fused = kernel("def gpu_fused(a, b): return max(a * b + a, 0.0)")
    source, target = a.storage("bench"), out.storage("bench")
    return {
        "dala copy": (lambda: engine.copy(source, target), engine.synchronize),
        "dala max(x*2+1, 0)": (lambda: run_kernel(gain, [a], out), engine.synchronize),
        "dala add": (lambda: run_kernel("elementwise_add", [a, b], out), engine.synchronize),
        "dala max(a*b+a, 0)": (lambda: run_kernel(fused, [a, b], out), engine.synchronize),
    }


def _torch(n: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    import torch

    a, b, out = (torch.zeros(n, device="cuda") for _ in range(3))
    wait = torch.cuda.synchronize
    return {
        "torch copy": (lambda: out.copy_(a), wait),
        "torch add": (lambda: torch.add(a, b, out=out), wait),
    }


def _cupy(n: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    import cupy

    a, b, out = (cupy.zeros(n, cupy.float32) for _ in range(3))
    fused = cupy.ElementwiseKernel(
        "float32 a, float32 b", "float32 z", "z = max(a * b + a, 0.0f)", "bench_fused"
    )
    wait = cupy.cuda.Device().synchronize
    return {
        "cupy add": (lambda: cupy.add(a, b, out), wait),
        "cupy max(a*b+a, 0)": (lambda: fused(a, b, out), wait),
    }


MOVED = {"copy": 2, "max(x*2+1, 0)": 2, "add": 3, "max(a*b+a, 0)": 3}


def main(rounds: int = 8) -> None:
    """Races on the GPU; says so and stops where there is none."""
    if not gpu_available():
        print("no GPU here: nothing measured")
        return
    dala.use("gpu")
    contestants = _ours(N)
    for make in (_torch, _cupy):
        try:
            contestants.update(make(N))
        except Exception as error:
            print(f"{make.__name__[1:]}: left out ({type(error).__name__}: {str(error)[:100]})")
    rows = _race(contestants, rounds)
    for name, row in rows.items():
        row["GB_per_s"] = MOVED[name.partition(" ")[2]] * N * 4 / row["min_ms"] / 1e6
    copy = max(row["GB_per_s"] for name, row in rows.items() if name.endswith("copy"))
    print(f"{N:,} f32 on {dala.gpu.compute.device_info()['name']}")
    for name, row in rows.items():
        row["of_copy"] = row["GB_per_s"] / copy
        print(
            f"  {name:24s} min {row['min_ms']:7.3f} ms  median {row['median_ms']:7.3f} ms  "
            f"{row['GB_per_s']:7.0f} GB/s  {row['of_copy']:5.1%} of the best copy"
        )
    write("gpu", rows, ("torch", "cupy-cuda12x", "cupy"))


if __name__ == "__main__":
    main()
