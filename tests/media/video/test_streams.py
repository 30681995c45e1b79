"""Videos in memory, in file objects and in pipes; hardware that is tried."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from fractions import Fraction

import pytest

import dala
from dala.errors import ParameterError, VideoError
from dala.media import Scene, video
from dala.media.notices import MediaNotice
from dala.media.sources import open_source
from tests.media.video.clips import encode, number_of, numbered, packets

COUNT = 12


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield
    assert not [t for t in threading.enumerate() if t.name.startswith("dala video")]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    options = {"g": "4", "bf": "2"}
    for suffix in ("mp4", "mkv", "ts", "avi"):
        codec = "mpeg4" if suffix == "avi" else "libx264"
        encode(folder / f"a.{suffix}", numbered(COUNT), codec=codec, options=options, tone=True)
    assert b"moov" in (folder / "a.mp4").read_bytes()[-4000:]  # the index is at the end
    return folder


class Pipe:
    """A stream that cannot seek, and returns a few bytes at a time."""

    def __init__(self, data):
        self._data = io.BytesIO(data)

    def read(self, count):
        return self._data.read(min(count, 1000))


def expect(reader):
    """Read all, seek, and read all again."""
    frames = [(number_of(frame), frame.time) for frame in reader]
    assert [number for number, _ in frames] == list(range(COUNT))
    reader.seek(frames[7][1])
    assert number_of(next(reader)) == 7
    reader.seek(0)
    assert [number_of(frame) for frame in reader] == list(range(COUNT))


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "avi"])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO, Pipe])
def test_memory_and_file_objects(clips, suffix, kind):
    given = kind((clips / f"a.{suffix}").read_bytes())
    with video.open(given) as reader:
        assert reader.has_audio
        expect(reader)
    if isinstance(given, io.BytesIO):
        assert not given.closed


def test_an_open_file(clips, tmp_path):
    with (clips / "a.mkv").open("rb") as file:
        file.read(100)
        with video.open(file) as reader:
            assert reader.name == str(clips / "a.mkv")
            expect(reader)
        assert not file.closed
    data = (clips / "a.mkv").read_bytes()
    with io.BytesIO(data) as file:
        file.seek(0, io.SEEK_END)  # as a writer leaves it
        with video.open(file) as reader:
            expect(reader)


def test_first_frames_of_a_pipe_that_stays_open(clips):
    """Frames come while the rest is not there yet."""
    more = threading.Event()

    class Waiting(Pipe):
        def read(self, count):
            return super().read(count) or (more.wait(20) and b"")

    encoded = (clips / "a.ts").read_bytes() * 40  # the clock begins again and again
    with video.open(Waiting(encoded)) as reader:
        with pytest.warns(MediaNotice, match="It is repaired"):
            numbers = [number_of(next(reader)) for _ in range(COUNT * 2)]
        assert numbers[: COUNT - 2] == [*range(COUNT - 2)]
        assert not more.is_set()
        more.set()


def test_sound_of_a_stream_is_copied(clips, tmp_path):
    expected = [data for _, _, data in packets(clips / "a.mkv", "audio")]
    for kind in (bytes, io.BytesIO, Pipe):
        out = tmp_path / "out.mkv"
        given = kind((clips / "a.mkv").read_bytes())
        with video.open(given) as reader, video.write(out, audio_from=reader) as writer:
            for frame in reader:
                writer.write(frame)
        assert [data for _, _, data in packets(out, "audio")] == expected


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_standard_input(clips, tmp_path, suffix):
    out = tmp_path / "out.mkv"
    cat = subprocess.Popen(["cat", clips / f"a.{suffix}"], stdout=subprocess.PIPE)
    command = [sys.executable, "-m", "dala", "filter", "-", out, "--invert", "--device", "cpu"]
    done = subprocess.run(command, stdin=cat.stdout, capture_output=True, text=True, timeout=100)
    cat.stdout.close()
    cat.wait()
    assert done.returncode == 0, done.stderr
    with video.open(out) as reader:
        assert [255 - number_of(frame) for frame in reader] == list(range(COUNT))
    sound = [data for _, _, data in packets(clips / f"a.{suffix}", "audio")]
    assert [data for _, _, data in packets(out, "audio")] == sound


def test_refusals(clips, tmp_path):
    with pytest.raises(VideoError, match="empty"):
        video.open(b"")
    with pytest.raises(VideoError, match=r"cannot open '<9 bytes>': Invalid data"):
        video.open(b"no video.")
    with pytest.raises(VideoError, match="<BytesIO>"):
        video.open(io.BytesIO())
    with pytest.raises(ParameterError, match=r"file object of bytes.*mode 'rb'"):
        video.open(io.StringIO("text"))
    closed = io.BytesIO(b"x")
    closed.close()
    with pytest.raises(ParameterError, match="an open file object"):
        video.open(closed)

    class Bad:
        def read(self, count):
            return "text"

    class Worse:
        def read(self, count):
            raise OSError("the cable is out")

    with pytest.raises(VideoError, match=r"read\(\) must return bytes, got str"):
        video.open(Bad())
    with pytest.raises(VideoError, match="the cable is out"):
        video.open(Worse())


def test_scenes_play_memory(clips):
    data = (clips / "a.mkv").read_bytes()
    with open_source(data) as source:
        assert number_of(source.at(Fraction(5, 25))) == 5
    with Scene(64, 48) as scene:
        scene.add_video(io.BytesIO(data), size=(64, 48))
        assert number_of(scene.render(Fraction(3, 25))) == 3


# hardware ----------------------------------------------------------------------------------------
def test_hardware_is_tried(clips, monkeypatch):
    import av.codec.hwaccel as hwaccel

    monkeypatch.setattr(hwaccel, "hwdevices_available", lambda: ["vdpau", "cuda"])
    for opening in (
        lambda: video.open(clips / "a.mkv", hwaccel="auto"),
        lambda: open_source(clips / "a.mkv", hwaccel="auto"),
    ):
        with opening() as made:
            reader = made if hasattr(made, "notices") else made._player.feed.reader
            text = "".join(reader.notices)
            if not text:
                pytest.skip("this machine decodes in hardware")
            assert "it is decoded on the CPU. Tried cuda (" in text
            assert "), vdpau (" in text
            if made is reader:
                with pytest.warns(MediaNotice, match="decoded on the CPU") as said:
                    assert [number_of(frame) for frame in reader] == list(range(COUNT))
                assert len(said) == 1
    monkeypatch.setattr(hwaccel, "hwdevices_available", list)
    with video.open(clips / "a.mkv", hwaccel="auto") as reader:
        assert "has no hardware decoders" in reader.notices[0]


def test_hardware_in_scenes(clips):
    with Scene(64, 48) as scene:
        with pytest.raises(dala.errors.DeviceUnavailable, match="'no_such_thing' is not in this"):
            scene.add_video(str(clips / "a.mkv"), hwaccel="no_such_thing")
        with pytest.raises(ParameterError, match=r"Give it to video\.open"):
            scene.add_video(iter(numbered(2)), hwaccel="cuda")


def test_ivf_from_a_pipe_does_not_say_how_many_frames_it_has():
    out = Sink()
    pictures = [frame.to_ndarray() for frame in numbered(4, (64, 128))]
    video.write(out, pictures, fps=25, format="ivf")
    with video.open(bytes(out.data)) as reader:
        assert reader.frames is None
        assert [number_of(frame) for frame in reader] == [0, 1, 2, 3]  # no error at the end


class Sink:
    """A stream that cannot seek."""

    def __init__(self):
        self.data = bytearray()

    def write(self, data):
        self.data += data
        return len(data)
