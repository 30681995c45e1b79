"""Every pixel format of FFmpeg: its range, depth and alpha, as the table of rules says."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dala.media import video
from dala.media.video import color
from tests.media.video.clips import av, encode

#: Formats of hardware, which are downloaded before anyone sees them.
HARDWARE = {
    "amf", "cuda", "d3d11", "d3d11va_vld", "d3d12", "drm_prime", "dxva2_vld", "mediacodec", "mmal",
    "ohcodec", "opencl", "qsv", "vaapi", "vdpau", "videotoolbox_vld", "vulkan",
}  # fmt: skip
#: Formats that swscale writes and cannot read; no decoder returns them.
WRITE_ONLY = {"bgr4", "rgb4"}
#: Formats with few bits, which swscale dithers.
COARSE = re.compile(r"(rgb|bgr)(4|8).*|mono.*|bayer.*")


def names():
    found = sorted(set(av.video.format.names) - HARDWARE - WRITE_ONLY)
    assert len(found) > 150
    return found


def converted(frame, **options):
    """Return a frame of PyAV as RGBA, by the code under test."""
    colors = color.color_info(frame, "rawvideo", options.get("matrix"), options.get("range"))
    with color.to_rgba(color.planes_of(frame, colors), colors, "cpu") as made:
        return np.array(made)


@pytest.mark.parametrize("shade", [(200, 60, 90, 140), (90, 90, 90, 255)])
def test_every_format(shade):
    """A flat color through swscale into each format, and back by our rules."""
    picture = np.empty((8, 16, 4), np.uint8)
    picture[:] = shade
    rgba = av.VideoFrame.from_ndarray(picture, "rgba")
    tried, wrong = 0, []
    for name in names():
        rule = color.pixel_rule(name)
        if rule.kind == "gray" and len(set(shade[:3])) > 1:
            continue
        full = rule.range == "full"
        try:
            stored = rgba.reformat(
                format=name,
                dst_colorspace=6,
                src_color_range=2,
                dst_color_range=2 if full else 1,
                threads=1,  # threads of swscale race, rarely
            )
        except (ValueError, av.FFmpegError):
            continue  # swscale cannot write it
        stored.color_range = 0  # untagged
        stored.colorspace = 2
        try:
            made = converted(stored)
        except (ValueError, av.FFmpegError):
            wrong.append(f"{name} is written by swscale, and not read")
            continue
        tried += 1
        if COARSE.fullmatch(name):
            continue
        clear = any(part.is_alpha for part in stored.format.components)
        near = 9 if min(part.bits for part in stored.format.components) < 8 else 3
        off = np.abs(made.astype(int) - (*shade[:3], shade[3] if clear else 255)).max()
        if off > near:
            wrong.append(f"{name}: {made[0, 0]} for {shade}")
    assert not wrong
    assert tried > 120


@pytest.mark.parametrize("name", ["gray", "gray9le", "gray10le", "gray10be", "gray12le", "gray14le",
                                  "gray16le", "gray16be", "grayf32le"])  # fmt: skip
def test_gray_is_full_range_unless_tagged(name):
    parts = av.VideoFormat(name).components[0].bits
    top = (1 << parts) - 1
    kind = np.dtype("f4" if "f32" in name else "u1" if parts == 8 else "u2")
    kind = kind.newbyteorder(">" if name.endswith("be") else "<")
    values = np.linspace(0, 1 if kind.kind == "f" else top, 16)
    ramp = values.astype(kind) if kind.kind == "f" else np.rint(values).astype(kind)
    frame = av.VideoFrame(16, 4, name)
    rows = np.frombuffer(frame.planes[0], kind).reshape(4, -1)
    rows[:, :16] = ramp
    expected = np.arange(16) * 17
    assert np.array_equal(converted(frame)[2, :, 0], expected)
    frame.color_range = 2
    assert np.array_equal(converted(frame)[2, :, 0], expected)
    frame.color_range = 1
    if kind.kind != "f":
        limited = np.floor(values / (top + 1) * 256 + 0.5) if top > 255 else values
        assert (
            np.abs(converted(frame)[2, :, 1] - ((limited - 16) * 255 / 219).clip(0, 255)).max()
            < 1.5
        )
    assert np.array_equal(converted(frame, range="full")[2, :, 2], expected)


def test_one_bit():
    bits = np.frombuffer(bytes([0b10110000, 0b00000001]), np.uint8)
    for name, ink in (("monow", 0), ("monob", 255)):
        frame = av.VideoFrame(16, 1, name)
        np.frombuffer(frame.planes[0], np.uint8)[:2] = bits
        expected = np.where(np.unpackbits(bits), ink, 255 - ink)
        assert np.array_equal(converted(frame)[0, :, 1], expected)


@pytest.mark.parametrize(("suffix", "codec", "pixels"), [
    ("mkv", "ffv1", "gray"), ("mkv", "ffv1", "gray10le"), ("mkv", "ffv1", "gray12le"),
    ("avi", "rawvideo", "gray"), ("mkv", "ffv1", "gray16le"), ("mov", "png", "gray"),
])  # fmt: skip
def test_untagged_gray_video_keeps_its_values(tmp_path, suffix, codec, pixels):
    bits = av.VideoFormat(pixels).components[0].bits
    ramp = np.tile(np.arange(32) * 8 + 4, (16, 1)) * ((1 << bits) - 1) // 255
    array = ramp.astype(np.uint8 if bits == 8 else np.uint16)
    frame = av.VideoFrame(32, 16, pixels)
    rows = np.frombuffer(frame.planes[0], array.dtype).reshape(16, -1)
    rows[:, :32] = array
    path = encode(tmp_path / f"a.{suffix}", [frame], codec=codec, pixels=pixels)
    with video.open(path, device="cpu") as reader:
        made = np.asarray(next(reader))
    expected = np.floor(ramp * 255 / ((1 << bits) - 1) + 0.5)
    for channel in range(3):
        assert np.array_equal(made[..., channel], expected)


ALPHA = [
    ("mov", "prores_ks", "yuva444p10le", 2),
    ("mkv", "ffv1", "yuva420p", 1),
    ("mkv", "ffv1", "yuva444p16le", 0),
    ("mkv", "ffv1", "bgra", 0),
    ("mov", "png", "rgba", 0),
    ("mov", "png", "rgba64be", 1),
    ("mov", "qtrle", "argb", 0),
    ("mov", "png", "ya8", 1),
    ("avi", "utvideo", "gbrap", 0),
]


@pytest.mark.parametrize(("suffix", "codec", "pixels", "near"), ALPHA)
def test_alpha(tmp_path, suffix, codec, pixels, near):
    """Alpha comes as stored, in RGBA frames, also where native planes are asked for."""
    picture = np.empty((32, 64, 4), np.uint8)
    picture[..., :3] = 120
    picture[..., 3] = np.arange(64) * 4
    frame = av.VideoFrame.from_ndarray(picture, "rgba").reformat(
        format=pixels, src_color_range=2, dst_color_range=2 if pixels == "ya8" else 1
    )
    options = {"profile": "4444", "alpha_bits": "16"} if codec == "prores_ks" else {}
    path = encode(tmp_path / f"a.{suffix}", [frame], codec=codec, pixels=pixels, options=options)
    for format in ("rgba", "native"):
        with video.open(path, format=format, device="cpu") as reader:
            made = next(reader)
            assert made.format == "rgba"
            array = np.asarray(made)
        assert np.abs(array[..., 3].astype(int) - picture[..., 3]).max() <= near
        assert np.abs(array[..., :3].astype(int) - 120).max() <= 2


def test_alpha_on_every_engine(tmp_path, engine_id):
    """Also for odd sizes, whose planes are padded."""
    frame = av.VideoFrame(7, 5, "yuva420p")
    alpha = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7
    for plane, fill in zip(frame.planes, (126, 128, 128, alpha), strict=True):
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, -1)
        rows[:, : plane.width] = fill
    path = encode(tmp_path / "a.mkv", [frame], codec="ffv1", pixels="yuva420p")
    with video.open(path) as reader:
        made = np.asarray(next(reader))
    assert np.array_equal(made[..., 3], alpha)
    assert np.abs(made[..., :3].astype(int) - 128).max() <= 1


@pytest.mark.parametrize("name", ["rgb555be", "rgb555le", "bgr565be", "rgb565le"])
def test_sixteen_bits_per_pixel(name):
    """swscale reads the big-endian ones with their bytes swapped."""
    green = 6 if "565" in name else 5
    red, blue = (25, 11) if name.startswith("rgb") else (11, 25)
    word = red << 5 + green | (7 << green - 5) << 5 | blue
    frame = av.VideoFrame(8, 2, name)
    np.frombuffer(frame.planes[0], ">u2" if name.endswith("be") else "<u2")[:] = word
    made = converted(frame)[0, 0].astype(int)
    assert np.abs(made - (206, 57, 90, 255)).max() <= 3
