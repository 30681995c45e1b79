"""Look-up tables: calls, native code, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

import dala
from dala.gpu import compute
from dala.gpu.compute.cube import Cube, load_cube
from dala.gpu.compute.engines.cpu.native import compile_native, names
from dala.gpu.compute.engines.cpu.ops import lut as native
from dala.gpu.compute.engines.cpu.ops import lut_bytes
from dala.gpu.compute.kernel import get
from tests.engine.ops.tables import assert_is, curve, expected, picture, ramp, table
from tests.support import lut_picture, pictures
from tests.support.engines import run

# calls --------------------------------------------------------------------------------------------


def test_output_of_a_plain_call(engine_id):
    image = compute.from_array(picture((4, 5, 4), "u8"))
    out = get("lut_apply")(image, compute.from_array(ramp(3)))
    assert (out.shape, out.dtype) == ((4, 5, 4), "u8")
    assert np.array_equal(out.numpy(), image.numpy())


def test_cube_files(engine_id):
    swap = ramp(2)[..., ::-1] * 2 - 0.5
    cube = load_cube(Cube(swap, "swap", (0.25,) * 3, (0.75,) * 3).text())
    image = compute.from_array(np.array([[[0.25, 0.5, 0.75]]], "<f4"))
    out = get("lut_apply")(image, cube.buffer(), **cube.params)
    assert np.allclose(out.numpy(), [[[1.5, 0.5, -0.5]]], atol=1e-6)


@pytest.mark.parametrize("axes", [1, 3])
def test_in_a_pipeline(engine_id, axes):
    image = picture((12, 19, 4), "u8")
    lut = table(5) if axes == 3 else curve(5)
    a, b = compute.from_array(image), compute.from_array(lut)
    shape = image.shape
    steps = [compute.buffer_zeros(shape, "f32", transient=True) for _ in range(2)]
    out = compute.buffer_zeros(shape, "f32")
    p = compute.Pipeline()
    for kernel, inputs, output, params in [
        ("brightness", [a], steps[0], {"value": 0.1}),
        ("lut_apply", [steps[0], b], steps[1], {"amount": 0.75}),
        ("contrast", [steps[1]], out, {"value": 0.2}),
    ]:
        p.add({"op": "run_kernel", "kernel": kernel, "inputs": inputs, "output": output,
               "params": params})  # fmt: skip
    p.run()
    bright = image / 255.0
    bright[..., :3] += 0.1
    exact = expected(bright, lut, amount=0.75)
    exact[..., :3] = (exact[..., :3] - 0.5) * 1.2 + 0.5
    assert np.abs(out.numpy() - exact).max() < 1e-5


def test_submitted(engine_id):
    image, lut = compute.from_array(picture((6, 7, 3), "u8")), compute.from_array(table(4))
    out = compute.buffer_zeros((6, 7, 3), "u8")
    spec = {"op": "run_kernel", "kernel": "lut_apply", "inputs": [image, lut], "output": out}
    compute.wait(compute.submit(spec))
    assert_is(out.numpy(), expected(image.numpy(), lut.numpy()))


def test_a_table_that_changes_between_runs(engine_id):
    image = compute.from_array(picture((6, 7, 4), "u8"))
    out = compute.buffer_zeros((6, 7, 4), "u8")
    lut = compute.from_array(ramp(3))
    kernel = get("lut_apply")
    kernel(image, lut, out=out)
    assert np.array_equal(out.numpy(), image.numpy())
    compute.run_kernel("scalar_mul", [lut], lut, {"scalar": 0.5})
    kernel(image, lut, out=out)
    assert_is(out.numpy(), expected(image.numpy(), ramp(3) * np.float32(0.5)))


# native code --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("channels", [3, 4])
def test_native_code_stays_in_bounds(dtype, channels):
    """Compiled with checks, colors at every corner and beyond; blocks meet at 128 pixels."""
    kinds = {"u8": names.u8, "f32": names.f32}
    image = picture((1, 300, channels), dtype)
    image[0, :4] = [[0], [255], [0], [255]] if dtype == "u8" else [[-1], [2], [np.nan], [np.inf]]
    n = 4
    wide, size = np.zeros(n**3 * 4, "<f4"), (np.zeros(3, "<f4"), np.full(3, 3, "<f4"), n)
    compile_native(native.pad_entries, checked=True)(table(n).reshape(-1), wide, 0, n**3)
    for tetrahedral, stored, kind, numpy in ((True, 4, "u8", "u1"), (False, 3, "f32", "<f4")):
        code = compile_native(
            native.map_pixels, checked=True, T=kinds[dtype], S=kinds[kind], channels=channels,
            stored=stored, tetrahedral=tetrahedral, mixing=True,
        )  # fmt: skip
        out = np.zeros(300 * stored, numpy)
        code(image.reshape(-1), wide, out, *size, 0.5, 0.5, 0, 300)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(("channels", "stored"), [(3, 3), (3, 4), (4, 4)])
def test_native_code_of_bytes_stays_in_bounds(plain, channels, stored):
    n = 4
    image = picture((1, 300, channels), "u8")
    image[0, :2] = [[0], [255]]
    wide, places = np.zeros(n**3 * 4 + 4, "<i2"), np.repeat(np.uint32((n - 1) << 16), 768)
    code = compile_native(lut_bytes.quantize_entries, checked=True)
    code(table(n).reshape(-1), wide, 32640.0, 100, 65535, 0, n**3)
    for tetrahedral in (True, False):
        code = compile_native(
            lut_bytes.look_up_bytes, checked=True, channels=channels, stored=stored,
            tetrahedral=tetrahedral, mixing=True, plain=plain,
        )  # fmt: skip
        code(image.reshape(-1), wide, places, np.zeros(300 * stored, "u1"), n, 9, 23, 128, 0, 300)


# refusals -----------------------------------------------------------------------------------------

IMAGE, TABLE = np.zeros((4, 5, 3), "u1"), np.zeros((2, 2, 2, 3), "<f4")


_IMAGE_SHAPE = "image must be of shape (height, width, 3) or (height, width, 4), got "


_GRAY = "Convert a gray picture to three channels first."


_LUT_SHAPE = "lut must be of shape (n, n, n, 3), or (n, 3) for curves, got "


_ENTRIES = "lut must be of 2 to 65536 entries along each axis, got "


_AMOUNT = "amount must be a number from 0 to 1, got "


_METHOD = "method must be one of 'tetrahedral', 'trilinear', got 'cubic'."


_DOMAIN = "domain_min must be below domain_max, (1.0, 1.0, 1.0), got (1.0, 1.0, 1.0)."


_DOMAIN_MAX = "domain_max must be a number or 3 numbers from -1e+09 to 1e+09, got "


_SIZE = (
    "no parameter 'size'. It takes: method, amount, domain_min, domain_max, shaper, shaper_min, "
    "shaper_max."
)


REFUSED = [
    (np.zeros((4, 5), "u1"), TABLE, {}, dala.ShapeMismatch, f"{_IMAGE_SHAPE}(4, 5). {_GRAY}"),
    (np.zeros((4, 5, 1), "u1"), TABLE, {}, dala.ShapeMismatch, f"{_IMAGE_SHAPE}(4, 5, 1). {_GRAY}"),
    (
        np.zeros((4, 5, 3), "<i4"), TABLE, {}, dala.DtypeMismatch,
        "image must be of dtype f32 or u8, got 's32'.",
    ),
    (IMAGE, TABLE.astype("u1"), {}, dala.DtypeMismatch, "lut must be of dtype 'f32', got 'u8'."),
    (IMAGE, TABLE[..., :2], {}, dala.ShapeMismatch, _LUT_SHAPE + "(2, 2, 2, 2)."),
    (IMAGE, TABLE[:1], {}, dala.ShapeMismatch, _LUT_SHAPE + "(1, 2, 2, 3)."),
    (IMAGE, TABLE[0], {}, dala.ShapeMismatch, _LUT_SHAPE + "(2, 2, 3)."),
    (
        IMAGE, TABLE[:1, :1, :1], {}, dala.ShapeMismatch,
        "lut must be of 2 to 129 entries along each axis, got 1.",
    ),
    (IMAGE, np.zeros((1, 3), "<f4"), {}, dala.ShapeMismatch, _ENTRIES + "1."),
    (IMAGE, np.zeros((65537, 3), "<f4"), {}, dala.ShapeMismatch, _ENTRIES + "65537."),
    (IMAGE, TABLE, {"amount": 1.5}, dala.ParameterError, _AMOUNT + "1.5."),
    (IMAGE, TABLE, {"amount": math.nan}, dala.ParameterError, _AMOUNT + "nan."),
    (IMAGE, TABLE, {"method": "cubic"}, dala.ParameterError, _METHOD),
    (IMAGE, TABLE, {"domain_min": 1.0}, dala.ParameterError, _DOMAIN),
    (IMAGE, TABLE, {"domain_max": (1, 1)}, dala.ParameterError, _DOMAIN_MAX + "(1, 1)."),
    (IMAGE, TABLE, {"domain_max": math.inf}, dala.ParameterError, _DOMAIN_MAX + "inf."),
    (IMAGE, TABLE, {"size": 3}, dala.UnknownParameter, _SIZE),
]  # fmt: skip


@pytest.mark.parametrize(("image", "lut", "params", "error", "wanted"), REFUSED)
def test_invalid_calls(engine_id, image, lut, params, error, wanted):
    before = np.full((4, 5, 3), 7, "u1")
    out = compute.from_array(before)
    inputs = [compute.from_array(np.ascontiguousarray(a)) for a in (image, lut)]
    with pytest.raises(error) as caught:
        compute.run_kernel("lut_apply", inputs, out, params)
    assert str(caught.value) == f"lut_apply: {wanted}"
    assert np.array_equal(out.numpy(), before)


@pytest.mark.parametrize("shape", [(4, 5), (5, 4, 3), (4, 5, 1), (4, 5, 5)])
def test_invalid_outputs(engine_id, shape):
    inputs = [compute.from_array(IMAGE), compute.from_array(TABLE)]
    with pytest.raises(dala.ShapeMismatch) as caught:
        compute.run_kernel("lut_apply", inputs, compute.buffer_zeros(shape, "u8"))
    assert str(caught.value) == (
        f"lut_apply: output must be of shape (4, 5, 3), got {shape}. "
        "Use buffer_zeros((4, 5, 3), 'u8')."
    )
    with pytest.raises(dala.DtypeMismatch) as caught:
        compute.run_kernel("lut_apply", inputs, compute.buffer_zeros((4, 5, 3), "s32"))
    assert str(caught.value) == "lut_apply: output must be of dtype 'u8', got 's32'."


def test_empty_pictures(engine_id):
    empty = compute.buffer_zeros((0, 5, 3), "u8")
    assert get("lut_apply")(empty, compute.from_array(TABLE)).shape == (0, 5, 3)


def test_the_picture_in_the_docs_is_current(engine_id):
    """To change it on purpose: python -m tests.support.lut_picture, then look at it."""
    with Image.open(lut_picture.PATH) as stored:
        off = np.abs(np.asarray(stored).astype(int) - lut_picture.show())
    assert off.max() <= 1


def test_a_photo_through_a_table(engine_id):
    """A table made from a formula gives the formula's colors, within interpolation errors."""
    image = pictures.photo(40, 64)
    lut = ramp(33) ** np.float32(0.8)
    got = run("lut_apply", [image, lut], image.shape, "u8")
    curved = (image[..., :3] / 255.0) ** 0.8 * 255
    assert np.abs(got[..., :3] - curved).mean() < 0.6
