"""Picture files of every kind: color keys, profiles, sixteen bits, streams, damaged files."""

import contextlib
import copy
import io
import pickle
import re
import struct
import warnings
import zlib

import numpy as np
import pytest

from dala.errors import DeviceError, ParameterError
from dala.gpu.compute import buffer
from dala.media import Frame, files
from dala.media.notices import MediaNotice, collected
from dala.media.pictures.pixels import normalized, over

Image = pytest.importorskip("PIL.Image")
from PIL import ImageCms  # noqa: E402 - needs Pillow

RNG = np.random.default_rng(5)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, bits, color, rows, *chunks):
    """Return a PNG file of any bit depth and color type."""
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = [chunk(b"IHDR", header), *(chunk(*c) for c in chunks)]
    parts += [chunk(b"IDAT", data), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def opened(source, **options):
    return Frame.open(source, device="cpu", **options).numpy()


# color keys -----------------------------------------------------------------------------------
def test_key_of_gray():
    data = png(3, 1, 8, 0, [bytes([7, 8, 7])], (b"tRNS", b"\0\x07"))
    assert opened(data).tolist() == [[[7, 7, 7, 0], [8, 8, 8, 255], [7, 7, 7, 0]]]


@pytest.mark.parametrize(("key", "alpha"), [(0, [255, 0]), (1, [0, 255])])
def test_key_of_one_bit(key, alpha):
    data = png(2, 1, 1, 0, [b"\x80"], (b"tRNS", bytes([0, key])))
    assert opened(data).tolist() == [[[255] * 3 + alpha[:1], [0] * 3 + alpha[1:]]]


def test_key_of_rgb():
    data = png(2, 1, 8, 2, [bytes([1, 2, 3, 1, 2, 4])], (b"tRNS", b"\0\1\0\2\0\3"))
    assert opened(data).tolist() == [[[1, 2, 3, 0], [1, 2, 4, 255]]]


@pytest.mark.parametrize("as_image", [False, True])
def test_bits_of_a_key_beyond_the_depth_are_masked(as_image):
    """The specification: of fewer than sixteen bits, decoders use the low ones."""

    def alpha(data):
        if not as_image:
            return opened(data)[0, :, 3].tolist()
        return (
            Frame.from_array(Image.open(io.BytesIO(data)), device="cpu").numpy()[0, :, 3].tolist()
        )

    rgb = bytes([1, 2, 3, 1, 2, 4, 255, 2, 3])
    for high in (b"\0\0\0", b"\1\0\0", b"\xff\x80\1", b"\1\2\3"):
        key = bytes(value for pair in zip(high, b"\1\2\3", strict=True) for value in pair)
        assert alpha(png(3, 1, 8, 2, [rgb], (b"tRNS", key))) == [0, 255, 255]
    for key in (b"\0\7", b"\1\7", b"\xff\7"):
        assert alpha(png(2, 1, 8, 0, [b"\7\x08"], (b"tRNS", key))) == [0, 255]


@pytest.mark.parametrize(("bits", "row"), [(2, b"\x1b"), (4, b"\x01\x23")])
@pytest.mark.parametrize("high", [0, 0x10, 0x100])
def test_key_of_gray_of_few_bits(bits, row, high):
    """The key is in the values of the file, which Pillow scales."""
    for key in range(4):
        data = png(4, 1, bits, 0, [row], (b"tRNS", struct.pack(">H", high + key)))
        found = opened(data)[0]
        scale = 255 // (2**bits - 1)
        assert found[:, 0].tolist() == [0, scale, 2 * scale, 3 * scale]
        assert found[:, 3].tolist() == [0 if n == key else 255 for n in range(4)]


def test_key_of_sixteen_bit_gray():
    data = png(2, 1, 16, 0, [struct.pack(">2H", 300, 65535)], (b"tRNS", struct.pack(">H", 300)))
    found = opened(data)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0, :, 3], [0, 1])
    np.testing.assert_allclose(found[0, :, 1], [300 / 65535, 1])


def test_key_of_sixteen_bit_rgb():
    values = struct.pack(">6H", 257, 514, 771, 257, 514, 772)
    data = png(2, 1, 16, 2, [values], (b"tRNS", struct.pack(">3H", 257, 514, 771)))
    assert opened(data).tolist() == [[[1, 2, 3, 0], [1, 2, 3, 255]]]
    deep = opened(data, depth="float")
    assert deep[0, :, 3].tolist() == [0, 1]
    np.testing.assert_allclose(deep[0, 1, :3] * 65535, [257, 514, 772], atol=0.01)


def test_key_of_palettes():
    colors = bytes([10, 20, 30, 40, 50, 60])
    data = png(2, 1, 8, 3, [bytes([0, 1])], (b"PLTE", colors), (b"tRNS", b"\x40"))
    assert opened(data).tolist() == [[[10, 20, 30, 64], [40, 50, 60, 255]]]


def test_key_of_gif():
    image = Image.fromarray(np.array([[0, 1]], np.uint8), "L").convert("P")
    out = io.BytesIO()
    image.save(out, "GIF", transparency=1)
    assert opened(out.getvalue())[0, :, 3].tolist() == [255, 0]


def test_key_of_pillow_images():
    image = Image.new("RGB", (1, 1), (1, 2, 3))
    image.info["transparency"] = (1, 2, 3)
    assert Frame.from_array(image, device="cpu").numpy().tolist() == [[[1, 2, 3, 0]]]


# modes ----------------------------------------------------------------------------------------
MODES = ["1", "L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "LA", "La", "PA", "RGBa",
         "RGBX", "I;16", "I;16B"]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_becomes_one_of_four(mode):
    image = Image.new(mode, (3, 2))
    made = normalized(image)
    assert made.size == (3, 2)
    assert made.mode in ("L", "RGB", "RGBA", "I;16", "I;16B")


def test_gray_with_alpha():
    out = io.BytesIO()
    Image.merge("LA", [Image.new("L", (1, 1), 9), Image.new("L", (1, 1), 7)]).save(out, "PNG")
    assert opened(out.getvalue()).tolist() == [[[9, 9, 9, 7]]]


def test_cmyk_is_reported():
    out = io.BytesIO()
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(out, "JPEG", quality=100)
    with pytest.warns(MediaNotice, match="is CMYK without a profile; its colors are approximate"):
        found = opened(out.getvalue())
    assert np.abs(found[0, 0].astype(int) - (255, 0, 0)).max() < 4


def test_sixteen_bit_pgm():
    data = b"P5 3 1 65535\n" + struct.pack(">3H", 0, 13107, 65535)
    np.testing.assert_allclose(opened(data), [[0, 0.2, 1]], atol=1e-6)
    data = b"P5 2 1 1023\n" + struct.pack(">2H", 1023, 341)
    np.testing.assert_allclose(opened(data), [[1, 1 / 3]], atol=1e-4)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (np.array([[0, 0.25, 1]], np.float32), ""),
        (np.array([[0, 64, 255]], np.float32), "mode 'F' counts as 0 to 1.*up to 255"),
        (np.array([[0, 16384, 65535]], np.int32), ""),
        (np.array([[0, 64, 255]], np.int32), "mode 'I' counts as 0 to 65535.*is 255"),
        (np.array([[-9, 0, 1 << 20]], np.int32), "mode 'I' counts as 0 to 65535"),
    ],
)
def test_files_of_numbers(numbers, said):
    out = io.BytesIO()
    Image.fromarray(numbers).save(out, "TIFF")
    expected = numbers if numbers.dtype == np.float32 else numbers / 65535
    with collected() as notices:
        np.testing.assert_allclose(opened(out.getvalue()), expected, rtol=1e-6)
        levels = np.asarray(files.load(out.getvalue(), 100))
    np.testing.assert_array_equal(levels, np.rint(np.clip(expected, 0, 1) * 65535))
    assert (len(notices) > 0) == bool(said)
    assert not said or re.search(said, notices[0])


# profiles -------------------------------------------------------------------------------------
#: A profile like sRGB, but red and blue are swapped: a swapped picture comes out right.
def swapped_profile():
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    at = {bytes(data[132 + 12 * i : 136 + 12 * i]): 132 + 12 * i
          for i in range(struct.unpack(">I", data[128:132])[0])}  # fmt: skip
    red, blue = at[b"rXYZ"], at[b"bXYZ"]
    data[red + 4 : red + 12], data[blue + 4 : blue + 12] = (
        data[blue + 4 : blue + 12],
        data[red + 4 : red + 12],
    )
    return bytes(data)


@pytest.mark.parametrize("alpha", [False, True])
def test_profiles_are_applied(alpha):
    pixels = RNG.integers(0, 256, (4, 5, 4 if alpha else 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", icc_profile=swapped_profile())
    wanted = pixels.copy()
    wanted[..., :3] = wanted[..., 2::-1]
    found = opened(out.getvalue()).astype(int)
    assert np.abs(found - wanted).max() <= 2
    np.testing.assert_array_equal(opened(out.getvalue(), color="raw"), pixels)


def test_srgb_profiles_change_nothing():
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    pixels = RNG.integers(0, 256, (4, 5, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", icc_profile=profile)
    np.testing.assert_array_equal(opened(out.getvalue()), pixels)


@pytest.mark.parametrize(("profile", "text"), [
    (b"no profile at all", "its ICC profile is damaged and ignored"),
    (swapped_profile(), "its ICC profile is for RGB, the picture is L: it is ignored"),
])  # fmt: skip
def test_profiles_that_do_not_fit(profile, text):
    out = io.BytesIO()
    Image.new("L", (2, 2), 90).save(out, "PNG", icc_profile=profile)
    with pytest.warns(MediaNotice, match=text):
        assert opened(out.getvalue()).tolist() == [[90, 90], [90, 90]]


# sixteen bits ---------------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (4, 5, 4)])
def test_sixteen_bits_are_kept(tmp_path, suffix, shape):
    values = RNG.integers(0, 65536, shape).astype(np.uint16)
    frame = Frame.from_array((values / 65535).astype(np.float32), device="cpu")
    frame.save(tmp_path / f"a.{suffix}", depth=16)
    found = Frame.open(tmp_path / f"a.{suffix}", depth="float", device="cpu")
    assert found.dtype == "f32"
    np.testing.assert_array_equal(np.rint(found.numpy() * 65535), values)


def test_sixteen_bits_are_upright(tmp_path):
    from dala.media.pictures.plugins import upright

    picture = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
    from PIL import ImageOps

    for orientation in range(1, 9):
        image = Image.fromarray(picture)
        image.getexif()[0x0112] = orientation
        wanted = np.asarray(ImageOps.exif_transpose(image))
        np.testing.assert_array_equal(upright(picture, orientation), wanted)


def test_eight_bits_as_float(tmp_path):
    pixels = RNG.integers(0, 256, (3, 4, 3), np.uint8)
    Frame.from_array(pixels, device="cpu").save(tmp_path / "a.png")
    np.testing.assert_allclose(opened(tmp_path / "a.png", depth="float"), pixels / 255, atol=1e-7)
    assert opened(tmp_path / "a.png", depth="stored").dtype == np.uint8


def test_sixteen_bits_to_eight_are_reported(tmp_path):
    frame = Frame.from_array(np.ones((8, 8, 3), np.float32), device="cpu")
    with pytest.warns(MediaNotice, match="JPEG has 8 bits per channel here, not 16"):
        frame.save(tmp_path / "a.jpg", depth=16)
    assert opened(tmp_path / "a.jpg").min() == 255


# alpha ----------------------------------------------------------------------------------------
def test_jpeg_lies_over_a_color(tmp_path):
    pixels = np.zeros((16, 16, 4), np.uint8)
    pixels[:, 8:] = (255, 0, 0, 255)
    frame = Frame.from_array(pixels, device="cpu")
    with pytest.warns(MediaNotice, match="JPEG has no transparency; the picture is laid over whi"):
        frame.save(tmp_path / "a.jpg", quality=100)
    assert opened(tmp_path / "a.jpg")[:, :6].min() > 250
    frame.save(tmp_path / "b.jpg", quality=100, background="blue")  # as asked for: no notice
    assert np.abs(opened(tmp_path / "b.jpg")[4, 2].astype(int) - (0, 0, 255)).max() < 4


def test_over_is_rounded():
    values = RNG.integers(0, 256, (50, 4), np.uint8)[None]
    alpha = values[..., 3:] / 255
    wanted = np.rint(values[..., :3] * alpha + np.array([10, 20, 30]) * (1 - alpha))
    assert np.abs(over(values, (10, 20, 30)).astype(int) - wanted).max() <= 1


# streams --------------------------------------------------------------------------------------
def test_streams(tmp_path):
    pixels = RNG.integers(0, 256, (4, 5, 4), np.uint8)
    frame = Frame.from_array(pixels, device="cpu")
    out = io.BytesIO()
    frame.save(out, format="png")
    for source in (out.getvalue(), memoryview(out.getvalue()), io.BytesIO(out.getvalue())):
        np.testing.assert_array_equal(opened(source), pixels)
    with (tmp_path / "a.png").open("wb") as file:
        frame.save(file)
    with (tmp_path / "a.png").open("rb") as file:
        np.testing.assert_array_equal(opened(file), pixels)
    frame.save(tmp_path / "no_suffix", format="png")
    np.testing.assert_array_equal(opened(tmp_path / "no_suffix"), pixels)


@pytest.mark.parametrize(("call", "text"), [
    (lambda f: Frame.open(3), "Frame.open: path must be a path, the bytes of a file or a file "
     "opened in binary mode, got int."),
    (lambda f: Frame.open(io.StringIO("x")), "Frame.open: path must be a path, the bytes of a file "
     "or a file opened in binary mode, got StringIO."),
    (lambda f: Frame.open(b""), "Frame.open: the picture (0 bytes) cannot be read as a picture"),
    (lambda f: Frame.open(b"x", depth=16), "Frame.open: depth must be None or 'float' or 'stored'"),
    (lambda f: Frame.open(b"x", color="p3"), "Frame.open: color must be 'srgb' or 'raw', got 'p3'"),
    (lambda f: f.save(io.BytesIO()), "Frame.save: a file object needs a format, such as"),
    (lambda f: f.save(io.StringIO(), format="png"), "Frame.save: path must be a path or a file "
     "opened in binary mode, got StringIO."),
    (lambda f: f.save(3), "Frame.save: path must be a path or a file opened in binary mode"),
    (lambda f: f.save("a.png", depth=12), "Frame.save: depth must be 8 or 16, got 12."),
])  # fmt: skip
def test_errors(call, text):
    frame = Frame.from_array(np.zeros((2, 2), np.uint8), device="cpu")
    with pytest.raises(ParameterError) as caught:
        call(frame)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"])
def test_damaged_files_raise_one_error(format):
    out = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (12, 16, 3), np.uint8)).save(out, format)
    whole = out.getvalue()
    for _ in range(20):
        data = bytearray(whole[: RNG.integers(4, len(whole))])
        data[RNG.integers(0, len(data))] ^= int(RNG.integers(1, 256))
        with warnings.catch_warnings(), contextlib.suppress(ParameterError):
            warnings.simplefilter("ignore")
            Frame.open(bytes(data), device="cpu", max_pixels=1 << 20)


def test_sizes_are_checked_before_decoding():
    data = png(60000, 60000, 8, 0, [b""])
    with pytest.raises(ParameterError, match=r"60000 x 60000 pixels, more than|Pillow refuses"):
        Frame.open(data)


# copies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_frames_and_buffers(how):
    pixels = RNG.integers(0, 256, (6, 4), np.uint8)
    frame = Frame.from_array(pixels, device="cpu", format="i420", pts=3, time_base="1/25",
                             duration=2, matrix="bt2020", siting="center")  # fmt: skip
    made = how(frame)
    assert repr(made) == repr(frame)
    assert (made.duration, made.matrix, made.siting, made.range) == (
        2,
        "bt2020",
        "center",
        "limited",
    )
    np.testing.assert_array_equal(made.numpy(), pixels)
    made.numpy()[:] = 0
    np.testing.assert_array_equal(frame.numpy(), pixels)
    values = buffer([[1.5, 2], [3, 4]], dtype="f64", device="cpu")
    again = how(values)
    assert (again.dtype, again.shape, again.device) == ("f64", (2, 2), "cpu")
    again.write([0, 0, 0, 0])
    assert values.read_list() == [1.5, 2, 3, 4]


def test_copies_on_every_engine(engine_id):
    values = buffer([1, 2, 3], dtype="s32")
    assert copy.deepcopy(values).read_list() == [1, 2, 3]
    if engine_id.startswith("webgpu"):
        with pytest.raises(DeviceError, match=r"pickle: a buffer on webgpu:\d+ belongs to this"):
            pickle.dumps(values)
    else:
        assert pickle.loads(pickle.dumps(values)).read_list() == [1, 2, 3]
