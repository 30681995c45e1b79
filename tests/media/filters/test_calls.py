"""One call per filter: every kind of picture in, the same kind out, on every engine."""

from __future__ import annotations

import inspect
import os

import numpy as np
import pytest

import dala
from dala.errors import (
    DtypeError,
    ParameterError,
    ReadOnlyError,
    ShapeError,
    ShapeMismatch,
    UnknownParameter,
)
from dala.gpu.compute import Cube, buffer_zeros, from_array, run_kernel
from dala.gpu.compute.kernel import get as find_kernel
from dala.media import Frame, gpu
from dala.media.filters import plans
from dala.media.filters.declarations import declared
from dala.media.notices import MediaNotice
from tests.support.filter_formulas import neighbors
from tests.support.tolerances import assert_close

RNG = np.random.default_rng(11)
PHOTO = RNG.integers(0, 256, (18, 26, 4), dtype=np.uint8)

#: Every filter of one picture, with parameters that change something.
ONE = {
    "beauty": {"amount": 0.9, "radius": 3},
    "blur": {"radius": 2, "sigma": 1.1},
    "brightness": {"value": 0.15},
    "contrast": {"value": 0.4},
    "denoise": {"radius": 1, "sigma_space": 1.5, "sigma_color": 0.3},
    "dilate": {"radius": 2},
    "edge_detect": {"amount": 0.25},
    "erode": {"radius": 2},
    "gamma": {"value": 1.7},
    "gaussian_blur": {"sigma": 1.2},
    "grayscale": {},
    "hue": {"degrees": 70.0},
    "invert": {},
    "box_blur": {"radius": 2},
    "emboss": {"amount": 1.5, "dx": 1, "dy": -2},
    "flip": {"direction": "both"},
    "median": {"radius": 2},
    "posterize": {"bits": 3},
    "saturation": {"value": 0.7},
    "sepia": {"amount": 0.8},
    "sharpen": {"amount": 0.4},
    "vignette": {"amount": 0.6},
}
SHAPED = {
    "bicubic_scale": ({"scale": 1.5}, (27, 39)),
    "crop": ({"box": (3, 2, 15, 11)}, (9, 12)),
    "pad": ({"padding": (1, 2, 3, 4), "border": "wrap"}, (24, 30)),
    "resize": ({"size": (13, 9), "method": "area"}, (9, 13)),
    "warp_affine": ({"matrix": (1, 0, 2, 0, 1, 3), "size": (12, 10)}, (10, 12)),
    "warp_perspective": ({"matrix": np.eye(3)}, (18, 26)),
}


def by_kernel(name, images, params, shape, dtype="u8"):
    out = buffer_zeros(shape, dtype)
    run_kernel(name, [from_array(i) for i in images], out, params)
    return np.array(out.numpy())


@pytest.mark.third
@pytest.mark.parametrize("name", ONE)
def test_filters_match_their_kernels(engine_id, name):
    for photo in (PHOTO, PHOTO[..., :3], PHOTO[..., 1]):  # the last two are not contiguous
        want = by_kernel(name, [photo], ONE[name], photo.shape)
        got = getattr(gpu, name)(photo, **ONE[name])
        assert got.dtype == np.uint8
        assert got.flags.writeable
        np.testing.assert_array_equal(got, want)
    light = (PHOTO / np.float32(255)).astype(np.float32)
    got = getattr(gpu, name)(light, **ONE[name])
    np.testing.assert_array_equal(got, by_kernel(name, [light], ONE[name], light.shape, "f32"))


@pytest.mark.parametrize("name", SHAPED)
def test_filters_that_resize(engine_id, name):
    params, size = SHAPED[name]
    got = getattr(gpu, name)(PHOTO, **params)
    assert got.shape == (*size, 4)
    rest = {k: v for k, v in params.items() if k not in ("size", "scale")}
    np.testing.assert_array_equal(got, by_kernel(name, [PHOTO], rest, (*size, 4)))


def test_values_of_a_blur(engine_id):
    image = PHOTO / 255.0
    total, weights = 0.0, 0.0
    for dx, dy, shifted in neighbors(image, 3):
        weight = np.exp(-(dx * dx + dy * dy) / (2 * 1.5**2))
        total, weights = total + weight * shifted, weights + weight
    want = np.concatenate([(total / weights)[..., :3], image[..., 3:]], axis=-1)
    got = gpu.blur(PHOTO, radius=3, sigma=1.5).astype(float)
    assert np.abs(got[..., :3] - want[..., :3] * 255).max() <= 1.5


def test_values_of_color_filters(engine_id):
    picture = np.array([[[10, 100, 200, 7]]], np.uint8)
    assert gpu.invert(picture).tolist() == [[[245, 155, 55, 7]]]
    assert gpu.brightness(picture, value=0.2).tolist() == [[[61, 151, 251, 7]]]
    assert gpu.grayscale(picture).tolist() == [[[84, 84, 84, 7]]]


def test_chroma_key_gives_alpha(engine_id):
    picture = np.array([[[0, 255, 0], [200, 30, 40]]], np.uint8)
    got = gpu.chroma_key(picture)
    assert got.shape == (1, 2, 4)
    assert got[0, :, 3].tolist() == [0, 255]
    data = gpu.chroma_key(picture.tobytes(), 2, 1)
    assert data == got.tobytes()


def test_two_pictures(engine_id):
    badge = np.zeros((18, 26, 4), np.uint8)
    badge[4:9, 5:20] = (255, 200, 0, 128)
    got = gpu.overlay_alpha(PHOTO, badge, opacity=0.8)
    want = by_kernel("overlay_alpha", [PHOTO, badge], {"opacity": 0.8}, PHOTO.shape)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(gpu.video_mix(PHOTO, badge, t=0.0), PHOTO)
    data = gpu.overlay_alpha(PHOTO.tobytes(), badge.tobytes(), 26, 18, opacity=0.8)
    assert data == want.tobytes()
    with pytest.raises(
        ShapeMismatch, match="over must be a picture of the same size, 26 x 18, got '26 x 5'"
    ):
        gpu.overlay_alpha(PHOTO, badge[:5])


def test_look_up_tables(engine_id, tmp_path):
    axis = np.linspace(0, 1, 5)
    color = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    cube = Cube((1 - color).astype(np.float32), "negative")
    want = gpu.invert(PHOTO).astype(int)
    path = tmp_path / "negative.cube"
    path.write_text(cube.text())
    for lut in (cube, path, str(path), cube.table):
        assert np.abs(gpu.lut_apply(PHOTO, lut=lut) - want).max() <= 1


def test_remap(engine_id):
    y, x = np.mgrid[:5, :7].astype(np.float32)
    got = gpu.remap(PHOTO, map=np.stack([x + 2, y + 1], axis=-1))
    np.testing.assert_array_equal(got, PHOTO[1:6, 2:9])


# kinds ------------------------------------------------------------------------------------------
def test_results_have_the_kind_of_the_input(engine_id):
    image = pytest.importorskip("PIL.Image")
    want = gpu.sharpen(PHOTO)
    for kind in (bytes, bytearray, memoryview):
        got = gpu.sharpen(kind(PHOTO.tobytes()), 26, 18)
        assert type(got) is kind
        assert bytes(got) == want.tobytes()
    for channels in (3, 1):
        part = np.ascontiguousarray(PHOTO[..., 0] if channels == 1 else PHOTO[..., :3])
        assert gpu.sharpen(part.tobytes(), 26, 18) == gpu.sharpen(part).tobytes()
    picture = gpu.sharpen(image.fromarray(PHOTO))
    assert (picture.mode, picture.size) == ("RGBA", (26, 18))
    np.testing.assert_array_equal(np.asarray(picture), want)
    b = gpu.sharpen(from_array(PHOTO))
    assert b.read() == want.tobytes()
    frame = gpu.sharpen(Frame.from_array(PHOTO, pts=7, time_base="1/30", matrix="bt2020"))
    assert (frame.pts, str(frame.time), frame.matrix) == (7, "7/30", "bt2020")
    np.testing.assert_array_equal(frame.numpy(), want)


def test_pillow_modes(engine_id):
    image = pytest.importorskip("PIL.Image")
    rgb = image.fromarray(PHOTO[..., :3].copy())
    for mode, out in (("P", "RGB"), ("CMYK", "RGB"), ("1", "L"), ("LA", "RGBA")):
        given = rgb.convert(mode)
        got = gpu.invert(given)
        assert got.mode == out
        np.testing.assert_array_equal(
            np.asarray(got)[..., :3], 255 - np.asarray(given.convert(out))[..., :3]
        )
    deep = np.array([[0, 1, 30000, 65535]], np.uint16)
    got = gpu.invert(image.fromarray(deep))
    assert got.mode == "I;16"
    assert np.asarray(got).tolist() == [[65535, 65534, 35535, 0]]


def test_pictures_of_16_bits_and_other_floats(engine_id):
    deep = np.array([[0, 1, 30000, 65535]], np.uint16)
    got = gpu.invert(deep)
    assert got.dtype == np.uint16
    assert got.tolist() == [[65535, 65534, 35535, 0]]
    out = np.zeros_like(deep)
    assert gpu.invert(deep, out=out) is out
    np.testing.assert_array_equal(out, got)
    with gpu.start_pipeline(4, 1) as frames:
        made = gpu.process_frame(frames, deep, [("brightness", {"value": 0.5}), ("invert", {})])
    assert made.dtype == np.uint16
    assert np.abs(made.astype(int) - [[32768, 32767, 2768, 0]]).max() <= 1
    for dtype in (np.float64, np.float16):
        real = np.array([[0.0, 0.25, 1.0]], dtype)
        turned = gpu.invert(real)
        assert turned.dtype == dtype
        assert turned.tolist() == [[1.0, 0.75, 0.0]]
    tensor = gpu.preprocess(np.full((4, 4, 3), 65535, np.uint16), size=(2, 2))
    assert tensor.dtype == np.float32
    assert gpu.grayscale(np.full((2, 2, 3), 1000, np.uint16)).max() == 1000
    mixed = gpu.video_mix(deep, np.zeros((1, 4), np.uint16), t=0.5)
    assert mixed.dtype == np.uint16


def test_out_is_written_and_returned(engine_id):
    want = gpu.blur(PHOTO, radius=2)
    for out in (np.empty_like(PHOTO), np.empty((18, 52, 4), np.uint8)[:, ::2]):
        assert gpu.blur(PHOTO, radius=2, out=out) is out
        np.testing.assert_array_equal(out, want)
    own = PHOTO.copy()
    assert gpu.blur(own, radius=2, out=own) is own
    np.testing.assert_array_equal(own, want)


def test_inputs_are_not_changed(engine_id):
    before = PHOTO.copy()
    before.flags.writeable = False
    got = gpu.brightness(before, value=0.5)
    np.testing.assert_array_equal(before, PHOTO)
    got[:] = 0  # the result is the caller's own
    np.testing.assert_array_equal(before, PHOTO)


def test_memory_is_shared_on_the_cpu():
    photo = PHOTO.copy()
    picture = plans.read(photo, None, None, "test")
    assert np.shares_memory(picture.buffer("cpu").numpy(), photo)
    out = np.empty_like(photo)
    target = plans._target(picture, picture.buffer("cpu"), out, "cpu")
    assert np.shares_memory(target.numpy(), out)


def test_device_argument():
    assert gpu.invert(from_array(PHOTO, device="cpu"), device="reference").device == "reference"
    assert gpu.invert(from_array(PHOTO, device="reference")).device == "reference"


# refusals -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: gpu.blur(PHOTO.astype(np.int32)),
            DtypeError,
            r"u16 \(0..65535\) or floats \(0..1\), got an array of int32",
        ),
        (lambda: gpu.blur(PHOTO[..., :2]), ShapeError, r"got \(18, 26, 2\)"),
        (lambda: gpu.blur([[1, 2]]), DtypeError, "got list"),
        (
            lambda: gpu.blur(b"1234"),
            ParameterError,
            "bytes need width and height",
        ),
        (lambda: gpu.blur(b"1234", 2, 3), ShapeError, "24 bytes of RGBA"),
        (lambda: gpu.blur(PHOTO, 18, 26), ShapeMismatch, "the picture is 26 x 18"),
        (
            lambda: gpu.blur(PHOTO, radius=-1),
            ParameterError,
            "^blur: radius must be an int",
        ),
        (
            lambda: gpu.blur(PHOTO, out=PHOTO[:3].copy()),
            ShapeMismatch,
            r"\(18, 26, 4\) and dtype u8",
        ),
        (
            lambda: gpu.blur(PHOTO.tobytes(), 26, 18, out=PHOTO.copy()),
            ParameterError,
            "out must be an array",
        ),
        (lambda: gpu.blur("photo.png"), DtypeError, r"Frame.open\(path\)"),
        (lambda: Frame.open(None), ParameterError, "path must be a path, .*, got NoneType."),
        (lambda: gpu.lut_apply(PHOTO, lut=[["a"]]), DtypeError, "lut must be an array of numbers"),
        (lambda: gpu.remap(PHOTO, map=[["a"]]), DtypeError, "map must be an array of numbers"),
        (lambda: gpu.remap(PHOTO, map=PHOTO), ShapeMismatch, "map"),
        (
            lambda: gpu.resize(PHOTO, size=(0, 4)),
            ParameterError,
            r"size must be \(width, height\), ints from 1",
        ),
        (lambda: gpu.warp_affine(PHOTO, matrix=(1, 2)), ParameterError, "6 numbers"),
    ],
)
def test_errors(call, error, text):
    with dala.device("cpu"), pytest.raises(error, match=text):
        call()


def test_nothing_is_written_on_errors(engine_id):
    out = np.zeros_like(PHOTO)
    out.flags.writeable = False
    with pytest.raises(ReadOnlyError):
        gpu.invert(PHOTO, out=out)
    out = np.zeros_like(PHOTO)
    with pytest.raises(ParameterError):
        gpu.gamma(PHOTO, value=-1.0, out=out)
    assert not out.any()
    with pytest.raises(UnknownParameter, match="anngle"):
        plans.plan([("overlay", {"picture": PHOTO, "anngle": 3})], PHOTO.shape, "u8", "test")


def test_every_filter_is_tested():
    tested = set(ONE) | set(SHAPED) | {
        "chroma_key", "lut_apply", "overlay_alpha", "remap", "video_mix"
    }  # fmt: skip
    # Recipes have no kernel of their name; test_tones.py and test_blend.py have theirs.
    specs = declared().values()
    assert tested == {s.name for s in specs if s.kind == "filter" and not s.is_recipe}


def test_defaults_are_the_kernels():
    for name in ONE:
        call = inspect.signature(getattr(gpu, name)).parameters
        for p in find_kernel(name).params:
            assert call[p.name].default == p.default, (name, p.name)


def test_first_number_by_position(engine_id):
    rgba = PHOTO.tobytes()
    assert gpu.brightness(rgba, 26, 18, 0.2) == gpu.brightness(rgba, 26, 18, value=0.2)
    assert gpu.contrast(rgba, 26, 18, 0.4) == gpu.contrast(rgba, 26, 18, value=0.4)
    with pytest.raises(TypeError, match=r"^brightness\(\): too many positional"):
        gpu.brightness(rgba, 26, 18, 0.2, 0.3)
    with pytest.raises(TypeError, match="multiple values"):
        gpu.brightness(rgba, 26, 18, 0.2, value=0.3)
    with pytest.raises(TypeError, match=r"^overlay_alpha\(\): .*over"):
        gpu.overlay_alpha(PHOTO)
    for picture in (PHOTO, Frame.from_array(PHOTO)):
        got = gpu.brightness(picture, 0.2)
        assert np.array_equal(np.asarray(got), gpu.brightness(PHOTO, value=0.2))
    with pytest.raises(TypeError, match=r"size=\(width, height\)\.$"):
        gpu.resize(PHOTO, (7, 5))
    assert np.array_equal(
        gpu.video_mix(PHOTO, PHOTO[::-1], 0.3), gpu.video_mix(PHOTO, PHOTO[::-1], t=0.3)
    )
    turned = gpu.rotate(PHOTO, 30)  # a required number too
    assert np.array_equal(turned, gpu.rotate(PHOTO, angle=30))
    with pytest.raises(TypeError, match="multiple values for argument 'value'"):
        gpu.brightness(PHOTO, 0.2, value=0.3)
    with pytest.raises(
        ShapeMismatch, match=r"only bytes need them. Give other parameters by their names\.$"
    ):
        gpu.brightness(PHOTO, 3, 4, 0.2)


# conversions --------------------------------------------------------------------------------------
def test_yuv_conversions(engine_id):
    rgb = np.ascontiguousarray(PHOTO[..., :3])
    planes = gpu.rgb_to_yuv(rgb, format="nv12", matrix="bt601")
    assert planes.shape == (27, 26)
    np.testing.assert_array_equal(
        planes,
        by_kernel("rgb_to_yuv", [rgb], {"format": "nv12", "matrix": "bt601"}, (27, 26)),
    )
    back = gpu.yuv_to_rgb(planes, format="nv12", matrix="bt601")
    data = gpu.yuv_to_rgb(planes.tobytes(), 26, 18, format="nv12", matrix="bt601")
    assert (back.shape, data) == ((18, 26, 3), back.tobytes())
    assert np.abs(gpu.yuv_to_rgb(gpu.rgb_to_yuv(rgb)).astype(int) - rgb).max() <= 3
    frame = gpu.rgb_to_yuv(Frame.from_array(rgb, pts=4, matrix="bt601"), format="nv12")
    assert (frame.format, frame.pts) == ("nv12", 4)
    np.testing.assert_array_equal(frame.numpy(), planes)
    shown = gpu.yuv_to_rgb(frame)
    assert (shown.format, shown.pts) == ("rgb", 4)
    np.testing.assert_array_equal(shown.numpy(), back)
    with pytest.raises(ParameterError, match="rgb_to_yuv: format must be 'nv12' or 'i420'"):
        gpu.rgb_to_yuv(frame.to("rgb"), format="yuv444")


def test_preprocess(engine_id):
    got = gpu.preprocess(PHOTO, size=(10, 8), normalize="unit")
    want = by_kernel("preprocess", [PHOTO], {"size": (10, 8), "normalize": "unit"}, (1, 3, 8, 10),
                     "f32")  # fmt: skip
    np.testing.assert_array_equal(got, want)
    made = gpu.preprocess(Frame.from_array(PHOTO), size=(10, 8), normalize="unit")
    np.testing.assert_array_equal(made.numpy(), want)
    assert gpu.preprocess(PHOTO, normalize=True).shape == (1, 3, 224, 224)


def test_empty_and_tiny_pictures(engine_id):
    assert gpu.invert(np.zeros((0, 4, 3), np.uint8)).shape == (0, 4, 3)
    assert_close(gpu.invert(np.zeros((1, 1), np.uint8)), np.full((1, 1), 255, np.uint8), engine_id)


# cached plans -------------------------------------------------------------------------------------
def test_equal_parameters_of_another_type_are_checked_again():
    image = np.zeros((8, 8, 3), np.uint8)
    gpu.blur(image, radius=1, device="cpu")
    with pytest.raises(ParameterError, match=r"^blur: radius must be .*, got True\.$"):
        gpu.blur(image, radius=True, device="cpu")


def test_a_changed_file_is_read_again(tmp_path):
    image = np.full((2, 2, 3), 128, np.uint8)
    path = tmp_path / "look.cube"
    results = []
    for stamp, white in ((1, "1 1 1"), (2, "0 0 0")):
        rows = ["0 0 0", "1 0 0", "0 1 0", "1 1 0", "0 0 1", "1 0 1", "0 1 1", white]
        path.write_text("LUT_3D_SIZE 2\n" + "\n".join(rows) + "\n")
        os.utime(path, (stamp, stamp))
        results.append(int(gpu.lut_apply(image, lut=path, device="cpu")[0, 0, 0]))
    assert results[0] == 128
    assert results[1] < 128


@pytest.mark.parametrize(("size", "expected"), [((20, None), (20, 15)), ((None, 60), (80, 60))])
def test_a_side_that_is_left_out_keeps_the_aspect(size, expected):
    picture = np.random.default_rng(3).integers(0, 256, (30, 40, 3), np.uint8)
    made = gpu.resize(picture, size=size, device="cpu")
    assert (made == gpu.resize(picture, size=expected, device="cpu")).all()


@pytest.mark.parametrize("size", [(None, None), (None, 0), (True, None), (None, "x")])
def test_sizes_without_a_number_are_refused(size):
    with pytest.raises(dala.ParameterError, match=r"resize: size must be \(width, height\)"):
        gpu.resize(np.zeros((3, 4, 3), np.uint8), size=size, device="cpu")


@pytest.mark.parametrize("name", ["erode", "dilate"])
def test_passes_compute_what_the_kernel_defines(engine_id, name):
    spec = declared()[name]
    image = np.random.default_rng(4).integers(0, 256, (9, 11, 4), dtype=np.uint8)
    for radius in (0, 1, 2, 7):
        assert len(spec.kernels({"radius": radius})) == (2 if radius > 1 else 1)
        out = from_array(np.zeros_like(image))
        run_kernel(name, [from_array(image)], out, {"radius": radius})
        assert np.array_equal(getattr(gpu, name)(image, radius=radius), out.numpy())
    wrong = f"^{name}: radius must be an int from 0 to 32, got 33"
    with pytest.raises(ParameterError, match=wrong):
        getattr(gpu, name)(image, radius=33)
    with pytest.raises(ParameterError, match=f"^{name}: radius must be an int from 0 to 32"):
        getattr(gpu, name)(image, radius=2.5)


@pytest.mark.parametrize(
    ("mode", "numbers", "inverted"),
    [
        ("F", np.array([[0, 0.25, 1]], np.float32), [[1, 0.75, 0]]),
        ("I", np.array([[0, 20000, 65535]], np.int32), [[65535, 45535, 0]]),
        ("I;16", np.array([[0, 20000, 65535]], np.uint16), [[65535, 45535, 0]]),
    ],
)
def test_pillow_images_of_numbers(mode, numbers, inverted):
    from PIL import Image

    image = Image.fromarray(numbers)
    assert image.mode == mode
    made = gpu.invert(image, device="cpu")
    assert made.mode == mode
    np.testing.assert_allclose(np.asarray(made), inverted, atol=1e-6)
    frame = Frame.from_array(image, device="cpu")
    np.testing.assert_allclose(np.asarray(frame), numbers / numbers.max(), atol=1e-6)
    with pytest.warns(MediaNotice, match="counts as 0 to"):
        gpu.invert(Image.new("L", (2, 2), 200).convert("F"), device="cpu")
