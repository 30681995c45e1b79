"""Planes of more than eight bits, HLG and PQ on every engine, against the standards' formulas."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute.kernels.deep import chroma_size
from tests.support.engines import run
from tests.support.hdr_formulas import TO_709, codes, eetf, light, nits_of_pq, pq, rgb_of, sdr

#: How far f32 results may be from the formula.
FLOATS = 2e-4


def pairs(a):
    """Samples as two bytes each."""
    a = np.ascontiguousarray(a, "<u2")
    return a.view("u1").reshape(*a.shape, 2)


COLORS = [
    (0.0, 0.0, 0.0), (0.1, 0.1, 0.1), (0.3, 0.3, 0.3), (0.5, 0.5, 0.5), (0.58, 0.58, 0.58),
    (0.75, 0.75, 0.75), (0.9, 0.9, 0.9), (1.0, 1.0, 1.0), (0.7, 0.4, 0.3), (0.4, 0.6, 0.35),
    (0.3, 0.35, 0.6), (0.9, 0.6, 0.5),
]  # fmt: skip


@pytest.mark.third
@pytest.mark.parametrize("transfer", ["hlg", "pq"])
def test_tone_mapped_colors_are_those_of_the_standards(engine_id, transfer):
    planes = np.array([[codes(c) for c in COLORS]])
    expected = np.array([[sdr(np.clip(rgb_of(*yuv), 0, None), transfer) for yuv in planes[0]]])
    inputs = [pairs(planes[..., i]) for i in range(3)]
    params = {"matrix": "bt2020", "transfer": transfer, "peak": 1000}
    got = run("yuv16_to_rgb", inputs, (*planes.shape[:2], 4), "u8", params)
    assert np.abs(got[..., :3] - expected * 255).max() <= 1.0
    assert np.abs(got[..., :3] - expected * 255).mean() < 0.35
    assert (got[..., 3] == 255).all()
    floats = run("yuv16_to_rgb", inputs, (*planes.shape[:2], 3), "f32", params)
    assert np.abs(floats - expected).max() < 2e-3  # the published matrix has four digits


def test_reference_white_and_peak():
    assert nits_of_pq(0.5806888) == pytest.approx(203, abs=0.01)
    assert light((0.75, 0.75, 0.75), "hlg")[0] == pytest.approx(203, abs=0.2)
    assert sdr((1.0, 1.0, 1.0), "hlg") == pytest.approx([1, 1, 1], abs=2e-3)
    assert light((1.0, 1.0, 1.0), "hlg")[0] == pytest.approx(1000)


@pytest.mark.parametrize("transfer", ["hlg", "pq"])
def test_floats_have_sdr_white_at_one(engine_id, transfer):
    white = 0.75 if transfer == "hlg" else pq(203.0)
    grays = [0.0, 0.2, white, 0.9, 1.0]
    samples = np.array([[round((g * 219 + 16) * 256) for g in grays]])
    coded = (samples / 256 - 16) / 219
    got = run(
        "yuv16_to_rgb", [pairs(samples)], (1, 5, 4), "f32",
        {"bits": 16, "matrix": "bt2020", "transfer": transfer, "light": "float"},
    )  # fmt: skip
    expected = [(light((c, c, c), transfer)[0] / 203) ** (1 / 2.4) for c in coded[0]]
    assert got[0, :, 0] == pytest.approx(expected, abs=FLOATS)
    assert got[0, 2, 0] == pytest.approx(1.0, abs=1e-3)
    most = 1000 if transfer == "hlg" else 10000
    assert got[0, 4, 0] == pytest.approx((most / 203) ** (1 / 2.4), rel=1e-3)


@pytest.mark.parametrize("peak", [100.0, 600.0, 10000.0])
def test_peak_of_metadata(engine_id, peak):
    grays = np.linspace(0, pq(max(peak, 203.0)), 32)
    samples = np.array([[round((g * 219 + 16) * 256) for g in grays]])
    got = run(
        "yuv16_to_rgb", [pairs(samples)], (1, 32, 3), "f32",
        {"bits": 16, "transfer": "pq", "peak": peak},
    )  # fmt: skip
    nits = [nits_of_pq(max((s / 256 - 16) / 219, 0)) for s in samples[0]]
    mapped = [min(eetf(n, peak) if peak > 203 else n, 203.0) for n in nits]
    assert got[0, :, 1] == pytest.approx([(m / 203) ** (1 / 2.4) for m in mapped], abs=2e-3)
    assert (np.diff(got[0, :, 1]) > -1e-5).all()
    assert got[0, -1, 1] == pytest.approx(1.0, abs=2e-3)
    params = {"bits": 16, "transfer": "pq", "peak": peak}
    coarse = run("yuv16_to_rgb", [pairs(samples)], (1, 32, 3), "u8", params)
    assert (
        np.abs(coarse[0, :, 1] - 255.0 * got[0, :, 1]).max() <= 0.55
    )  # the knee of high peaks too


# layouts --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("siting", "size"),
    [("left", (6, 8)), ("center", (5, 7)), ("topleft", (5, 8)), ("left", (1, 1))],
)
def test_every_layout_is_what_the_definition_computes(engine_id, siting, size):
    rng = np.random.default_rng(5)
    height, width = size
    luma = rng.integers(0, 1024, size)
    for down, across in ((1, 1), (1, 2), (2, 2), (2, 1)):
        small = -(-height // down), -(-width // across)
        u, v = rng.integers(0, 1024, small), rng.integers(0, 1024, small)
        params = {"siting": siting, "matrix": "bt709"}
        inputs = [pairs(p) for p in (luma, u, v)]
        got = run("yuv16_to_rgb", inputs, (height, width, 3), "f32", params)
        with dala.device("reference"):
            wanted = run("yuv16_to_rgb", inputs, (height, width, 3), "f32", params)
        assert np.abs(got - wanted).max() < FLOATS
        high = np.concatenate([pairs(u << 6), pairs(v << 6)], axis=-1)
        two = [pairs(luma << 6), high]
        p010 = run("yuv16_to_rgb", two, (height, width, 3), "f32", {**params, "shift": 6})
        assert np.abs(p010 - got).max() < 1e-6


# back -----------------------------------------------------------------------------------------
def unpacked(words, sizes):
    """The planes of a list of u32."""
    flat, made = words.view("<u2"), []
    for rows, columns in sizes:
        made.append(flat[: rows * columns].reshape(rows, columns).astype(int))
        flat = flat[rows * columns :]
    return made


@pytest.mark.parametrize("transfer", ["hlg", "pq"])
def test_display_values_return_to_their_codes(engine_id, transfer):
    rng = np.random.default_rng(8)
    colors = rng.uniform(0.05, 0.95, (4, 6, 3))
    planes = np.array([[codes(c, 12) for c in row] for row in colors])
    inputs = [pairs(planes[..., i]) for i in range(3)]
    params = {"bits": 12, "matrix": "bt2020"}
    shown = run(
        "yuv16_to_rgb", inputs, (4, 6, 4), "f32", {**params, "transfer": transfer, "light": "float"}
    )
    coded = run("display_to_hdr", [shown], (4, 6, 4), "f32", {"transfer": transfer})
    expected = np.array([[rgb_of(*yuv, bits=12) for yuv in row] for row in planes])
    assert np.abs(coded[..., :3] - expected).max() < 1e-4  # a step of 12 bits is 2.9e-4
    words = run("rgb_to_yuv16", [coded], (36,), "u32", {**params, "layout": "444"})
    back = unpacked(words, [(4, 6)] * 3)
    assert max(np.abs(b - planes[..., i]).max() for i, b in enumerate(back)) <= 1
    assert np.mean([np.abs(b - planes[..., i]).mean() for i, b in enumerate(back)]) < 0.2


def test_sdr_colors_in_an_hdr_picture(engine_id):
    image = np.array([[[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.5]]], np.float32)
    params = {"transfer": "pq", "primaries": "bt709"}
    got = run("display_to_hdr", [image], image.shape, "f32", params)
    red = np.linalg.inv(TO_709) @ (203.0, 0.0, 0.0)
    assert got[0, 0, :3] == pytest.approx([pq(n) for n in red], abs=1e-3)
    assert got[0, 1] == pytest.approx([pq(203.0)] * 3 + [0.5], abs=1e-4)


@pytest.mark.parametrize("peak", [1000.0, 4000.0])
def test_tone_mapping_of_display_values(engine_id, peak):
    rng = np.random.default_rng(9)
    colors = rng.uniform(0.0, pq(peak), (3, 5, 3))
    image = (np.vectorize(nits_of_pq)(colors) / 203) ** (1 / 2.4)
    got = run("display_to_sdr", [image.astype("f4")], (3, 5, 3), "u8", {"peak": peak})
    expected = np.array([[sdr(c, "pq", peak) for c in row] for row in colors])
    assert np.abs(got - expected * 255).max() <= 1.0


@pytest.mark.parametrize(
    ("layout", "siting", "size"),
    [
        ("420", "left", (6, 8)), ("420", "center", (5, 7)), ("420", "topleft", (5, 8)),
        ("420", "left", (1, 3)), ("422", "left", (5, 7)), ("422", "center", (6, 8)),
        ("444", "left", (5, 7)), ("rgb", "left", (5, 7)),
    ],
)  # fmt: skip
def test_planes_of_every_layout(engine_id, layout, siting, size):
    image = np.random.default_rng(4).uniform(-0.1, 1.1, (*size, 3)).astype("f4")
    params = {"bits": 10, "siting": siting, "matrix": "rgb" if layout == "rgb" else "bt709"}
    if layout != "rgb":
        params["layout"] = layout
    rows, columns = chroma_size(*size, layout if layout != "rgb" else "444")
    count = (size[0] * size[1] + 2 * rows * columns + 1) // 2
    got = run("rgb_to_yuv16", [image], (count,), "u32", params)
    with dala.device("reference"):
        wanted = run("rgb_to_yuv16", [image], (count,), "u32", params)
    assert np.abs(got.view("<u2").astype(int) - wanted.view("<u2")).max() <= 1
    planes = unpacked(got, [size, (rows, columns), (rows, columns)])
    if layout == "rgb":
        exact = np.clip(np.floor(image[..., [1, 2, 0]] * 876 + 64 + 0.5), 0, 1023)
    else:
        y = image @ (0.2126, 0.7152, 0.0722)
        exact = np.clip(np.floor(y * 876 + 64 + 0.5), 0, 1023)[..., None]
    assert np.abs(planes[0] - exact[..., 0]).max() <= 1
