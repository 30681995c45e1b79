"""Videos as people have them: foreign metadata, odd names, odd sizes."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.cli.common.inputs import is_video
from dala.media import video
from dala.media.notices import MediaNotice
from dala.media.video.output.opening import open_encoder
from tests.media.video.clips import av, encode, number_of, numbered


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "avi"])
def test_metadata_that_is_not_utf8(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    with av.open(str(path), "w") as out:
        out.metadata["title"] = "TITLEXYZ"
        stream = out.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for i, frame in enumerate(numbered(3)):
            frame.pts = i
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    data = path.read_bytes()
    assert b"TITLEXYZ" in data
    title = b"\xcc\xe8\xf0 \xff\xfe\x80Z"
    path.write_bytes(data.replace(b"TITLEXYZ", title))
    with video.open(path) as reader:
        assert [number_of(frame) for frame in reader] == [0, 1, 2]
    with video.write(tmp_path / "b.mp4", fps=25, tracks_from=path) as writer:
        writer.write(np.zeros((48, 64, 3), np.uint8))
    with av.open(str(tmp_path / "b.mp4")) as made:
        assert made.metadata["title"] == title.decode("utf-8", "replace")


@pytest.mark.parametrize(("suffix", "codec"), [
    ("h264", "libx264"), ("264", "libx264"), ("h265", "libx265"), ("hevc", "libx265"),
    ("ivf", "libvpx-vp9"), ("obu", "libsvtav1"), ("m2v", "mpeg2video"), ("vob", "mpeg2video"),
    ("mts", "mpeg2video"), ("m2ts", "libx264"), ("y4m", "wrapped_avframe"), ("dv", None),
])  # fmt: skip
def test_names_of_videos(tmp_path, suffix, codec):
    path = tmp_path / f"a.{suffix}"
    assert is_video(str(path))
    assert is_video(f"A.{suffix.upper()}")
    if codec is None:
        return
    try:
        format = {"h265": "hevc", "264": "h264", "mts": "mpegts", "m2ts": "mpegts"}.get(suffix)
        with av.open(str(path), "w", format=format) as out:
            stream = out.add_stream(codec, rate=25, options={"log-level": "none"})
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
            open_encoder(stream.codec_context)
            for i, frame in enumerate(numbered(4, (64, 64))):
                frame.pts = i
                out.mux(stream.encode(frame.reformat(format="yuv420p")))
            out.mux(stream.encode(None))
    except ValueError as error:  # a build of FFmpeg without it
        pytest.skip(str(error))
    with video.open(path) as reader:
        frames = list(reader)
    assert [number_of(frame) for frame in frames] == [0, 1, 2, 3]
    times = [frame.time for frame in frames]
    assert times == sorted(set(times))


@pytest.mark.parametrize("size", [(2, 2), (2, 6), (1, 1), (3, 1), (1, 9), (17, 3), (5, 2)])
@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p", "yuv444p", "gray"])
def test_tiny_and_odd_sizes(tmp_path, size, pixels):
    frame = av.VideoFrame(*size, pixels)
    for plane in frame.planes:
        np.frombuffer(plane, np.uint8)[:] = 128
    path = encode(tmp_path / "a.nut", [frame], codec="rawvideo", pixels=pixels)
    for format in ("rgba", "native"):
        with video.open(path, format=format, range="full") as reader:
            made = next(reader)
            assert (made.width, made.height) == (reader.width, reader.height) == size
        shown = np.asarray(made if made.format == "rgba" else made.to("rgba"))
        assert shown.shape == (size[1], size[0], 4)
        assert np.abs(shown[..., :3].astype(int) - 128).max() <= 1


def test_a_matrix_without_a_name_is_said(tmp_path):
    path = encode(tmp_path / "a.mkv", numbered(2), codec="ffv1", tags=(1, 7))  # SMPTE 240M
    said = r"matrix \(code 7 of H\.273\) is not known here; bt601 is used"
    with video.open(path) as reader, pytest.warns(MediaNotice, match=said) as notices:
        assert [number_of(frame) for frame in reader] == [0, 1]
    assert len(notices) == 1
    with video.open(path, matrix="bt709") as reader:
        assert len(list(reader)) == 2
        assert reader.notices == ()
