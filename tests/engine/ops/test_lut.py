"""Color lookup tables on every engine, against plain formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import dala
from dala.gpu import compute
from dala.gpu.compute.cube import Cube, load_cube
from dala.gpu.compute.engines.cpu.native import compile_native, names
from dala.gpu.compute.engines.cpu.ops import lut as native
from dala.gpu.compute.engines.cpu.ops import lut_bytes
from dala.gpu.compute.kernel import get
from tests.support import lut_picture, pictures
from tests.support.engines import run
from tests.support.tolerances import assert_close


def ramp(n, low=(0, 0, 0), high=(1, 1, 1)):
    """Return the identity table."""
    axes = [np.linspace(a, b, n) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).astype("<f4")


def table(n, seed=1):
    return np.random.default_rng(seed).uniform(-0.1, 1.1, (n, n, n, 3)).astype("<f4")


def curve(n):
    """Return waves, which a fine table interpolates almost exactly."""
    x = np.linspace(0, 1, n)[:, None]
    return (0.5 + 0.55 * np.sin(5 * x + np.array([0.0, 2.0, 4.0]))).astype("<f4")


def picture(shape, dtype, seed=2):
    image = np.random.default_rng(seed).integers(0, 256, shape, "u1")
    return image if dtype == "u8" else (image / 255).astype("<f4")


def corners(lut, color, low, high, method):
    """Look up one color at a time, with the weights of the eight corners written out."""
    n = lut.shape[0]
    t = [min(max((c - a) / (b - a) * (n - 1), 0), n - 1) for c, a, b in zip(color, low, high)]  # noqa: B905
    cell = [min(int(v), n - 2) for v in t]
    r, g, b = (v - i for v, i in zip(t, cell, strict=True))
    weights = {}
    if method == "trilinear":
        for corner in itertools.product((0, 1), repeat=3):
            parts = [p if s else 1 - p for s, p in zip(corner, (r, g, b), strict=True)]
            weights[corner] = math.prod(parts)
    else:  # the six tetrahedra, by the order of the fractions
        if r >= g >= b:
            path = (1, 0, 0), (1, 1, 0), (r, g, b)
        elif r >= b >= g:
            path = (1, 0, 0), (1, 0, 1), (r, b, g)
        elif b >= r >= g:
            path = (0, 0, 1), (1, 0, 1), (b, r, g)
        elif g >= r >= b:
            path = (0, 1, 0), (1, 1, 0), (g, r, b)
        elif g >= b >= r:
            path = (0, 1, 0), (0, 1, 1), (g, b, r)
        else:
            path = (0, 0, 1), (0, 1, 1), (b, g, r)
        second, third, (x, y, z) = path
        weights = {(0, 0, 0): 1 - x, second: x - y, third: y - z, (1, 1, 1): z}
    found = np.zeros(3)
    for corner, weight in weights.items():
        found += weight * lut[tuple(np.add(cell, corner))].astype(float)
    return found


def expected(image, lut, method="tetrahedral", amount=1.0, low=(0, 0, 0), high=(1, 1, 1)):
    values = image / 255.0 if image.dtype == np.uint8 else image.astype(float)
    made = values.copy()
    for at in np.ndindex(*image.shape[:2]):
        color = values[at][:3]
        if lut.ndim == 2:
            n = len(lut)
            grid = [np.linspace(a, b, n) for a, b in zip(low, high, strict=True)]
            found = np.array([np.interp(color[c], grid[c], lut[:, c]) for c in range(3)])
        else:
            found = corners(lut, color, low, high, method)
        made[at][:3] = color + (found - color) * amount
    return made


def assert_is(got, exact, slack=0.51):
    if got.dtype == np.uint8:
        off = np.abs(got - np.clip(exact, 0, 1) * 255)
        assert off.max() <= slack, f"{off.max():.3f} steps at {np.argwhere(off > slack)[0]}"
    else:
        assert_close(got, exact.astype("<f4"), "webgpu", "program")


# values -------------------------------------------------------------------------------------------
CASES = [
    {},
    {"method": "trilinear"},
    {"amount": 0.35},
    {"amount": 0.0, "method": "trilinear"},
    {"domain_min": (-0.5, 0.0, 0.25), "domain_max": (1.0, 2.0, 0.75)},
]


@pytest.mark.parametrize("params", CASES)
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_values(engine_id, dtype, params):
    named = dict(params)
    low, high = named.pop("domain_min", (0, 0, 0)), named.pop("domain_max", (1, 1, 1))
    for n, shape in [(2, (3, 5, 4)), (5, (4, 7, 3)), (17, (6, 9, 4))]:
        image, lut = picture(shape, dtype), table(n)
        got = run("lut_apply", [image, lut], shape, dtype, params)
        assert_is(got, expected(image, lut, **named, low=low, high=high))


@pytest.mark.parametrize("params", [{}, CASES[2], CASES[4]])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_curves(engine_id, dtype, params):
    named = dict(params)
    low, high = named.pop("domain_min", (0, 0, 0)), named.pop("domain_max", (1, 1, 1))
    for n, shape in [(2, (3, 5, 3)), (9, (4, 7, 4)), (1025, (6, 9, 4))]:
        image, lut = picture(shape, dtype), curve(n)
        got = run("lut_apply", [image, lut], shape, dtype, params)
        assert_is(got, expected(image, lut, **named, low=low, high=high))


@pytest.mark.parametrize("params", CASES)
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_curves_before_a_table(engine_id, dtype, params):
    named = dict(params)
    low, high = named.pop("domain_min", (0, 0, 0)), named.pop("domain_max", (1, 1, 1))
    amount = named.pop("amount", 1.0)
    for n, m, shape in [(2, 2, (3, 5, 4)), (5, 9, (4, 7, 3)), (17, 1025, (6, 9, 4))]:
        image, shaper = picture(shape, dtype), curve(m)
        cube = Cube(table(n), "", low, high, shaper, (-0.25, 0, 0.1), (0.75, 2, 1))
        got = run("lut_apply", [image, cube.packed], shape, dtype, {**params, **cube.params})
        values = image / 255.0 if image.dtype == np.uint8 else image.astype(float)
        shaped = expected(values, shaper, low=cube.shaper_min, high=cube.shaper_max)
        made = expected(shaped, cube.table, **named, low=low, high=high)
        assert_is(got, values + (made - values) * amount)


def test_tables_with_a_shaper_are_checked(engine_id):
    image = compute.from_array(picture((2, 2, 3), "u8"))
    for packed, shaper in ((np.zeros((10, 3), "<f4"), 3), (np.zeros((9, 3), "<f4"), 1)):
        with pytest.raises(dala.ShapeMismatch, match=rf"of shape \({shaper} \+ n \* n \* n, 3\)"):
            get("lut_apply")(image, compute.from_array(packed), shaper=shaper)
    with pytest.raises(dala.ParameterError, match="shaper_min must be below shaper_max"):
        get("lut_apply")(
            image, compute.from_array(np.zeros((10, 3), "<f4")), shaper=2, shaper_min=2.0
        )


@pytest.mark.parametrize("method", ["tetrahedral", "trilinear"])
@pytest.mark.parametrize("n", [2, 17, 33])
def test_the_identity_is_exact(engine_id, n, method):
    """All bytes, all grays and a thousand colors."""
    grays = np.repeat(np.arange(256, dtype="u1"), 4).reshape(1, 256, 4)
    image = np.concatenate([grays, picture((4, 256, 4), "u8")])
    got = run("lut_apply", [image, ramp(n)], image.shape, "u8", {"method": method})
    assert np.array_equal(got, image)
    line = np.linspace(0, 1, n, dtype="<f4")[:, None].repeat(3, axis=1)
    assert np.array_equal(run("lut_apply", [image, line], image.shape, "u8"), image)


def test_colors_on_entries_are_exact(engine_id):
    lut = table(6)
    image = ramp(6).reshape(6, 36, 3)
    for method in ("tetrahedral", "trilinear"):
        got = run("lut_apply", [image, lut], image.shape, "f32", {"method": method})
        assert np.allclose(got, lut.reshape(6, 36, 3), atol=2e-6)


def test_colors_outside_the_domain_are_clamped(engine_id):
    lut = table(4)
    image = np.array([[[-3, -3, -3], [9, 9, 9], [np.inf, -np.inf, 0], [np.nan, 1, np.nan]]], "<f4")
    got = run("lut_apply", [image, lut], (1, 4, 3), "f32")
    assert np.allclose(got[0], [lut[0, 0, 0], lut[3, 3, 3], lut[3, 0, 0], lut[0, 3, 0]], atol=1e-6)
    line = curve(4)
    got = run("lut_apply", [image, line], (1, 4, 3), "f32")
    assert np.allclose(got[0, 2], [line[3, 0], line[0, 1], line[0, 2]], atol=1e-6)


def test_nan_entries_become_bytes(engine_id):
    image = picture((2, 150, 4), "u8")
    for lut in (np.full((2, 2, 2, 3), np.nan, "<f4"), np.full((2, 3), np.nan, "<f4")):
        got = run("lut_apply", [image, lut], image.shape, "u8")
        assert (got[..., :3] == 0).all()
    for lut in (np.full((2, 2, 2, 3), 1e38, "<f4"), np.full((2, 3), 1e38, "<f4")):
        got = run("lut_apply", [image, lut], image.shape, "u8")
        assert (got[..., :3] == 255).all()


@pytest.mark.parametrize("method", ["tetrahedral", "trilinear"])
@pytest.mark.parametrize("channels", [3, 4])
def test_infinite_entries_count_even_with_weight_0(engine_id, method, channels):
    """0 times infinity is NaN, so it shows which entries a color has: equal fractions, the ends."""
    lut, random = table(5), np.random.default_rng(8)
    for v in (np.nan, np.inf, -np.inf, 3.0, -2.0, 1e30):
        lut.reshape(-1)[random.integers(0, lut.size, 6)] = v
    few = np.array([0, 1, 40, 63, 64, 100, 191, 254, 255], "u1")
    colors = np.stack(np.meshgrid(few, few, few, indexing="ij"), -1).reshape(27, 27, 3)
    image = np.ascontiguousarray(np.dstack([colors, colors[..., :1]])[..., :channels])
    for source, params in ((image, {}), (image, {"amount": 0.5}), (image / np.float32(255), {})):
        given = {"method": method, **params}
        with dala.device("reference"):
            exact = run("lut_apply", [source, lut], source.shape, "f32", given)
        got = run("lut_apply", [source, lut], source.shape, "f32", given)
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=2e-5)
        assert not np.isfinite(exact[..., :3]).all()
        if source.dtype == np.float32:
            got = run("lut_apply", [source, lut], source.shape, "u8", given)
            wanted = np.clip(np.nan_to_num(exact, posinf=9, neginf=-9), 0, 1) * 255
            assert np.abs(got - wanted).max() <= 0.51


@pytest.mark.parametrize("method", ["tetrahedral", "trilinear", "curves"])
@pytest.mark.parametrize("channels", [3, 4])
def test_bytes_equal_the_definition(engine_id, method, channels):
    """Also of entries that are far, not finite, or next to a half; and RGB as RGBA."""
    random = np.random.default_rng(8)
    image = np.concatenate(
        [picture((9, 61, channels), "u8"), pictures.photo(9, 61)[..., :channels]]
    )
    image[0, :2] = [[0], [255]]
    for n in (2, 5, 18):
        far, even = table(n), (random.integers(-90, 600, (n, n, n, 3)) / 510).astype("<f4")
        for v in (np.nan, np.inf, -np.inf, 3.0, -2.0, 1e30, 3e38, 1e-30, -1e-42, 255.0, -0.0):
            far.reshape(-1)[random.integers(0, far.size, max(1, far.size // 60))] = v
        for lut in (table(n), even, far):
            for params in CASES:
                given = {
                    **params,
                    "method": "trilinear" if method == "trilinear" else "tetrahedral",
                }
                entries = np.ascontiguousarray(lut[0, 0]) if method == "curves" else lut
                got = run("lut_apply", [image, entries], image.shape, "u8", given)
                with dala.device("reference"):
                    wanted = run("lut_apply", [image, entries], image.shape, "u8", given)
                    other = run("lut_apply", [image, entries], (*image.shape[:2], 3), "u8", given)
                assert np.array_equal(got, wanted)
                assert np.array_equal(got[..., :3], other)


@pytest.mark.parametrize("method", ["tetrahedral", "trilinear"])
def test_bytes_behind_curves_equal_the_definition(engine_id, method):
    image, random = picture((9, 61, 4), "u8"), np.random.default_rng(9)
    image[0, :2] = [[0], [255]]
    domains = {"domain_min": (-0.5, 0.0, 0.25), "domain_max": (1.0, 2.0, 0.75)}
    for count, n in ((2, 5), (9, 17), (300, 4)):
        curves = np.sort(random.uniform(-0.2, 1.3, (count, 3)), axis=0).astype("<f4")
        far = curves.copy()
        for v in (np.nan, np.inf, -np.inf, 3.0, 1e-30, -1e30):
            far.reshape(-1)[random.integers(0, far.size)] = v
        for first in (curves, far):
            packed = np.concatenate([first, table(n).reshape(-1, 3)])
            for params in ({}, domains, {"shaper_min": 0.1, "shaper_max": 0.8, "amount": 0.4}):
                given = {"method": method, "shaper": count, **params}
                got = run("lut_apply", [image, packed], image.shape, "u8", given)
                with dala.device("reference"):
                    wanted = run("lut_apply", [image, packed], image.shape, "u8", given)
                    exact = run("lut_apply", [image, packed], image.shape, "f32", given)
                assert np.array_equal(got, wanted)
                if first is curves:  # a larger domain has coarser entries
                    assert_is(got, exact, 0.52 if params is domains else 0.51)


def test_table_axes_are_red_green_blue(engine_id):
    lut = np.zeros((2, 2, 2, 3), "<f4")
    lut[1, 0, 0], lut[0, 1, 0], lut[0, 0, 1] = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.7, 0.8, 0.9)
    image = np.eye(3, dtype="<f4").reshape(1, 3, 3)
    got = run("lut_apply", [image, lut], (1, 3, 3), "f32")
    assert np.allclose(got[0], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]], atol=1e-6)


def test_alpha_is_kept_or_added(engine_id):
    image, lut = picture((5, 6, 4), "u8"), table(3)
    assert np.array_equal(run("lut_apply", [image, lut], (5, 6, 4), "u8")[..., 3], image[..., 3])
    floats = run("lut_apply", [image, lut], (5, 6, 4), "f32")
    assert np.allclose(floats[..., 3], image[..., 3] / 255, atol=1e-6)
    plain = np.ascontiguousarray(image[..., :3])
    for dtype, full in (("u8", 255), ("f32", 1)):
        got = run("lut_apply", [plain, lut], (5, 6, 4), dtype)
        assert (got[..., 3] == full).all()
        less = run("lut_apply", [image, lut], (5, 6, 3), dtype)
        assert np.array_equal(less, got[..., :3])
    back = run("lut_apply", [(image / 255).astype("<f4"), lut], (5, 6, 4), "u8")
    assert np.array_equal(back[..., 3], image[..., 3])


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_picture_and_table(engine_id, data):
    n = data.draw(st.integers(2, 12))
    shape = (
        data.draw(st.integers(1, 5)),
        data.draw(st.integers(1, 300)),
        data.draw(st.sampled_from([3, 4])),
    )
    dtype, stored = (data.draw(st.sampled_from(["u8", "f32"])) for _ in range(2))
    params = {
        "method": data.draw(st.sampled_from(["tetrahedral", "trilinear"])),
        "amount": data.draw(st.sampled_from([1.0, 0.5, 0.001])),
        "domain_min": data.draw(st.sampled_from([0.0, -0.25])),
        "domain_max": data.draw(st.sampled_from([1.0, 0.5, 3.0])),
    }
    image = picture(shape, dtype, data.draw(st.integers(0, 9)))
    lut = curve(n) if data.draw(st.booleans()) else table(n)
    got = run("lut_apply", [image, lut], shape, stored, params)
    with dala.device("reference"):
        exact = run("lut_apply", [image, lut], shape, "f32", params)
    assert_is(got, exact)


@pytest.mark.slow
def test_the_largest_tables(engine_id):
    image = picture((3, 40, 4), "u8")
    got = run("lut_apply", [image, ramp(129)], image.shape, "u8")
    assert np.array_equal(got, image)
    line = np.linspace(0, 1, 65536, dtype="<f4")[:, None].repeat(3, axis=1)
    assert np.array_equal(run("lut_apply", [image, line], image.shape, "u8"), image)


def test_many_pixels_in_many_tiles(engine_id):
    """Equal rows give equal results, wherever tiles begin and end."""
    rows = picture((4, 331, 3), "u8")
    image = np.tile(rows, (40, 1, 1))
    got = run("lut_apply", [image, table(9)], image.shape, "u8")
    assert np.array_equal(got, np.tile(got[:4], (40, 1, 1)))
    assert_is(got[:4], expected(rows, table(9)))


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


# native code ------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("channels", [3, 4])
def test_native_code_stays_in_bounds(dtype, channels):
    """Compiled with checks, colors at every corner and beyond; blocks meet at 128 pixels."""
    kinds = {"u8": names.u8, "f32": names.f32}
    image = picture((1, 300, channels), dtype)
    image[0, :4] = [[0], [255], [0], [255]] if dtype == "u8" else [[-1], [2], [np.nan], [np.inf]]
    n = 4
    wide, size = np.zeros(n**3 * 4, "<f4"), (0.0, 0.0, 0.0, 3.0, 3.0, 3.0, n)
    compile_native(native.pad_entries, checked=True)(table(n).reshape(-1), wide, 0, n**3)
    for tetrahedral, stored, kind, numpy in ((True, 4, "u8", "u1"), (False, 3, "f32", "<f4")):
        code = compile_native(
            native.look_up, checked=True, T=kinds[dtype], S=kinds[kind], channels=channels,
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
    wide, places = np.zeros(n**3 * 4, "<u2"), np.repeat(np.uint32((n - 1) << 16), 768)
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
