"""``dala.limits`` around kernels: iterations are counted exactly, and deadlines end runaways."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import (
    Image,
    Kernel,
    Pixel,
    Stream,
    buffer,
    buffer_zeros,
    kernel,
    rgba,
    run_kernel_async,
)
from dala.gpu.compute.pipeline.pipeline import Pipeline

#: Enough to never end on any machine.
FOREVER = 2_000_000_000


@kernel
def nest(x, *, n: int = 3, m: int = 3):
    total = x
    for _ in range(n):
        for _ in range(m):
            total = total + 1.0
    return total


@kernel
def ragged(x):
    total = 0.0
    for _ in range(int(x)):
        total += 1.0
    return total


@kernel
def leaving(x, *, n: int = 10):
    total = 0.0
    for i in range(n, 0, -2):
        if total > x:
            break
        if i % 4 == 0:
            continue
        total += 1.0
    return total


@kernel
def constant(x):
    total = x
    for _ in range(5):
        total = total * 2.0
    return total


@kernel
def pixels(px: Pixel, *, n: int = 2):
    value = px.r
    for _ in range(n):
        value = value * 0.5
    return rgba(value, value, value, px.a)


@kernel
def around(img: Image, *, reach: int = 1):
    total = img[0, 0] * 0.0
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            total = total + img[dx, dy]
    return total / float((2 * reach + 1) * (2 * reach + 1))


def exceeds(limit, call):
    message = f"iterations must be at most {limit} at each position, got more"
    with dala.limits(iterations=limit), pytest.raises(dala.LimitExceeded, match=message) as info:
        call()
    assert info.value.argument == "iterations"
    assert info.value.expected == f"at most {limit}"


CASES = [
    (nest, [1.0, 2.0, 3.0, 4.0, 5.0], {"n": 4, "m": 6}, 4 + 24),
    (nest, [1.0], {"n": 4, "m": 0}, 4),
    (ragged, [0.0, 3.0, 40.0, 7.0, 1.0], {}, 40),
    (leaving, [0.0, 100.0, 1.0], {"n": 20}, 10),
    (constant, [1.0, 2.0], {}, 5),
]


@pytest.mark.parametrize(("run", "values", "params", "most"), CASES)
def test_iterations_at_one_position_are_counted_exactly(dala_device, run, values, params, most):
    a = buffer(values, device=dala_device)
    wanted = run(a, **params).read_list()
    with dala.limits(iterations=most):
        assert run(a, **params).read_list() == wanted
    exceeds(most - 1, lambda: run(a, **params).read_list())
    assert run(a, **params).read_list() == wanted  # the engine works on


def test_pictures_are_counted_too(dala_device):
    picture = np.arange(9 * 7 * 4, dtype=np.uint8).reshape(9, 7, 4)
    a = buffer(picture, dtype="u8", device=dala_device)
    for run, params, most in ((pixels, {"n": 6}, 6), (around, {"reach": 2}, 5 + 25)):
        wanted = run(a, **params).numpy()
        with dala.limits(iterations=most):
            np.testing.assert_array_equal(run(a, **params).numpy(), wanted)
        exceeds(most - 1, lambda run=run, params=params: run(a, **params).numpy())


def test_stages_of_a_pipeline_are_counted_one_by_one(dala_device):
    picture = np.arange(9 * 7 * 4, dtype=np.uint8).reshape(9, 7, 4)
    a = buffer(picture, dtype="u8", device=dala_device)
    between = buffer_zeros(picture.shape, "u8", device=dala_device, transient=True)
    out = buffer_zeros(picture.shape, "u8", device=dala_device)
    line = Pipeline()
    stage = {"op": "run_kernel", "params": {}}
    line.add({**stage, "kernel": around, "inputs": [a], "output": between, "params": {"reach": 1}})
    line.add(
        {**stage, "kernel": around, "inputs": [between], "output": out, "params": {"reach": 2}}
    )
    line.run()
    wanted = out.numpy().copy()
    with dala.limits(iterations=30):
        line.run()
        np.testing.assert_array_equal(out.numpy(), wanted)

    def run():
        line.run()
        out.numpy()

    exceeds(29, run)
    line.run()
    np.testing.assert_array_equal(out.numpy(), wanted)


def test_commands_have_the_limits_they_were_submitted_with(dala_device):
    a, out = buffer([9.0], device=dala_device), buffer_zeros((1,), device=dala_device)
    spec = {"op": "run_kernel", "kernel": ragged, "inputs": [a], "output": out}
    with Stream(workers=1) as stream:
        with dala.limits(iterations=8):
            refused = stream.submit(spec)
        fine = stream.submit(spec)
        with pytest.raises(dala.LimitExceeded, match=r"command \d+, run_kernel\('ragged'\)"):
            refused.result(60)
        fine.result(60)
    assert out.read_list() == [9.0]


def test_coroutines_have_the_limits_of_their_task(dala_device):
    import asyncio

    a, out = buffer([9.0], device=dala_device), buffer_zeros((1,), device=dala_device)

    async def main():
        with dala.limits(iterations=8), pytest.raises(dala.LimitExceeded):
            await run_kernel_async(ragged, [a], out)
        await run_kernel_async(ragged, [a], out)

    asyncio.run(main())
    assert out.read_list() == [9.0]


def test_text_from_strangers_has_limits_of_its_own(dala_device):
    text = "def twice(x, *, n: int = 4):\n    for i in range(n):\n        x = x + x\n    return x\n"
    a = buffer([1.0], device=dala_device)
    try:
        bounded = Kernel.register("limits_twice", text, limits=dala.limits(iterations=5, time=600))
        assert bounded.limits == dala.Limits(600.0, 5)
        assert bounded(a, n=5).read_list() == [32.0]
        with pytest.raises(dala.LimitExceeded, match="limits_twice: iterations must be at most 5"):
            bounded(a, n=6).read_list()
        with dala.limits(iterations=100), pytest.raises(dala.LimitExceeded, match="at most 5"):
            bounded(a, n=6).read_list()  # the tighter one holds
        exceeds(3, lambda: bounded(a, n=4).read_list())
    finally:
        Kernel.unregister("limits_twice")


def test_a_decorated_kernel_has_limits_of_its_own(dala_device):
    @kernel(limits=dala.limits(iterations=2))
    def bounded(x, *, n: int = 2):
        for _ in range(n):
            x = x + 1.0
        return x

    a = buffer([1.0], device=dala_device)
    assert bounded(a).read_list() == [3.0]
    with pytest.raises(dala.LimitExceeded, match="bounded: iterations must be at most 2"):
        bounded(a, n=3).read_list()


@pytest.mark.parametrize("wrong", [5, "1", {"time": 1}])
def test_limits_of_a_kernel_are_limits(wrong):
    with pytest.raises(dala.ParameterError, match=r"limits must be dala.limits\(...\) or None"):
        Kernel.register("limits_wrong", "def limits_wrong(x): return x", limits=wrong)


@pytest.mark.parametrize("shape", [(1,), (3000,), (5, 600)])
def test_a_deadline_ends_a_runaway(dala_host, shape):
    a = buffer(np.ones(shape, np.float32), device=dala_host)
    with dala.limits(time=0.05):
        with pytest.raises(dala.CommandTimeout, match=r"nest: ended after the 0.05 s of dala.lim"):
            nest(a, n=FOREVER, m=FOREVER)
        with pytest.raises(dala.CommandTimeout):  # the deadline has passed
            nest(a)
    assert nest(a, n=2, m=2).numpy().tolist() == np.full(shape, 5.0).tolist()


def test_a_deadline_ends_pictures_that_run_away(dala_host):
    a = buffer(np.zeros((40, 30, 4), np.uint8), device=dala_host)
    for run, params in ((pixels, {"n": FOREVER}), (around, {"reach": 20_000})):
        with dala.limits(time=0.05), pytest.raises(dala.CommandTimeout):
            run(a, **params)
    assert not pixels(a).numpy().any()


@pytest.fixture(params=["cpu", "reference"])
def dala_host(request):
    """Engines that can be ended in the middle of a kernel."""
    return request.param
