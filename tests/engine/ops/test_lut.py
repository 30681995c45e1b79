"""Look-up tables: values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu import compute
from dala.gpu.compute.cube import Cube
from dala.gpu.compute.kernel import get
from tests.engine.ops.tables import assert_is, curve, expected, picture, ramp, table
from tests.support import pictures
from tests.support.engines import run

CASES = [
    {},
    {"method": "trilinear"},
    {"amount": 0.35},
    {"amount": 0.0, "method": "trilinear"},
    {"domain_min": (-0.5, 0.0, 0.25), "domain_max": (1.0, 2.0, 0.75)},
]


@pytest.mark.third
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
