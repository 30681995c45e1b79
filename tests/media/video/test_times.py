"""Times of frames: clocks that begin anywhere, run backwards, stop or jump."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import dala
from dala.cli import main
from dala.media import video
from dala.media.notices import MediaNotice
from dala.media.video.timing import FrameClock
from tests.media.video.clips import av, encode, number_of, numbered, packets


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


# the clock alone ---------------------------------------------------------------------------------
def times(stamps, *, step=4, by_decoding=False, waits=True, spliced=False):
    """Return the times that a clock gives to frames, and its report."""
    clock = FrameClock(Fraction(step, 100), by_decoding=by_decoding, waits=waits, spliced=spliced)
    made = []
    for i, stamp in enumerate(stamps):
        pts, dts = stamp if isinstance(stamp, tuple) else (stamp, None)
        made += clock.put(SimpleNamespace(i=i, pts=pts, dts=dts, time_base=Fraction(1, 100)))
    made += clock.finish()
    assert [frame.i for frame in made] == list(range(len(stamps)))
    return [frame.pts for frame in made], clock.repaired


@pytest.mark.parametrize("stamps", [
    [0, 4, 8, 12], [7], [], [0, 4, 5, 30, 31, 900, 904], [-8, -4, 0, 4], [360000, 360004, 360008],
])  # fmt: skip
def test_rising_times_stay(stamps):
    assert times(stamps) == (stamps, None)
    assert times(stamps, waits=False) == (stamps, None)


@pytest.mark.parametrize(("stamps", "expected"), [
    ([0, 4, 4, 8, 12], [0, 4, 6, 8, 12]),  # one twice
    ([0, 4, 8, 8, 16], [0, 4, 8, 10, 16]),
    ([0, 4, 12, 12, 16], [0, 4, 8, 12, 16]),
    ([0, 8, 4, 16, 12, 20], [0, 4, 8, 12, 16, 20]),  # pairs out of order
    ([0, 4, 2, 12, 16], [0, 4, 6, 12, 16]),
    ([0, 4, 90000, 12, 16], [0, 4, 8, 12, 16]),  # one far off
    ([400, 404, 0, 412, 416], [400, 404, 408, 412, 416]),
    ([400, 404, 0, 4, 8, 20], [400, 404, 408, 412, 416, 428]),  # a clock that begins again
    ([0, 4, 8, 8, 8, 8], [0, 4, 8, 10, 12, 14]),
    ([5, 5, 5], [5, 7, 9]),
])  # fmt: skip
def test_wrong_times_are_repaired_and_reported(stamps, expected):
    found, report = times(stamps)
    assert found == expected
    assert report is not None
    assert "the time of frame " in report


def test_missing_times():
    assert times([None, None, None]) == ([0, 4, 8], None)
    assert times([8, None, 16, None]) == ([8, 12, 16, 20], None)
    assert times([(None, 8), (None, 12), None]) == ([8, 12, 16], None)


def test_decoding_times():
    stamps = [(1, 1), (3, 2), (2, 3), (5, 4), (4, None)]
    assert times(stamps, step=1, by_decoding=True) == ([1, 2, 3, 4, 5], None)
    assert times([(30, None)], by_decoding=True) == ([30], None)


@pytest.mark.parametrize("waits", [True, False])
def test_leaps_of_spliced_recordings_are_closed(waits):
    stamps = [0, 4, 8, 9000, 9004, 9008, 9100]
    assert times(stamps, waits=waits) == (stamps, None)
    found, report = times(stamps, waits=waits, spliced=True)
    assert found == [0, 4, 8, 12, 16, 20, 112]
    assert "far after" in report
    assert times([0, 4, 900, 904], waits=waits, spliced=True)[0] == [0, 4, 900, 904]  # a pause
    assert times([0, 4, 9000], waits=waits, spliced=True)[0] == [0, 4, 8]


def test_stamps_that_are_damage():
    assert times([0, 4, 1 << 61, 12, -(1 << 62)])[0] == [0, 4, 8, 12, 16]
    assert times([1 << 61, 1 << 61])[0] == [0, 4]


def test_all_short_sequences_rise():
    for stamps in itertools.product([None, 0, 4, 8, 9000], repeat=5):
        for waits, spliced in itertools.product((True, False), repeat=2):
            found, _ = times(stamps, waits=waits, spliced=spliced)
            assert all(a < b for a, b in itertools.pairwise(found)), stamps


def test_live_frames_are_not_held():
    clock = FrameClock(Fraction(1, 25), by_decoding=False, waits=False)
    for stamp in (0, 400, 800, 404):
        frame = SimpleNamespace(pts=stamp, dts=None, time_base=Fraction(1, 100))
        assert clock.put(frame) == [frame]


# MPEG-4 with B-frames ----------------------------------------------------------------------------
def mpeg4(path, packed, count=14):
    """Write an MPEG-4 ASP stream with B-frames; packed as DivX 5 did: two pictures in one chunk."""
    context = av.CodecContext.create("mpeg4", "w")
    context.width, context.height, context.pix_fmt = 64, 48, "yuv420p"
    context.time_base, context.framerate = Fraction(1, 25), 25
    context.options = {"bf": "1", "g": "12", "qscale": "2"}
    chunks = []
    for i, frame in enumerate([*numbered(count), None]):
        if frame is not None:
            frame.pts, frame.time_base = i, Fraction(1, 25)
            frame = frame.reformat(format="yuv420p")
        chunks += [bytes(p) for p in context.encode(frame)]

    def kind(chunk):
        return "IPBS"[chunk[chunk.find(b"\0\0\1\xb6") + 4] >> 6]

    assert "B" in map(kind, chunks)
    if packed:
        made: list[bytes] = []
        for chunk in chunks:
            if kind(chunk) == "B":
                made[-1] += chunk
                made.append(b"\0\0\1\xb6\x53\0\x7f")  # a picture that is not coded
            else:
                made.append(chunk)
        at = made[0].find(b"\0\0\1\xb3")
        made[0] = made[0][:at] + b"\0\0\1\xb2DivX503b1393p" + made[0][at:]
        chunks = made
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 25)
        out.start_encoding()
        for i, chunk in enumerate(chunks):
            packet = av.Packet(chunk)
            packet.stream, packet.time_base = stream, Fraction(1, 25)
            packet.pts = packet.dts = i
            packet.is_keyframe = kind(chunk) == "I"
            out.mux(packet)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("threads", [1, 4])
def test_mpeg4_with_b_frames_in_avi(tmp_path, packed, threads):
    path = mpeg4(tmp_path / "a.avi", packed)
    with video.open(path, threads=threads) as reader:
        frames = [(number_of(frame), frame.time) for frame in reader]
        start = frames[0][1]
        assert frames == [(i, start + Fraction(i, 25)) for i in range(14)]
        assert reader.notices == ()
        for i in (9, 0, 13, 5, 12):
            reader.seek(start + Fraction(i, 25))
            assert number_of(next(reader)) == i


def test_packed_b_frames_elsewhere(tmp_path):
    path = mpeg4(tmp_path / "a.mkv", True)
    with video.open(path) as reader:
        frames = [(number_of(frame), frame.time) for frame in reader]
    assert frames == [(i, Fraction(i, 25)) for i in range(14)]


def test_filtered_avi_keeps_every_frame(tmp_path):
    out = tmp_path / "out.mp4"
    path = mpeg4(tmp_path / "a.avi", True)
    assert main(["filter", str(path), str(out), "--brightness", "0", "--device", "cpu"]) == 0
    with video.open(out) as reader:
        assert [number_of(frame) for frame in reader] == list(range(14))


@pytest.mark.parametrize("stamps", [
    [0, 1, 2, 3, 3, 5, 6, 7], [0, 1, 3, 2, 4, 5, 6, 7], [0, 1, 2, 700, 4, 5, 6, 7],
    [50, 51, 52, 53, 0, 1, 2, 3],
])  # fmt: skip
def test_one_wrong_stamp_does_not_cost_the_video(tmp_path, stamps):
    """Stamps patched into a file of whole pictures, whose order does not matter to the decoder."""
    path, out = tmp_path / "a.mkv", tmp_path / "out.mp4"
    chunks = []
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
        stream.codec_context.time_base = Fraction(1, 25)
        for i, frame in enumerate(numbered(8)):
            frame.pts = i
            for packet in stream.encode(frame):
                chunks.append(bytes(packet))
                packet.is_keyframe = i == 0  # so that all are in one cluster
                file.mux(packet)
    data = bytearray(path.read_bytes())
    for stamp, chunk in zip(stamps, chunks, strict=True):
        at = data.find(chunk) - 3  # two bytes of time and one of flags are before it
        data[at : at + 2] = (stamp * 40).to_bytes(2, "big")
    path.write_bytes(data)
    with video.open(path) as reader:
        with pytest.warns(MediaNotice, match="It is repaired") as said:
            frames = [(number_of(frame), frame.time) for frame in reader]
        assert len(said) == 1
        assert reader.notices == (str(said[0].message),)
    assert [number for number, _ in frames] == list(range(8))
    assert all(a[1] < b[1] for a, b in itertools.pairwise(frames))
    assert frames[-1][1] - frames[0][1] < Fraction(1, 2)
    assert main(["filter", str(path), str(out), "--brightness", "0", "--device", "cpu"]) == 0
    with video.open(out) as reader:
        assert [number_of(frame) for frame in reader] == list(range(8))


# where a recording begins ------------------------------------------------------------------------
def recording(path, late=0, begin=36000):
    """Write a broadcast of 12 frames and silence; the picture begins ``late`` frames late."""
    with av.open(str(path), "w", options={"output_ts_offset": str(begin)}) as out:
        stream = out.add_stream("mpeg2video", rate=25, options={"bf": "2", "g": "6", "qscale": "2"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 25)
        sound = out.add_stream("mp2", rate=48000, layout="mono")
        for i, frame in enumerate(numbered(12)):
            frame.pts, frame.time_base = i + late, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        for i in range(24):
            chunk = av.AudioFrame.from_ndarray(np.zeros((1, 1152), np.int16), "s16", "mono")
            chunk.sample_rate, chunk.pts, chunk.time_base = 48000, i * 1152, Fraction(1, 48000)
            out.mux(sound.encode(chunk))
        out.mux(sound.encode(None))
    return path


@pytest.mark.parametrize("suffix", ["ts", "mpg", "vob", "m2ts"])
def test_start_offset_is_taken_off(tmp_path, suffix):
    path = recording(tmp_path / f"a.{suffix}")
    with av.open(str(path)) as file:
        assert file.start_time > 35_000_000_000
    with video.open(path) as reader:
        frames = list(reader)
        assert [number_of(frame) for frame in frames] == list(range(12))
        assert 0 <= frames[0].time < Fraction(3, 100)
        begin = frames[0].time
        assert [frame.time - begin for frame in frames] == [Fraction(i, 25) for i in range(12)]
        for i in (8, 3, 11, 0):
            reader.seek(begin + Fraction(i, 25))
            assert number_of(next(reader)) == i


@pytest.mark.parametrize("late", [0, 5])
@pytest.mark.parametrize("suffix", ["ts", "mpg"])
def test_sound_keeps_its_distance(tmp_path, suffix, late):
    path = recording(tmp_path / f"a.{suffix}", late)

    def distance(path):
        (picture, *_), (sound, *_) = packets(path, "video")[0], packets(path, "audio")[0]
        return picture - sound

    before = distance(path)
    assert abs(before - Fraction(late, 25)) < Fraction(4, 100)
    for name, options in (("out.mkv", ()), ("out.mp4", ()), ("even.mkv", ("--retime",))):
        out = tmp_path / name
        command = ["filter", str(path), str(out), "--invert", "--device", "cpu", *options]
        assert main(command) == 0
        assert abs(distance(out) - before) < Fraction(2, 1000)
        with av.open(str(out)) as file:
            assert file.duration < 1_500_000
            assert abs(file.start_time) < 300_000


@pytest.mark.parametrize("begins", [(5000, 100), (100, 5000), (100, 100)])
def test_spliced_recordings(tmp_path, begins):
    """Two recordings in one file, the second on another clock: picture and sound go on."""
    path, out = tmp_path / "a.ts", tmp_path / "out.mp4"
    parts = [recording(tmp_path / f"{i}.ts", begin=begin) for i, begin in enumerate(begins)]
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    # FFmpeg takes the packet at the joint for damaged: the command says so, and goes on.
    assert main(["filter", str(path), str(out), "--invert", "--device", "cpu"]) in (0, 2)
    pictures = sorted(time for time, _, _ in packets(out, "video"))
    sounds = [time for time, _, _ in packets(out, "audio")]
    assert len(pictures) >= 23
    for found in (pictures, sounds):
        steps = [b - a for a, b in itertools.pairwise(found)]
        assert min(steps) > 0
        assert max(steps) < Fraction(1, 5)
    assert 0.8 < pictures[-1] < 1.3
    assert abs(sounds[-1] - pictures[-1]) < Fraction(1, 5)


def test_other_containers_begin_where_they_begin(tmp_path):
    path = encode(tmp_path / "a.mkv", numbered(3), stamps=[50, 51, 52])
    with video.open(path) as reader:
        assert [frame.time for frame in reader] == [Fraction(i, 25) for i in (50, 51, 52)]


def test_retime(tmp_path):
    stamps = [0, 3, 4, 11, 40, 41]
    path = encode(tmp_path / "a.mp4", numbered(6), stamps=stamps, time_base=Fraction(1, 50))
    out = tmp_path / "out.mp4"
    assert main(["filter", str(path), str(out), "--invert", "--retime", "--device", "cpu"]) == 0
    with video.open(path) as reader:
        step = 1 / reader.fps
    with video.open(out) as reader:
        found = [frame.time for frame in reader]
    assert found == pytest.approx([i * step for i in range(6)], abs=1e-4)
