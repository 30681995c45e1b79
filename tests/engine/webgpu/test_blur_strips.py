"""Blurs over strips, as GPUs run them, on adapters that would choose tiles."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer_zeros, from_array, kernel, run_kernel
from dala.gpu.compute.engines.base import Link, Task, Tensor
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.engines.webgpu.limits import DEFAULT, DOWNLEVEL, workgroup_bytes
from dala.gpu.compute.engines.webgpu.recorded.engine import RecordingEngine
from dala.gpu.compute.engines.webgpu.wgsl.blur import forms
from dala.gpu.compute.engines.webgpu.wgsl.blur.finish import Finish
from dala.gpu.compute.engines.webgpu.wgsl.blur.forms import BlurDevice, write_blur
from dala.gpu.compute.engines.webgpu.wgsl.blur.strips import BlurStrip
from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums
from dala.gpu.compute.engines.webgpu.wgsl.blur.tiles import BlurTile
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat
from dala.gpu.compute.kernel import get
from tests.support.engines import NO_ADAPTER

ADAPTERS = {adapter.backend.lower(): adapter for adapter in list_adapters()}

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)

FAR = 1 << 40

#: Smaller than a four, than a strip and than four rows; no whole fours; more than one strip.
SHAPES = [(1, 1), (2, 3), (3, 8), (5, 121), (41, 130), (77, 124), (1, 300)]


#: Where the classes of sizes begin if all pictures are to be of one.
ALL_OF = {1: (0, FAR, FAR), 2: (0, 0, FAR), 3: (0, 0, 0)}


@pytest.fixture(scope="module", params=list(ADAPTERS))
def adapter(request):
    """An engine that takes its adapter for a GPU."""
    made = WebGPUEngine(replace(ADAPTERS[request.param], software=False))
    yield made
    made.close()


@pytest.fixture
def engine(adapter, monkeypatch):
    """An engine for which small pictures are of a middle size."""
    monkeypatch.setattr(forms, "SIZES", ALL_OF[2])
    return adapter


def picture(shape, seed=2):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def defined(image, radius):
    """Return the reference's bytes."""
    with dala.device("reference"):
        out = buffer_zeros(image.shape, "u8")
        run_kernel("blur", [from_array(image)], out, {"radius": radius})
        return np.array(out)


def blur_task(image, radius, sigma):
    tensor = Tensor(image.shape, "u8")
    values = (("radius", radius), ("sigma", sigma))
    return Task("blur", (tensor,), tensor, values, get("blur").define)


def run(engine, runner, images, out, params=()):
    given = [engine.allocate(image.nbytes, zero=True) for image in images]
    for storage, image in zip(given, images, strict=True):
        engine.upload(storage, image)
    target = engine.allocate(out.nbytes, zero=True)
    try:
        runner(given, target, params)
        return np.frombuffer(engine.download(target), out.dtype)[: out.size].reshape(out.shape)
    finally:
        for storage in (*given, target):
            engine.release(storage)


def chained(engine, radius, stages, images, *, shape=None, dtype="u8"):
    """Return what a chain gives, and what its stages give on the blurred image."""
    image = images[0]
    task = blur_task(image, radius, radius / 2)
    links = [Link(task, (0,), Tensor(image.shape, "u8"))]
    made = [run(engine, engine.operate(task), [image], image)]
    params: tuple[Any, ...] = ()
    with dala.device("reference"):
        for number, (name, values, sources) in enumerate(stages, 1):
            last = number == len(stages)
            inputs = [from_array(images[s] if s >= 0 else made[-1 - s]) for s in sources]
            out = buffer_zeros(shape if last and shape else image.shape, dtype if last else "u8")
            run_kernel(name, inputs, out, values)
            call, numbers = get(name).bind(inputs, out, values)
            params += numbers
            links.append(Link(call.program, sources, Tensor(out.shape, out.dtype)))
            made.append(np.array(out))
    chain = engine.chain(links, [Tensor(i.shape, "u8") for i in images])
    assert chain is not None
    return run(engine, chain, images, made[-1], params), made[-1]


def assert_alike(found):
    got, wanted = found
    if got.dtype == np.uint8:
        assert np.abs(got.astype(int) - wanted).max() <= 1
        assert (got != wanted).mean() < 0.02  # a product and a sum may be fused differently
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("channels", "radius"), [((), 2), ((3,), 3), ((4,), 1), ((4,), 12)])
def test_values(engine, channels, radius):
    for size in SHAPES:
        image = picture((*size, *channels))
        got = run(engine, engine.operate(blur_task(image, radius, radius / 2)), [image], image)
        np.testing.assert_array_equal(got, defined(image, radius))


GPU, NOTHING = BlurDevice(), Finish()
SHARPEN = ("sharpen", {"amount": 0.3}, (-1,))
CHAINS: dict[str, list[tuple[Any, dict[str, Any], tuple[int, ...]]]] = {
    "places": [("vignette", {"amount": 0.9}, (-1,)), ("brightness", {"value": 0.1}, (-2,))],
    "its input": [SHARPEN, ("video_mix", {"t": 0.3}, (-2, 0))],
    "another": [("overlay_alpha", {"opacity": 0.4}, (1, -1))],
}


@pytest.mark.parametrize("stages", CHAINS.values(), ids=CHAINS)
def test_a_chain_equals_its_stages(engine, stages):
    for size in SHAPES:
        images = [picture((*size, 4), seed) for seed in (2, 3)]
        assert_alike(chained(engine, 3, stages, images[: 2 if stages[0][2][0] == 1 else 1]))


def test_pixels_that_share_words(engine):
    assert_alike(chained(engine, 2, [SHARPEN], [picture((39, 132, 3))]))


def test_output_formats(engine):
    image = picture((9, 124, 4))
    for shape, dtype in (((9, 124), "u8"), ((9, 124, 3), "f32")):
        gray = [("grayscale", {}, (-1,))]
        assert_alike(chained(engine, 2, gray, [image], shape=shape, dtype=dtype))


@pytest.mark.parametrize("width", [3, 128])
def test_distant_neighbors_and_borders(engine, width):
    """Alpha of neighbors counts too; beyond the border is the outermost *blurred* pixel."""
    far = kernel("def far(img: Image):\n    return img[-3, 3] * 0.75 + img[3, -4] * 0.25")
    assert_alike(chained(engine, 3, [(far, {}, (-1,))], [picture((43, width, 4))]))


@pytest.mark.parametrize(("size", "radius"), [(1, 3), (3, 3), (3, 12)])
def test_other_sizes(adapter, monkeypatch, size, radius):
    """Strips of 12, 48 and 72 rows, and more than one below another."""
    monkeypatch.setattr(forms, "SIZES", ALL_OF[size])
    image = picture((83, 150, 4))
    blur = adapter.operate(blur_task(image, radius, radius / 2))
    got = run(adapter, blur, [image], image)
    np.testing.assert_array_equal(got, defined(image, radius))
    if radius == 3:
        assert_alike(chained(adapter, 3, [SHARPEN], [image[:, :148].copy()]))


RGBA, GRAY, FLOATS = ImageFormat("u8", 4), ImageFormat("u8", 1), ImageFormat("f32", 4)


def chosen(shape, image, radius, finish=NOTHING, device=GPU):
    return device.form(image, radius, finish, device.size(*shape))


def test_the_choice():
    """Strips on GPUs for u8 images, if the sums fit into registers and programs are short."""
    large = (2160, 3840)
    assert isinstance(chosen(large, RGBA, 16), BlurStrip)
    assert isinstance(chosen(large, GRAY, 16), BlurStrip)
    assert isinstance(chosen(large, FLOATS, 3), BlurTile)
    assert isinstance(chosen(large, RGBA, 0), BlurTile)  # it has no sums
    assert isinstance(chosen(large, RGBA, 3, Finish(length=1000)), BlurTile)
    assert isinstance(chosen(large, RGBA, 3, Finish(offsets=((9, 0),))), BlurTile)
    assert isinstance(chosen(large, RGBA, 3, device=BlurDevice(strips=False)), BlurTile)
    assert isinstance(chosen(large, RGBA, 3, device=BlurDevice(workgroup=64)), BlurTile)


def test_rows_depend_on_the_size():
    """Small pictures have few strips: they run on tiles, or have fewer rows in each."""
    rows = {}
    for shape in ((360, 640), (720, 1280), (1080, 1920), (2160, 3840)):
        forms_of = [chosen(shape, RGBA, radius) for radius in (3, 8, 12, 16)]
        rows[shape[0]] = [f.rows if isinstance(f, BlurStrip) else 0 for f in forms_of]
    assert rows == {
        360: [0, 0, 0, 0],
        720: [12, 12, 0, 0],
        1080: [36, 36, 36, 0],
        2160: [20, 72, 72, 72],
    }
    # A program that reads neighbors has its rows above and below blurred twice.
    near = chosen((2160, 3840), RGBA, 3, Finish(offsets=((1, 1),)))
    assert isinstance(near, BlurStrip)
    assert near.rows == 48
    assert chosen((2160, 3840), RGBA, 12).workgroup == 256
    assert chosen((2160, 3840), RGBA, 16).workgroup == 128


def test_pages_have_one_shader_for_all_sizes():
    """A page's plan must not depend on the number of pixels, nor on a width in fours."""
    engine = RecordingEngine()
    texts = set()
    for shape in ((16, 16, 4), (17, 19, 4), (2160, 3840, 4)):
        task = blur_task(np.broadcast_to(np.uint8(0), shape), 3, 1.5)
        given, target = (engine.allocate(16, zero=True) for _ in range(2))
        engine.operate(task)([given], target, ())
        texts.add(engine.steps[-1].source)
    assert len(texts) == 1


@pytest.mark.parametrize("limits", [DEFAULT, DOWNLEVEL], ids=["default", "downlevel"])
def test_workgroup_memory(limits):
    """What a form says that it needs is what its shader declares, and every device has it."""
    device = BlurDevice.of(limits, 256, strips=True)
    seen = set()
    for channels, radius, reach, size in product((1, 3, 4), range(1, 17), range(8), (1, 2, 3)):
        image = ImageFormat("u8", channels)
        finish = Finish(offsets=((0, 0), (reach, -reach)))
        form = device.form(image, radius, finish, size)
        if isinstance(form, BlurStrip):
            seen.add((channels, reach, size))
            shader = write_blur(Sums(image), finish, image, form)
            assert workgroup_bytes(shader.source) == form.bytes(image) <= device.room
    assert len(seen) > 40
