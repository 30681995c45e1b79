"""Videos in parts: the index, splitting, encoding apart, stitching, and what is checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dala.errors import VideoError
from dala.media import video
from dala.media.filters.plans import Filter
from dala.media.video.chunks.index import VideoIndex, index_video, split_video
from dala.media.video.chunks.packets import (
    EncoderSettings,
    PacketReader,
    encode_part,
    part_chain,
    reorder_depth,
)
from dala.media.video.chunks.stitching import decoding_times, stitch
from dala.media.video.source import source_of
from tests.support.clips import clip, number_in, shown, sound_packets

#: Settings that lose nothing, so that frames can be compared.
LOSSLESS = EncoderSettings(suffix=".mkv", codec="ffv1", device="cpu")
X264 = EncoderSettings(suffix=".mp4", options={"crf": "12"}, device="cpu")


def encode(source, label, index, part, filters, settings, target, report):
    """Encode a part with filters of its own."""
    with part_chain(filters, settings.device) as stages:
        return encode_part(source, label, index, part, stages, settings, target, report)


def index_of(path: Path) -> VideoIndex:
    made = index_video(source_of(path), "test")
    return VideoIndex.from_json(json.loads(json.dumps(made.to_json())))


def opening(folder: Path) -> Callable[[int], PacketReader]:
    return lambda n: PacketReader((folder / f"{n}.packets").open("rb"), str(n))


def in_parts(
    source: Path,
    out: Path,
    seconds: float | None,
    chain: Sequence[Filter] = (),
    how: EncoderSettings = X264,
    halo: int = 0,
    order: Callable[[int], int] = lambda n: n,
    index: VideoIndex | None = None,
) -> int:
    """Filter a video in parts, encoded in any order; return their number."""
    index = index or index_of(source)
    parts = split_video(index, seconds, halo)
    for part in sorted(parts, key=lambda p: order(p.number)):
        target = out.parent / f"{part.number}.packets"
        encode(source, source.name, index, part, chain, how, target, lambda n: None)
    whole = not index.problem and not index.undecodable
    known = (index.times, index.time_base) if whole else None
    stitch(len(parts), opening(out.parent), source_of(source), out, expected=known)
    return len(parts)


@st.composite
def odd_clips(draw: st.DrawFn) -> dict[str, object]:
    frames = draw(st.integers(1, 40))
    times = None
    if draw(st.booleans()):
        steps = draw(st.lists(st.integers(5, 90), min_size=frames, max_size=frames))
        times = (np.cumsum(steps) + draw(st.sampled_from([0, -steps[0], 333]))).tolist()
    return {
        "frames": frames,
        "fps": draw(st.sampled_from([Fraction(24), Fraction(25), Fraction(30000, 1001)])),
        "gop": draw(st.integers(1, 12)),
        "bframes": draw(st.integers(0, 3)),
        "open_gop": draw(st.booleans()),
        "times": times,
        "sound": draw(st.booleans()),
    }


@given(
    odd_clips(),
    st.sampled_from([".mp4", ".mkv", ".ts", ".mov"]),
    st.sampled_from([".mp4", ".mkv"]),
    st.sampled_from([0.1, 0.3, 0.7, None]),
    st.integers(0, 2**20),
)
@settings(
    max_examples=24,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_frame_is_lost_doubled_or_moved(tmp_path, facts, kind, made, seconds, seed):
    source = clip(tmp_path / f"in{kind}", **facts)
    out = tmp_path / f"out{made}"
    in_parts(source, out, seconds, order=lambda n: (n * 7919 + seed) % 104729,
             how=EncoderSettings(suffix=made, options={"crf": "12"}, device="cpu"))  # fmt: skip
    wanted, numbers = shown(source)
    assert numbers == list(range(facts["frames"]))
    times, found = shown(out)
    assert found == numbers
    # Matroska has milliseconds, and moves all tracks where sound begins before 0.
    shift = times[0] - wanted[0]
    near = Fraction(1, 500) if made == ".mkv" else 0
    assert made == ".mkv" or shift == 0
    assert all(abs(t - w - shift) <= near for t, w in zip(times, wanted, strict=True))
    assert bool(sound_packets(out)) == facts["sound"]


def test_sound_is_that_of_the_whole_video(tmp_path):
    source = clip(tmp_path / "in.mp4", metadata={"title": "A film"})
    whole, out = tmp_path / "whole.mp4", tmp_path / "out.mp4"
    assert in_parts(source, out, 0.4) > 2
    with (
        video.open(source, device="cpu") as reader,
        video.write(whole, fps=reader.fps, tracks_from=reader, device="cpu") as sink,
    ):
        for frame in reader:
            sink.write(frame)
    assert sound_packets(out) == sound_packets(whole)
    assert len(sound_packets(out)) > 10
    with av.open(str(out)) as file:
        assert file.metadata["title"] == "A film"


def test_parts_begin_at_key_frames_and_cover_the_video(tmp_path):
    index = index_of(clip(tmp_path / "in.mp4", 40, gop=8))
    assert index.keys.tolist() == [0, 8, 16, 24, 32]
    assert (index.frames, index.width, index.codec, index.problem) == (40, 32, "h264", "")
    spans = [(p.first, p.last) for p in split_video(index, 0.5)]
    assert spans == [(0, 16), (16, 32), (32, 40)]
    spans = [(p.first, p.last) for p in split_video(index, 0.65)]
    assert spans == [(0, 24), (24, 40)]  # a rest of half a part is one
    spans = [(p.first, p.last) for p in split_video(index, 1.2)]
    assert spans == [(0, 40)]  # a shorter rest belongs to the part before
    assert [(p.first, p.last) for p in split_video(index, None)] == [(0, 40)]
    assert [(p.start, p.warm) for p in split_video(index, 0.5, halo=3)] == [
        (0, 0),
        (8, 13),
        (24, 29),
    ]


def test_open_groups_begin_one_key_frame_earlier(tmp_path):
    source = clip(tmp_path / "in.mp4", 40, gop=8, open_gop=True)
    index = index_of(source)
    assert index.opened.any()
    for part in split_video(index, 0.3)[1:]:
        at = index.keys.tolist().index(part.first)
        assert part.start == index.keys[at - 1 if index.opened[at] else at]
    in_parts(source, tmp_path / "out.mkv", 0.3, how=LOSSLESS)
    assert shown(tmp_path / "out.mkv")[1] == list(range(40))


def frames_of(path: Path) -> list[np.ndarray]:
    with video.open(path, device="cpu") as reader:
        return [frame.numpy().copy() for frame in reader]


def test_frames_are_those_of_the_whole_video(tmp_path):
    source = clip(tmp_path / "in.mp4", 30, open_gop=True)
    chain = [("blur", {"radius": 2}), "invert"]
    in_parts(source, tmp_path / "parts.mkv", 0.2, chain, LOSSLESS)
    in_parts(source, tmp_path / "whole.mkv", None, chain, LOSSLESS)
    parts, whole = frames_of(tmp_path / "parts.mkv"), frames_of(tmp_path / "whole.mkv")
    assert len(parts) == 30
    assert all(np.array_equal(a, b) for a, b in zip(parts, whole, strict=True))


def test_a_deinterlacer_sees_the_frames_around_a_seam(tmp_path):
    from dataclasses import replace

    source = clip(tmp_path / "in.mp4", 24, gop=6, bframes=0)
    index = replace(index_of(source), scan="tff")
    how = EncoderSettings(suffix=".mkv", codec="ffv1", device="cpu", deinterlace=True)
    in_parts(source, tmp_path / "parts.mkv", 0.2, (), how, halo=2, index=index)
    in_parts(source, tmp_path / "whole.mkv", None, (), how, index=index)
    parts, whole = frames_of(tmp_path / "parts.mkv"), frames_of(tmp_path / "whole.mkv")
    assert all(np.array_equal(a, b) for a, b in zip(parts, whole, strict=True))
    plain = frames_of(source)
    assert any(not np.array_equal(a, b) for a, b in zip(parts, plain, strict=True))


def test_what_a_part_remembers_is_warmed_up(tmp_path):
    """A filter that smooths over time gives nearly the same frames as over the whole video."""
    source = clip(tmp_path / "in.mp4", 40, gop=8)

    def smoothing() -> Callable[[object], Sequence[Filter]]:
        level = [0.0]

        def filters(frame: object) -> Sequence[Filter]:
            number = (frame.pts // 512) % 40
            level[0] += (number / 40 - level[0]) * 0.5
            return [("brightness", {"value": level[0] - 0.5})]

        return filters

    index = index_of(source)
    made = {}
    for name, seconds, halo in (("whole", None, 0), ("warm", 0.3, 14), ("cold", 0.3, 0)):
        folder = tmp_path / name
        folder.mkdir()
        parts = split_video(index, seconds, halo)
        for part in parts:
            target = folder / f"{part.number}.packets"
            encode(source, "in", index, part, smoothing(), LOSSLESS, target, lambda n: None)
        stitch(len(parts), opening(folder), source_of(source), folder / "out.mkv")
        made[name] = np.array(frames_of(folder / "out.mkv"), np.int16)
    assert np.abs(made["warm"] - made["whole"]).max() <= 2  # a step of YUV
    assert np.abs(made["cold"] - made["whole"]).max() > 8


def test_videos_whose_times_are_repaired_are_one_part(tmp_path):
    source = clip(tmp_path / "in.avi", 20, codec="mpeg4", bframes=0, sound=False)
    index = index_of(source)
    assert "AVI" in index.problem
    assert in_parts(source, tmp_path / "out.mp4", 0.1) == 1
    assert shown(tmp_path / "out.mp4")[1] == list(range(20))


def test_a_cut_video_that_begins_in_an_open_group(tmp_path):
    whole = clip(tmp_path / "whole.ts", 40, gop=8, open_gop=True, sound=False)
    data = whole.read_bytes()
    source = tmp_path / "in.ts"
    source.write_bytes(data[len(data) // 2 // 188 * 188 :])
    expected = shown(source)
    in_parts(source, tmp_path / "out.mp4", 0.2)
    times, numbers = shown(tmp_path / "out.mp4")
    assert numbers == expected[1]
    assert [t - times[0] for t in times] == [t - expected[0][0] for t in expected[0]]


# what is refused ----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A folder with a video, its index, and the packets of its parts."""
    folder = tmp_path_factory.mktemp("split")
    source = clip(folder / "in.mp4", 24, gop=8)
    index = index_of(source)
    for part in split_video(index, 0.3):
        target = folder / f"{part.number}.packets"
        encode(source, "in", index, part, (), X264, target, lambda n: None)
    return folder, index


def test_a_missing_or_doubled_part_is_noticed(split, tmp_path):
    folder, index = split
    source = source_of(folder / "in.mp4")
    known = index.times, index.time_base
    out = tmp_path / "out.mp4"
    with pytest.raises(VideoError, match="the parts have 16 frames, and the video has 24"):
        stitch(2, opening(folder), source, out, expected=known)
    with pytest.raises(VideoError, match="part 1 begins before part 0 ends"):
        stitch(2, lambda n: opening(folder)(1), source, out, expected=known)
    assert not out.exists()


def test_parts_of_another_encoder_are_noticed(split, tmp_path):
    folder, index = split
    part = split_video(index, 0.3)[1]
    other = EncoderSettings(suffix=".mp4", options={"crf": "30"}, device="cpu")
    encode(folder / "in.mp4", "in", index, part, (), other, tmp_path / "1.packets", int)

    def open_part(n: int) -> PacketReader:
        return opening(tmp_path if n == 1 else folder)(n)

    with pytest.raises(VideoError, match=r"part 1 was encoded with other settings.*options.*30"):
        stitch(3, open_part, source_of(folder / "in.mp4"), tmp_path / "out.mp4")


def test_damaged_packets_are_noticed(split, tmp_path):
    folder, _ = split
    data = bytearray((folder / "1.packets").read_bytes())
    (tmp_path / "short.packets").write_bytes(data[:-20])
    with pytest.raises(VideoError, match="no file of packets"):
        PacketReader((tmp_path / "short.packets").open("rb"), "short")
    with opening(folder)(1) as reader:
        first = next(iter(reader)).data
    start = data.find(first)
    data[start + 4 : start + len(first)] = bytes(len(first) - 4)
    (tmp_path / "1.packets").write_bytes(data)
    out = tmp_path / "out.mp4"
    with pytest.raises(VideoError, match=r"the seam at 0.320 s \(part 1\)"):
        stitch(
            3,
            lambda n: opening(tmp_path if n == 1 else folder)(n),
            source_of(folder / "in.mp4"),
            out,
        )
    assert not out.exists()


def test_a_damaged_video_names_the_time(tmp_path):
    source = clip(tmp_path / "in.mkv", 40, sound=False)
    index = index_of(source)
    data = bytearray(source.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 300] = bytes(300)
    source.write_bytes(data)
    parts = split_video(index, 0.3)
    with pytest.raises(VideoError, match=r"damaged|no frames from|that none of its packets"):
        for part in parts:
            encode(source, "in", index, part, (), X264, tmp_path / "x.packets", int)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_decoding_times_are_those_of_one_encoder(steps, random):
    shown_at = np.cumsum(steps)
    order = list(range(len(steps)))
    for at in range(0, len(order) - 3, 4):  # reorder within groups, as B-frames are
        group = order[at : at + 4]
        random.shuffle(group)
        order[at : at + 4] = group
    times = shown_at[order]
    decoded = decoding_times(times)
    assert (np.diff(decoded) > 0).all() if reorder_depth(times) else np.array_equal(decoded, times)
    assert (decoded <= times).all()


def test_numbers_survive_encoding(tmp_path):
    assert shown(clip(tmp_path / "a.mp4", 30))[1] == list(range(30))
    assert number_in(np.zeros((32, 32, 3), np.uint8)) == 0
