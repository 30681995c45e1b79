"""On a GPU, data resident: elementwise kernels, reductions, matmul, and filters of a 4K frame; then
streamed 4K frames (``frames.py``).

    python3 -m benchmarks.gpu --out PATH      needs only numpy and wgpu
    python3 -m benchmarks.gpu --small         a dry run on any WebGPU adapter, tiny sizes
    python3 -m benchmarks.gpu --frames        only the streams

Times are per run, from many runs between two waits. ``min_ms`` is for runs submitted one by one, as
in a program with one pipeline per frame; ``together_ms`` for many in one submit, which excludes the
cost of a submit. ``device_ms`` comes from device timestamps.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

import dala
from benchmarks.gpu import frames
from benchmarks.harness import write
from dala.gpu.compute import (
    Pipeline,
    buffer_zeros,
    device_info,
    from_array,
    gpu_available,
    kernel,
    run_kernel,
)

CHAIN: list[tuple[str, dict[str, Any]]] = [
    ("blur", {"radius": 3, "sigma": 1.5}),
    ("sharpen", {"amount": 0.3}),
    ("brightness", {"value": 0.1}),
]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Problem sizes."""

    numbers: int = 1 << 28
    frame: tuple[int, int] = (2160, 3840)
    matrix: int = 4096


@dataclasses.dataclass(frozen=True)
class Entrant:
    """A contestant; ``moved`` bytes or ``flops`` per run give its rate."""

    run: Callable[[], Any]
    wait: Callable[[], Any]
    together: Callable[[], AbstractContextManager[Any]] = nullcontext
    moved: int = 0
    flops: int = 0
    #: Returns device timestamps, if the device has them.
    profile: Callable[[], AbstractContextManager[Any]] = nullcontext


Entrants = Iterator[tuple[str, Callable[[], Entrant]]]


def _seconds(entrant: Entrant, count: int) -> float:
    entrant.wait()
    start = time.perf_counter()
    with entrant.together():
        for _ in range(count):
            entrant.run()
    entrant.wait()
    return time.perf_counter() - start


def _per_run(entrant: Entrant, many: int) -> float:
    """Seconds per run: the difference between many and few runs, so that waiting cancels out."""
    few = 2
    less, more = _seconds(entrant, few), _seconds(entrant, few + many)
    return max(more - less, 1e-9) / many


def race(entrants: dict[str, Entrant], rounds: int) -> dict[str, dict[str, float]]:
    """Time the contestants in turn, each for a tenth of a second per round."""
    alone = {n: dataclasses.replace(e, together=nullcontext) for n, e in entrants.items()}
    counts = {}
    for name, entrant in alone.items():
        _seconds(entrant, 3)
        counts[name] = max(20, min(1000, int(0.1 / _per_run(entrant, 10))))
    times: dict[str, list[float]] = {name: [] for name in entrants}
    joined: dict[str, list[float]] = {name: [] for name in entrants}
    for _ in range(rounds):
        for name, entrant in entrants.items():
            times[name].append(_per_run(alone[name], counts[name]) * 1e3)
            if entrant.together is not nullcontext:
                joined[name].append(_per_run(entrant, counts[name]) * 1e3)
    rows = {}
    for name, t in times.items():
        rows[name] = {"min_ms": min(t), "median_ms": statistics.median(t)}
        if joined[name]:
            rows[name]["together_ms"] = min(joined[name])
        seconds = _stamped(entrants[name])
        if seconds is not None:
            rows[name]["device_ms"] = seconds * 1e3
    return rows


def _stamped(entrant: Entrant, rounds: int = 100) -> float | None:
    """Minimum over many runs, from device timestamps."""
    with entrant.profile() as times:
        if times is None:
            return None
        for _ in range(rounds):
            entrant.run()
            times.mark()
    return float(min(times.passes))


# ours ---------------------------------------------------------------------------------------------
class Ours:
    """Our contestants; results are checked against NumPy or the reference engine first."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.rng = np.random.default_rng(3)
        self.engine = buffer_zeros(1).engine
        self.large = [buffer_zeros(sizes.numbers) for _ in range(3)]  # shared by the rows

    def entrants(self) -> Entrants:
        n, side = self.sizes.numbers, self.sizes.matrix
        yield "copy", self._copy
        for name, source, inputs in (
            ("max(x*2+1, 0)", "def gpu_gain(x): return max(x * 2 + 1, 0.0)", 1),
            ("add", "def gpu_add(a, b): return a + b", 2),
            ("max(a*b+a, 0)", "def gpu_fused(a, b): return max(a * b + a, 0.0)", 2),
        ):
            yield name, partial(self._elementwise, source, inputs)
        yield f"reduce_sum 2^{n.bit_length() - 1}", self._sum
        yield f"softmax {side}x{side}", self._softmax
        yield f"matmul {side}", self._matmul
        yield "copy of a frame", self._copy_frame
        yield "grayscale 4K", lambda: self._filters([("grayscale", {})])
        yield "blur r3 4K", lambda: self._filters(CHAIN[:1])
        yield "blur r20 4K", lambda: self._filters([("blur", {"radius": 20, "sigma": 10.0})])
        yield "blur, sharpen, brightness 4K", lambda: self._filters(CHAIN)

    def _entrant(self, run: Callable[[], Any], moved: int = 0, flops: int = 0) -> Entrant:
        engine = self.engine
        return Entrant(run, engine.synchronize, engine.batched, moved, flops, engine.profile)

    def _copy(self) -> Entrant:
        return self._copying(*self.large[:2])

    def _copy_frame(self) -> Entrant:
        shape = (*self.sizes.frame, 4)
        return self._copying(buffer_zeros(shape, "u8"), buffer_zeros(shape, "u8"))

    def _copying(self, source: Any, target: Any) -> Entrant:
        a, b = source.storage("benchmark"), target.storage("benchmark")
        keep = (source, target)

        def run() -> Any:
            self.engine.copy(a, b)
            return keep

        return self._entrant(run, 2 * source.nbytes)

    def _elementwise(self, text: str, inputs: int) -> Entrant:
        program, sources, out = kernel(text), self.large[:inputs], self.large[2]
        return self._entrant(lambda: run_kernel(program, sources, out), (inputs + 1) * out.nbytes)

    def _sum(self) -> Entrant:
        values = self.rng.random(self.sizes.numbers, np.float32)
        a, out = from_array(values), buffer_zeros((1,))
        run_kernel("reduce_sum", [a], out)
        np.testing.assert_allclose(out.numpy()[0], values.sum(dtype=np.float64), rtol=1e-5)
        return self._entrant(lambda: run_kernel("reduce_sum", [a], out), a.nbytes)

    def _softmax(self) -> Entrant:
        side = self.sizes.matrix
        values = self.rng.normal(0, 3, (side, side)).astype(np.float32)
        a, out = from_array(values), buffer_zeros((side, side))
        run_kernel("softmax", [a], out)
        top = np.exp(values[:16].astype(np.float64) - values[:16].max(1, keepdims=True))
        np.testing.assert_allclose(out.numpy()[:16], top / top.sum(1, keepdims=True), rtol=1e-4)
        return self._entrant(lambda: run_kernel("softmax", [a], out), 2 * a.nbytes)

    def _matmul(self) -> Entrant:
        side = self.sizes.matrix
        x, y = (self.rng.normal(0, 1, (side, side)).astype(np.float32) for _ in range(2))
        a, b, out = from_array(x), from_array(y), buffer_zeros((side, side))
        run_kernel("matmul", [a, b], out)
        expected = x[-8:].astype(np.float64) @ y
        np.testing.assert_allclose(out.numpy()[-8:], expected, rtol=1e-3, atol=1e-2)
        return self._entrant(lambda: run_kernel("matmul", [a, b], out), flops=2 * side**3)

    def _filters(self, stages: list[tuple[str, dict[str, Any]]]) -> Entrant:
        small = self.rng.integers(0, 256, (67, 101, 4), np.uint8)
        pipeline, result = filter_pipeline(small, stages, self.engine.id)
        pipeline.run()
        meant, expected = filter_pipeline(small, stages, "reference")
        meant.run()
        off = np.abs(result.numpy().astype(int) - expected.numpy()).max()
        # Each stage may round either way; sharpening can amplify one step to three more.
        if off > (1 if len(stages) == 1 else 4):
            raise AssertionError(f"{off} steps from the definition")
        frame = self.rng.integers(0, 256, (*self.sizes.frame, 4), np.uint8)
        pipeline, result = filter_pipeline(frame, stages, self.engine.id)
        return self._entrant(pipeline.run, 2 * frame.nbytes)


def filter_pipeline(
    frame: Any, stages: list[tuple[str, dict[str, Any]]], device: str
) -> tuple[Pipeline, Any]:
    """A pipeline of filters with transient intermediates, and its output."""
    pipeline, source = Pipeline(), from_array(frame, device=device)
    for i, (name, params) in enumerate(stages):
        between = i < len(stages) - 1
        target = buffer_zeros(frame.shape, "u8", device=device, transient=between)
        pipeline.add(
            {
                "op": "run_kernel",
                "kernel": name,
                "inputs": [source],
                "output": target,
                "params": params,
            }
        )
        source = target
    return pipeline, source


# others -------------------------------------------------------------------------------------------
def _torch(sizes: Sizes) -> Entrants:
    import torch

    n, side = sizes.numbers, sizes.matrix
    a, b, out = (torch.zeros(n, device="cuda") for _ in range(3))
    x, y, z = (torch.rand(side, side, device="cuda") for _ in range(3))
    wait = torch.cuda.synchronize
    torch.backends.cuda.matmul.allow_tf32 = False
    yield "copy", lambda: Entrant(lambda: out.copy_(a), wait, moved=8 * n)
    yield "add", lambda: Entrant(lambda: torch.add(a, b, out=out), wait, moved=12 * n)
    yield f"reduce_sum 2^{n.bit_length() - 1}", lambda: Entrant(a.sum, wait, moved=4 * n)
    yield (
        f"softmax {side}x{side}",
        lambda: Entrant(lambda: torch.softmax(x, 1), wait, moved=8 * side * side),
    )
    yield (
        f"matmul {side}",
        lambda: Entrant(lambda: torch.mm(x, y, out=z), wait, flops=2 * side**3),
    )


def _cupy(sizes: Sizes) -> Entrants:
    import cupy

    n = sizes.numbers
    a, b, out = (cupy.zeros(n, cupy.float32) for _ in range(3))
    fused = cupy.ElementwiseKernel(
        "float32 a, float32 b", "float32 z", "z = max(a * b + a, 0.0f)", "bench_fused"
    )
    wait = cupy.cuda.Device().synchronize
    yield "add", lambda: Entrant(lambda: cupy.add(a, b, out), wait, moved=12 * n)
    yield "max(a*b+a, 0)", lambda: Entrant(lambda: fused(a, b, out), wait, moved=12 * n)


def _gather(sizes: Sizes) -> tuple[dict[str, Entrant], dict[str, dict[str, str]]]:
    """All available contestants, and why others are missing."""
    ready: dict[str, Entrant] = {}
    absent: dict[str, dict[str, str]] = {}
    makers: dict[str, Callable[[], Entrants]] = {
        "dala": Ours(sizes).entrants,
        "torch": partial(_torch, sizes),
        "cupy": partial(_cupy, sizes),
    }
    for who, begin in makers.items():
        try:
            for name, make in begin():
                try:
                    ready[f"{who} {name}"] = make()
                except (ModuleNotFoundError, NotImplementedError) as error:
                    absent[f"{who} {name}"] = {"missing": str(error)}
                except Exception as error:
                    absent[f"{who} {name}"] = {"failed": f"{type(error).__name__}: {error}"}
        except Exception as error:
            print(f"{who}: left out ({type(error).__name__}: {str(error)[:100]})")
    return ready, absent


def main(
    rounds: int = 8, *, small: bool = False, out: str | None = None, frames_only: bool = False
) -> None:
    """Run on the GPU; report and stop if there is none."""
    if not gpu_available() and not small:
        print("no GPU here: nothing measured (a dry run: python -m benchmarks.gpu --small)")
        return
    dala.use("webgpu" if small else "gpu")
    sizes = Sizes(1 << 16, (270, 480), 96) if small else Sizes()
    results = {} if frames_only else _resident(sizes, 1 if small else rounds)
    print(f"frames of {sizes.frame[1]}x{sizes.frame[0]} RGBA on {device_info()['name']}")
    streamed = frames.measure(sizes.frame, small=small)
    results["frames"] = frames.show(streamed, judged=not small)
    if out is not None or not (small or frames_only):
        write("gpu", results, ("torch", "cupy-cuda12x", "cupy"), out)


def _resident(sizes: Sizes, rounds: int) -> dict[str, Any]:
    ready, absent = _gather(sizes)
    rows: dict[str, Any] = race(ready, rounds)
    print(f"{sizes.numbers:,} f32 where no size is named, on {device_info()['name']}")
    for name, row in rows.items():
        entrant, best = ready[name], min(row["min_ms"], row.get("together_ms", row["min_ms"]))
        if entrant.moved:
            row["GB_per_s"] = entrant.moved / best / 1e6
        if entrant.flops:
            row["TFLOP_per_s"] = entrant.flops / best / 1e9
    copies = [row["GB_per_s"] for name, row in rows.items() if name.endswith(" copy")]
    for name, row in rows.items():
        joined = f"together {row['together_ms']:8.4f} ms" if "together_ms" in row else " " * 20
        rate = f"{row['TFLOP_per_s']:7.2f} TFLOP/s" if "TFLOP_per_s" in row else ""
        if "GB_per_s" in row:
            row["of_copy"] = row["GB_per_s"] / max(copies)
            rate = f"{row['GB_per_s']:7.0f} GB/s  {row['of_copy']:5.1%} of the best copy"
        stamped = f"device {row['device_ms']:8.4f} ms" if "device_ms" in row else " " * 18
        print(f"  {name:34s} min {row['min_ms']:8.4f} ms  {joined}  {stamped}  {rate}")
    for name, why in absent.items():
        print(f"  {name:34s} {next(iter(why))}: {next(iter(why.values()))}")
    return {**rows, **absent}


def _command(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--out", help="where the JSON goes (default: benchmarks/results/gpu.json)")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--small", action="store_true", help="tiny sizes, any WebGPU adapter")
    parser.add_argument("--frames", action="store_true", help="only the streams of frames")
    options = parser.parse_args(arguments)
    main(options.rounds, small=options.small, out=options.out, frames_only=options.frames)


if __name__ == "__main__":
    _command(sys.argv[1:])
