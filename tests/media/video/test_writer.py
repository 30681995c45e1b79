"""Writing videos: codecs, times, sound, complete files."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest

import dala
from dala.errors import DtypeError, FreedError, ParameterError, ShapeError, VideoError
from dala.media import Frame, video
from tests.media.video.clips import av, encode, number_of, numbered, packets
from tests.media.video.waiting import until, video_threads


@pytest.fixture(autouse=True)
def on_cpu():
    """Each test leaves no thread behind."""
    with dala.device("cpu"):
        yield
    gc.collect()
    assert not video_threads()


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [
        ("mp4", "h264"),
        ("mkv", "hevc"),
        ("webm", "vp9"),
        ("avi", "mpeg4"),
        ("mkv", "ffv1"),
        ("mp4", "av1"),
    ],
)
def test_codecs(tmp_path, suffix, codec):
    path = tmp_path / f"a.{suffix}"
    pictures = [f.to_ndarray() for f in numbered(12, (64, 128))]
    with video.write(path, fps=Fraction(30000, 1001), codec=codec) as writer:
        for picture in pictures:
            writer.write(picture)
    assert (writer.frames, writer.width, writer.height) == (12, 128, 64)
    with video.open(path) as reader:
        frames = list(reader)
    assert [number_of(f) for f in frames] == list(range(12))
    steps = [float(b.time - a.time) for a, b in pairwise(frames)]
    assert steps == pytest.approx([1001 / 30000] * 11, abs=0.00101)  # Matroska counts milliseconds


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [
        ("mp4", "h264"),
        ("webm", "vp9"),
        ("MKV", "h264"),
        ("ogv", "vp8"),
        ("y4m", "rawvideo"),
        ("ivf", "vp9"),
        ("hevc", "hevc"),
    ],
)
def test_default_codecs(tmp_path, suffix, codec):
    video.write(tmp_path / f"a.{suffix}", [np.zeros((64, 64, 3), np.uint8)] * 3, fps=10)
    with video.open(tmp_path / f"a.{suffix}") as reader:
        assert (reader.codec, len(list(reader))) == (codec, 3)


def test_accepted_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    bright = np.full((32, 48, 3), 200, np.uint8)
    kinds = [
        bright,
        np.dstack([bright, np.full((32, 48), 255, np.uint8)]),
        bright[..., 0],
        bright[:, ::-1],
        (bright / np.float32(255)).astype(np.float32),
        image.fromarray(bright),
        Frame.from_array(bright),
        Frame.from_array(bright).to("nv12"),
    ]
    with video.write(tmp_path / "a.mkv", fps=10, codec="ffv1") as writer:
        for kind in kinds:
            writer.write(kind)
    with video.open(tmp_path / "a.mkv") as reader:
        for frame in reader:
            assert np.abs(np.asarray(frame)[..., :3].astype(int) - 200).max() <= 1
    assert writer.frames == len(kinds)


@pytest.mark.parametrize("kind", [list, iter, np.stack])
def test_write_all_frames_in_one_call(tmp_path, kind):
    path = tmp_path / "all.mkv"
    pictures = [frame.to_ndarray(format="rgb24") for frame in numbered(7)]
    sink = video.write(path, kind(pictures), fps=25, codec="ffv1")
    with pytest.raises(FreedError):
        sink.write(pictures[0])
    with video.open(path) as read:
        frames = list(read)
    assert [number_of(frame) for frame in frames] == list(range(7))
    assert frames[-1].time == pytest.approx(6 / 25)


@pytest.mark.parametrize(("frames", "words"), [
    (30, "frames must be several pictures, got 30. Give other arguments by name"),
    ("h264", "frames must be several pictures, got 'h264'"),
    (np.zeros((8, 8, 3), np.uint8), r"several pictures, got an array of shape \(8, 8, 3\)"),
])  # fmt: skip
def test_write_refuses_bad_frames(tmp_path, frames, words):
    with pytest.raises(ParameterError, match=words):
        video.write(tmp_path / "no.mp4", frames)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("picture", "words"), [
    (object(), "video.write: a picture must be an array, a Pillow image or a Buffer, got object"),
    ("a.png", "video.write: a picture must be an array, .*, got str. Open files with Frame.open"),
    (np.zeros((4, 4, 7), np.uint8), "video.write: a picture must have shape"),
    (np.zeros((4, 4, 3), np.int64), r"must be u8 \(0..255\), u16 \(0..65535\) or floats \(0..1\)"),
])  # fmt: skip
def test_write_refuses_bad_pictures(tmp_path, picture, words):
    with pytest.raises((DtypeError, ShapeError), match=words):
        video.write(tmp_path / "no.mp4", [picture], fps=25)
    assert list(tmp_path.iterdir()) == []


def test_failing_iterator_leaves_no_file(tmp_path):
    def pictures():
        yield numbered(1)[0].to_ndarray(format="rgb24")
        raise OSError("the camera is gone")

    with pytest.raises(OSError, match="the camera is gone"):
        video.write(tmp_path / "no.mp4", pictures(), fps=25)
    assert list(tmp_path.iterdir()) == []


def test_retime(tmp_path, clips):
    with (
        video.open(clips / "a.ts") as reader,
        video.write(tmp_path / "a.mp4", fps=50, retime=True) as writer,
    ):
        for _ in range(2):
            for frame in islice(reader, 10):
                writer.write(frame)
            reader.seek(0)
    with video.open(tmp_path / "a.mp4") as reader:
        assert [(number_of(f), f.time) for f in reader] == [
            (i % 10, Fraction(i, 50)) for i in range(20)
        ]


def test_time_base_too_fine_for_codec(tmp_path, clips):
    with (
        video.open(clips / "a.ts") as reader,
        video.write(tmp_path / "a.mp4", codec="mpeg4") as writer,
    ):
        assert reader.fps == 25
        for frame in reader:
            assert frame.time_base == Fraction(1, 90000)
            writer.write(frame)
    with video.open(tmp_path / "a.mp4") as reader:
        frames = list(reader)
    assert [number_of(f) for f in frames] == list(range(60))
    assert [f.time - frames[0].time for f in frames] == [Fraction(i, 25) for i in range(60)]


def test_folder_deleted_while_writing(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    with (
        pytest.raises(VideoError, match=r"a\.mp4"),
        video.write(folder / "a.mp4", fps=25) as writer,
    ):
        writer.write(np.zeros((16, 16, 3), np.uint8))
        shutil.rmtree(folder)
    assert writer.closed
    assert os.listdir(tmp_path) == []


def test_ntsc_rates(tmp_path):
    picture = np.zeros((16, 16, 3), np.uint8)
    for fps, exact in (
        (29.97, Fraction(30000, 1001)),
        (23.976, Fraction(24000, 1001)),
        (12.5, Fraction(25, 2)),
        (25.0, 25),
    ):
        with video.write(tmp_path / "a.mp4", fps=fps) as writer:
            assert writer.fps == exact
            writer.write(picture)


def test_audio_is_copied_unchanged(tmp_path, with_sound):
    with (
        video.open(with_sound) as reader,
        video.write(tmp_path / "b.mp4", audio_from=reader) as writer,
    ):
        for frame in reader:
            writer.write(frame)
    assert packets(tmp_path / "b.mp4", "audio") == packets(with_sound, "audio")
    assert len(packets(with_sound, "audio")) > 80
    with video.open(tmp_path / "b.mp4") as reader:
        assert [number_of(f) for f in reader] == list(range(50))


def test_audio_is_interleaved(tmp_path, with_sound):
    with video.write(tmp_path / "b.mkv", fps=25, audio_from=with_sound) as writer:
        for frame in numbered(50):
            writer.write(frame.to_ndarray())
    with av.open(str(tmp_path / "b.mkv")) as file:
        times = [float(p.dts * p.time_base) for p in file.demux() if p.dts is not None]
    assert max(a - b for a, b in pairwise(times)) < 0.2
    sound = [data for _, _, data in packets(tmp_path / "b.mkv", "audio")]
    assert sound == [data for _, _, data in packets(with_sound, "audio")]


def test_audio_moves_with_retimed_frames(tmp_path):
    late = encode(tmp_path / "a.ts", numbered(50), tone=True)
    with video.write(tmp_path / "b.mkv", fps=25, audio_from=late) as writer:
        for frame in numbered(50):
            writer.write(frame.to_ndarray())

    def lag(path):
        return packets(path, "audio")[5][0] - min(p[0] for p in packets(path, "video"))

    assert float(lag(tmp_path / "b.mkv")) == pytest.approx(float(lag(late)), abs=0.002)


def test_audio_from_a_silent_file(tmp_path, clips):
    with video.write(tmp_path / "b.mp4", fps=25, audio_from=clips / "a.mp4") as writer:
        writer.write(np.zeros((16, 16, 3), np.uint8))
    with video.open(tmp_path / "b.mp4") as reader:
        assert not reader.has_audio


def test_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"older")
    picture = np.zeros((16, 16, 3), np.uint8)
    with pytest.raises(KeyboardInterrupt), video.write(path, fps=25) as writer:
        writer.write(picture)
        assert path.read_bytes() == b"older"
        raise KeyboardInterrupt
    assert path.read_bytes() == b"older"
    assert os.listdir(tmp_path) == ["a.mp4"]
    with video.write(path, fps=25) as writer:
        writer.write(picture)
    assert os.listdir(tmp_path) == ["a.mp4"]
    with video.open(path) as reader:
        assert len(list(reader)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def interrupted_writing(folder, delay):
    """Write a video for ever, and press Ctrl-C a moment after it has begun."""
    program = (
        "import signal, sys, numpy as np\n"
        "from dala.media import video\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # it may be ignored here
        "with video.write(sys.argv[1], fps=25, device='cpu') as writer:\n"
        "    for i in range(10**9):\n"
        "        writer.write(np.zeros((64, 64, 3), np.uint8))\n"
        "        if i == 20: print('going', flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(folder / "a.mp4")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"going\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60) != 0
        finally:
            process.kill()
    assert os.listdir(folder) == []


def test_ctrl_c_leaves_no_file(tmp_path):
    interrupted_writing(tmp_path, 0)


@pytest.mark.long
def test_ctrl_c_at_any_moment_ends_the_program(tmp_path):
    moments = random.Random(5)
    for _ in range(200):
        interrupted_writing(tmp_path, moments.random() * 0.05)


def test_collected_writer_leaves_no_file(tmp_path):
    video.write(tmp_path / "a.mp4", fps=25).write(np.zeros((16, 16, 3), np.uint8))
    gc.collect()
    until(lambda: not video_threads())
    assert os.listdir(tmp_path) == []


def test_writer_works_after_a_refusal(tmp_path):
    path = tmp_path / "a.mp4"
    picture = np.zeros((16, 32, 3), np.uint8)
    with video.write(path, fps=25) as writer:
        writer.write(picture)
        with pytest.raises(ShapeError, match=r"must be 32x16 \(width x height\), got 16x32"):
            writer.write(np.zeros((32, 16, 3), np.uint8))
        with pytest.raises(ParameterError, match="not after the previous"):
            writer.write(Frame.from_array(picture, pts=0, time_base="1/25"))
        writer.write(picture)
    assert writer.frames == 2
    with pytest.raises(FreedError):
        writer.write(picture)
    with video.open(path) as reader:
        assert len(list(reader)) == 2


def test_write_refuses_bad_arguments(tmp_path, with_sound):
    picture = np.zeros((15, 16, 3), np.uint8)
    for bad, words in (
        ({"fps": 0}, "fps must be"),
        ({"fps": "fast"}, "fps must be"),
        ({"fps": 25, "codec": "h265x"}, "codec must be one of .*, got 'h265x'"),
        ({"fps": 25, "codec": "aac"}, "aac"),
        ({"fps": 25, "width": 16}, "both"),
        ({"retime": True}, "needs fps"),
        ({"fps": 25, "audio_from": 3.5}, "source must be"),
    ):
        with pytest.raises(ParameterError, match=words):
            video.write(tmp_path / "a.mp4", **bad)
    for path, words in (("a", "no suffix"), ("", "path must be"), (None, "path must be")):
        with pytest.raises(ParameterError, match=words):
            video.write(path and tmp_path / path, fps=25)
    with pytest.raises(VideoError, match="no such folder"):
        video.write(tmp_path / "none" / "a.mp4", fps=25)
    with pytest.raises(ParameterError, match="also the audio source"):
        video.write(with_sound, fps=25, audio_from=with_sound)
    with (
        pytest.raises(ParameterError, match="Give fps"),
        video.write(tmp_path / "a.mp4") as w,
    ):
        w.write(picture[:14])
    with (
        pytest.raises(VideoError, match="no frame was written"),
        video.write(tmp_path / "a.mp4", fps=25),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_codec_not_supported_by_container(tmp_path):
    picture = np.zeros((16, 16, 3), np.uint8)
    with (
        pytest.raises(VideoError, match="cannot create"),
        video.write(tmp_path / "a.webm", fps=25, codec="h264") as w,
    ):
        w.write(picture)
    with (
        pytest.raises(VideoError, match="cannot create"),
        video.write(tmp_path / "a.xyz", fps=25) as w,
    ):
        w.write(picture)
    assert os.listdir(tmp_path) == []
