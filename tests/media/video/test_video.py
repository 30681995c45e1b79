"""Reading videos: frames, times, threads."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.errors import FreedError, ParameterError, VideoError
from dala.media import Frame, video
from tests.media.video.clips import av, encode, number_of, numbered, source
from tests.media.video.waiting import CONTAINERS, until, video_threads


@pytest.fixture(autouse=True)
def on_cpu():
    """Each test leaves no thread behind."""
    with dala.device("cpu"):
        yield
    gc.collect()
    assert not video_threads()


# reading ------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "soon", None, True])
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


# threads ------------------------------------------------------------------------------------------


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
