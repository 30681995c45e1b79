"""Writing videos: alpha and encoders."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import dala
from dala.errors import DeviceUnavailable, ParameterError, VideoError
from dala.gpu.compute import from_array
from dala.media import Frame, video
from dala.media.notices import MediaNotice, collected
from dala.media.video.output import opening as hardware
from dala.media.video.output.layouts import PRORES, choose_layout, encoded_picture
from dala.media.video.output.opening import EncoderChoice, choose_encoder
from tests.media.video.clips import av
from tests.media.video.written import glass, plain


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


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


# alpha --------------------------------------------------------------------------------------------


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


# encoders -----------------------------------------------------------------------------------------

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


def test_prores_is_422_and_its_planes_are_exact():
    """Ten bits of luma are eight and two zeros; chroma rows lie a quarter from those of 4:2:0."""

    assert choose_layout("prores_ks", None, alpha=False) == PRORES
    random = np.random.default_rng(3)
    planes = random.integers(16, 236, (48, 24), np.uint8)  # 24 x 32 pixels
    frame = Frame(from_array(planes), format="i420")
    made = encoded_picture(frame, PRORES, (24, 32), matrix=frame.matrix, range="limited", copy=True)
    luma, red = (
        np.frombuffer(plane, np.uint16).reshape(32, -1)[:, :width]
        for plane, width in zip((made.planes[0], made.planes[2]), (24, 12), strict=True)
    )
    np.testing.assert_array_equal(luma, planes[:32].astype(int) * 4)
    chroma = planes[40:].reshape(16, 12).astype(int)
    at = (np.arange(32) - 0.5) / 2  # the place of each row among those of 4:2:0
    for column in range(12):
        wanted = np.interp(at, np.arange(16), chroma[:, column]) * 4
        np.testing.assert_array_equal(red[:, column], wanted)


_PERTURBED = """
import sys
import numpy as np
import dala
from dala.media import video

random = np.random.default_rng(1)
width = int(sys.argv[2])
back = random.integers(60, 120, (144, width + 24, 1), np.uint8).repeat(3, axis=2)
frames = [np.ascontiguousarray(back[:, n : n + width]) for n in range(24)]
video.write(sys.argv[1], frames, fps=30, device="cpu")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc's malloc")
@pytest.mark.parametrize("width", [854, 1280])
def test_the_same_bytes_whatever_fresh_memory_holds(tmp_path, width):
    """With AVX-512 x264 reads fresh memory at widths like the first one; see ``encode.py``."""
    made = []
    for fill in ("0", "1"):
        path = tmp_path / f"{fill}.mp4"
        command = [sys.executable, "-c", _PERTURBED, str(path), str(width)]
        subprocess.run(command, check=True, env={**os.environ, "MALLOC_PERTURB_": fill})
        made.append(path.read_bytes())
    assert made[0] == made[1]
