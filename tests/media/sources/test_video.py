"""Video sources: exact frames in any order, loops, damaged files, live sources."""

from __future__ import annotations

import gc
import os
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.errors import ParameterError, VideoError, VideoNotFound
from dala.media import video
from dala.media.sources.open import open_source
from tests.media.video.clips import encode, number_of, numbered

COUNT, RATE = 60, 25


def number(shown):
    return None if shown is None else number_of(shown)


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Sixty numbered pictures, a key frame every 12, with B-frames; .ts begins not at 0."""
    folder = tmp_path_factory.mktemp("clips")
    for name in ("a.mp4", "a.ts"):
        encode(folder / name, numbered(COUNT), options={"g": "12", "bf": "2"})
    stamps = [0, 10, 11, 12, 40, 41, 60, 100]
    encode(folder / "uneven.mkv", numbered(8), stamps=stamps, time_base=Fraction(1, 100))
    whole = (folder / "a.ts").read_bytes()
    (folder / "cut.ts").write_bytes(whole[: len(whole) // 2])
    return folder


def busy():
    return [t for t in threading.enumerate() if t.name.startswith("dala-")]


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = len(busy())
    yield
    if len(busy()) > before:
        gc.collect()
    end = time.monotonic() + 120
    while len(busy()) > before:
        assert time.monotonic() < end, [t.name for t in busy()]
        time.sleep(0.002)


@pytest.mark.parametrize("name", ["a.mp4", "a.ts"])
@pytest.mark.parametrize("fps", [25, 30, Fraction(30000, 1001), 10])
def test_in_order(clips, name, fps):
    with open_source(clips / name) as source:
        assert source.size == (64, 48)
        count = int(2.4 * fps)
        seen = [number(source.at(float(n / Fraction(fps)))) for n in range(count)]
        assert seen == [n * RATE // fps for n in range(count)]
        assert not source.ended
        assert number(source.at(2.4)) == 59
        assert source.ended
        assert source.error is None
        assert source.version == len({*seen, 59})


def test_frames_are_rgba_on_the_device(clips, engine_id, dala_device):
    with video.open(clips / "a.mp4", format="native", device=dala_device) as reader:
        frame = open_source(reader).at(0.2)
        assert (frame.format, frame.dtype, frame.device) == ("rgba", "u8", dala_device)
        assert number(frame) == 5
    with open_source(clips / "a.mp4") as source:  # the current device, from another thread
        assert source.at(0).device == dala_device


@given(
    times=st.lists(st.fractions(0, 4, max_denominator=50), min_size=2, max_size=6),
    speed=st.sampled_from([1, 2, 0.5]),
    loop=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_any_order(clips, times, speed, loop):
    with open_source(clips / "a.mp4", speed=speed, loop=loop, end="hide") as source:
        for t in times:
            n = t * Fraction(speed) * RATE // 1
            expected = n % COUNT if loop else None if n >= COUNT else n
            assert number(source.at(t)) == expected


def test_uneven_times(clips):
    with open_source(clips / "uneven.mkv") as source:
        seen = [number(source.at(n / 100)) for n in range(110)]
    assert seen == [max(i for i, t in enumerate([0, 10, 11, 12, 40, 41, 60, 100]) if t <= n)
                    for n in range(110)]  # fmt: skip


def test_offset_begins_it_later_or_earlier(clips):
    with open_source(clips / "a.ts", offset=1) as source:
        assert [number(source.at(t)) for t in (0, 0.99, 1, 1.04)] == [None, None, 0, 1]
    with open_source(clips / "a.ts", offset=-2) as source:
        assert [number(source.at(t)) for t in (0, 0.04, 0.4)] == [50, 51, 59]


def test_endless_loop(clips):
    with open_source(clips / "a.mp4", loop=True) as source:
        seen = [number(source.at(n / RATE)) for n in range(3 * COUNT)]
        assert seen == [*range(COUNT)] * 3
        assert number(source.at(1000 * 2.4 + 1)) == 25  # does not go through a thousand rounds
        assert not source.ended
    with open_source(clips / "a.mp4", loop=True) as source:  # the length is not known yet
        assert number(source.at(500 * 2.4 + 2)) == 50


def test_given_reader_stays_open(clips):
    with video.open(clips / "a.mp4") as reader:
        reader.seek(1)
        with open_source(reader) as source:  # time 0 is where the reader is
            assert number(source.at(0)) == 25
            assert number(source.at(0.2)) == 30
            assert number(source.at(0)) == 25
        assert not reader.closed
        reader.seek(0)
        assert number(next(reader)) == 0


def test_reader_closed_by_the_caller(clips):
    reader = video.open(clips / "a.mp4")
    with open_source(reader) as source:
        assert number(source.at(0)) == 0
        reader.close()
        assert 0 <= number(source.at(2)) <= 5  # the last that could be had
        assert source.ended


def test_generators_over_a_reader(clips):
    """Frames carry the clock of their file."""
    with video.open(clips / "a.ts") as reader, open_source(f for f in reader) as source:
        assert [number(source.at(n / RATE)) for n in range(20)] == [*range(20)]


def test_damaged_video_shows_readable_frames(clips):
    with open_source(clips / "cut.ts") as source:
        last = number(source.at(9))
        assert 10 < last < 59
        assert source.ended
        assert number(source.at(0.4)) == 10
    with open_source(clips / "cut.ts", end="hide") as source:
        assert source.at(9) is None


def test_invalid_streams(clips, tmp_path):
    with pytest.raises(VideoNotFound):
        open_source(tmp_path / "none.mp4")
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(VideoError):
        open_source(str(tmp_path / "text.mp4"))


def test_latest_is_live(clips):
    for bad in ({"loop": True}, {"speed": 2}):
        with (
            video.open(clips / "a.mp4", policy="latest") as reader,
            pytest.raises(ParameterError, match="do not apply to live sources"),
        ):
            open_source(reader, **bad)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(("stall", "end"), [("freeze", "freeze"), ("hide", "hide")])
def test_a_live_source(tmp_path, clips, stall, end):
    pipe = tmp_path / "live.ts"
    os.mkfifo(pipe)
    data = (clips / "a.ts").read_bytes()
    going = threading.Event()

    def send():
        with open(pipe, "wb") as to:
            to.write(data)
            to.flush()
            going.wait(300)

    sender = threading.Thread(target=send)
    sender.start()
    limit = time.monotonic() + 120
    try:
        with open_source(pipe, stall=stall, end=end, patience=0.5) as source:
            while (first := number(source.at(0))) is None:
                assert time.monotonic() < limit
            shown = [first]
            while not source.stalled:  # it never waits, whatever the time
                assert time.monotonic() < limit
                shown.append(number(source.at(len(shown) / 1000)))
            seen = [n for n in shown if n is not None]
            assert seen == sorted(seen)
            assert "no new frame" in str(source.error)
            assert shown[-1] == (None if stall == "hide" else seen[-1])
            assert not source.ended
            going.set()
            while not source.ended:
                assert time.monotonic() < limit
                last = source.at(100)
                time.sleep(0.001)
            last = source.at(100)
            assert number(last) == (59 if end == "freeze" else None)
    finally:
        going.set()
        sender.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_closing_a_live_source_that_is_silent(tmp_path, clips):
    pipe = tmp_path / "live.ts"
    os.mkfifo(pipe)
    ending = threading.Event()

    def send():
        with open(pipe, "wb") as to:
            to.write((clips / "a.ts").read_bytes())
            to.flush()
            ending.wait(300)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        source = open_source(pipe)
        limit = time.monotonic() + 120
        while source.at(0) is None:
            assert time.monotonic() < limit
        source.close()
        assert source.closed
        assert not [t for t in busy() if t.name == "dala-source"]
    finally:
        ending.set()
        sender.join()


def test_frames_are_released(clips):
    """A long loop keeps a few frames, not all of them."""
    from dala import diagnostics

    def held():
        gc.collect()
        return diagnostics()["objects"]["buffer"]["count"]

    with open_source(clips / "a.mp4", loop=True) as source:
        before = held()
        for n in range(200):
            assert np.asarray(source.at(n / RATE)).shape == (48, 64, 4)
        assert held() <= before + 8
