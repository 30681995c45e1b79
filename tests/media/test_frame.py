"""Frames: exact times, color coding, conversions, files."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.errors import DtypeError, FileMissing, FreedError, ParameterError, ShapeError
from dala.gpu.compute import buffer_zeros, from_array
from dala.media import Frame
from tests.support.tolerances import assert_close

RNG = np.random.default_rng(3)
PHOTO = RNG.integers(0, 256, (12, 16, 4), dtype=np.uint8)
WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def decoded(y, cb, cr, matrix, limited):
    """Return RGB of 0..255 for one color in YCbCr, computed directly."""
    kr, kb = WEIGHTS[matrix]
    luma = (y - 16) / 219 if limited else y / 255
    cb, cr = ((c - 128) / (224 if limited else 255) for c in (cb, cr))
    r, b = luma + 2 * (1 - kr) * cr, luma + 2 * (1 - kb) * cb
    g = (luma - kr * r - kb * b) / (1 - kr - kb)
    return [int(np.clip(v * 255 + 0.5, 0, 255)) for v in (r, g, b)]


# properties -----------------------------------------------------------------------------------
def test_properties(engine_id):
    f = Frame.from_array(PHOTO, pts=1001, time_base=Fraction(1, 30000))
    assert (f.format, f.width, f.height, f.shape, f.dtype) == ("rgba", 16, 12, (12, 16, 4), "u8")
    assert f.time == Fraction(1001, 30000)
    assert (f.range, f.matrix, f.primaries, f.transfer) == ("full", "bt601", "bt709", "srgb")
    np.testing.assert_array_equal(np.asarray(f), PHOTO)
    np.testing.assert_array_equal(f.numpy(), PHOTO)
    assert f.device in repr(f)
    assert Frame.from_array(PHOTO).time is None


def test_goes_out_as_a_picture_of_other_libraries(engine_id):
    image = pytest.importorskip("PIL.Image")
    for pixels, mode in ((PHOTO, "RGBA"), (PHOTO[..., :3], "RGB"), (PHOTO[..., 0], "L")):
        f = Frame.from_array(np.ascontiguousarray(pixels))
        for made in (f.to_pil(), image.fromarray(f)):
            assert (made.mode, made.size) == (mode, (16, 12))
            np.testing.assert_array_equal(np.asarray(made), pixels)
        assert f.tobytes() == pixels.tobytes()
        copied = f.to_pil()
        f.close()
        assert copied.tobytes() == pixels.tobytes()
    deep = Frame.from_array(np.float32([[[1.0, 0.5, 0.0, 1.0]]]))
    assert deep.to_pil().getpixel((0, 0)) == (255, 128, 0, 255)


def test_resize_keeps_time_and_color(engine_id):
    f = Frame.from_array(PHOTO, pts=3, time_base="1/25", matrix="bt709")
    made = f.resize(8, 4)
    assert (made.width, made.height, made.time, made.matrix) == (8, 4, Fraction(3, 25), "bt709")
    np.testing.assert_array_equal(made.numpy(), dala.media.gpu.resize(PHOTO, 8, 4))
    assert f.resize(width=8).shape == f.resize(scale=0.5).shape == (6, 8, 4)
    assert f.resize(size=(8, 4), method="nearest").shape == (4, 8, 4)
    planes = Frame(buffer_zeros((6, 4), "u8"), format="i420", pts=2)
    assert (planes.resize(2, 2).format, planes.resize(2, 2).pts) == ("rgb", 2)
    with pytest.raises(ParameterError):
        f.resize()


def test_planes_of_a_video_are_no_picture_of_other_libraries():
    image = pytest.importorskip("PIL.Image")
    planes = Frame(buffer_zeros((6, 4), "u8", device="cpu"), format="i420")
    assert (planes.width, planes.height) == (4, 4)
    with pytest.raises(AttributeError, match="Convert them first"):
        image.fromarray(planes)
    assert planes.to_pil().mode == "RGB"
    assert np.asarray(planes).shape == (6, 4)


def test_arrays_outlive_the_frame():
    f = Frame.from_array(PHOTO, device="cpu")
    array = np.asarray(f)
    f.close()
    for _ in range(4):
        buffer_zeros(PHOTO.shape, "u8", device="cpu").free()
    np.testing.assert_array_equal(array, PHOTO)


@settings(deadline=None, max_examples=50)
@given(
    pts=st.integers(-(2**70), 2**70),
    base=st.fractions(min_value=Fraction(1, 10**9), max_value=10).filter(bool),
)
def test_time_is_exact(pts, base):
    f = Frame(buffer_zeros((2, 2), "u8", device="reference"), pts=pts, time_base=base)
    assert f.time == pts * base
    assert f.like(f.pixels).time == f.time


def test_default_matrix():
    for shape, matrix in (((577, 2), "bt709"), ((576, 2), "bt601"), ((2, 1280), "bt709")):
        assert Frame(buffer_zeros(shape, "u8", device="cpu")).matrix == matrix


def test_planes_are_limited_by_default():
    planes = buffer_zeros((6, 8), "u8", device="cpu")
    f = Frame(planes, format="nv12")
    assert (f.width, f.height, f.range) == (8, 4, "limited")
    assert Frame(planes).format == "gray"


def test_importing_media_is_light():
    code = "import sys, dala; dala.media; dir(dala.media); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# conversion -----------------------------------------------------------------------------------
def test_rgb_conversions(engine_id):
    f = Frame.from_array(PHOTO, pts=5)
    assert f.to("rgba") is f
    assert f.to() is f
    rgb = f.to("rgb")
    assert (rgb.format, rgb.pts) == ("rgb", 5)
    np.testing.assert_array_equal(rgb.numpy(), PHOTO[..., :3])
    back = rgb.to("rgba").numpy()
    np.testing.assert_array_equal(back[..., :3], PHOTO[..., :3])
    assert (back[..., 3] == 255).all()
    want = np.floor(PHOTO[..., :3] @ np.array([0.299, 0.587, 0.114]) + 0.5).astype(np.uint8)
    gray = f.to("gray")
    assert_close(gray.numpy(), want, engine_id, "program")
    np.testing.assert_array_equal(gray.to("rgb").numpy(), gray.numpy()[..., None].repeat(3, 2))


@pytest.mark.parametrize("matrix", list(WEIGHTS))
@pytest.mark.parametrize("range", ["limited", "full"])
def test_planes_to_rgb_with_the_coding_of_the_frame(engine_id, matrix, range):
    y, cb, cr = 120, 90, 170
    planes = np.full((6, 8), y, np.uint8)
    planes[4:, ::2], planes[4:, 1::2] = cb, cr
    f = Frame.from_array(planes, format="nv12", matrix=matrix, range=range)
    got = f.to("rgba")
    assert (got.range, got.matrix) == ("full", matrix)
    want = decoded(y, cb, cr, matrix, range == "limited")
    assert np.abs(got.numpy()[..., :3].astype(int) - want).max() <= 1
    assert (got.numpy()[..., 3] == 255).all()
    again = got.to("nv12", range=range)
    assert (again.range, again.matrix) == (range, matrix)
    assert np.abs(again.numpy().astype(int) - planes).max() <= 1


def test_siting(engine_id):
    """A step in chroma: with siting left, column 4 has the right sample; with center, a quarter of
    the left one."""
    planes = np.full((6, 8), 128, np.uint8)
    planes[4:, 4::2] = 168  # Cb of the right half
    blue = {}
    for siting in ("left", "center"):
        f = Frame.from_array(planes, format="nv12", siting=siting, range="full", matrix="bt601")
        rgb = f.to("rgb")
        assert (f.siting, rgb.siting) == (siting, siting)
        blue[siting] = rgb.numpy()[1, :, 2].astype(int)
        twin = f.to("i420")
        assert twin.siting == siting
        np.testing.assert_array_equal(twin.numpy()[4].tolist(), [128, 128, 168, 168] * 2)
        assert np.abs(rgb.to("nv12", range="full").numpy().astype(int) - planes).max() <= 12
    step = 40 * 1.772
    assert np.abs(blue["left"] - (128 + step * np.array([0, 0, 0, 0.5, 1, 1, 1, 1]))).max() <= 1
    middle = 128 + step * np.array([0, 0, 0, 0.25, 0.75, 1, 1, 1])
    assert np.abs(blue["center"] - middle).max() <= 1
    moved = Frame.from_array(planes, format="nv12", range="full").to("nv12", siting="center")
    assert moved.siting == "center"
    assert (moved.numpy()[4:] != planes[4:]).any()


def test_nv12_and_i420_convert_exactly(engine_id):
    planes = RNG.integers(0, 256, (9, 10), dtype=np.uint8)  # 6 rows of 10
    f = Frame.from_array(planes, format="nv12")
    chroma = planes[6:].reshape(-1)
    want = np.concatenate([planes[:6].reshape(-1), chroma[::2], chroma[1::2]]).reshape(9, 10)
    i420 = f.to("i420")
    np.testing.assert_array_equal(i420.numpy(), want)
    np.testing.assert_array_equal(i420.to("nv12").numpy(), planes)
    assert f.to("nv12") is f


def test_changing_the_matrix_keeps_colors(engine_id):
    planes = np.full((6, 8), 120, np.uint8)
    planes[4:, ::2], planes[4:, 1::2] = 100, 150
    f = Frame.from_array(planes, format="nv12", matrix="bt601")
    other = f.to("nv12", matrix="bt709")
    assert other.matrix == "bt709"
    assert (other.numpy() != planes).any()
    apart = other.to("rgb").numpy().astype(int) - f.to("rgb").numpy()
    assert np.abs(apart).max() <= 3


def test_to_device():
    f = Frame.from_array(PHOTO, device="cpu", pts=4)
    moved = f.to(device="reference")
    assert (moved.device, moved.pts) == ("reference", 4)
    np.testing.assert_array_equal(moved.numpy(), PHOTO)


# files ----------------------------------------------------------------------------------------
def test_png_round_trip(engine_id, tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "a.png"
    Frame.from_array(PHOTO).save(path)
    np.testing.assert_array_equal(np.asarray(image.open(path)), PHOTO)
    np.testing.assert_array_equal(Frame.open(path).numpy(), PHOTO)
    light = Frame.from_array((PHOTO / 255).astype(np.float32))
    shown = image.open(io.BytesIO(light._repr_png_()))
    np.testing.assert_array_equal(np.asarray(shown), PHOTO)
    assert os.listdir(tmp_path) == ["a.png"]


def test_jpeg_with_pillow(tmp_path):
    pytest.importorskip("PIL.Image")
    flat = np.full((16, 16, 4), (200, 100, 50, 255), np.uint8)
    Frame.from_array(flat, device="cpu").save(tmp_path / "a.jpg", quality=95)
    got = Frame.open(tmp_path / "a.jpg", device="cpu")
    assert got.format == "rgb"
    assert np.abs(got.numpy().astype(int) - flat[..., :3]).max() <= 3


def test_exif_orientation_and_sixteen_bits(tmp_path):
    image = pytest.importorskip("PIL.Image")
    turned = image.fromarray(PHOTO[..., :3].copy())
    exif = turned.getexif()
    exif[0x0112] = 3  # upside down
    turned.save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(Frame.open(tmp_path / "a.png").numpy(), PHOTO[::-1, ::-1, :3])
    image.fromarray(np.array([[0, 65535, 13107]], np.uint16)).save(tmp_path / "b.png")
    deep = Frame.open(tmp_path / "b.png", device="cpu")
    assert deep.dtype == "f32"
    np.testing.assert_allclose(deep.numpy(), [[0, 1, 0.2]], atol=1e-7)


def test_file_errors(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(FileMissing, match=r"Did you mean 'text.png'\?"):
        Frame.open(tmp_path / "test.png")
    with pytest.raises(ParameterError, match=r"text.png cannot be read as a picture"):
        Frame.open(tmp_path / "text.png")
    image.fromarray(PHOTO).save(tmp_path / "whole.png")
    data = (tmp_path / "whole.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(ParameterError, match=r"cut.png"):
        Frame.open(tmp_path / "cut.png")
    with pytest.raises(ParameterError, match="16 x 12 pixels, more than max_pixels=100"):
        Frame.open(tmp_path / "whole.png", max_pixels=100)
    frame = Frame.from_array(PHOTO, device="cpu")
    for name in ("nothing", "a.xyz"):
        with pytest.raises(ParameterError, match=r"Frame.save"):
            frame.save(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        frame.save(tmp_path / "missing" / "a.png")
    assert sorted(os.listdir(tmp_path)) == ["cut.png", "text.png", "whole.png"]


def test_show_in_a_notebook():
    """In a Jupyter kernel: show() and a frame at the end of a cell display the picture."""
    from tests.gpu.presenters.test_notebook import Notebook

    notebook = Notebook()
    try:
        notebook.cell(
            "import numpy as np, dala; p = np.arange(360, dtype=np.uint8).reshape(10, 12, 3)\n"
            "f = dala.media.Frame.from_array(p, device='cpu'); f.show()"
        )
        notebook.cell("f")
        wanted = np.arange(360, dtype=np.uint8).reshape(10, 12, 3)
        ((_, shown),) = notebook.pictures("display_data")
        np.testing.assert_array_equal(shown[..., :3], wanted)
        (last,) = (m["content"]["data"] for m in notebook.of("execute_result"))
        data = base64.b64decode(last["image/png"])
    finally:
        notebook.close()
    image = pytest.importorskip("PIL.Image")
    np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(data))), wanted)


# errors and closing ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Frame(PHOTO), DtypeError, "pixels must be a Buffer"),
        (lambda: Frame.from_array(PHOTO, format="rgb"), ShapeError, "'rgb' does not fit"),
        (lambda: Frame.from_array(PHOTO, format="nv12"), ShapeError, "'nv12' does not fit"),
        (lambda: Frame.from_array(PHOTO[..., 0], format="nv12"), None, ""),
        (lambda: Frame.from_array(PHOTO[:7, :, 0], format="i420"), ShapeError, "both even"),
        (
            lambda: Frame.from_array(PHOTO, format="rgbb"),
            ParameterError,
            "got 'rgbb'. Did you mean 'rgb'",
        ),
        (
            lambda: Frame.from_array(PHOTO, range="limited"),
            ParameterError,
            "range must be 'full' for rgba frames, got 'limited'",
        ),
        (lambda: Frame.from_array(PHOTO, matrix="601"), ParameterError, "'bt601'"),
        (
            lambda: Frame.from_array(PHOTO, pts=0.5),
            ParameterError,
            "pts must be an int or None, got 0.5",
        ),
        (
            lambda: Frame.from_array(PHOTO, time_base=0.04),
            ParameterError,
            "time_base must be a fraction above 0",
        ),
        (
            lambda: Frame.from_array(PHOTO, time_base="1/0"),
            ParameterError,
            "time_base must be a fraction above 0",
        ),
        (lambda: Frame.from_array(PHOTO.astype(np.int64)), DtypeError, "got an array of int64"),
        (lambda: Frame.from_array(PHOTO).to("rgb", matrix="bt601"), ParameterError, "nv12"),
        (lambda: Frame.from_array(PHOTO[:5]).to("nv12"), ShapeError, "even"),
    ],
)
def test_errors(make, error, text):
    with dala.device("cpu"):
        if error is None:
            assert make().height == 8
        else:
            with pytest.raises(error, match=text):
                make()


def test_closing(engine_id):
    with Frame(from_array(PHOTO)) as f:
        pass
    f.close()
    assert "closed" in repr(f)
    with pytest.raises(FreedError):
        f.numpy()
    with pytest.raises(FreedError):
        dala.media.gpu.invert(f)
