"""A blur and the programs after it in one dispatch give the results of separate passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dala
from dala.gpu.compute import Kernel, Pipeline, buffer_zeros, from_array, kernel, run_kernel
from dala.gpu.compute.engines.base import Link, Task, Tensor
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.kernel import get
from tests.support.engines import NO_ADAPTER

DEVICES = {d.api.lower(): d.id for d in dala.devices() if d.backend == "webgpu"}

if not DEVICES:
    pytest.skip(NO_ADAPTER, allow_module_level=True)

#: Name or kernel, parameters, sources (as in ``Link``: -1 is the blur, 0 its input, 1 another).
CHAINS: dict[str, list[tuple[Any, dict[str, Any], tuple[int, ...]]]] = {
    "pixel": [("brightness", {"value": 0.1}, (-1,))],
    "stencil": [("edge_detect", {"amount": 0.25}, (-1,))],
    "stencil-pixel": [
        ("sharpen", {"amount": 0.3}, (-1,)),
        ("brightness", {"value": 0.1}, (-2,)),
    ],
    "median": [("median", {}, (-1,)), ("invert", {}, (-2,)), ("gamma", {"value": 2.0}, (-3,))],
    "places": [("vignette", {"amount": 0.9}, (-1,)), ("hue", {"degrees": 40.0}, (-2,))],
    "earlier": [("invert", {}, (-1,)), ("video_mix", {"t": 0.25}, (-1, -2))],
}
#: Stages that read other images too.
BESIDE: dict[str, list[tuple[Any, dict[str, Any], tuple[int, ...]]]] = {
    "its input": [("video_mix", {"t": 0.3}, (-1, 0))],
    "another": [("sharpen", {}, (-1,)), ("overlay_alpha", {"opacity": 0.4}, (1, -2))],
}
SHAPES = [(1, 1, 4), (5, 9, 4), (70, 131, 4), (40, 64, 4)]


@pytest.fixture(params=list(DEVICES))
def device(request):
    with dala.device(DEVICES[request.param]):
        yield


def picture(shape, dtype, seed=2):
    data = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return data if dtype == "u8" else (data / 255).astype("<f4")


def link(stages, images, *, outs=None, keep=None):
    """Return the links of stages, the outputs of the stages run one by one, and the parameters."""
    given = [from_array(a) for a in images]
    made, links, values = [], [], ()
    for number, (name, params, sources) in enumerate(stages):
        shape, dtype = (outs or {}).get(number, (images[0].shape, given[0].dtype))
        inputs = [given[s] if s >= 0 else made[-1 - s] for s in sources]
        out = buffer_zeros(shape, dtype)
        run_kernel(name, inputs, out, params)
        made.append(out)
        call, numbers = get(name).bind(inputs, out, params)
        work = call.task if call.program is None else call.program
        values += numbers if call.program is not None else ()
        store = len(given) if keep == number else None
        links.append(Link(work, sources, Tensor(out.shape, out.dtype), store))
    return links, given, made, values


def chained(stages, images, **more):
    """Return the output of a chain and of its last stage, or None if there is no such chain."""
    links, given, made, values = link(stages, images, **more)
    run = made[-1].engine.chain(links, [Tensor(b.shape, b.dtype) for b in given])
    if run is None:
        return None
    out = buffer_zeros(made[-1].shape, made[-1].dtype)
    run([b._storage for b in given], out._storage, values)
    return np.array(out), np.array(made[-1])


def assert_alike(found):
    assert found is not None
    got, wanted = found
    assert got.shape == wanted.shape
    if got.dtype == np.uint8:
        assert np.abs(got.astype(int) - wanted).max() <= 1
        assert (got != wanted).mean() < 0.01  # a GPU may fuse a product and a sum differently
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("stages", CHAINS.values(), ids=CHAINS)
def test_a_chain_equals_its_stages(device, stages):
    blur = ("blur", {"radius": 3, "sigma": 1.5}, (0,))
    for shape in SHAPES:
        assert_alike(chained([blur, *stages], [picture(shape, "u8")]))


@pytest.mark.parametrize("radius", [0, 1, 9])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((37, 72, 3), "u8"), ((33, 68), "u8"), ((21, 35, 4), "f32"), ((37, 71, 3), "f32")],
    ids=str,
)
def test_every_image_format(device, shape, dtype, radius):
    blur = ("blur", {"radius": radius, "sigma": 6.0}, (0,))
    stages = CHAINS["places" if radius == 9 else "stencil-pixel"]
    assert_alike(chained([blur, *stages], [picture(shape, dtype)]))


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("stages", BESIDE.values(), ids=BESIDE)
def test_stages_that_read_other_images(device, stages, dtype):
    images = [picture((41, 90, 4), dtype, seed) for seed in (2, 3)]
    assert_alike(chained([("blur", {"radius": 4}, (0,)), *stages], images))


def test_the_border_of_the_blurred_image_is_clamped(device):
    """Reads beyond the border return the outermost *blurred* pixel."""
    image = np.zeros((12, 40, 4), np.uint8)
    image[0] = image[:, 0] = 255
    shift = kernel("def shift(img: Image):\n    return img[-2, -2]")
    found = chained([("blur", {"radius": 3}, (0,)), (shift, {}, (-1,))], [image])
    assert_alike(found)
    np.testing.assert_array_equal(found[0][0], found[0][2])
    np.testing.assert_array_equal(found[0][:, 0], found[0][:, 2])


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_distant_neighbors(device, dtype):
    far = kernel("def far(img: Image):\n    return img[-3, 3] * 0.75 + img[3, -2] * 0.25")
    image = picture((35, 67, 4), dtype)
    assert_alike(chained([("blur", {"radius": 1}, (0,)), (far, {}, (-1,))], [image]))
    wide = chained([("blur", {"radius": 16}, (0,)), (far, {}, (-1,))], [image])
    assert wide is None  # the margin would cost more than another pass


def test_output_formats(device):
    image = picture((24, 36, 4), "u8")
    blur = ("blur", {"radius": 2}, (0,))
    for shape, dtype in (((24, 36), "u8"), ((24, 36, 3), "f32"), ((24, 36, 3), "u8")):
        assert_alike(chained([blur, ("grayscale", {}, (-1,))], [image], outs={1: (shape, dtype)}))


def test_stages_that_cannot_be_chained(device):
    image, blur = picture((20, 33, 4), "u8"), ("blur", {"radius": 2}, (0,))
    invert, sharpen = ("invert", {}, (-1,)), ("sharpen", {}, (-2,))
    assert chained([blur], [image]) is None
    assert chained([("invert", {}, (0,)), ("blur", {}, (-1,))], [image]) is None
    assert chained([blur, ("blur", {}, (-1,))], [image]) is None
    assert chained([blur, invert, sharpen], [image]) is None  # neighbors that are not held
    assert chained([blur, ("denoise", {}, (-1,))], [image]) is None  # offsets computed at run time
    assert chained([("blur", {"radius": 17}, (0,)), invert], [image]) is None
    assert chained([blur, invert], [image[..., 0].copy()]) is None  # rows that are not whole words
    assert chained([blur, invert, ("gamma", {}, (-2,))], [image], keep=1) is None
    assert chained([blur, invert], [image[:0]]) is None
    whole = kernel("def whole(px: Pixel):\n    return s32(px.r * 255.0)")
    outs = {1: (image.shape[:2], "s32")}
    assert chained([blur, (whole, {}, (-1,))], [image], outs=outs) is None


def test_parameters_change_without_a_new_shader(device):
    image = picture((30, 50, 4), "u8")
    engine = from_array(image).engine
    counts = set()
    for sigma, amount in ((1.0, 0.2), (2.0, 0.7)):
        stages = [
            ("blur", {"radius": 3, "sigma": sigma}, (0,)),
            ("sharpen", {"amount": amount}, (-1,)),
        ]
        assert_alike(chained(stages, [image]))
        counts.add(engine.stats()["pipelines"])
    assert len(counts) == 1


def test_a_pipeline_is_one_dispatch(device):
    image = picture((50, 70, 4), "u8")
    stages = [
        ("blur", {"radius": 3, "sigma": 1.5}),
        ("sharpen", {"amount": 0.3}),
        ("brightness", {"value": 0.1}),
    ]
    results = []
    for transient in (True, False):
        source = from_array(image)
        chain = Pipeline()
        for number, (name, params) in enumerate(stages):
            last = number == len(stages) - 1
            out = buffer_zeros(image.shape, "u8", transient=transient and not last)
            spec = {"op": "run_kernel", "kernel": name, "inputs": [source], "output": out}
            chain.add({**spec, "params": params})
            source = out
        with source.engine.profile() as times:
            chain.run()
        results.append((np.array(source), len(times.seconds)))
    (melted, dispatches), (apart, more) = results
    assert (dispatches, more) == (1, 3)
    assert np.abs(melted.astype(int) - apart).max() <= 1


def test_a_device_with_little_workgroup_memory():
    """All blurs run as two dispatches, and nothing is chained."""
    adapter = list_adapters()[0]
    limits = {**adapter.limits, "max-compute-workgroup-storage-size": 8192}
    engine = WebGPUEngine(replace(adapter, limits=limits))
    try:
        image = picture((19, 37, 4), "u8")
        tensor = Tensor(image.shape, "u8")
        values = (("radius", 3), ("sigma", 1.5))
        task = Task("blur", (tensor,), tensor, values, get("blur").define)
        source, out = (engine.allocate(image.nbytes, zero=True) for _ in range(2))
        engine.upload(source, image)
        engine.operate(task)([source], out, ())
        got = np.frombuffer(engine.download(out), np.uint8).reshape(image.shape)
        assert np.abs(got.astype(int) - np.floor(task.define(task, image) + 0.5)).max() <= 1
        with dala.device("reference"):
            call, _ = get("invert").bind([from_array(image)], buffer_zeros(image.shape, "u8"), {})
        links = [Link(task, (0,), tensor), Link(call.program, (-1,), tensor)]
        assert engine.chain(links, [tensor]) is None
    finally:
        engine.close()


def test_names_that_the_shader_uses_itself(device):
    """A kernel's variables may have the names that the shader uses."""
    text = """
        def held(source: Image, *, middle=0.5, top=0.25):
            word = source[0, 0]
            fetch = source[1, 0].rgb * middle
            down = fetch + top
            left = down * 0.5
            return rgba(left + word.rgb * 0.25, word.a)
    """
    made = Kernel.register("held", text)
    try:
        image = picture((9, 37, 4), "u8")
        assert_alike(chained([("blur", {}, (0,)), (made, {"top": 0.1}, (-1,))], [image]))
    finally:
        Kernel.unregister("held")
