"""Elementwise kernels on 16M f32, on all cores of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dala
from benchmarks.harness import race, show, write
from dala.gpu.compute import (
    Buffer,
    buffer_zeros,
    from_array,
    from_dlpack,
    kernel,
    relu,
    run_kernel,
)

N = 16 * 1024 * 1024


def _numba(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    import numba

    @numba.njit(parallel=True)
    def add(a: Any, b: Any, z: Any) -> None:
        for i in numba.prange(a.size):
            z[i] = a[i] + b[i]

    @numba.njit(parallel=True)
    def relu(a: Any, z: Any) -> None:
        for i in numba.prange(a.size):
            v = a[i]
            z[i] = v if v > 0 else np.float32(0)

    @numba.njit(parallel=True)
    def fused(a: Any, b: Any, c: Any, z: Any) -> None:
        two, one, zero = np.float32(2), np.float32(1), np.float32(0)
        for i in numba.prange(a.size):
            v = a[i] * b[i] + c[i]
            z[i] = (v if v > zero else zero) * two - one

    a, b, c = data
    return {
        "add": lambda: add(a, b, out),
        "relu": lambda: relu(a, out),
        "fused": lambda: fused(a, b, c, out),
    }


def _torch(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    import torch

    a, b, c = (torch.from_numpy(x) for x in data)
    z = torch.from_numpy(out)
    return {
        "add": lambda: torch.add(a, b, out=z),
        "relu": lambda: torch.clamp_min(a, 0, out=z),
        "fused": lambda: z.copy_(torch.relu(a * b + c) * 2 - 1),
    }


def _torch_compile(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    import torch

    a, b, c = (torch.from_numpy(x) for x in data)
    z = torch.from_numpy(out)

    @torch.compile
    def fused(a: Any, b: Any, c: Any) -> Any:
        return torch.relu(a * b + c) * 2 - 1

    def run() -> None:
        result = fused(a, b, c)
        if not z.numel():
            z.copy_(result)

    fused_check = fused(a, b, c)
    np.testing.assert_allclose(fused_check.numpy()[:1000], _expected(data, "fused")[:1000], 1e-5)
    return {"fused": run}


def _jax(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    a, b, c = (jnp.asarray(x) for x in data)
    fused = jax.jit(lambda a, b, c: jnp.maximum(a * b + c, 0) * 2 - 1)
    add = jax.jit(lambda a, b: a + b)
    relu = jax.jit(lambda a: jnp.maximum(a, 0))
    return {
        "add": lambda: add(a, b).block_until_ready(),
        "relu": lambda: relu(a).block_until_ready(),
        "fused": lambda: fused(a, b, c).block_until_ready(),
    }


def _numpy(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    a, b, c = data
    return {
        "add": lambda: np.add(a, b, out),
        "relu": lambda: np.maximum(a, 0, out),
        "fused": lambda: np.copyto(out, np.maximum(a * b + c, 0) * np.float32(2) - np.float32(1)),
    }


def _dala(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    # The inputs are shared: every contestant reads the same arrays.
    a, b, c = (from_dlpack(x) for x in data)
    z = buffer_zeros(N)
    fused = kernel("def bench_fused(a, b, c): return max(a * b + c, 0.0) * 2 - 1")
    calls = {
        "add": lambda: run_kernel("elementwise_add", [a, b], z),
        "relu": lambda: run_kernel("relu", [a], z),
        "fused": lambda: run_kernel(fused, [a, b, c], z),
    }
    for what, run in calls.items():
        run()
        np.testing.assert_allclose(np.asarray(z), _expected(data, what), rtol=1e-6, atol=1e-7)
    return calls


def _dala_numpy(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    # The same into NumPy's memory, which the other peers write to as well.
    a, b, c = (from_dlpack(x) for x in data)
    z = from_dlpack(out)
    return {
        "add": lambda: run_kernel("elementwise_add", [a, b], z),
        "relu": lambda: run_kernel("relu", [a], z),
        "fused": lambda: run_kernel("bench_fused", [a, b, c], z),
    }


def _dala_expressions(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    # Operators on buffers. Each result is a new buffer; storage() computes it.
    a, b, c = (from_array(x) for x in data)

    def fused() -> Buffer:
        return relu(a * b + c) * 2 - 1

    assert "5 operations in 1 pass" in fused().explain()
    np.testing.assert_allclose(np.asarray(fused()), _expected(data, "fused"), rtol=1e-6, atol=1e-7)
    return {
        "add": lambda: (a + b).storage("benchmark"),
        "relu": lambda: relu(a).storage("benchmark"),
        "fused": lambda: fused().storage("benchmark"),
    }


def _numexpr(data: list[Any], out: Any) -> dict[str, Callable[[], Any]]:
    import numexpr

    a, b, c = data
    names = {"a": a, "b": b, "c": c, "zero": np.float32(0), "one": np.float32(1)}
    return {
        "add": lambda: numexpr.evaluate("a + b", names, out=out),
        "relu": lambda: numexpr.evaluate("where(a > zero, a, zero)", names, out=out),
        "fused": lambda: numexpr.evaluate(
            "where(a * b + c > zero, a * b + c, zero) * 2 - one", names, out=out
        ),
    }


PEERS = {
    "dala": _dala,
    "dala, NumPy's memory": _dala_numpy,
    "dala, operators on buffers": _dala_expressions,
    "numexpr": _numexpr,
    "numba": _numba,
    "numpy": _numpy,
    "torch": _torch,
    "torch.compile": _torch_compile,
    "jax": _jax,
}
ALLOCATES = {
    "torch.compile",
    "jax",
    "dala, operators on buffers",
}  # these cannot write into existing memory


def _expected(data: list[Any], what: str) -> Any:
    a, b, c = data
    if what == "add":
        return a + b
    if what == "relu":
        return np.maximum(a, 0)
    return np.maximum(a * b + c, 0) * np.float32(2) - np.float32(1)


def main(rounds: int = 40) -> None:
    """Time add, relu and relu(a*b+c)*2-1."""
    dala.use("cpu")
    rng = np.random.default_rng(0)
    data = [rng.random(N, np.float32) - np.float32(0.5) for _ in range(3)]
    out = np.zeros(N, np.float32)
    ready: dict[str, dict[str, Callable[[], Any]]] = {}
    for name, make in PEERS.items():
        try:
            ready[name] = make(data, out)
        except Exception as error:
            print(f"{name}: left out ({type(error).__name__}: {str(error)[:100]})")
    results = {}
    for what in ("add", "relu", "fused"):
        entrants = {n: calls[what] for n, calls in ready.items() if what in calls}
        for name, run in entrants.items():
            if name in ALLOCATES or name == "dala":
                continue
            out[:] = 0
            run()
            np.testing.assert_allclose(out, _expected(data, what), rtol=1e-6, atol=1e-7)
        results[what] = race(entrants, rounds)
        show(f"{what}, {N:,} f32", results[what])
    write("elementwise", results, ("numba", "numexpr", "torch", "jax"))
