"""Small files that keep a decoder busy, or hold a picture that is larger than they say."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("PIL", reason="needs the media extra")

from PIL import Image

from dala.errors import ParameterError
from dala.media import Frame
from dala.media.pictures.plugins import MAX_COMMENTS, MAX_ICON_PIXELS, MAX_SCANS

pytestmark = pytest.mark.filterwarnings("error")


def segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg(width: int, height: int, scans: int, *, of: int = 0xC2) -> bytes:
    """A gray JPEG whose scans say of all blocks that nothing changes, in few bytes."""
    frame = struct.pack(">BHHB3B", 8, height, width, 1, 1, 0x11, 0)
    tables = segment(0xC4, b"\0" + bytes([1, *[0] * 15, 0])) + segment(
        0xC4, b"\x10" + bytes([1, *[0] * 15, 0xE0])
    )
    blocks = -(-width // 8) * -(-height // 8)
    first = segment(0xDA, bytes([1, 1, 0, 0, 0, 0])) + bytes(blocks // 8 + 1)
    runs = "0" * 15 * -(-blocks // (1 << 14))
    runs += "1" * (-len(runs) % 8)
    rest = int(runs, 2).to_bytes(len(runs) // 8, "big")
    more = (segment(0xDA, bytes([1, 1, 0, 1, 63, 1])) + rest) * (scans - 1)
    quant = segment(0xDB, b"\0" + b"\1" * 64)
    return b"\xff\xd8" + quant + segment(of, frame) + tables + first + more + b"\xff\xd9"


def test_scans_of_a_jpeg_are_counted():
    """Each goes over all pixels: 5 MB took more than a minute."""
    with pytest.raises(ParameterError, match=f"a JPEG of more than {MAX_SCANS} scans"):
        Frame.open(jpeg(64, 64, MAX_SCANS + 1))
    assert Frame.open(jpeg(64, 64, MAX_SCANS)).shape[:2] == (64, 64)
    assert Frame.open(jpeg(64, 64, 3) + b"\xff\xda" * 999).shape[:2] == (64, 64)  # a video, say


def test_usual_jpegs_have_few_scans(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg", progressive=True, quality=95)
    assert Frame.open(tmp_path / "a.jpg").shape[:2] == (64, 64)


def test_comments_of_a_ppm_are_counted():
    """Each moves the rest of the file: a megabyte took 6 s."""
    pixels = b"1 " * 48
    with pytest.raises(ParameterError, match=f"more than {MAX_COMMENTS:,} comments"):
        Frame.open(b"P3 4 4 255\n" + b"#\n" * 500_000 + pixels)
    assert Frame.open(b"P3\n# made by hand\n4 4 255\n" + pixels).shape[:2] == (4, 4)


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = zlib.compress(bytes(1 + -(-width // 8)) * height, 9)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return head + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def icon(inner: bytes) -> bytes:
    entry = struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 8, len(inner), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + inner


@pytest.mark.parametrize(
    "inner", [png(4000, 4000), struct.pack("<Iii", 40, 4000, -8000) + bytes(30)]
)
def test_icons_with_large_pictures_are_refused(inner, monkeypatch):
    """Pillow decodes them when it opens the file, before anyone asks for their size."""
    monkeypatch.setattr(Image, "open", None)
    with pytest.raises(ParameterError, match=f"in an icon .*more than {MAX_ICON_PIXELS:,}"):
        Frame.open(icon(inner), max_pixels=1000)


def test_usual_icons_are_read():
    file = io.BytesIO()
    Image.new("RGBA", (256, 256), "red").save(file, "ICO")
    assert Frame.open(file.getvalue()).shape[:2] == (256, 256)
