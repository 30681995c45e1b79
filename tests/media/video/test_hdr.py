"""HDR and deep color: what videos of HLG, PQ and of more than eight bits are read as."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dala.media import video
from dala.media.hdr import Hdr, MasteringDisplay
from tests.support.hdr_formulas import light, rgb_of, sdr

av = pytest.importorskip("av")

#: H.273's numbers of the transfer.
TRANSFERS = {"hlg": 18, "pq": 16, "bt709": 1}


def write_codes(
    path: Path, planes, pixels: str, transfer: str = "bt709", *, codec: str = "ffv1",
    options: dict[str, str] | None = None, tags: tuple[int, int, int] = (1, 9, 9),
) -> Path:  # fmt: skip
    """A file of one frame whose planes hold these samples; tags are range, matrix, primaries."""
    height, width = planes[0].shape
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=25, options=options or {})
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        context = stream.codec_context
        context.color_range, context.colorspace, context.color_primaries = tags
        context.color_trc = TRANSFERS[transfer]
        frame = av.VideoFrame(width, height, pixels)
        for plane, samples in zip(frame.planes, planes, strict=True):
            words = np.frombuffer(plane, "<u2").reshape(samples.shape[0], -1)
            words[:, : samples.shape[1]] = samples
        frame.color_range, frame.colorspace, frame.color_primaries = tags
        frame.color_trc = TRANSFERS[transfer]
        frame.pts = 0
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def ramp(height: int = 16, width: int = 64, top: int = 1023):
    rng = np.random.default_rng(2)
    luma = np.linspace(64 * (top + 1) // 1024, 940 * (top + 1) // 1024, width).astype(int)
    chroma = rng.integers(460, 564, (2, height // 2, width // 2)) * (top + 1) // 1024
    return np.tile(luma, (height, 1)), chroma[0], chroma[1]


@pytest.mark.parametrize("transfer", ["hlg", "pq"])
def test_hdr_is_tone_mapped_by_default(tmp_path, transfer):
    luma = ramp()[0]
    flat = np.full((8, 32), 512)
    path = write_codes(tmp_path / "a.mkv", (luma, flat, flat), "yuv420p10le", transfer)
    with video.open(path, device="cpu") as reader:
        frame = next(reader)
        assert (frame.transfer, frame.primaries, frame.matrix) == ("bt709", "bt709", "bt709")
        assert (frame.dtype, frame.hdr) == ("u8", None)
        expected = [sdr(rgb_of(y, 512, 512), transfer) * 255 for y in luma[0]]
        assert np.abs(frame.numpy()[3, :, :3] - expected).max() <= 1.0


@pytest.mark.parametrize("transfer", ["hlg", "pq"])
def test_floats_are_light_without_rounding(tmp_path, transfer):
    luma = ramp()[0]
    flat = np.full((8, 32), 512)
    path = write_codes(tmp_path / "a.mkv", (luma, flat, flat), "yuv420p10le", transfer)
    with video.open(path, depth="float", device="cpu") as reader:
        frame = next(reader)
    assert (frame.dtype, frame.shape, frame.transfer) == ("f32", (16, 64, 4), "bt709")
    assert (frame.primaries, frame.hdr) == ("bt2020", Hdr(transfer))
    expected = [
        (np.array(light(rgb_of(y, 512, 512), transfer)) / 203) ** (1 / 2.4) for y in luma[0]
    ]
    assert frame.numpy()[5, :, :3] == pytest.approx(np.array(expected), abs=2e-5, rel=2e-5)
    assert frame.numpy()[..., :3].max() > 1.9


@pytest.mark.parametrize(("bits", "span"), [(10, "limited"), (12, "limited"), (12, "full")])
def test_deep_sdr_is_exact_as_floats(tmp_path, bits, span):
    top = (1 << bits) - 1
    luma, u, v = ramp(top=top)
    u, v = np.kron(u, np.ones((2, 2), int)), np.kron(v, np.ones((2, 2), int))
    tags = (2 if span == "full" else 1, 1, 1)
    path = write_codes(tmp_path / "a.mkv", (luma, u, v), f"yuv444p{bits}le", tags=tags)
    with video.open(path, depth="float", device="cpu") as reader:
        frame = next(reader)
    assert (frame.transfer, frame.primaries, frame.hdr) == ("bt709", "bt709", None)
    unit = 1 << (bits - 8)
    if span == "limited":
        y, cb, cr = (luma / unit - 16) / 219, (u / unit - 128) / 224, (v / unit - 128) / 224
    else:
        y, cb, cr = luma / top, (u - 128 * unit) / top, (v - 128 * unit) / top
    r, b = y + 1.5748 * cr, y + 1.8556 * cb
    g = (y - 0.2126 * r - 0.0722 * b) / 0.7152
    assert np.abs(frame.numpy()[..., :3] - np.stack([r, g, b], axis=-1)).max() < 2e-6


def test_metadata_of_the_mastering_display(tmp_path):
    params = (
        "log-level=error:cutree=0:hdr10=1:master-display=G(13250,34500)B(7500,3000)R(34000,16000)"
        "WP(15635,16450)L(40000000,50):max-cll=1500,400"
    )
    path = write_codes(
        tmp_path / "a.mp4", ramp(64, 128), "yuv420p10le", "pq", codec="libx265",
        options={"x265-params": params, "preset": "ultrafast"},
    )  # fmt: skip
    with video.open(path, depth="float", device="cpu") as reader:
        hdr = next(reader).hdr
    assert hdr == Hdr("pq", MasteringDisplay.of("p3", 4000.0), 1500, 400)
    assert hdr.peak == 1500


def test_peak_comes_from_the_metadata():
    display = MasteringDisplay.of("bt2020", 4000.0)
    assert Hdr("pq", display).peak == 4000
    assert Hdr("pq", display, 650).peak == 650
    assert Hdr("pq").peak == Hdr("hlg", display, 4000).peak == 1000
    assert Hdr("pq", max_cll=65535).peak == 10000
    with pytest.raises(ValueError, match="transfer must be one of 'hlg', 'pq', got 'log'"):
        Hdr("log")
