"""Deinterlacing, sizes that change in mid-stream, and alpha of WebM."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

import dala
from dala.cli import main
from dala.errors import ParameterError, VideoError
from dala.media import video
from dala.media.notices import MediaNotice
from dala.media.video.stages import SizeKeeper
from tests.media.video.clips import av, encode, number_of, numbered, source


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


# sizes -------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    """A stream of five frames of 64x48, five of twice the size and five of another shape."""
    folder = tmp_path_factory.mktemp("growing")
    options = {"g": "5", "bf": "0"}
    sizes = ((48, 64), (96, 128), (48, 128))
    parts = [
        encode(folder / f"{i}.h264", numbered(5, size), options=options).read_bytes()
        for i, size in enumerate(sizes)
    ]
    (folder / "all.h264").write_bytes(b"".join(parts))
    return folder / "all.h264"


@pytest.mark.parametrize("format", ["rgba", "native"])
def test_frames_keep_the_first_size(growing, format):
    with video.open(growing, format=format) as reader:
        with pytest.warns(MediaNotice, match="scaled to 64x48") as said:
            frames = list(reader)
        assert (reader.width, reader.height) == (64, 48)
        assert len(said) == len(reader.notices) == 1
        assert "from 64x48 to 128x96 at frame 5 (0.200 s)" in reader.notices[0]
    shown = [np.asarray(f if f.format == "rgba" else f.to("rgba")) for f in frames]
    assert {picture.shape for picture in shown} == {(48, 64, 4)}
    assert [number_of(picture) for picture in shown[:10]] == [0, 1, 2, 3, 4] * 2
    for picture in shown[10:]:  # 128x48 becomes 64x24, between bars
        assert picture[:10, :, :3].max() <= 3
        assert picture[38:, :, :3].max() <= 3
    assert [number_of(picture[14:34]) for picture in shown[10:]] == [0, 1, 2, 3, 4]
    times = [frame.time for frame in frames]
    assert times == sorted(set(times))


def test_a_new_size_may_be_an_error(growing):
    with video.open(growing, on_resize="error") as reader:
        seen = list(islice(reader, 5))
        with pytest.raises(VideoError, match=r"to 128x96 at frame 5 \(0\.200 s\)\. Use on_resize"):
            next(reader)
    assert len(seen) == 5
    with pytest.raises(ParameterError, match="on_resize must be one of 'scale', 'error'"):
        video.open(growing, on_resize="crop")


def test_new_sizes_on_the_command_line(tmp_path, growing, capsys):
    out = tmp_path / "out.mp4"
    command = ["filter", str(growing), str(out), "--invert", "--device", "cpu"]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["made"][0]["frames"] == 15
    assert "at frame 5" in report["notices"][0]
    assert main([*command, "--on-resize", "error"]) == 2
    assert "at frame 5" in capsys.readouterr().err
    with video.open(out) as reader:
        assert len(list(reader)) == 5


def test_another_pixel_format(tmp_path):
    """The colors stay; only the notice tells."""
    parts = []
    for i, pixels in enumerate(("yuv420p", "yuv444p")):
        path = encode(tmp_path / f"{i}.h264", numbered(3), pixels=pixels, options={"g": "3"})
        parts.append(path.read_bytes())
    path = tmp_path / "a.h264"
    path.write_bytes(b"".join(parts))
    said = "from yuv420p to yuv444p at frame 3"
    with video.open(path) as reader, pytest.warns(MediaNotice, match=said):
        frames = list(reader)
    assert [number_of(frame) for frame in frames] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("first", [(63, 47), (64, 47), (5, 3), (2, 2), (1, 9), (64, 48)])
@pytest.mark.parametrize("pixels", ["yuv420p", "yuvj422p", "yuva420p", "gray", "rgb24", "nv12"])
def test_any_size_into_any_other(first, pixels):
    said = {}
    keeper = SizeKeeper("scale", "a", said.setdefault)
    for number, size in enumerate((first, (128, 48), (48, 128), (64, 816), (2, 2), first)):
        frame = av.VideoFrame(*size, pixels)
        frame.pts, frame.time_base = number, Fraction(1, 25)
        made = keeper.put(frame, number, Fraction(0))
        assert (made.width, made.height) == first
        assert (made.pts, made.time_base) == (number, Fraction(1, 25))
    assert list(said) == ["size"]


# interlaced --------------------------------------------------------------------------------------
def fields(count=16, size=(96, 64)):
    """A white bar that moves four pixels from field to field: frames with combs, and the bar."""
    made = []
    for i in range(count):
        picture = np.full((size[1], size[0], 3), 30, np.uint8)
        for field in (0, 1):
            left = (2 * i + field) * 2 % (size[0] - 20)
            picture[field::2, left : left + 20] = 220
        made.append(av.VideoFrame.from_ndarray(picture, "rgb24"))
    return made


def combs(picture):
    """Return how much neighboring lines differ, where lines two apart are alike."""
    luma = np.asarray(picture)[..., 1].astype(int)
    near, far = np.abs(np.diff(luma, axis=0))[:-1], np.abs(luma[2:] - luma[:-2])
    return float(((near > 60) & (far < 20)).mean())


@pytest.fixture(scope="module")
def interlaced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interlaced")
    flagged = {"flags": "+ildct+ilme", "top": "1", "qscale": "2", "g": "4"}
    plain = {"qscale": "2", "g": "4", "bf": "0"}
    encode(folder / "flagged.ts", fields(), codec="mpeg2video", options=flagged)
    encode(folder / "plain.ts", fields(), codec="mpeg2video", options=plain)
    frames = list(islice(source("testsrc2"), 16))
    encode(folder / "whole.ts", frames, codec="mpeg2video", options=plain)
    return folder


def test_interlaced_video_is_noticed(interlaced):
    with video.open(interlaced / "flagged.ts") as reader:
        with pytest.warns(MediaNotice, match="it is interlaced.* deinterlace=True") as said:
            frames = list(reader)
        assert len(said) == 1
    assert np.mean([combs(frame) for frame in frames]) > 0.04
    with video.open(interlaced / "flagged.ts", deinterlace=False) as reader:
        assert len(list(reader)) == 16
        assert reader.notices == ()


@pytest.mark.parametrize(("name", "wanted"), [
    ("flagged", True), ("flagged", "auto"), ("plain", True), ("plain", "auto"),
])  # fmt: skip
@pytest.mark.parametrize("format", ["rgba", "native"])
def test_deinterlaced(interlaced, name, wanted, format):
    path = interlaced / f"{name}.ts"
    with video.open(path, deinterlace=False) as reader:
        before = [frame.time for frame in reader]
    with video.open(path, deinterlace=wanted, format=format) as reader:
        frames = list(reader)
        assert reader.notices == ()
        reader.seek(before[9])
        again = next(reader)
    assert [frame.time for frame in frames] == before
    assert again.time == before[9]
    shown = [f if f.format == "rgba" else f.to("rgba") for f in frames]
    assert np.mean([combs(frame) for frame in shown]) < 0.01


def test_progressive_video_stays_as_it_is(interlaced):
    path = interlaced / "whole.ts"
    with video.open(path) as reader:
        before = [np.asarray(frame) for frame in reader]
        assert reader.notices == ()
    said = "no frame is interlaced"
    with video.open(path, deinterlace="auto") as reader, pytest.warns(MediaNotice, match=said):
        after = [np.asarray(frame) for frame in reader]
    assert len(after) == 16
    assert all(map(np.array_equal, before, after))
    with pytest.raises(ParameterError, match="deinterlace must be True, False, 'auto' or None"):
        video.open(path, deinterlace="yes")


def test_deinterlace_on_the_command_line(tmp_path, interlaced, capsys):
    path, out = str(interlaced / "flagged.ts"), tmp_path / "out.mkv"
    command = ["filter", path, str(out), "--brightness", "0", "--device", "cpu"]
    assert main(command) == 0
    assert "it is interlaced" in capsys.readouterr().err
    assert main([*command, "--deinterlace"]) == 0
    assert "interlaced" not in capsys.readouterr().err
    with video.open(out) as reader:
        assert np.mean([combs(frame) for frame in reader]) < 0.01


# alpha of WebM -----------------------------------------------------------------------------------
@pytest.mark.parametrize("codec", ["libvpx-vp9", "libvpx"])
def test_alpha_of_webm(tmp_path, codec):
    path = tmp_path / "a.webm"
    pictures = []
    with av.open(str(path), "w") as out:
        stream = out.add_stream(
            codec, rate=25, options={"crf": "4", "b": "2M", "auto-alt-ref": "0"}
        )
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuva420p"
        stream.metadata["alpha_mode"] = "1"
        for i in range(6):
            picture = np.full((48, 64, 4), 120, np.uint8)
            picture[..., 3] = 0
            picture[8:40, i * 8 : i * 8 + 16, 3] = 255
            pictures.append(picture)
            frame = av.VideoFrame.from_ndarray(picture, "rgba").reformat(format="yuva420p")
            frame.pts, frame.time_base = i, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    for format in ("rgba", "native"):
        with video.open(path, format=format) as reader:
            frames = list(reader)
            assert [frame.format for frame in frames] == ["rgba"] * 6
            for picture, frame in zip(pictures, frames, strict=True):
                off = np.abs(np.asarray(frame)[..., 3].astype(int) - picture[..., 3])
                assert off.mean() < 2
                assert np.abs(np.asarray(frame)[20:28, :, :3].astype(int) - 120).max() < 12
            reader.seek(frames[4].time)
            assert np.array_equal(np.asarray(next(reader)), np.asarray(frames[4]))
            assert reader.codec in ("vp8", "vp9")
