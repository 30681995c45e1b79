"""HDR and deep color: what videos of HLG, PQ and of more than eight bits are read as."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from dala.media import Frame, gpu, video
from dala.media.hdr import Hdr, MasteringDisplay
from dala.media.notices import MediaNotice
from tests.support.hdr_formulas import light, pq, rgb_of, sdr

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
        for packet in (*stream.encode(frame), *stream.encode(None)):
            packet.dts = packet.pts  # x265 leaves it unset for a single frame
            out.mux(packet)
    return path


def ramp(height: int = 16, width: int = 64, top: int = 1023, low: int = 64, high: int = 940):
    rng = np.random.default_rng(2)
    luma = np.linspace(low * (top + 1) // 1024, high * (top + 1) // 1024, width).astype(int)
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


#: libplacebo 4.208 in Debian's ffmpeg: ``tonemapping=bt.2390:tonemapping_param=0.5`` (the knee of
#: the standard) on grays from 0 to 1.944 in 256 steps, peak 1,000: every tenth code from 104 on.
#: Darker ones differ by its black of 0.2 cd/m2.
LIBPLACEBO = {
    "hlg": [198.4, 212.3, 223.1, 231.9, 238.5, 243.4, 247.1, 249.9,
            251.8, 253.1, 254.0, 254.4, 254.7, 254.8, 255.0, 255.0],
    "pq": [196.5, 211.0, 222.2, 231.1, 238.0, 243.1, 246.8, 249.8,
           251.6, 253.0, 254.0, 254.4, 254.7, 254.8, 255.0, 255.0],
}  # fmt: skip


@pytest.mark.parametrize("transfer", ["hlg", "pq"])
def test_the_curve_is_that_of_libplacebo(tmp_path, transfer):
    grays = np.tile(np.linspace(0, 1.944, 256, dtype="f4")[None, :, None], (16, 1, 3))
    video.write(tmp_path / "a.mkv", [grays], fps=25, codec="ffv1", hdr=Hdr(transfer))
    with video.open(tmp_path / "a.mkv", device="cpu") as reader:
        got = next(reader).numpy()[8, 104::10, 1].astype(float)
    error = np.abs(got - LIBPLACEBO[transfer])
    assert error.max() < 3.0
    assert error[3:].max() < 1.2


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


@pytest.mark.parametrize("pixels", ["yuva444p10le", "gbrap12le", "rgba64le", "yuva420p"])
def test_alpha_of_float_frames(tmp_path, pixels):
    color = np.random.default_rng(3).integers(0, 1 << 16, (16, 16, 4)).astype("<u2")
    frame = av.VideoFrame.from_ndarray(color, "rgba64le").reformat(format=pixels)
    frame.pts = 0
    with av.open(str(tmp_path / "a.mkv"), "w") as out:
        stream = out.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 16, 16, pixels
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    with video.open(tmp_path / "a.mkv", depth="float", device="cpu") as reader:
        got = next(reader)
    assert (got.dtype, got.format) == ("f32", "rgba")
    step = 2 / 255 if pixels == "yuva420p" else 2 / 1023  # FFmpeg dithers
    assert np.abs(got.numpy()[..., 3] - color[..., 3] / 65535).max() <= step
    if pixels in ("gbrap12le", "rgba64le"):
        assert np.abs(got.numpy()[..., :3] - color[..., :3] / 65535).max() <= 1 / 2048
    assert copy.copy(got).hdr is None


def test_copies_keep_hdr():
    frame = Frame.from_array(np.zeros((2, 2, 3), "f4"), hdr=Hdr("hlg"), device="cpu")
    assert copy.deepcopy(frame).hdr == pickle.loads(pickle.dumps(frame)).hdr == Hdr("hlg")


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


# writing --------------------------------------------------------------------------------------
DISPLAY = MasteringDisplay.of("p3", 4000.0)


def facts(path: Path):
    """Pixel format, matrix, primaries and transfer of a file, and the luma of its first frame."""
    with av.open(str(path)) as opened:
        context = opened.streams.video[0].codec_context
        frame = next(opened.decode(video=0))
        tags = context.colorspace, context.color_primaries, context.color_trc
        words = np.frombuffer(frame.planes[0], "<u2").reshape(frame.height, -1)
        return frame.format.name, tuple(map(int, tags)), words[:, : frame.width].copy()


@pytest.mark.parametrize(
    ("codec", "transfer", "name"),
    [("hevc", "pq", "a.mp4"), ("hevc", "hlg", "a.mkv"), ("av1", "pq", "a.mkv")],
)
def test_hdr_is_kept(tmp_path, codec, transfer, name):
    planes = ramp(64, 128, low=250, high=700)  # colors within 0 and 1
    source = write_codes(tmp_path / "in.mkv", planes, "yuv420p10le", transfer)
    light = (1500, 400) if transfer == "pq" else (0, 0)
    hdr = Hdr(transfer, DISPLAY if transfer == "pq" else None, *light)
    best = {"hevc": {"x265-params": "lossless=1:log-level=error:cutree=0"}, "av1": {"crf": 4}}
    with (
        video.open(source, depth="float", device="cpu") as reader,
        video.write(tmp_path / name, codec=codec, hdr=hdr, options=best[codec]) as sink,
    ):
        for frame in reader:
            sink.write(frame)
    form, tags, got = facts(tmp_path / name)
    assert (form, tags) == ("yuv420p10le", (9, 9, TRANSFERS[transfer]))
    with video.open(tmp_path / name, depth="float", device="cpu") as reader:
        found = next(reader).hdr
    assert (found.transfer, found.max_cll, found.max_fall) == (transfer, *light)
    if transfer == "pq":
        assert found.mastering.red == pytest.approx(DISPLAY.red, abs=1e-4)
        assert found.mastering.white == pytest.approx(DISPLAY.white, abs=1e-4)
        assert found.mastering.max_luminance == pytest.approx(4000)
        assert found.mastering.min_luminance == pytest.approx(0.005, abs=1e-4)
    error = np.abs(got.astype(int) - planes[0])
    assert error.max() <= (1 if codec == "hevc" else 40)
    assert error.mean() < (0.05 if codec == "hevc" else 6)


def test_frames_carry_their_hdr_to_the_file(tmp_path):
    source = write_codes(tmp_path / "in.mkv", ramp(64, 128), "yuv420p10le", "hlg")
    with video.open(source, depth="float", device="cpu") as reader:
        frames = [gpu.blur(frame, radius=1) for frame in reader]
    assert frames[0].hdr == Hdr("hlg")
    assert frames[0].dtype == "f32"
    assert frames[0].numpy()[..., :3].max() > 1.8  # highlights pass filters
    video.write(tmp_path / "out.mp4", frames)
    assert facts(tmp_path / "out.mp4")[:2] == ("yuv420p10le", (9, 9, 18))


def test_formats_of_eight_bits_get_hdr_tone_mapped(tmp_path):
    source = write_codes(tmp_path / "in.mkv", ramp(64, 128), "yuv420p10le", "pq")
    with video.open(source, depth="float", device="cpu") as reader:
        deep = next(reader)
    with video.open(source, device="cpu") as reader:
        shown = next(reader)
    with pytest.warns(MediaNotice, match="tone-mapped to SDR"):
        video.write(tmp_path / "out.mkv", [deep], codec="ffv1", pixel_format="yuv444p")
    with video.open(tmp_path / "out.mkv", device="cpu") as reader:
        back = next(reader)
    assert (back.primaries, back.transfer) == ("bt709", "bt709")
    assert np.abs(back.numpy().astype(int) - shown.numpy()).max() <= 3
    assert np.abs(deep.picture()[..., :3].astype(int) - shown.numpy()[..., :3]).max() <= 1


@pytest.mark.parametrize(
    ("pixels", "codec"),
    [
        ("yuv420p10le", "hevc"),
        ("yuv444p12le", "ffv1"),
        ("yuv422p10le", "ffv1"),
        ("gbrp12le", "ffv1"),
    ],
)
def test_deep_sdr_is_written(tmp_path, pixels, codec):
    rng = np.random.default_rng(1)
    picture = np.kron(rng.uniform(0.1, 0.9, (32, 64, 3)), np.ones((2, 2, 1))).astype("f4")
    options = {"x265-params": "lossless=1:log-level=error:cutree=0"} if codec == "hevc" else {}
    path = tmp_path / "a.mkv"
    video.write(path, [picture], fps=25, codec=codec, pixel_format=pixels, options=options)
    assert facts(path)[0] == pixels
    with video.open(path, depth="float", device="cpu") as reader:
        got = next(reader).numpy()[..., :3]
    step = 2.0 / ((1 << int(pixels[-4:-2])) - 1)
    inner = (slice(None), slice(None, None, 2)) if "444" not in pixels else (slice(None),)
    limit = step if "444" in pixels or "gbr" in pixels else 0.6
    assert np.abs(got - picture)[inner].max() < limit
    assert np.abs(got @ (0.2126, 0.7152, 0.0722) - picture @ (0.2126, 0.7152, 0.0722)).mean() < 0.02


def test_sdr_frames_in_an_hdr_video(tmp_path):
    white = np.full((64, 128, 3), 255, np.uint8)
    options = {"x265-params": "lossless=1:log-level=error:cutree=0"}
    video.write(tmp_path / "a.mkv", [white], fps=25, hdr=Hdr("pq"), options=options)
    luma = facts(tmp_path / "a.mkv")[2][0, 0]
    assert luma == round(pq(203.0) * 876 + 64)


def test_wrong_hdr(tmp_path):
    with pytest.raises(
        ValueError, match=r"video.write: hdr must be an Hdr, such as frame.hdr, got"
    ):
        video.write(tmp_path / "a.mp4", hdr="pq")
    assert not list(tmp_path.iterdir())


def test_wrong_depth(tmp_path):
    flat = np.full((8, 16), 512)
    path = write_codes(tmp_path / "a.mkv", (np.full((16, 32), 512), flat, flat), "yuv420p10le")
    with pytest.raises(ValueError, match=r"video.open: depth must be one of 'float', got 'half'"):
        video.open(path, depth="half")
    with pytest.raises(ValueError, match=r"format must be 'rgba' with depth='float', got 'native'"):
        video.open(path, depth="float", format="native")
