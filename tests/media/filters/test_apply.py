"""Kernels on what people have: arrays, tensors, Pillow images and frames; ``gpu.apply``."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import dala
from dala.errors import (
    ArityError,
    DtypeError,
    KernelExists,
    ParameterError,
    ReadOnlyError,
    UnknownKernel,
)
from dala.gpu.compute import Array, Buffer, Kernel, Pixel, buffer, from_array, kernel, rgba
from dala.gpu.compute.kernel import get
from dala.media import Frame, gpu
from dala.media.filters.declarations import declared

RNG = np.random.default_rng(2)
PHOTO = RNG.integers(0, 256, (5, 7, 4), dtype=np.uint8)


@pytest.fixture
def swap():
    @kernel
    def swap(px: Pixel, *, gain: float = 1.0):
        return rgba(px.b * gain, px.g, px.r, px.a)

    yield swap
    if "swap" in dala.gpu.compute.kernels():
        Kernel.unregister("swap")


@pytest.fixture
def average():
    @kernel
    def average(first: Pixel, second: Pixel, table: Array):
        return rgba((first.rgb + second.rgb) * table[0], first.a)

    yield average
    if "average" in dala.gpu.compute.kernels():
        Kernel.unregister("average")


SWAPPED = PHOTO[..., [2, 1, 0, 3]]


# kernels ----------------------------------------------------------------------------------------
def test_arrays(engine_id, swap):
    made = swap(PHOTO)
    assert type(made) is np.ndarray
    assert made.flags.writeable
    assert np.array_equal(made, SWAPPED)
    assert np.array_equal(swap(PHOTO[..., :3]), SWAPPED[..., :3])  # not contiguous
    frozen = PHOTO.copy()
    frozen.flags.writeable = False
    assert np.array_equal(swap(frozen), SWAPPED)
    assert swap(PHOTO[:0]).shape == (0, 7, 4)
    light = (PHOTO / np.float32(255)).astype(np.float32)
    assert np.allclose(swap(light, gain=0.5)[..., 0], light[..., 2] * 0.5, atol=1e-6)


def test_kinds(engine_id, swap):
    framed = swap(Frame.from_array(PHOTO, pts=7))
    assert type(framed) is Frame
    assert framed.pts == 7
    assert np.array_equal(framed.numpy(), SWAPPED)
    pillow = swap(Image.fromarray(PHOTO))
    assert isinstance(pillow, Image.Image)
    assert pillow.mode == "RGBA"
    assert np.array_equal(np.asarray(pillow), SWAPPED)
    given = from_array(PHOTO)
    made = swap(given)
    assert type(made) is Buffer
    assert made.device == given.device
    gray = swap(Image.fromarray(PHOTO[..., 0]))
    assert (gray.mode, gray.size) == ("L", (7, 5))


def test_elements_and_operations(engine_id):
    relu, matmul = get("relu"), get("matmul")
    assert relu(np.array([-1.0, 2.0], np.float32)).tolist() == [0.0, 2.0]
    assert relu(np.array([True, False])).tolist() == [1, 0]
    a = RNG.random((3, 4), dtype=np.float32)
    b = RNG.random((4, 2), dtype=np.float32)
    assert np.allclose(matmul(a, b), a @ b, atol=1e-5)
    assert type(matmul(from_array(a), b)) is Buffer


def test_pictures_of_other_depths(engine_id, swap):
    deep = RNG.integers(0, 65536, (4, 5, 3), dtype=np.uint16)
    made = swap(deep)
    assert made.dtype == np.uint16
    assert np.abs(made.astype(int) - deep[..., ::-1]).max() <= 1
    for dtype in (np.float16, np.float64):
        light = (deep / 65535).astype(dtype)
        made = swap(light)
        assert made.dtype == dtype
        assert np.allclose(made, light[..., ::-1], atol=1e-6)
    mask = PHOTO[..., 0] > 128
    assert np.array_equal(swap(mask), mask * np.uint8(255))
    assert np.array_equal(swap(deep), gpu.apply(deep, swap))


def test_inputs_of_several_kinds(engine_id, average):
    half = np.array([0.5], np.float32)
    want = np.floor((PHOTO[..., :3].astype(float) + SWAPPED[..., :3]) / 2 + 0.5)
    made = average(PHOTO, Frame.from_array(SWAPPED), half)
    assert type(made) is np.ndarray
    assert np.abs(made[..., :3] - want).max() <= 1
    made = average(Frame.from_array(PHOTO), Image.fromarray(SWAPPED), buffer([0.5]))
    assert type(made) is Frame
    assert np.abs(made.numpy()[..., :3] - want).max() <= 1


def test_inputs_run_on_the_device_of_a_buffer(average):
    second = from_array(SWAPPED, device="reference")
    with dala.device("cpu"):
        made = average(Frame.from_array(PHOTO, device="reference"), second, np.ones(1, np.float32))
    assert made.device == "reference"


def test_out(engine_id, swap):
    out = np.zeros_like(PHOTO)
    assert swap(PHOTO, out=out) is out
    assert np.array_equal(out, SWAPPED)
    assert swap(from_array(PHOTO), out=out) is out
    target = from_array(np.zeros_like(PHOTO))
    assert swap(PHOTO, out=target) is target
    assert np.array_equal(target.numpy(), SWAPPED)
    floats = np.zeros(PHOTO.shape, np.float32)
    swap(PHOTO, out=floats)
    assert np.allclose(floats * 255, SWAPPED, atol=1e-3)
    out.flags.writeable = False
    with pytest.raises(ReadOnlyError, match="swap: out is read-only"):
        swap(PHOTO, out=out)
    gradient = get("generate_gradient")(out=np.zeros((2, 8), np.float32))
    assert (np.diff(gradient[0]) > 0).all()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "photo.png",
            r"swap: px must be a Buffer, an array, .*, got str. Open a file first: Frame",
        ),
        (3.0, "got float. Numbers are parameters, given by name"),
        (np.float32(3), "got float32. Numbers are parameters"),
        (b"abc", r"got bytes. Give it a shape: np.frombuffer"),
        ([[1.0]], r"got list. Make an array first: np.array\(x, np.float32\)"),
        (None, "got NoneType"),
        (np.ma.masked_array([1.0]), r"px must be an array without a mask, .* x.filled\(0\)"),
        (PHOTO.astype(np.int16), r"px must be an array of .*, got 'int16'. .* x.astype"),
        (np.array(["a"]), r"swap: px must be an array of float32, .*, got '<U1'. .* x.astype\(np"),
        (PHOTO.astype(">f4"), "px must be an array of float32, .*, got '>f4'"),
    ],
)
def test_wrong_types(swap, value, text):
    with pytest.raises(TypeError, match=text) as caught:
        swap(value)
    assert isinstance(caught.value, DtypeError)


def test_wrong_numbers_of_inputs(swap, average):
    with pytest.raises(ArityError, match=r"average: inputs must be 3 buffers \(first, second, ta"):
        average(PHOTO, PHOTO)
    with pytest.raises(ArityError, match=r"swap: inputs must be 1 buffer \(px\), got 2"):
        swap(PHOTO, PHOTO)
    with pytest.raises(ArityError, match=r"swap: inputs must be 1 buffer \(px\), got 2"):
        swap(from_array(PHOTO), from_array(PHOTO))


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_tensors_of_other_libraries(engine_id, swap, library):
    module = pytest.importorskip(library)
    tensor = module.asarray(PHOTO.copy())
    for made in (swap(tensor), gpu.apply(tensor, swap), gpu.apply(gpu.invert(tensor), "invert")):
        assert isinstance(made, type(tensor))
        assert np.asarray(made).dtype == np.uint8
    assert np.array_equal(np.asarray(swap(tensor)), SWAPPED)
    assert np.array_equal(np.asarray(gpu.apply(tensor, swap)), SWAPPED)
    assert np.array_equal(np.asarray(gpu.invert(tensor)[..., 0]), 255 - PHOTO[..., 0])


# apply ------------------------------------------------------------------------------------------
def test_apply(engine_id, swap, average):
    for name in (swap, "swap"):
        assert np.array_equal(gpu.apply(PHOTO, name), SWAPPED)
    assert gpu.apply(PHOTO.tobytes(), swap, width=7, height=5) == SWAPPED.tobytes()
    assert type(gpu.apply(Frame.from_array(PHOTO), swap)) is Frame
    assert np.array_equal(gpu.apply(PHOTO, "blur", radius=2), gpu.blur(PHOTO, radius=2))
    assert np.array_equal(gpu.apply(PHOTO, get("invert")), gpu.invert(PHOTO))
    assert gpu.apply(PHOTO, "resize", size=(3, 2)).shape == (2, 3, 4)
    assert np.array_equal(
        gpu.apply(PHOTO, "grade", gain=0.5), dala.media.effects.grade(PHOTO, gain=0.5)
    )
    out = np.zeros_like(PHOTO)
    assert gpu.apply(PHOTO, swap, out=out) is out
    assert np.array_equal(out, SWAPPED)
    made = gpu.apply(PHOTO, average, second=Image.fromarray(SWAPPED), table=[0.5])
    assert np.array_equal(made, average(PHOTO, SWAPPED, np.array([0.5], np.float32)))


def test_kernels_with_more_inputs_in_lists(engine_id, average):
    with gpu.start_pipeline(7, 5) as ctx:
        filters = [(average, {"second": SWAPPED, "table": [0.5]}), "invert"]
        made = gpu.process_frame(ctx, PHOTO, filters)
    want = gpu.invert(average(PHOTO, SWAPPED, np.array([0.5], np.float32)))
    assert np.abs(made.astype(int) - want).max() <= 1


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: gpu.apply(PHOTO, "blurr"),
            UnknownKernel,
            "apply: 'blurr' is not a filter. Did you mean 'blur'",
        ),
        (lambda: gpu.apply(PHOTO, "relu"), UnknownKernel, "is a kernel, but not a filter"),
        (
            lambda: gpu.apply(PHOTO, abs),
            DtypeError,
            "apply: kernel must be a Kernel or",
        ),
        (lambda: gpu.apply(3, "blur"), DtypeError, "blur: a picture must be an array"),
        (lambda: gpu.apply(PHOTO, "blur", raduis=3), ParameterError, "Did you mean 'radius'"),
        (
            lambda: gpu.apply(PHOTO, kernel("def one(): return 1.0")),
            ParameterError,
            "must be a kernel whose first input is the picture",
        ),
        (
            lambda: gpu.apply(PHOTO, get("overlay_alpha")),
            ParameterError,
            "overlay_alpha needs the input 'over' besides the picture. Give it by name: over=",
        ),
    ],
)
def test_errors_of_apply(make, error, text):
    with dala.device("cpu"), pytest.raises(error, match=text):
        make()


# names of built-in kernels and filters ----------------------------------------------------------
def test_kernels_may_have_the_names_of_built_in_ones(engine_id, caplog):
    caplog.set_level("INFO", "dala")

    @kernel
    def emboss(px: Pixel):
        return rgba(px.g, px.b, px.r, px.a)

    assert emboss.name == "emboss"
    assert "the name 'emboss' means the built-in kernel" in caplog.text
    mine = PHOTO[..., [1, 2, 0, 3]]
    source = from_array(PHOTO)
    assert np.array_equal(emboss(PHOTO), mine)
    assert np.array_equal(gpu.apply(PHOTO, emboss), mine)
    assert np.array_equal(gpu.process_frame(gpu.start_pipeline(7, 5), PHOTO, [emboss]), mine)
    out = from_array(np.zeros_like(PHOTO))
    dala.gpu.compute.run_kernel(emboss, [source], out)
    assert np.array_equal(out.numpy(), mine)
    stages = dala.gpu.compute.Pipeline()
    stages.add({"op": "run_kernel", "kernel": emboss, "inputs": [source], "output": out}).run()
    assert np.array_equal(out.numpy(), mine)

    # Names still mean the built-in kernel.
    built_in = gpu.emboss(PHOTO)
    assert not np.array_equal(built_in, mine)
    assert np.array_equal(gpu.apply(PHOTO, "emboss"), built_in)
    dala.gpu.compute.run_kernel("emboss", [source], out)
    assert np.array_equal(out.numpy(), built_in)

    @kernel(name="emboss")
    def other(px: Pixel):
        return rgba(px.r, px.r, px.r, px.a)

    assert np.array_equal(other(PHOTO), PHOTO[..., [0, 0, 0, 3]])
    text = kernel("def relu(x): return x + 1.0")
    assert text(buffer([-1.0, 2.0])).read_list() == [0.0, 3.0]
    assert dala.gpu.compute.relu(buffer([-1.0, 2.0])).read_list() == [0.0, 2.0]

    @kernel
    def inner(px: Pixel):
        return emboss(px)  # the kernel in sight, not the built-in one

    try:
        assert np.array_equal(inner(PHOTO), mine)
    finally:
        Kernel.unregister("inner")


def test_registering_the_name_of_a_built_in_kernel_is_refused():
    with pytest.raises(KernelExists, match="'emboss' is a built-in kernel"):
        Kernel.register("emboss", "def emboss(px: Pixel): return px")
    with pytest.raises(KernelExists):
        Kernel.unregister("emboss")


def test_kernels_may_have_the_names_of_recipes(engine_id):
    @kernel
    def canny(px: Pixel):
        return rgba(1.0 - px.r, px.g, px.b, px.a)

    try:
        inverted = PHOTO.copy()
        inverted[..., 0] = 255 - inverted[..., 0]
        assert np.array_equal(canny(PHOTO), inverted)
        assert np.array_equal(gpu.apply(PHOTO, canny), inverted)
        out = from_array(np.zeros_like(PHOTO))
        dala.gpu.compute.run_kernel("canny", [from_array(PHOTO)], out)  # kernels by name
        assert np.array_equal(out.numpy(), inverted)
        assert np.array_equal(gpu.apply(PHOTO, "canny"), gpu.canny(PHOTO))  # filters by name
        assert not np.array_equal(gpu.canny(PHOTO), inverted)
    finally:
        Kernel.unregister("canny")


RECIPES = sorted(name for name, spec in declared().items() if spec.is_recipe)


def test_recipes_by_name_as_kernels():
    assert "rotate" in RECIPES
    out = buffer(np.zeros((5, 7, 4)), dtype="u8", device="cpu")
    for name in RECIPES:
        home = "effects" if hasattr(dala.media.effects, name) else "gpu"
        with pytest.raises(UnknownKernel) as caught:
            dala.gpu.compute.run_kernel(name, [out], out)
        text = str(caught.value)
        assert text.startswith(f"run_kernel: no kernel {name!r}. It is a filter of several kernels")
        assert f"call dala.media.{home}.{name}(picture" in text
        assert callable(getattr(getattr(dala.media, home), name))
