"""YUV on every engine and in every layout, against published numbers and formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu import compute
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.native.names import f32, i16, u8
from dala.gpu.compute.engines.cpu.ops.yuv.decode import decode
from dala.gpu.compute.engines.cpu.ops.yuv.encode import encode
from dala.gpu.compute.engines.cpu.ops.yuv.packed import decode_pixels, encode_pixels
from dala.gpu.compute.kernel import get
from tests.support.engines import run
from tests.support.tolerances import assert_close

#: Colors of the standards' tables: black, white, red, green, blue.
COLORS = np.array([[[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]]], "u1")
LIMITED = (16, 128, 128), (235, 128, 128)
GOLDEN = {
    ("bt709", "limited"): [*LIMITED, (63, 102, 240), (173, 42, 26), (32, 240, 118)],
    ("bt601", "limited"): [*LIMITED, (81, 90, 240), (145, 54, 34), (41, 240, 110)],
    ("bt2020", "limited"): [*LIMITED, (74, 97, 240), (164, 47, 25), (29, 240, 119)],
    ("bt601", "full"): [
        (0, 128, 128), (255, 128, 128), (76, 85, 255), (150, 44, 21), (29, 255, 107),
    ],
}  # fmt: skip

#: Gains of luma, of Cr in red, Cb and Cr in green, Cb in blue, as published.
MATRICES = {
    ("bt601", "limited"): (1.164384, 1.596027, -0.391762, -0.812968, 2.017232),
    ("bt709", "limited"): (1.164384, 1.792741, -0.213249, -0.532909, 2.112402),
    ("bt2020", "limited"): (1.164384, 1.678674, -0.187326, -0.650424, 2.141772),
    ("bt601", "full"): (1.0, 1.402, -0.344136, -0.714136, 1.772),
    ("bt709", "full"): (1.0, 1.5748, -0.187324, -0.468124, 1.8556),
}
LAYOUTS = ["nv12", "i420", "y+uv", "y+uv3", "y+u+v"]


def noise(*shape, seed=1):
    return np.random.default_rng(seed).integers(0, 256, shape, "u1")


def decoded(y, u, v, matrix, span):
    """Return RGB of whole planes, with the published numbers."""
    gain, rv, gu, gv, bu = MATRICES[matrix, span]
    luma = (y - (16.0 if span == "limited" else 0.0)) * gain
    u, v = u - 128.0, v - 128.0
    return np.stack([luma + rv * v, luma + gu * u + gv * v, luma + bu * u], axis=-1)


def spread(c, siting, chroma):
    """Interpolate chroma at every pixel, one at a time, by distance."""
    rows, columns = c.shape
    made = np.empty((rows * 2, columns * 2))
    for y, x in np.ndindex(*made.shape):
        if chroma == "nearest":
            made[y, x] = c[y // 2, x // 2]
            continue
        total = 0.0
        for j in range(y // 2 - 1, y // 2 + 2):
            for i in range(x // 2 - 1, x // 2 + 2):
                down = abs(2 * j + 0.5 - y) / 2
                across = abs(2 * i + (0.5 if siting == "center" else 0.0) - x) / 2
                weight = max(0.0, 1 - down) * max(0.0, 1 - across)
                total += weight * float(c[min(max(j, 0), rows - 1), min(max(i, 0), columns - 1)])
        made[y, x] = total
    return made


def planes(height, width, seed=1):
    return (
        noise(height, width, seed=seed),
        noise(height // 2, width // 2, seed=seed + 1),
        noise(height // 2, width // 2, seed=seed + 2),
    )


def as_layout(layout, y, u, v):
    """Return the planes as inputs of a layout, and its format."""
    pairs = np.stack([u, v], axis=-1)
    if layout == "nv12":
        return [np.concatenate([y, pairs.reshape(len(u), -1)])], "nv12"
    if layout == "i420":
        flat = np.concatenate([y.reshape(-1), u.reshape(-1), v.reshape(-1)])
        return [flat.reshape(-1, y.shape[1])], "i420"
    if layout == "y+uv":
        return [y, np.ascontiguousarray(pairs.reshape(len(u), -1))], None
    return ([y, pairs] if layout == "y+uv3" else [y, u, v]), None


def assert_bytes(got, exact, slack=0.521):
    off = np.abs(got - np.clip(exact, 0, 255))
    assert off.max() <= slack, f"{off.max():.3f} steps at {np.argwhere(off > slack)[0]}"


# known colors --------------------------------------------------------------------------------
@pytest.mark.parametrize(("matrix", "span"), GOLDEN)
def test_known_colors(engine_id, matrix, span):
    golden = np.array([GOLDEN[matrix, span]], "u1")
    params = {"matrix": matrix, "range": span}
    assert np.array_equal(run("rgb_to_yuv", [COLORS], (1, 5, 3), "u8", params), golden)
    back = run("yuv_to_rgb", [golden], (1, 5, 3), "u8", params)
    assert np.abs(back.astype(int) - COLORS).max() <= 2


@pytest.mark.parametrize("form", ["nv12", "i420"])
@pytest.mark.parametrize("siting", ["left", "center"])
def test_known_colors_in_420(engine_id, form, siting):
    for color, (y, u, v) in zip(COLORS[0], GOLDEN["bt709", "limited"], strict=True):
        image = np.empty((4, 6, 3), "u1")
        image[:] = color
        params = {"format": form, "siting": siting}
        got = run("rgb_to_yuv", [image], (6, 6), "u8", params)
        rest = [u, v] * 6 if form == "nv12" else [u] * 6 + [v] * 6
        assert got.reshape(-1).tolist() == [y] * 24 + rest
        for chroma in ("nearest", "bilinear"):
            back = run("yuv_to_rgb", [got], (4, 6, 3), "u8", {**params, "chroma": chroma})
            assert np.abs(back.astype(int) - image).max() <= 2


def test_floats_are_bytes_over_255(engine_id):
    image = noise(5, 7, 3)
    for name in ("rgb_to_yuv", "yuv_to_rgb"):
        floats = run(name, [(image / 255).astype("<f4")], (5, 7, 3), "f32")
        mixed = run(name, [image], (5, 7, 3), "f32")
        assert np.abs(floats - mixed).max() < 1e-5
        assert_bytes(run(name, [image], (5, 7, 3), "u8"), floats * 255.0, 0.51)
    assert floats.min() < -0.1  # not every Y, Cb, Cr is a color, and floats are not clamped
    assert floats.max() > 1.1


@pytest.mark.parametrize("matrix", ["bt601", "bt709", "bt2020"])
@pytest.mark.parametrize("span", ["limited", "full"])
def test_round_trip(engine_id, matrix, span):
    image = noise(16, 24, 3)
    params = {"matrix": matrix, "range": span}
    floats = (image / 255).astype("<f4")
    middle = run("rgb_to_yuv", [floats], floats.shape, "f32", params)
    assert_close(
        run("yuv_to_rgb", [middle], floats.shape, "f32", params), floats, "webgpu", "program"
    )
    stored = run("rgb_to_yuv", [image], image.shape, "u8", params)
    back = run("yuv_to_rgb", [stored], image.shape, "u8", params)
    assert np.abs(back.astype(int) - image).max() <= 2


def test_round_trip_in_420(engine_id):
    """4:2:0 keeps color gradients (except at the border) and all grays."""
    y, x = np.mgrid[:32, :48]
    slope = np.stack([60 + 3 * x, 200 - 2 * y, 40 + x + 2 * y], axis=-1).astype("u1")
    gray = noise(32, 48)[..., None].repeat(3, axis=2)
    for siting in ("left", "center"):
        params = {"format": "nv12", "siting": siting}
        for image, edge in ((slope, 2), (gray, 0)):
            stored = run("rgb_to_yuv", [image], (48, 48), "u8", params)
            back = run("yuv_to_rgb", [stored], image.shape, "u8", params)
            inner = slice(edge, -edge or None)
            assert np.abs(back.astype(int) - image)[inner, inner].max() <= 3


def test_siting_moves_chroma_by_half_a_pixel(engine_id):
    """A gradient of chroma shows where samples are located."""
    u = np.tile(np.arange(100, 150, 5, dtype="u1"), (3, 1))
    y, v = np.full((6, 20), 128, "u1"), np.full((3, 10), 128, "u1")
    blue = {}
    for siting in ("left", "center"):
        got = run("yuv_to_rgb", [y, u, v], (6, 20, 3), "f32", {"siting": siting})
        blue[siting] = got[2, 2:-2, 2] * 255
    step = 2.5 * 2.112402
    assert np.allclose(np.diff(blue["left"]), step, atol=1e-3)
    assert np.allclose(blue["left"] - blue["center"], step / 2, atol=1e-3)


# every layout --------------------------------------------------------------------------------
@pytest.mark.third
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("siting", "chroma"), [("left", "bilinear"), ("center", "bilinear"), ("left", "nearest")]
)
def test_420_values(engine_id, layout, siting, chroma):
    for (height, width), (matrix, span), channels in [
        ((2, 2), ("bt709", "limited"), 3),
        ((6, 10), ("bt601", "full"), 4),
        ((10, 4), ("bt2020", "limited"), 3),
        ((4, 38), ("bt601", "limited"), 4),
    ]:
        y, u, v = planes(height, width)
        exact = decoded(y, spread(u, siting, chroma), spread(v, siting, chroma), matrix, span)
        inputs, form = as_layout(layout, y, u, v)
        params = {
            "matrix": matrix,
            "range": span,
            "siting": siting,
            "chroma": chroma,
            "format": form,
        }
        got = run("yuv_to_rgb", inputs, (height, width, channels), "u8", params)
        assert_bytes(got[..., :3], exact)
        assert (got[..., 3:] == 255).all()
        floats = run("yuv_to_rgb", inputs, (height, width, channels), "f32", params)
        assert np.abs(floats[..., :3] * 255.0 - exact).max() < 2e-3
        assert (floats[..., 3:] == 1).all()


@pytest.mark.parametrize("form", ["nv12", "i420"])
@pytest.mark.parametrize("siting", ["left", "center"])
def test_420_chroma_is_a_mean(engine_id, form, siting):
    for (height, width), channels in [((2, 2), 3), ((6, 10), 4), ((10, 34), 3)]:
        image = noise(height, width, channels)
        params = {"format": form, "siting": siting, "matrix": "bt601"}
        got = run("rgb_to_yuv", [image], (height * 3 // 2, width), "u8", params)
        rgb = image[..., :3].astype(float)
        luma = 16 + 219 / 255 * (rgb @ [0.299, 0.587, 0.114])
        assert_bytes(got[:height], luma)
        mean = np.empty((height // 2, width // 2, 3))
        for j, i in np.ndindex(*mean.shape[:2]):
            pair = rgb[2 * j : 2 * j + 2]
            if siting == "center":
                mean[j, i] = pair[:, 2 * i : 2 * i + 2].mean(axis=(0, 1))
            else:
                three = pair[:, [max(2 * i - 1, 0), 2 * i, 2 * i + 1]].mean(axis=0)
                mean[j, i] = (three * [[1], [2], [1]]).sum(axis=0) / 4
        y = mean @ [0.299, 0.587, 0.114]
        u = 128 + 224 / 255 * (mean[..., 2] - y) / 1.772
        v = 128 + 224 / 255 * (mean[..., 0] - y) / 1.402
        (expected,), _ = as_layout(form, luma, u, v)
        assert_bytes(got, expected)
        floats = run("rgb_to_yuv", [(image / 255).astype("<f4")], got.shape, "u8", params)
        assert np.abs(floats.astype(int) - got).max() <= 1


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_size_and_option(engine_id, data):
    height, width = (2 * data.draw(st.integers(1, most)) for most in (6, 700))
    params = {
        "matrix": data.draw(st.sampled_from(["bt601", "bt709", "bt2020"])),
        "range": data.draw(st.sampled_from(["limited", "full"])),
        "siting": data.draw(st.sampled_from(["left", "center"])),
        "format": data.draw(st.sampled_from(["nv12", "i420"])),
    }
    channels = data.draw(st.sampled_from([3, 4]))
    image, video = noise(height, width, channels), noise(height * 3 // 2, width)
    chroma = data.draw(st.sampled_from(["bilinear", "nearest"]))

    def both():
        yield run("rgb_to_yuv", [image], video.shape, "u8", params)
        yield run("yuv_to_rgb", [video], image.shape, "u8", {**params, "chroma": chroma})

    found = list(both())
    with dala.device("reference"):
        exact = list(both())
    for got, wanted in zip(found, exact, strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("matrix", ["bt601", "bt709", "bt2020"])
@pytest.mark.parametrize("span", ["limited", "full"])
@pytest.mark.parametrize("name", ["rgb_to_yuv", "yuv_to_rgb"])
def test_444_equals_the_definition(engine_id, name, matrix, span):
    """The definition is within 0.51 steps of the formula, and every engine equals it."""
    params = {"matrix": matrix, "range": span}
    image = np.concatenate([noise(70, 61, 3), np.sort(noise(9, 61, 3, seed=4), axis=1)])
    image[0, :8] = list(np.ndindex(2, 2, 2)) * np.array([255], "u1")
    got = run(name, [image], image.shape, "u8", params)
    with dala.device("reference"):
        assert np.array_equal(got, run(name, [image], image.shape, "u8", params))
        floats = run(name, [(image / 255).astype("<f4")], image.shape, "f32", params)
    assert_bytes(got, floats * 255.0, 0.51)
    if name == "yuv_to_rgb":
        alpha = run(name, [image], (*image.shape[:2], 4), "u8", params)
    else:
        alpha = run(name, [np.dstack([image, image[..., 0]])], image.shape, "u8", params)
    assert np.array_equal(alpha[..., :3], got)


def test_tiles_do_not_show(engine_id):
    y, u, v = (np.tile(p, (1, 3)) for p in planes(70, 400))
    got = run("yuv_to_rgb", [y, u, v], (70, 1200, 3), "u8", {"chroma": "nearest"})
    assert np.array_equal(got, np.tile(got[:, :400], (1, 3, 1)))
    again = run("rgb_to_yuv", [got], (105, 1200), "u8", {"format": "i420", "siting": "center"})
    assert np.array_equal(again[:70], np.tile(again[:70, :400], (1, 3)))


# calls --------------------------------------------------------------------------------
def test_formats_follow_from_shapes(engine_id):
    decode, encode = get("yuv_to_rgb"), get("rgb_to_yuv")
    image = compute.from_array(noise(4, 6, 4))
    packed = encode(image)
    assert (packed.shape, packed.dtype) == ((4, 6, 3), "u8")
    assert decode(packed).shape == (4, 6, 3)
    planar = encode(image, format="nv12")
    assert (planar.shape, planar.dtype) == ((6, 6), "u8")
    assert decode(planar, format="nv12").shape == (4, 6, 3)
    y, u, v = (compute.from_array(p) for p in planes(4, 6))
    assert decode(y, u, v).shape == (4, 6, 3)
    floats = encode(compute.from_array(np.ones((4, 6, 3), "<f4")))
    assert floats.dtype == "f32"
    assert np.allclose(floats.numpy(), np.array([235, 128, 128]) / 255, atol=1e-6)


def test_in_a_pipeline_and_back(engine_id):
    """Decode, brighten and encode again."""
    (video,), _ = as_layout("nv12", *planes(8, 12))
    a = compute.from_array(video)
    rgb, bright = (compute.buffer_zeros((8, 12, 4), "f32", transient=True) for _ in range(2))
    out = compute.buffer_zeros((8, 12, 3), "u8")
    p = compute.Pipeline()
    for kernel, source, target, params in [
        ("yuv_to_rgb", a, rgb, {"format": "nv12"}),
        ("brightness", rgb, bright, {"value": 0.1}),
        ("rgb_to_yuv", bright, out, {}),
    ]:
        p.add({"op": "run_kernel", "kernel": kernel, "inputs": [source], "output": target,
               "params": params})  # fmt: skip
    p.run()
    y, u, v = planes(8, 12)
    exact = np.stack([y + 21.9, spread(u, "left", "bilinear"), spread(v, "left", "bilinear")], -1)
    assert_bytes(out.numpy(), exact)


def test_submitted(engine_id):
    y, u, v = planes(6, 8)
    inputs = [compute.from_array(p) for p in (y, u, v)]
    out = compute.buffer_zeros((6, 8, 4), "u8")
    spec = {"op": "run_kernel", "kernel": "yuv_to_rgb", "inputs": inputs, "output": out}
    compute.wait(compute.submit({**spec, "params": {"chroma": "nearest"}}))
    u, v = (spread(c, "left", "nearest") for c in (u, v))
    assert_bytes(out.numpy()[..., :3], decoded(y, u, v, "bt709", "limited"))


# native code --------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [(2, 2), (4, 34), (6, 1040), (8, 2050)])
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("step", [1, 2])
def test_native_code_stays_in_bounds(size, channels, step):
    """Compiled with checks; blocks of a row meet at 1024 pixels."""
    height, width = size
    area, numbers = height * width, [1.0, 0.5, 128.0, 1.0, 1.0, 1.0, 1.0]
    video, image = noise(area * 3 // 2), noise(area * channels)
    luma, u = video[:area], video[area : area + area // 4 * step]
    v = video[area + 1 :] if step == 2 else video[area + area // 4 :]
    for bilinear, fixed in ((True, True), (False, True), (True, False)):
        code = compile_native(
            decode, checked=True, T=i16 if fixed else f32, S=u8 if fixed else f32, step=step,
            stored=channels, bilinear=bilinear, centered=True,
        )  # fmt: skip
        out = image if fixed else image.astype("<f4")
        given = [1000] * 7 if fixed else numbers
        code(luma, u, v, out, width, height, *given, 0, height)
    code = compile_native(encode, checked=True, step=step, channels=channels, centered=False)
    code(image, image[width * channels :], luma, u, v, width, *([1000] * 10), 0, height // 2)


@pytest.mark.parametrize("count", [1, 63, 64, 200])
@pytest.mark.parametrize("channels", [3, 4])
def test_native_code_of_444_stays_in_bounds(count, channels):
    packed, other = noise(count * 3), noise(count * channels)
    code = compile_native(decode_pixels, checked=True, stored=channels)
    code(packed, other, *([1000] * 6), 0, count)
    code = compile_native(encode_pixels, checked=True, channels=channels)
    code(other, packed, *([1000] * 10), 0, count)


# invalid calls --------------------------------------------------------------------------------
def zeros(*shape, dtype="u1"):
    return np.zeros(shape, dtype)


DECODE_REFUSED = [
    ([zeros(6, 4)], {}, dala.ParameterError, "format must be 'nv12' or 'i420'"),
    ([zeros(4, 4, 4)], {}, dala.ShapeMismatch, r"of shape \(height, width, 3\) for yuv444"),
    ([zeros(4, 4, 3)], {"format": "nv12"}, dala.ShapeMismatch, r"3 / 2, width\) for nv12"),
    ([zeros(6, 4)], {"format": "yuv444"}, dala.ShapeMismatch, "for yuv444, got"),
    ([zeros(7, 4)], {"format": "i420"}, dala.ShapeMismatch, r"3 / 2, width\) for i420"),
    ([zeros(6, 5)], {"format": "nv12"}, dala.ShapeMismatch, "even for 4:2:0 chroma, got 4 by 5"),
    ([zeros(3, 4), zeros(1, 4)], {}, dala.ShapeMismatch, "even for 4:2:0 chroma, got 3 by 4"),
    ([zeros(4, 4), zeros(2, 3)], {}, dala.ShapeMismatch, r"u must be of shape \(2, 4\) or"),
    ([zeros(4, 4), zeros(2, 2), zeros(2, 3)], {}, dala.ShapeMismatch, r"v must be of shape"),
    ([zeros(4, 4), zeros(2, 4)], {"format": "i420"}, dala.ParameterError, "'nv12' with 2 inputs"),
    ([zeros(6, 4, dtype="<f4")], {"format": "nv12"}, dala.DtypeMismatch, "Only 'yuv444' may be"),
    ([zeros(4, 4, 3, dtype="<i4")], {}, dala.DtypeMismatch, "yuv must be of dtype f32 or u8"),
    ([zeros(4, 4, 3)], {"matrix": "709"}, dala.ParameterError, "'bt601', 'bt709', 'bt2020'"),
    ([zeros(4, 4, 3)], {"range": "tv"}, dala.ParameterError, "'limited', 'full'"),
    ([zeros(4, 4, 3)], {"chroma": "cubic"}, dala.ParameterError, "'bilinear', 'nearest'"),
    ([zeros(4, 4, 3)], {"siting": "top"}, dala.ParameterError, "'left', 'center'"),
    ([zeros(4, 5, 3)], {}, dala.ShapeMismatch, r"output must be of shape \(4, 5, 3\) or"),
    ([zeros(4, 4)] * 4, {}, dala.ArityError, "inputs must be 1 to 3 buffers"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "params", "error", "wanted"), DECODE_REFUSED)
def test_invalid_decoding(engine_id, inputs, params, error, wanted):
    before = np.full((4, 4, 3), 7, "u1")
    out = compute.from_array(before)
    with pytest.raises(error, match=wanted):
        compute.run_kernel("yuv_to_rgb", [compute.from_array(a) for a in inputs], out, params)
    assert np.array_equal(out.numpy(), before)


ENCODE_REFUSED = [
    (zeros(4, 4), (4, 4, 3), {}, dala.ShapeMismatch, "rgb must be of 3 axes, got"),
    (zeros(4, 4, 2), (4, 4, 3), {}, dala.ShapeMismatch, r"rgb must be of shape \(4, 4, 3\)"),
    (zeros(4, 4, 3), (6, 4), {}, dala.ParameterError, "'nv12' or 'i420' for an output of two axes"),
    (zeros(5, 4, 3), (7, 4), {"format": "nv12"}, dala.ShapeMismatch, "even for 4:2:0 .* 5 by 4"),
    (zeros(4, 4, 3), (4, 4), {"format": "i420"}, dala.ShapeMismatch, r"be of shape \(6, 4\), got"),
    (zeros(4, 4, 3), (4, 4, 4), {}, dala.ShapeMismatch, r"be of shape \(4, 4, 3\)"),
    (zeros(4, 4, 3), (4, 4, 3), {"chroma": "nearest"}, dala.ParameterError, "no parameter"),
]  # fmt: skip


@pytest.mark.parametrize(("rgb", "shape", "params", "error", "wanted"), ENCODE_REFUSED)
def test_invalid_encoding(engine_id, rgb, shape, params, error, wanted):
    before = np.full(shape, 7, "u1")
    out = compute.from_array(before)
    with pytest.raises(error, match=wanted):
        compute.run_kernel("rgb_to_yuv", [compute.from_array(rgb)], out, params)
    assert np.array_equal(out.numpy(), before)


def test_420_outputs_must_be_bytes(engine_id):
    rgb = compute.from_array(zeros(4, 4, 3))
    with pytest.raises(dala.DtypeMismatch, match="output must be of dtype 'u8', got 'f32'"):
        compute.run_kernel("rgb_to_yuv", [rgb], compute.buffer_zeros((6, 4)), {"format": "nv12"})


def test_empty_pictures(engine_id):
    assert get("yuv_to_rgb")(compute.buffer_zeros((0, 4), "u8"), format="nv12").shape == (0, 4, 3)
    assert get("rgb_to_yuv")(compute.buffer_zeros((4, 0, 3), "u8")).shape == (4, 0, 3)
