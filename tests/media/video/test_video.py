"""Reading and writing videos: times, order, seeking, turning, sound, threads."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.errors import DtypeError, FreedError, ParameterError, ShapeError, VideoError
from dala.media import Frame, video
from tests.media.video.clips import av, encode, number_of, numbered, packets, source

CONTAINERS = {
    "mp4": ("libx264", "yuv420p"),
    "mkv": ("libx264", "yuv420p"),
    "ts": ("libx264", "yuv420p"),
    "h264": ("libx264", "yuv420p"),
    "avi": ("mpeg4", "yuv420p"),
    "mov": ("mjpeg", "yuvj420p"),
}


def video_threads():
    return [t for t in threading.enumerate() if t.name.startswith("dala video")]


def until(fine):
    """Waits for what must come; a test that is stuck fails instead of hanging."""
    end = time.monotonic() + 120
    while not fine():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def on_cpu():
    """Each test leaves no thread behind."""
    with dala.device("cpu"):
        yield
    gc.collect()
    assert not video_threads()


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """The same 60 numbered pictures in many containers, a key frame every 12, with B-frames."""
    folder = tmp_path_factory.mktemp("clips")
    for suffix, (codec, pixels) in CONTAINERS.items():
        options = {} if codec == "mjpeg" else {"g": "12", "bf": "2"}
        encode(folder / f"a.{suffix}", numbered(60), codec=codec, pixels=pixels, options=options)
    return folder


@pytest.fixture(scope="module")
def with_sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "a.mp4"
    return encode(path, numbered(50), tone=True)


# reading --------------------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", CONTAINERS)
def test_every_frame_once_in_order(clips, suffix):
    with video.open(clips / f"a.{suffix}") as reader:
        assert (reader.width, reader.height, reader.fps) == (64, 48, 25)
        frames = list(reader)
    assert [number_of(f) for f in frames] == list(range(60))
    start = frames[0].time
    assert [f.time - start for f in frames] == [Fraction(i, 25) for i in range(60)]
    assert all(f.shape == (48, 64, 4) and f.device == "cpu" for f in frames)


def test_properties(clips, with_sound):
    with video.open(str(clips / "a.mp4")) as reader:
        assert reader.duration == pytest.approx(2.4)
        assert reader.frames == 60
        assert reader.codec == "h264"
        assert (reader.rotation, reader.pixel_aspect) == (0, 1)
        assert not reader.has_audio
        assert not reader.closed
        assert "64x48" in repr(reader)
    assert reader.closed
    assert "closed" in repr(reader)
    with video.open(with_sound) as reader:
        assert reader.has_audio


@pytest.mark.parametrize("suffix", CONTAINERS)
def test_seek_returns_the_frame_shown_at_that_time(clips, suffix):
    with video.open(clips / f"a.{suffix}") as reader:
        start = next(reader).time
        for i in (37, 59, 12, 11, 13, 0):  # key frames are 12 apart
            for within in (Fraction(0), Fraction(1, 26)):
                reader.seek(start + Fraction(i, 25) + within)
                assert number_of(next(reader)) == i
            assert [number_of(f) for f in islice(reader, 2)] == list(range(60))[i + 1 : i + 3]


def test_seek_before_the_first_and_after_the_last(clips):
    with video.open(clips / "a.ts") as reader:
        reader.seek(0)
        assert number_of(next(reader)) == 0
        reader.seek(1000)
        assert [number_of(f) for f in reader] == [59]
        reader.seek(Fraction(1))
        assert len(list(reader)) > 30


def test_seek_accepts_floats(clips):
    with video.open(clips / "a.mp4") as reader:
        for i in (1, 7, 29, 59):
            reader.seek(i / 25)
            assert number_of(next(reader)) == i


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "1", None, True])
def test_seek_refuses_bad_times(clips, bad):
    with video.open(clips / "a.mp4") as reader:
        next(reader)
        with pytest.raises(ParameterError, match=r"Reader\.seek: t must be a number of seconds"):
            reader.seek(bad)
        assert number_of(next(reader)) == 1


def test_iterating_again_starts_over(clips):
    with video.open(clips / "a.ts") as reader:
        for _ in range(3):
            assert [number_of(f) for f in reader] == list(range(60))
        assert next(reader, None) is None


def test_iterating_continues(clips):
    with video.open(clips / "a.mp4") as reader:
        assert [number_of(f) for f in islice(reader, 3)] == [0, 1, 2]
        assert [number_of(f) for f in islice(reader, 3)] == [3, 4, 5]


def test_variable_rate_keeps_its_times(tmp_path):
    stamps = [0, 1, 5, 6, 100, 101, 1000, 1003]
    base = Fraction(1, 1000)
    encode(tmp_path / "a.mp4", numbered(8), stamps=stamps, time_base=base)
    with (
        video.open(tmp_path / "a.mp4") as reader,
        video.write(tmp_path / "b.mp4", fps=30) as writer,
    ):
        times = []
        for frame in reader:
            times.append(frame.time)
            writer.write(frame)
    assert times == [s * base for s in stamps]
    with video.open(tmp_path / "b.mp4") as reader:
        again = [(number_of(f), f.time) for f in reader]
        reader.seek(0.5)
        assert number_of(next(reader)) == 5
    assert again == [(i, s * base) for i, s in enumerate(stamps)]


@settings(max_examples=10)
@given(
    gaps=st.lists(st.integers(1, 40_000), min_size=2, max_size=12),
    rate=st.sampled_from([25, 1000, 30000, 90000]),
    seed=st.integers(0, 1 << 30),
)
def test_any_times_round_trip_and_seek(gaps, rate, seed):
    stamps = [sum(gaps[:i]) for i in range(len(gaps))]
    pick = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, dala.device("cpu"):
        path = os.path.join(folder, "a.mp4")
        with video.write(path) as writer:
            for stamp, picture in zip(stamps, numbered(len(stamps)), strict=True):
                base = Fraction(1, rate)
                writer.write(Frame.from_array(picture.to_ndarray(), pts=stamp, time_base=base))
        with video.open(path) as reader:
            read = [(number_of(f), f.time * rate) for f in reader]
            assert read == list(enumerate(stamps))
            for at in pick.integers(0, stamps[-1] + 10, 5).tolist():
                reader.seek(Fraction(at, rate))
                shown = max(i for i, stamp in enumerate(stamps) if stamp <= at)
                assert number_of(next(reader)) == shown


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_rotation(tmp_path, engine_id, turn):
    (stored,) = islice(source("testsrc2"), 1)
    encode(tmp_path / "a.mp4", [stored], rotation=-turn, options={"qp": "0"})
    with video.open(tmp_path / "a.mp4", rotate=False) as reader:
        assert reader.rotation == turn
        assert (reader.width, reader.height) == (96, 64)
        lying = np.array(next(reader))
    with video.open(tmp_path / "a.mp4") as reader:
        assert (reader.width, reader.height) == ((96, 64) if turn == 180 else (64, 96))
        upright = np.array(next(reader))
        assert next(reader, None) is None
        assert (reader.rotation, reader.width) == (turn, upright.shape[1])
    assert np.array_equal(upright, np.rot90(lying, -turn // 90))


def test_pixel_aspect(tmp_path):
    encode(tmp_path / "a.mp4", numbered(3), aspect=Fraction(4, 3))
    with video.open(tmp_path / "a.mp4") as reader:
        assert reader.pixel_aspect == Fraction(4, 3)
        assert next(reader).width == reader.width == 64
    with video.open(tmp_path / "a.mp4", square_pixels=True) as reader:
        frame = next(reader)
        assert (frame.width, frame.height) == (reader.width, reader.height) == (85, 48)


def test_pixel_aspect_is_written(tmp_path):
    picture = np.full((16, 32, 3), 90, np.uint8)
    for value, wanted in ((Fraction(64, 45), Fraction(64, 45)), (0.75, Fraction(3, 4))):
        with video.write(tmp_path / "a.mp4", fps=25, pixel_aspect=value) as writer:
            writer.write(picture)
        with video.open(tmp_path / "a.mp4") as reader:
            assert reader.pixel_aspect == wanted
    for bad in (0, -1, "wide", True, float("inf")):
        with pytest.raises(ParameterError, match="pixel_aspect"):
            video.write(tmp_path / "b.mp4", fps=25, pixel_aspect=bad)


def test_write_with_and_without_copy(tmp_path):
    # The encoder reads them later: without a copy, the caller must not have changed them by then.
    for copy, spoiled in ((False, False), (True, True)):
        path = tmp_path / f"{copy}.mkv"
        with video.write(path, codec="ffv1") as writer:
            for n in range(6):
                planes = np.full((24, 16), 20 + 10 * n, np.uint8)
                frame = Frame.from_array(planes, format="i420", pts=n, time_base="1/25")
                writer.write(frame, copy=copy)
                if spoiled:
                    frame.pixels.write(np.zeros_like(planes))
        with video.open(path, format="native") as reader:
            assert [int(np.array(f)[0, 0]) for f in reader] == [20, 30, 40, 50, 60, 70]


def test_native_planes(clips):
    with video.open(clips / "a.mp4", format="native") as reader:
        frame = next(reader)
        assert (frame.format, frame.shape, frame.range) == ("i420", (72, 64), "limited")
        planes = np.array(frame)
    with av.open(str(clips / "a.mp4")) as file:
        assert np.array_equal(next(file.decode(video=0)).to_ndarray(), planes)


def test_frames_outlive_their_reader(clips):
    with video.open(clips / "a.mp4") as reader:
        kept = list(reader)
    del reader
    gc.collect()
    assert [number_of(f) for f in kept] == list(range(60))


# threads --------------------------------------------------------------------------------------
def test_close_stops_the_thread(clips):
    reader = video.open(clips / "a.mp4")
    next(reader)
    assert len(video_threads()) == 1
    reader.close()
    reader.close()
    assert not video_threads()
    for use in (
        lambda: next(reader),
        lambda: reader.seek(0),
        lambda: reader.fps,
        lambda: iter(reader),
    ):
        with pytest.raises(FreedError, match="is closed"):
            use()


def test_collected_reader_stops_its_thread(clips):
    next(video.open(clips / "a.mp4"))
    gc.collect()
    until(lambda: not video_threads())


def test_many_readers_at_once(clips):
    readers = [video.open(clips / f"a.{s}") for s in ("mp4", "mkv", "ts", "avi") * 3]
    numbers = [[number_of(f) for f in row] for row in zip(*readers, strict=True)]
    for reader in readers:
        reader.close()
    assert numbers == [[i] * 12 for i in range(60)]


def test_readers_leak_nothing(clips):
    def held():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), dala.diagnostics()["objects"]["buffer"]

    def read():
        with video.open(clips / "a.mp4") as reader:
            next(reader)
            reader.seek(1)
            next(reader)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("counts the descriptors under /proc")
    read()
    before = held()
    for _ in range(10):
        read()
    assert held() == before


def test_latest_drops_late_frames(clips):
    with video.open(clips / "a.mp4", policy="latest") as reader:
        assert reader.rotation == 0  # decoding has begun
        until(lambda: reader.dropped == 59)
        assert [number_of(f) for f in reader] == [59]


def test_every_blocks_on_a_full_queue(clips):
    with video.open(clips / "a.mp4", policy="every", queue=2) as reader:
        assert number_of(next(reader)) == 0
        time.sleep(0.05)
        assert [number_of(f) for f in reader] == list(range(1, 60))
        assert reader.dropped == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("policy", ["every", "latest"])
def test_live_source(tmp_path, clips, policy):
    pipe = tmp_path / "live.ts"
    os.mkfifo(pipe)
    data = (clips / "a.ts").read_bytes()
    going = threading.Event()

    def send():
        with open(pipe, "wb") as end:
            end.write(data)
            end.flush()
            going.wait(30)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with video.open(pipe, policy=policy) as reader:
            with pytest.raises(VideoError, match="is live"):
                reader.seek(1)
            seen = [number_of(next(reader))]
            going.set()  # now it ends
            seen += [number_of(f) for f in reader]
    finally:
        going.set()
        sender.join()
    assert seen[-1] == 59
    assert seen == sorted(set(seen))
    assert len(seen) + reader.dropped == 60
    assert policy == "latest" or len(seen) == 60


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_close_silent_live_source(tmp_path, clips):
    pipe = tmp_path / "live.ts"
    os.mkfifo(pipe)
    ending = threading.Event()

    def send():
        with open(pipe, "wb") as end:
            end.write((clips / "a.ts").read_bytes())
            end.flush()
            ending.wait(30)

    sender = threading.Thread(target=send)
    sender.start()
    reader = video.open(pipe, timeout=0.2)
    assert 0 <= number_of(next(reader)) < 60
    reader.close()  # comes back although FFmpeg waits for the pipe
    assert reader.closed
    ending.set()
    sender.join()
    until(lambda: not video_threads())


@pytest.mark.parametrize(
    "bad", [{"timeout": 0}, {"policy": "newest"}, {"queue": 0}, {"queue": 1.5}, {"threads": -1}]
)
def test_open_refuses_bad_arguments(clips, bad):
    with pytest.raises(ParameterError, match=f"video.open: {next(iter(bad))} must be"):
        video.open(clips / "a.mp4", **bad)


# writing --------------------------------------------------------------------------------------
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
def test_ctrl_c_leaves_no_file(tmp_path):
    program = (
        "import signal, sys, numpy as np\n"
        "from dala.media import video\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # it may be ignored here
        "with video.write(sys.argv[1], fps=25, device='cpu') as writer:\n"
        "    for i in range(10**9):\n"
        "        writer.write(np.zeros((64, 64, 3), np.uint8))\n"
        "        if i == 20: print('going', flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.mp4")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"going\n"
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(300) != 0
        finally:
            process.kill()
    assert os.listdir(tmp_path) == []


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
