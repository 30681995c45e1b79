"""Writing: alpha, hardware encoders, streams, the end of the sound, tags."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import dala
from dala.errors import DeviceUnavailable, ParameterError, VideoError
from dala.media import Frame, video
from dala.media.notices import MediaNotice, collected
from dala.media.video.output import hardware
from dala.media.video.output.hardware import EncoderChoice, choose_encoder
from dala.media.video.output.layouts import encoded_picture
from tests.media.video.clips import av, encode, numbered, packets


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


def glass(width=48, height=32):
    """Colors that change slowly, and alpha from 0 to 255."""
    y, x = np.mgrid[0:height, 0:width]
    parts = [x * 5, y * 7, x * 0 + 90, x * 255 // (width - 1)]
    return np.stack(parts, axis=-1).astype(np.uint8)


def plain(count=5):
    return [glass()[..., :3]] * count


def decoded(path, decoder=None):
    """The first frame as RGBA, by a decoder of FFmpeg."""
    with av.open(str(path)) as file:
        if decoder is None:
            return next(file.decode(video=0)).reformat(format="rgba").to_ndarray()
        context = av.CodecContext.create(decoder, "r")
        for packet in file.demux(video=0):
            for frame in context.decode(packet):
                return frame.reformat(format="rgba").to_ndarray()
    raise AssertionError("no frame")


# alpha ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("suffix", "codec", "found", "colors", "alphas"),
    [
        ("mov", None, "prores", 4, 1),
        ("webm", None, "vp9", 12, 3),
        ("mkv", None, "ffv1", 0, 0),
        ("mov", "png", "png", 0, 0),
        ("avi", None, "ffv1", 0, 0),
        ("mkv", "vp9", "vp9", 12, 3),
    ],
)
@pytest.mark.parametrize("odd", [False, True])
def test_alpha_is_kept(tmp_path, suffix, codec, found, colors, alphas, odd):
    path = tmp_path / f"a.{suffix}"
    picture = glass(47, 31) if odd else glass()
    video.write(path, [picture] * 3, fps=25, codec=codec, alpha=True)
    with av.open(str(path)) as file:
        assert file.streams.video[0].codec_context.name == found
    # FFmpeg's own decoder of VP9 leaves out alpha.
    seen = decoded(path, "libvpx-vp9" if found == "vp9" else None)
    off = np.abs(seen.astype(int) - picture)
    assert off[..., 3].max() <= alphas
    assert off[..., :3].max() <= colors


def test_float_frames_keep_alpha(tmp_path):
    picture = (glass() / np.float32(255)).astype(np.float32)
    video.write(tmp_path / "a.mkv", [picture], fps=25, alpha=True)
    assert np.array_equal(decoded(tmp_path / "a.mkv"), glass())


def test_opaque_frames_with_alpha(tmp_path):
    planes = Frame.from_array(glass()[..., :3]).to("i420")
    video.write(tmp_path / "a.webm", [planes], fps=25, alpha=True)
    assert decoded(tmp_path / "a.webm", "libvpx-vp9")[..., 3].min() == 255


@pytest.mark.parametrize("at", [0, 4])
def test_dropped_alpha_is_said_once(tmp_path, at):
    pictures = [np.dstack([p, np.full(p.shape[:2], 255, np.uint8)]) for p in plain(8)]
    pictures[at] = glass()
    with pytest.warns(MediaNotice, match="does not keep the alpha of its frames") as said:
        video.write(tmp_path / "a.mp4", pictures, fps=25)
    assert len(said) == 1
    pictures[at][..., 3] = 255
    video.write(tmp_path / "b.mp4", pictures, fps=25)  # opaque: nothing to say


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.mp4", {}, "no codec of 'mp4' holds alpha. Write .mov"),
        ("a.mkv", {"codec": "h264"}, "'libx264' holds no alpha. Use codec 'prores'"),
        ("a.mkv", {"pixel_format": "yuv420p"}, "one with alpha, because alpha is True"),
    ],
)
def test_alpha_where_it_cannot_be(tmp_path, name, options, words):
    with pytest.raises(ParameterError, match=words):
        video.write(tmp_path / name, [glass()], fps=25, alpha=True, **options)
    assert os.listdir(tmp_path) == []


def test_sizes_that_an_encoder_refuses_say_why(tmp_path):
    with pytest.raises(VideoError, match=r"'libx265' at 2x2: Image size is too small \(2x2\)"):
        video.write(tmp_path / "a.mp4", [np.zeros((2, 2, 3), np.uint8)], fps=25, codec="hevc")
    assert os.listdir(tmp_path) == []


def test_bad_options(tmp_path):
    for bad, words in (
        ({"alpha": 1}, "alpha must be True or False, got 1"),
        ({"pixel_format": "yuv999"}, "pixel_format must be one of yuv420p, "),
        ({"pixel_format": "rgba"}, "pixel_format must be one of yuv420p, "),
        ({"encoder": "gpu"}, "encoder must be one of 'auto', 'x264', 'nvenc'"),
        ({"encoder": "x264", "codec": "hevc"}, "codec must be 'h264' with encoder 'x264'"),
        ({"encoder": "nvenc", "codec": "ffv1"}, "codec must be one of 'h264', 'hevc'"),
        ({"encoder": "qsv", "pixel_format": "yuv444p"}, "takes 8-bit 4:2:0 without alpha only"),
        ({"format": ""}, "format must be a container"),
    ):
        with pytest.raises(ParameterError, match=words):
            video.write(tmp_path / "a.mp4", fps=25, **bad)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("layout", ["yuv420p", "yuva420p", "yuv444p10le", "rgba", "nv12"])
def test_layouts_on_every_engine(dala_device, layout):
    """As on the CPU, with kernels that may round another way."""
    picture = glass(47, 31)
    size = (48, 32) if layout == "nv12" else (47, 31)
    made = [
        encoded_picture(
            Frame.from_array(picture, device=device),
            layout,
            size,
            matrix="bt709",
            range="limited",
            copy=False,
        )
        for device in ("cpu", dala_device)
    ]
    for ours, right in zip(made[1].planes, made[0].planes, strict=True):
        width = ours.width * (4 if layout == "rgba" else 2 if "10" in layout else 1)
        if layout == "nv12" and ours.height < 32:
            width *= 2
        kind = np.uint16 if "10" in layout else np.uint8
        a, b = (
            np.frombuffer(p, np.uint8).reshape(-1, p.line_size)[:, :width].copy().view(kind)
            for p in (ours, right)
        )
        assert np.abs(a.astype(int) - b).max() <= 1


def test_hevc_in_mp4_has_the_tag_of_apple(tmp_path):
    for name, tag in (("a.mp4", "hvc1"), ("a.mov", "hvc1"), ("a.mkv", "\0\0\0\0")):
        video.write(tmp_path / name, plain(), fps=25, codec="hevc")
        with av.open(str(tmp_path / name)) as file:
            assert file.streams.video[0].codec_context.codec_tag == tag
            assert len(list(file.decode(video=0))) == 5


# encoders ---------------------------------------------------------------------------------------
SOFTWARE = EncoderChoice("libx264", {"crf": "20"}, "yuv420p")


def machine(*works):
    """A probe of a machine with some hardware encoders, and the names that were tried."""
    tried = []

    def probe(choice, size):
        tried.append(choice.name)
        return None if choice.name in works else f"no {choice.name}"

    return probe, tried


@pytest.mark.parametrize(
    ("works", "codec", "taken", "count"),
    [
        (("h264_nvenc", "h264_qsv"), "h264", "h264_nvenc", 1),
        (("h264_qsv",), "h264", "h264_qsv", 3),
        (("hevc_vaapi",), "h265", "hevc_vaapi", 5),
        (("h264_nvenc",), "hevc", "libx264", 5),
        ((), "h264", "libx264", 5),
        (("h264_nvenc",), "ffv1", "libx264", 0),
    ],
)
def test_auto_takes_the_first_that_opens(works, codec, taken, count):
    probe, tried = machine(*works)
    with collected() as said:
        choice = choose_encoder("auto", codec, (64, 48), SOFTWARE, {}, probe=probe)
    assert (choice.name, len(tried)) == (taken, count)
    assert len(said) == 1
    assert f"uses {taken}." in said[0]
    for name in tried:
        assert (f"no {name}" in said[0]) == (name not in works)


def test_hardware_is_asked_for_even_sizes():
    asked = []
    choose_encoder("qsv", "h264", (63, 47), SOFTWARE, {}, probe=lambda c, size: asked.append(size))
    assert asked == [(64, 48)]


def test_quality_is_translated():
    probe, _ = machine("h264_nvenc", "h264_qsv", "h264_amf", "h264_vaapi", "h264_videotoolbox")
    made = {}
    for kind in hardware.HARDWARE:
        given = {"crf": "18", "g": "30"}
        choice = choose_encoder(kind, "h264", (64, 48), SOFTWARE, given, probe=probe)
        made[kind] = choice.options
        assert "crf" not in choice.options
        assert choice.options["g"] == "30"
    assert made["nvenc"]["cq"] == made["qsv"]["global_quality"] == made["vaapi"]["qp"] == "18"
    assert made["amf"]["qp_i"] == "18"
    assert int(made["videotoolbox"]["global_quality"]) == 65 * 118


@pytest.mark.parametrize("kind", hardware.HARDWARE)
def test_hardware_that_is_not_here_is_refused_with_a_reason(tmp_path, kind):
    wanted = EncoderChoice(f"h264_{kind}", {}, hardware.HARDWARE[kind])
    if hardware.refusal(wanted, (64, 48)) is None:
        pytest.skip(f"this machine has {kind}")
    with pytest.raises(DeviceUnavailable, match=f"encoder '{kind}' cannot encode h264 at 48x32"):
        video.write(tmp_path / "a.mp4", plain(), fps=25, encoder=kind)
    assert os.listdir(tmp_path) == []


def test_auto_writes_a_video_and_says_what_it_tried(tmp_path):
    with pytest.warns(MediaNotice, match="encoder 'auto' uses") as said:
        writer = video.write(tmp_path / "a.mp4", plain(), fps=25, encoder="auto")
    assert len(said) == 1
    assert writer.encoder in str(said[0].message)
    with video.open(tmp_path / "a.mp4") as reader:
        assert (reader.codec, len(list(reader))) == ("h264", 5)


def test_a_real_encoder_opens(tmp_path):
    assert hardware.refusal(SOFTWARE, (64, 48)) is None
    assert "not divisible by 2" in hardware.refusal(SOFTWARE, (63, 48))
    assert "does not have it" in hardware.refusal(EncoderChoice("h264_none", {}, "nv12"), (64, 48))


def test_writer_uses_the_layout_of_the_choice(tmp_path, monkeypatch):
    """A hardware encoder takes nv12; x264 stands in for one."""
    stand_in = EncoderChoice("libx264", {"qp": "0"}, "nv12")
    monkeypatch.setattr(hardware, "hardware_choice", lambda *a: stand_in)
    with collected():
        writer = video.write(tmp_path / "a.mp4", plain(), fps=25, encoder="auto")
    assert writer.encoder == "libx264"
    video.write(tmp_path / "b.mp4", plain(), fps=25, options={"qp": 0, "crf": -1})
    assert np.array_equal(decoded(tmp_path / "a.mp4"), decoded(tmp_path / "b.mp4"))


# streams ----------------------------------------------------------------------------------------
FORMATS = {"mp4": "h264", "mkv": "h264", "webm": "vp9", "mov": "h264", "ts": "h264"}


def count(data, suffix, folder):
    path = folder / f"read.{suffix}"
    path.write_bytes(data)
    with video.open(path) as reader:
        return len(list(reader))


@pytest.mark.parametrize("suffix", [*FORMATS, "avi"])
def test_memory(tmp_path, suffix):
    file = io.BytesIO(b"before")
    file.seek(6)
    video.write(file, plain(), fps=25, format=suffix)
    assert file.getvalue()[:6] == b"before"
    assert not file.closed
    assert count(file.getvalue()[6:], suffix, tmp_path) == 5


def piped(write):
    """Everything that a function writes to a pipe."""
    out, into = os.pipe()
    got = []

    def read():
        with open(out, "rb") as file:
            got.append(file.read())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        with open(into, "wb") as file:
            write(file)
    finally:
        thread.join()
    return got[0]


@pytest.mark.parametrize("suffix", FORMATS)
def test_pipes(tmp_path, suffix):
    data = piped(lambda file: video.write(file, plain(), fps=25, format=suffix))
    assert count(data, suffix, tmp_path) == 5


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipes_stay_pipes(tmp_path):
    path = tmp_path / "a.mkv"
    os.mkfifo(path)
    got = []
    thread = threading.Thread(target=lambda: got.append(path.read_bytes()))
    thread.start()
    video.write(path, plain(), fps=25)
    thread.join()
    assert path.is_fifo()
    assert count(got[0], "mkv", tmp_path) == 5


def test_format_overrides_the_suffix(tmp_path):
    video.write(tmp_path / "clip", plain(), fps=25, format="mkv")
    assert (tmp_path / "clip").read_bytes()[:4] == b"\x1aE\xdf\xa3"
    assert os.listdir(tmp_path) == ["clip"]


def test_failures_leave_a_file_object_as_it_was():
    file = io.BytesIO(b"before")
    file.seek(6)
    with pytest.raises(ZeroDivisionError), video.write(file, fps=25, format="mkv") as writer:
        writer.write(plain()[0])
        raise ZeroDivisionError
    assert file.getvalue() == b"before"


def test_an_interrupted_stream_has_no_end():
    """The reader of a pipe must not take a part for the whole."""

    def write(file):
        with pytest.raises(KeyboardInterrupt), video.write(file, fps=25, format="mp4") as writer:
            for picture in plain(30):
                writer.write(picture)
            raise KeyboardInterrupt

    assert b"mfra" not in piped(write)
    assert b"mfra" in piped(lambda file: video.write(file, plain(3), fps=25, format="mp4"))


class Full(io.RawIOBase):
    """A disk that is full after some bytes."""

    def __init__(self, room):
        self.room = room

    def writable(self):
        return True

    def write(self, data):
        if self.room < len(data):
            raise OSError(28, "No space left on device")
        self.room -= len(data)
        return len(data)


@pytest.mark.parametrize("room", [0, 2000])
def test_a_full_disk(room):
    noise = np.random.default_rng(0)
    with pytest.raises(VideoError, match="No space left on device"):
        video.write(
            Full(room),
            [noise.integers(0, 255, (32, 48, 3), np.uint8) for _ in range(20)],
            fps=25,
            format="mkv",
        )


FULL = """
import resource, sys
import numpy as np
from dala.media import video
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # as if the disk were full
noise = np.random.default_rng(0)
pictures = [noise.integers(0, 255, (64, 64, 3), np.uint8) for _ in range(30)]
try:
    video.write(sys.argv[1], pictures, fps=25, device="cpu")
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of file sizes")
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_full_disk_leaves_nothing(tmp_path, suffix):
    (tmp_path / f"a.{suffix}").write_bytes(b"older")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / f"a.{suffix}")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "VideoError video.write: " in done.stdout
    assert "File too large. No file was written." in done.stdout
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(f"a.{suffix}", b"older")]


def test_streams_that_cannot_be(tmp_path):
    with pytest.raises(ParameterError, match="has no suffix to name the container"):
        video.write(io.BytesIO(), fps=25)
    with pytest.raises(VideoError, match="cannot create '<BytesIO>'"):
        video.write(io.BytesIO(), plain(), fps=25, format="nonsense")
    with pytest.raises(ParameterError, match="cannot seek, which 'avi' needs"):
        video.write(Full(1 << 20), plain(), fps=25, format="avi", codec="mpeg4")


# sound and tags ---------------------------------------------------------------------------------
def test_sound_ends_with_the_picture(tmp_path):
    source = encode(tmp_path / "in.mp4", numbered(50), tone=True)
    video.write(tmp_path / "out.mp4", plain(10), fps=25, audio_from=source)
    given, kept = (packets(tmp_path / n, "audio") for n in ("in.mp4", "out.mp4"))
    assert [p[2] for p in kept] == [p[2] for p in given if p[0] < Fraction(10, 25)]
    assert 17 <= len(kept) < len(given)


@pytest.mark.parametrize("argument", ["audio_from", "tracks_from"])
def test_from_memory_to_memory_with_sound(tmp_path, argument):
    first = encode(tmp_path / "in.mp4", numbered(10), tone=True)
    out = io.BytesIO()
    with (
        video.open(io.BytesIO(first.read_bytes())) as source,
        video.write(out, format="mkv", **{argument: source}) as sink,
    ):
        for frame in source:
            sink.write(frame)
    (tmp_path / "out.mkv").write_bytes(out.getvalue())
    assert sink.frames == 10
    given, kept = (packets(tmp_path / n, "audio") for n in ("in.mp4", "out.mkv"))
    assert [p[2] for p in kept] == [p[2] for p in given][: len(kept)]
    assert len(given) - len(kept) <= 1


#: Primaries and transfer of H.273: untagged, PAL, SMPTE 240M with a gamma, film, DCI-P3, logarithm.
@pytest.mark.parametrize(
    "tags", [(2, 2), (5, 4), (7, 7), (8, 5), (11, 17), (1, 13), (9, 14), (10, 9)]
)
@pytest.mark.parametrize("format", ["rgba", "native"])
def test_tags_survive(tmp_path, tags, format):
    with av.open(str(tmp_path / "in.mkv"), "w") as out:
        stream = out.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        context = stream.codec_context
        context.color_primaries, context.color_trc = tags
        frame = av.VideoFrame(32, 32, "yuv420p")
        frame.color_primaries, frame.color_trc = tags
        frame.pts = 0
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    with (
        video.open(tmp_path / "in.mkv", format=format) as source,
        video.write(tmp_path / "out.mkv") as sink,
    ):
        for each in source:
            sink.write(each)
    with av.open(str(tmp_path / "out.mkv")) as file:
        found = next(file.decode(video=0))
    assert (int(found.color_primaries), int(found.color_trc)) == tags


def test_tags_of_frames_that_were_converted(tmp_path):
    made = Frame.from_array(
        glass()[..., :3], pts=0, primaries="bt2020", transfer="hlg", tags=(5, 4)
    )
    video.write(tmp_path / "a.mkv", [made], codec="ffv1")
    with av.open(str(tmp_path / "a.mkv")) as file:
        found = next(file.decode(video=0))
    assert (int(found.color_primaries), int(found.color_trc)) == (9, 18)


@pytest.mark.parametrize("suffix", ["avi", "y4m", "ogv"])
def test_containers_that_count_frames_have_the_rate_of_the_video(tmp_path, suffix):
    """Without it they would count the ticks of the frames' time base, 12,800 a second."""
    path = tmp_path / f"a.{suffix}"
    with video.write(path, fps=25) as writer:
        for n in range(4):
            pixels = np.full((32, 48, 3), 20 * n, np.uint8)
            writer.write(Frame.from_array(pixels, pts=512 * n, time_base=Fraction(1, 12800)))
    with video.open(path) as reader:
        times = [frame.time for frame in reader]
        assert reader.fps == 25
    assert [b - a for a, b in pairwise(times)] == [Fraction(1, 25)] * 3
    writer = video.write(path, fps=25)
    late = [Frame.from_array(pixels, pts=n, time_base=Fraction(1, 12800)) for n in (0, 700)]
    writer.write(late[0])
    with pytest.warns(MediaNotice, match=r"times of frame 1 and others are rounded"):
        writer.write(late[1])
    writer.abandon()
