"""Damaged, oversized and unusual pictures: files, Pillow images, the command line."""

import os
import struct
import zlib

import numpy as np
import pytest

from dala.cli import main
from dala.errors import ParameterError
from dala.media import Frame, gpu

Image = pytest.importorskip("PIL.Image")

PHOTO = np.random.default_rng(2).integers(0, 256, (20, 30, 3), np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, bits, kind, rows):
    head = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def whole(kind, **options):
    import io

    file = io.BytesIO()
    Image.fromarray(PHOTO).save(file, kind, **options)
    return bytearray(file.getvalue())


def flipped():
    data = whole("png")
    data[200] ^= 0xFF
    return data


BROKEN = {
    "cut.png": lambda: whole("png")[:900],
    "cut.jpg": lambda: whole("jpeg")[:300],
    "cut.webp": lambda: whole("webp", lossless=True)[:300],
    "cut.tif": lambda: whole("tiff")[:600],
    "flipped.png": flipped,
    "empty.png": lambda: b"",
    "text.jpg": lambda: b"hello",
    "bomb.png": lambda: png(50_000, 50_000, 8, 2, b"\0" * 100),
    "sideways.png": lambda: png(2_000_000_000, 1, 1, 0, b"\0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(tmp_path, capsys, name):
    path, out = tmp_path / name, tmp_path / "out.png"
    path.write_bytes(BROKEN[name]())
    with pytest.raises(ParameterError) as caught:
        Frame.open(path, device="cpu")
    assert str(caught.value).startswith("Frame.open: ")
    for arguments in (
        ["filter", str(path), str(out), "--invert"],
        ["filter", str(tmp_path), str(tmp_path / "made"), "--invert"],
        ["view", str(path), "--show", "browser"],
    ):
        assert main([*arguments, "--device", "cpu"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err.startswith(f"dala {arguments[0]}: ")
        assert str(path) in err
    assert not out.exists()
    assert not os.listdir(tmp_path / "made")


def test_max_pixels(tmp_path, capsys):
    path, out = tmp_path / "wide.png", tmp_path / "out.png"
    Image.fromarray(PHOTO).save(path)
    arguments = ["filter", str(path), str(out), "--invert", "--device", "cpu", "--max-pixels"]
    assert main([*arguments, "599"]) == 2
    assert "30 x 20 pixels, more than" in capsys.readouterr().err
    assert main([*arguments, "600"]) == 0
    np.testing.assert_array_equal(np.asarray(Image.open(out)), 255 - PHOTO)


def test_broken_files_are_skipped(tmp_path, capsys):
    folder, made = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for n in range(4):
        Image.fromarray(PHOTO + np.uint8(n)).save(folder / f"{n}.png")
    (folder / "cut.png").write_bytes(BROKEN["cut.png"]())
    Image.fromarray(np.ones((4, 4), np.float32)).save(folder / "numbers.tif")
    assert main(["filter", str(folder), str(made), "--invert", "--device", "cpu"]) == 2
    out, err = capsys.readouterr()
    assert "5 pictures" in out
    assert "1 failed" in out
    assert len(err.splitlines()) == 1
    assert sorted(os.listdir(made)) == ["0.png", "1.png", "2.png", "3.png", "numbers.tif"]
    assert not np.asarray(Image.open(made / "numbers.tif")).any()  # white, inverted
    for n in range(4):
        got = np.asarray(Image.open(made / f"{n}.png"))
        np.testing.assert_array_equal(got, 255 - (PHOTO + np.uint8(n)))


# modes --------------------------------------------------------------------------------------------
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "RGBa")


@pytest.mark.parametrize("mode", MODES)
def test_modes_match_pillow_conversions(mode):
    image = Image.fromarray(PHOTO)
    image = image.convert("RGBA").convert(mode) if mode == "RGBa" else image.convert(mode)
    got = gpu.invert(image, device="cpu")
    plain = np.asarray(image.convert({"1": "L", "L": "L"}.get(mode, "RGB")))
    shown = np.asarray(got.convert("L" if plain.ndim == 2 else "RGB"))
    np.testing.assert_array_equal(shown, 255 - plain)


def test_palette_transparency_is_kept(tmp_path):
    image = Image.fromarray(PHOTO).convert("P")
    image.save(tmp_path / "a.png", transparency=int(np.asarray(image)[0, 0]))
    frame = Frame.open(tmp_path / "a.png", device="cpu")
    assert frame.format == "rgba"
    assert frame.numpy()[0, 0, 3] == 0
    assert frame.numpy()[..., 3].max() == 255


def test_sixteen_bit_gray_and_color(tmp_path):
    deep = (np.arange(600).reshape(20, 30) * 109).astype(np.uint16)
    image = Image.fromarray(deep)
    got = np.asarray(gpu.invert(image, device="cpu"))
    assert got.dtype == np.uint16
    assert np.abs(got.astype(int) - (65535 - deep.astype(int))).max() <= 1
    doubled = PHOTO.astype(">u2") * np.array(257, ">u2")
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in doubled)
    (tmp_path / "rgb16.png").write_bytes(png(30, 20, 16, 2, rows))
    np.testing.assert_array_equal(Frame.open(tmp_path / "rgb16.png", device="cpu").numpy(), PHOTO)
