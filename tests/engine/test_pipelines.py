"""Fused and unfused pipelines compute the same pictures, on every engine."""

from __future__ import annotations

import asyncio
import gc
import itertools
import tracemalloc

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu.compute import (
    Kernel,
    Pipeline,
    buffer_zeros,
    free_pipeline,
    from_array,
    from_dlpack,
    pipeline,
    pipeline_add,
    pipeline_run,
    pipeline_run_async,
    run_kernel,
    submit,
)

KERNELS = {
    "brightness": {"value": 0.15},
    "contrast": {"value": 0.4},
    "grayscale": {},
    "invert": {},
    "sharpen": {"amount": 0.7},
    "vignette": {"amount": 0.8},
}


def photo(channels=4, dtype="u8"):
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, (19, 23, channels), np.uint8)
    return data if dtype == "u8" else (data / 255).astype(np.float32)


def stage(kernel, inputs, output, **params):
    return {"op": "run_kernel", "kernel": kernel, "inputs": inputs, "output": output,
            "params": params}  # fmt: skip


def zeros(like):
    return buffer_zeros(like.shape, "u8")


def filtered(data, chain, *, transient):
    """Return the picture after a chain of kernels, and the number of passes."""
    source = from_array(data)
    name = source.dtype
    p = Pipeline()
    for number, kernel in enumerate(chain):
        last = number == len(chain) - 1
        target = buffer_zeros(data.shape, name, transient=transient and not last)
        spec = {"op": "run_kernel", "kernel": kernel, "inputs": [source], "output": target}
        p.add({**spec, "params": KERNELS[kernel]})
        source = target
    p.run()
    return np.array(source), p.passes


def one_by_one(data, chain):
    """Return the picture after a chain of kernels that run one by one."""
    source = from_array(data)
    for kernel in chain:
        target = buffer_zeros(data.shape, source.dtype)
        run_kernel(kernel, [source], target, KERNELS[kernel])
        source = target
    return np.array(source)


@pytest.mark.parametrize("chain", list(itertools.permutations(KERNELS, 2)), ids="-".join)
def test_fusing_two_stages_does_not_change_the_result(engine_id, chain):
    data = photo()
    fused, passes = filtered(data, chain, transient=True)
    kept, steps = filtered(data, chain, transient=False)
    # On the cpu intermediate results are stored in the same pass.
    assert (passes, steps) == (1, 1 if engine_id == "cpu" else 2)
    apart = one_by_one(data, chain)
    # GPUs may contract a multiplication and an addition differently.
    steps = len(chain) if "webgpu" in engine_id else 0
    assert np.abs(kept.astype(int) - apart).max() <= steps
    assert np.abs(fused.astype(int) - apart).max() <= steps


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_long_chain(engine_id, channels, dtype):
    chain = ("brightness", "vignette", "sharpen", "contrast", "invert", "grayscale")
    data = photo(channels, dtype)
    fused, passes = filtered(data, chain, transient=True)
    apart = one_by_one(data, chain)
    assert passes == 1
    if dtype == "u8":
        assert np.abs(fused.astype(int) - apart).max() <= len(chain) * (engine_id != "reference")
    else:
        np.testing.assert_allclose(fused, apart, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels", [3, 4])
def test_different_forms_run_in_one_pass(engine_id, channels):
    """Tables, sums and mixed channels in turn: on the cpu each is a stage of a sliding window."""
    chain = ("brightness", "grayscale", "vignette", "contrast", "invert", "sharpen", "contrast")
    data = photo(channels)
    made, passes = filtered(data, chain, transient=True)
    apart = one_by_one(data, chain)
    assert passes == 1
    steps = len(chain) if "webgpu" in engine_id else 0
    assert np.abs(made.astype(int) - apart).max() <= steps


def test_buffers_of_the_caller_are_written(engine_id):
    data = photo()
    source, between, out = from_array(data), *(buffer_zeros(data.shape, "u8") for _ in range(2))
    p = pipeline()
    for kernel, a, b in (("invert", source, between), ("grayscale", between, out)):
        spec = {"op": "run_kernel", "kernel": kernel, "inputs": [a], "output": b}
        assert pipeline_add(p, spec) is p
    pipeline_run(p)
    inverted = data.copy()
    inverted[..., :3] = 255 - inverted[..., :3]
    np.testing.assert_array_equal(np.asarray(between), inverted)
    free_pipeline(p)
    free_pipeline(p)


def test_new_parameters_compile_nothing(engine_id):
    a = from_array(np.arange(6, dtype=np.float32))
    t, out = buffer_zeros(6, transient=True), buffer_zeros(6)
    p = Pipeline()
    scale = {"op": "run_kernel", "kernel": "scalar_mul", "params": {"scalar": 2.0}}
    p.add({**scale, "inputs": [a], "output": t}).add({**scale, "inputs": [t], "output": out})
    p.run()
    assert out.read_list() == [0, 4, 8, 12, 16, 20]
    code = a.engine.stats().get("pipelines", 0) + a.engine.stats().get("compiled", 0)
    p.set_params(1, scalar=0.5)
    p.run()
    assert out.read_list() == [0, 1, 2, 3, 4, 5]
    assert p.stages[1]["params"] == {"scalar": 0.5}
    assert a.engine.stats().get("pipelines", 0) + a.engine.stats().get("compiled", 0) == code


def test_diamond_of_custom_kernels(engine_id):
    Kernel.register("diamond_root", "def diamond_root(x): return x * 2 + 1")
    Kernel.register("diamond_left", "def diamond_left(x): return x * x")
    Kernel.register("diamond_join", "def diamond_join(a, b, c): return a + b * 10 - c")
    x = from_array(np.arange(-3, 4, dtype=np.float32))
    root, left = (buffer_zeros(7, transient=True) for _ in range(2))
    out = buffer_zeros(7)
    p = Pipeline()
    p.add({"op": "run_kernel", "kernel": "diamond_root", "inputs": [x], "output": root})
    p.add({"op": "run_kernel", "kernel": "diamond_left", "inputs": [root], "output": left})
    p.add({"op": "run_kernel", "kernel": "diamond_join", "inputs": [root, left, x], "output": out})
    p.run()
    values = np.arange(-3, 4, dtype=np.float32)
    expected = (values * 2 + 1) + (values * 2 + 1) ** 2 * 10 - values
    assert out.read_list() == expected.tolist()
    assert p.passes == 1


def test_loops_and_branches_are_fused(engine_id):
    Kernel.register(
        "melt_steps",
        "def melt_steps(x, *, n: int = 3):\n"
        "    s = 0.0\n"
        "    for i in range(n):\n"
        "        if x > i:\n"
        "            s += x\n"
        "            continue\n"
        "        if x < -1:\n"
        "            return -1.0\n"
        "        s -= 0.5\n"
        "    return s",
    )
    x = from_array(np.linspace(-3, 5, 33, dtype=np.float32))
    t, out = buffer_zeros(33, transient=True), buffer_zeros(33)
    apart, expected = buffer_zeros(33), buffer_zeros(33)
    spec = {"op": "run_kernel", "kernel": "melt_steps", "params": {"n": 4}}
    p = Pipeline().add({**spec, "inputs": [x], "output": t})
    p.add({**spec, "inputs": [t], "output": out, "params": {"n": 2}})
    p.run()
    run_kernel("melt_steps", [x], apart, {"n": 4})
    run_kernel("melt_steps", [apart], expected, {"n": 2})
    assert p.passes == 1
    np.testing.assert_array_equal(np.asarray(out), np.asarray(expected))


def test_copies_and_barriers_keep_the_order(engine_id):
    a, b, c = (from_array(np.full(5, n, np.float32)) for n in (1, 2, 3))
    p = Pipeline()
    p.add({"op": "copy_buffer", "src": a, "dst": b})
    p.add({"op": "barrier"})
    p.add({"op": "run_kernel", "kernel": "elementwise_add", "inputs": [b, c], "output": c})
    p.add({"op": "copy_buffer", "src": c, "dst": a})
    p.run()
    p.run()
    assert (a.read_list(), c.read_list()) == ([8.0] * 5, [8.0] * 5)


@pytest.mark.parametrize("first", ["sharpen", "brightness"])
def test_two_buffers_over_one_memory_are_not_fused(engine_id, first):
    data = photo()
    expected, _ = filtered(data, (first, "invert"), transient=False)
    source, target = from_dlpack(data), from_dlpack(data)
    t = buffer_zeros(data.shape, "u8", transient=True)
    p = Pipeline()
    spec = {"op": "run_kernel", "kernel": first, "inputs": [source], "output": t}
    p.add({**spec, "params": KERNELS[first]})
    p.add({"op": "run_kernel", "kernel": "invert", "inputs": [t], "output": target})
    p.run()
    assert np.abs(np.asarray(target).astype(int) - expected).max() <= ("webgpu" in engine_id)
    assert p.passes == (1 if "webgpu" in engine_id else 2)


def test_submitted_and_awaited(engine_id):
    photo = np.random.default_rng(4).integers(0, 256, (9, 14, 4), dtype=np.uint8)
    source, out, copy = from_array(photo), zeros(photo), zeros(photo)
    p = Pipeline().add(stage("invert", [source], out))
    p.add({"op": "copy_buffer", "src": out, "dst": copy})
    command = p.submit()
    assert command.name == "pipeline of 2 stages"
    after = submit(stage("invert", [copy], source))  # must wait for the pipeline
    after.result(60)
    wanted = np.dstack([255 - photo[..., :3], photo[..., 3]])
    assert np.array_equal(out.numpy(), wanted)
    assert np.array_equal(source.numpy(), photo)
    asyncio.run(p.run_async(priority="background"))
    asyncio.run(pipeline_run_async(p))
    assert np.array_equal(copy.numpy(), wanted)
    with pytest.raises(errors.ParameterError, match="priority must be"):
        p.submit(priority="high")
    p.close()
    with pytest.raises(errors.FreedError, match="the pipeline was closed"):
        p.submit()


def test_submit_reads_the_parameters(engine_id):
    source, out = from_array(np.full((2, 2, 4), 10, np.uint8)), buffer_zeros((2, 2, 4), "u8")
    kept = buffer_zeros((2, 2, 4), "u8")
    p = Pipeline().add(stage("brightness", [source], out, value=20 / 255))
    p.add({"op": "copy_buffer", "src": out, "dst": kept})
    first = p.submit()
    p.set_params(0, value=100 / 255)
    first.wait(300)
    assert kept.numpy()[0, 0, 0] == 30
    p.run()
    assert kept.numpy()[0, 0, 0] == 110


def test_steady_runs_allocate_nothing(engine_id):
    photo = np.random.default_rng(4).integers(0, 256, (20, 30, 4), dtype=np.uint8)
    source, out = from_array(photo), zeros(photo)
    between, root = (buffer_zeros(photo.shape, "u8", transient=True) for _ in range(2))
    p = Pipeline().add(stage("blur", [source], between, radius=2))
    p.add(stage("sharpen", [between], root)).add(stage("brightness", [root], out, value=0.1))
    engine = source.engine
    for _ in range(20):
        p.run()
    engine.synchronize()
    gc.collect()  # free the objects of other tests
    before, made = engine.stats(), dala.diagnostics()
    tracemalloc.start()
    p.run()
    engine.synchronize()
    gc.collect()
    first = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        p.run()
    engine.synchronize()
    gc.collect()
    last = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert last - first < 4096  # no growth
    assert engine.stats() == before
    assert dala.diagnostics() == made


def test_animated_parameters_of_an_operation_compile_nothing(engine_id):
    data = photo()
    source, out = from_array(data), zeros(data)
    between, root = (buffer_zeros(data.shape, "u8", transient=True) for _ in range(2))
    p = Pipeline().add(stage("blur", [source], between, radius=2, sigma=0.5))
    p.add(stage("sharpen", [between], root)).add(stage("brightness", [root], out, value=0.1))
    p.run()
    passes = p.passes
    made = [source.engine.stats().get(name) for name in ("compiled", "pipelines")]
    for sigma in (0.7, 2.0, 5.0):
        p.set_params(0, sigma=sigma)
        p.run()
        blurred, sharp, wanted = zeros(data), zeros(data), zeros(data)
        run_kernel("blur", [source], blurred, {"radius": 2, "sigma": sigma})
        run_kernel("sharpen", [blurred], sharp)
        run_kernel("brightness", [sharp], wanted, {"value": 0.1})
        assert np.abs(out.numpy().astype(int) - wanted.numpy()).max() <= 3
        if (
            sigma <= 2.0
        ):  # the first unfused run compiles, and a center of less than half the weight
            made = [source.engine.stats().get(name) for name in ("compiled", "pipelines")]
    assert p.passes == passes
    assert made == [source.engine.stats().get(name) for name in ("compiled", "pipelines")]
    with pytest.raises(errors.ParameterError, match="an int from 0 to 200, got 500"):
        p.set_params(0, radius=500)
    p.set_params(0, radius=5)
    p.run()


def test_rebind_runs_on_other_buffers(engine_id):
    chain = [("blur", {"radius": 2}), ("sharpen", {"amount": 0.5}), ("invert", {})]
    first, second = photo(), photo()[::-1].copy()

    def unfused(data):
        source = from_array(data)
        for kernel, params in chain:
            target = zeros(source)
            run_kernel(kernel, [source], target, params)
            source = target
        return source.numpy().astype(int)

    source = from_array(first)
    out = zeros(source)
    between = [buffer_zeros(out.shape, "u8", transient=True) for _ in chain[1:]]
    p = Pipeline()
    for (kernel, params), image, output in zip(
        chain, [source, *between], [*between, out], strict=True
    ):
        p.add(stage(kernel, [image], output, **params))
    p.run()
    passes = p.passes
    assert np.abs(unfused(first) - out.numpy()).max() <= len(chain)
    other, result = from_array(second), zeros(out)
    p.rebind(source, other).rebind(out, result).run()
    assert np.abs(unfused(second) - result.numpy()).max() <= len(chain)
    p.set_params(0, radius=1)  # prepares the chain again, with the new buffers
    p.run()
    chain[0] = ("blur", {"radius": 1})
    assert np.abs(unfused(second) - result.numpy()).max() <= len(chain)
    assert p.passes == passes


def test_explain_names_the_method_of_a_chain(engine_id):
    image = from_array(photo())
    first, out = buffer_zeros(image.shape, "u8", transient=True), zeros(image)
    p = Pipeline().add(stage("blur", [image], first, radius=3)).add(stage("sepia", [first], out))
    p.run()
    text = p.explain()
    if engine_id == "cpu":
        assert "stage 0: blur (" in text
        assert text.count(", in one sliding window") == 2
    else:
        assert "sliding window" not in text
