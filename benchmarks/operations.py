"""Reductions, products, convolution and transforms on the CPU, against torch, NumPy and JAX."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dala
from benchmarks.harness import Machine, affordable, judge, race, report, write
from dala.gpu.compute import buffer_zeros, from_dlpack, run_kernel

MANY = 16 * 1024 * 1024

Run = Callable[[], Any]
#: Prepares a run from input arrays and an output array; a run returns its result.
Maker = Callable[[list[Any], Any], Run]


@dataclasses.dataclass(frozen=True)
class Row:
    """One operation; ``targets`` holds the minimum ratio (peer's time / ours) to reach."""

    title: str
    kernel: str
    shapes: tuple[tuple[int, ...], ...]
    out: tuple[int, ...]
    peers: dict[str, Maker]
    targets: dict[str, float] = dataclasses.field(default_factory=dict)
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    rtol: float = 1e-4
    atol: float = 1e-5
    note: str = ""


def _torch(call: Callable[[Any, list[Any], Any], Any]) -> Maker:
    """A torch call: (torch, input tensors, output tensor) -> tensor."""

    def make(inputs: list[Any], out: Any) -> Run:
        import torch

        tensors, target = [torch.from_numpy(x) for x in inputs], torch.from_numpy(out)
        return lambda: call(torch, tensors, target)

    return make


def _numpy(call: Callable[[list[Any], Any], Any]) -> Maker:
    return lambda inputs, out: lambda: call(inputs, out)


def _jax(function: Callable[[Any, Any], Any]) -> Maker:
    """A compiled function of (jax, arrays); JAX cannot write into existing memory."""

    def make(inputs: list[Any], out: Any) -> Run:
        import jax

        arrays = [jax.numpy.asarray(x) for x in inputs]
        compiled = jax.jit(lambda *given: function(jax, given))
        return lambda: compiled(*arrays).block_until_ready()

    return make


def _jax_norm(jax: Any, given: Any) -> Any:
    a, gamma, beta = given
    mean = a.mean(-1, keepdims=True)
    spread = ((a - mean) ** 2).mean(-1, keepdims=True)
    return (a - mean) * jax.lax.rsqrt(spread + 1e-5) * gamma + beta


def _matmul(n: int) -> Row:
    return Row(
        f"matmul {n}",
        "matmul",
        ((n, n), (n, n)),
        (n, n),
        {
            "numpy": _numpy(lambda x, out: np.matmul(x[0], x[1], out=out)),
            "torch": _torch(lambda t, x, out: t.mm(*x, out=out)),
            "jax": _jax(lambda jax, x: x[0] @ x[1]),
        },
        {"numpy": 0.95},
        atol=1e-3,
    )


ROWS = (
    Row(
        "reduce_sum 16M",
        "reduce_sum",
        ((MANY,),),
        (1,),
        {
            "torch": _torch(lambda t, x, out: t.sum(x[0], 0, keepdim=True, out=out)),
            "numpy": _numpy(lambda x, out: np.sum(x[0], keepdims=True, out=out)),
            "jax": _jax(lambda jax, x: x[0].sum(keepdims=True)),
        },
        {"torch": 1 / 1.2},
        atol=8.0,
        note="numbers around 0, so that the sum cancels: within 8 of some 2,000",
    ),
    Row(
        "reduce_max 16M",
        "reduce_max",
        ((MANY,),),
        (1,),
        {
            "torch": _torch(lambda t, x, out: t.amax(x[0], 0, keepdim=True, out=out)),
            "torch, max": _torch(lambda t, x, out: x[0].max()),
            "numpy": _numpy(lambda x, out: np.max(x[0], keepdims=True, out=out)),
            "jax": _jax(lambda jax, x: x[0].max(keepdims=True)),
        },
        {"torch": 1 / 1.2},
        rtol=0.0,
        atol=0.0,
    ),
    Row(
        "softmax 4096x1000",
        "softmax",
        ((4096, 1000),),
        (4096, 1000),
        {
            "torch": _torch(lambda t, x, out: t.softmax(x[0], 1, out=out)),
            "jax": _jax(lambda jax, x: jax.nn.softmax(x[0], axis=1)),
        },
        {"torch": 1 / 1.2},
        atol=1e-7,
    ),
    Row(
        "layer_norm 4096x1000",
        "layer_norm",
        ((4096, 1000), (1000,), (1000,)),
        (4096, 1000),
        {
            "torch": _torch(
                lambda t, x, out: t.nn.functional.layer_norm(x[0], (1000,), x[1], x[2], 1e-5)
            ),
            "jax": _jax(_jax_norm),
        },
        {"torch": 1 / 1.2},
    ),
    Row(
        "cumsum 16M",
        "cumsum",
        ((MANY,),),
        (MANY,),
        {
            "torch": _torch(lambda t, x, out: t.cumsum(x[0], 0, out=out)),
            "numpy": _numpy(lambda x, out: np.cumsum(x[0], out=out)),
            "jax": _jax(lambda jax, x: x[0].cumsum()),
        },
        atol=2.0,
        note="sums of millions of f32, added in different orders: within 2 of some 4,000",
    ),
    _matmul(1024),
    _matmul(2048),
    Row(
        "conv2d 64x112x112, 64 of 3x3",
        "conv2d",
        ((1, 64, 112, 112), (64, 64, 3, 3), (64,)),
        (1, 64, 112, 112),
        {
            "torch": _torch(lambda t, x, out: t.nn.functional.conv2d(x[0], x[1], x[2], padding=1)),
            "jax": _jax(
                lambda jax, x: jax.lax.conv(x[0], x[1], (1, 1), "SAME") + x[2][:, None, None]
            ),
        },
        params={"padding": 1},
        rtol=1e-3,
        atol=1e-3,
    ),
    Row(
        "fft 1M, real in",
        "fft",
        ((1 << 20,),),
        (1 << 20, 2),
        {
            "torch": _torch(lambda t, x, out: t.view_as_real(t.fft.fft(x[0]))),
            "numpy": _numpy(lambda x, out: np.fft.fft(x[0], out=out.view(np.complex64)[:, 0])),
            "jax": _jax(lambda jax, x: jax.numpy.fft.fft(x[0])),
        },
        rtol=1e-3,
        atol=0.05,
    ),
)


def _array(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Numbers around 0 in aligned memory, the same for every contestant."""
    made = np.asarray(buffer_zeros(shape))
    made[...] = rng.standard_normal(shape, np.float32)
    return made


def _ours(row: Row, inputs: list[Any], out: Any) -> Run:
    sources, target = [from_dlpack(x) for x in inputs], from_dlpack(out)

    def run() -> Any:
        run_kernel(row.kernel, sources, target, row.params)
        return out

    return run


def _pairs(result: Any, shape: tuple[int, ...]) -> Any:
    """A result as an array of the given shape; complex numbers as pairs."""
    array = np.asarray(result)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    return array.reshape(shape)


def _measure(row: Row, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    inputs = [_array(shape, rng) for shape in row.shapes]
    try:
        run = _ours(row, inputs, np.asarray(buffer_zeros(row.out)))
        mine = np.array(run())
    except (ModuleNotFoundError, NotImplementedError) as error:
        return {"missing": str(error)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    entrants, left_out = {"dala": run}, {}
    for name, make in row.peers.items():
        try:
            theirs = make(inputs, np.asarray(buffer_zeros(row.out)))
            result = _pairs(theirs(), row.out)
            np.testing.assert_allclose(mine, result, rtol=row.rtol, atol=row.atol)
        except AssertionError as error:
            left_out[name] = "its numbers differ from ours: " + " ".join(str(error).split())[:160]
        except Exception as error:
            left_out[name] = f"{type(error).__name__}: {str(error)[:120]}"
        else:
            entrants[name] = theirs
    rounds = affordable(entrants, rounds)
    with Machine() as machine:
        times = race(entrants, rounds, settle=True)
    judged = judge(times, row.targets, machine)
    return {"times": times, **judged, "left_out": left_out, "note": row.note}


def main(rounds: int = 40, only: tuple[str, ...] = ()) -> None:
    """Time every row, or only the named ones; then nothing is written."""
    dala.use("cpu")
    results = {}
    for row in ROWS:
        if not only or any(word in row.title for word in only):
            results[row.title] = _measure(row, rounds)
            report(row.title, results[row.title])
    if not only:
        write("operations", results, ("torch", "jax"))


if __name__ == "__main__":
    main(only=tuple(sys.argv[1:]))
