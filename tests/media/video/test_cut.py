"""Cuts between key frames: only the frames at the ends are encoded again."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dala.errors import VideoError
from dala.media.video.joining.cut import cut_video
from dala.media.video.options import EncoderOptions

av = pytest.importorskip("av")

from tests.media.video.clips import encode, number_of, numbered, packets  # noqa: E402

KEYS = {"g": "12", "bf": "2", "sc_threshold": "0"}
UNEVEN = list(np.cumsum([0, *([30, 50, 10, 90] * 10)])[:40])


def frames(path):
    """The number, the time from the first frame, and the luma of each frame."""
    found = []
    with av.open(str(path)) as file:
        for frame in file.decode(video=0):
            picture = frame.to_ndarray(format="rgb24")
            found.append((number_of(picture), frame.pts * frame.time_base, picture.astype(int)))
    first = found[0][1]
    return [(number, time - first, picture) for number, time, picture in found]


def cut(tmp_path, source, start, end, suffix=".mp4", **more):
    out = tmp_path / f"out{suffix}"
    made = cut_video(source, out, Fraction(start), None if end is None else Fraction(end), **more)
    return out, made


CLIPS = {
    "b-frames": ({"options": KEYS}, ".mp4"),
    "no b-frames": ({"options": {**KEYS, "bf": "0"}}, ".mp4"),
    "baseline": ({"options": {**KEYS, "bf": "0", "profile": "baseline"}}, ".mov"),
    "ten bits": ({"options": KEYS, "pixels": "yuv420p10le"}, ".mp4"),
    "full chroma": ({"options": KEYS, "pixels": "yuv444p"}, ".mkv"),
    "pyramid": ({"options": {**KEYS, "bf": "5", "x264-params": "b-pyramid=normal"}}, ".mkv"),
    "uneven times": ({"options": KEYS, "stamps": UNEVEN, "time_base": Fraction(1, 600)}, ".mp4"),
    "transport stream": ({"options": KEYS}, ".ts"),
    "flash": ({"options": KEYS}, ".flv"),
}


@pytest.fixture(scope="module", params=CLIPS)
def clip(request, tmp_path_factory):
    more, suffix = CLIPS[request.param]
    path = tmp_path_factory.mktemp("cut") / f"clip{suffix}"
    return encode(path, numbered(40), rate=10, **more), suffix


@pytest.mark.parametrize(("first", "last"), [(15, 33), (1, 40), (12, 23), (23, 25)])
def test_a_cut_has_exactly_its_frames(tmp_path, clip, first, last):
    path, suffix = clip
    source = frames(path)
    start = source[first][1]
    end = source[last][1] if last < 40 else None
    out, made = cut(tmp_path, path, start, end, suffix)
    found = frames(out)
    assert [number for number, _, _ in found] == list(range(first, last))
    assert made.frames == last - first
    unit = Fraction(1, 1000) if suffix in (".mkv", ".flv") else 0  # milliseconds
    for (_, time, picture), (_, before, wanted) in zip(found, source[first:last], strict=True):
        assert abs(time - (before - start)) <= unit
        assert np.abs(picture - wanted).mean() < 3
    same = [bool((a[2] == b[2]).all()) for a, b in zip(found, source[first:last], strict=True)]
    body = [n for n in range(first, last) if n >= -(-first // 12) * 12]
    assert same.count(True) >= made.frames - made.encoded  # copied frames are the very same
    if len(body) > 3:
        assert made.encoded <= -(-first // 12) * 12 - first + 4
        assert made.copied == (made.encoded == 0) == ("copied" not in made.reason)
    if suffix != ".ts":
        own = {data for _, _, data in packets(path, "video")}
        kept = sum(data in own for _, _, data in packets(out, "video"))
        assert kept == made.frames - made.encoded


def test_decoding_times_grow_and_are_never_late(tmp_path, clip):
    path, suffix = clip
    source = frames(path)
    out, _ = cut(tmp_path, path, source[5][1], source[38][1], suffix)
    found = [(pts, dts) for pts, dts, _ in packets(out, "video")]
    assert sorted(pts - found[0][0] for pts, _ in found)[0] == 0
    if suffix != ".mkv":  # which has no decoding times; FFmpeg guesses some
        assert all(dts <= pts for pts, dts in found)
        assert all(a[1] < b[1] for a, b in pairwise(found))


def test_open_groups_begin_at_frames_that_need_none_before(tmp_path):
    options = {**KEYS, "x264-params": "open-gop=1:keyint=6:min-keyint=6"}
    path = encode(tmp_path / "open.mkv", numbered(40), rate=10, options=options)
    out, made = cut(tmp_path, path, Fraction(15, 10), Fraction(33, 10), ".mkv")
    assert [number for number, _, _ in frames(out)] == list(range(15, 33))
    assert made.encoded == 18  # its later key frames are needed by frames before them
    assert "no key frame in the part" in made.reason


def test_sound_that_begins_later_stays_in_place(tmp_path):
    plain = encode(tmp_path / "plain.mp4", numbered(40), rate=10, options=KEYS, tone=True)
    late = tmp_path / "late.mkv"
    with av.open(str(plain)) as file, av.open(str(late), "w") as out:
        streams = {s.index: out.add_stream_from_template(s) for s in file.streams}
        for packet in file.demux():
            if packet.dts is None:
                continue
            if packet.stream.type == "audio":
                packet.pts += 2 * 48000
                packet.dts += 2 * 48000
            packet.stream = streams[packet.stream.index]
            out.mux(packet)
    out, made = cut(tmp_path, late, Fraction(15, 10), Fraction(36, 10), ".mkv")
    assert 0 < made.encoded < made.frames == 21
    own = {data: time for time, _, data in packets(late, "audio")}
    heard = packets(out, "audio")
    assert float(heard[0][0]) == pytest.approx(0.5, abs=0.03)
    for time, _, data in heard:
        assert float(time) + 1.5 == pytest.approx(float(own[data]), abs=0.002)


def test_what_cannot_be_joined_is_encoded_and_says_why(tmp_path):
    path = encode(tmp_path / "in.mkv", numbered(20), rate=10, codec="mpeg4", options={"g": "10"})
    out, made = cut(tmp_path, path, Fraction(5, 10), None)
    assert (made.copied, made.encoded) == (False, 15)
    assert "only H.264 can" in made.reason
    assert [number for number, _, _ in frames(out)] == list(range(5, 20))
    path = encode(tmp_path / "in.h264", numbered(40), rate=25, options=KEYS)
    out, made = cut(tmp_path, path, Fraction(15, 25), Fraction(33, 25))
    assert made.reason == "it cannot be sought"
    assert [number for number, _, _ in frames(out)] == list(range(15, 33))
    path = encode(tmp_path / "in.mp4", numbered(40), rate=10, options=KEYS)
    for more, why in (
        ({"encode": True}, "as asked"),
        ({"encoding": EncoderOptions(codec="hevc")}, "is not a key frame"),
    ):
        out, made = cut(tmp_path, path, Fraction(15, 10), Fraction(33, 10), **more)
        assert (made.encoded, made.frames) == (18, 18)
        assert why in made.reason


def test_a_damaged_video_leaves_no_file(tmp_path):
    path = encode(tmp_path / "in.ts", numbered(40), rate=10, options=KEYS)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 400] = bytes(400)
    path.write_bytes(data)
    with pytest.raises(VideoError, match="is damaged"):
        cut(tmp_path, path, Fraction(5, 10), None, ".ts")
    assert [file.name for file in tmp_path.iterdir()] == ["in.ts"]


def test_matroska_without_decoding_times_is_copied_whole(tmp_path):
    path = encode(tmp_path / "in.mkv", numbered(40), rate=10, options=KEYS, tone=True)
    for suffix in (".mkv", ".mp4"):
        out, made = cut(tmp_path, path, 0, Fraction(12, 10), suffix)
        assert (made.copied, made.frames) == (True, 12)
        assert [(n, float(t)) for n, t, _ in frames(out)] == [(n, n / 10) for n in range(12)]
