"""Writing videos to memory, pipes and full disks; sound and tags."""

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
from dala.errors import ParameterError, VideoError
from dala.media import Frame, video
from dala.media.notices import MediaNotice
from tests.media.video.clips import av, encode, numbered, packets
from tests.media.video.written import count, glass, plain


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


# streams ------------------------------------------------------------------------------------------

FORMATS = {"mp4": "h264", "mkv": "h264", "webm": "vp9", "mov": "h264", "ts": "h264"}


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


# sound and tags -----------------------------------------------------------------------------------


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
