"""Files that are damaged, cut off or no videos at all; hardware and packages that are not there."""

from __future__ import annotations

import contextlib
import sys
import threading
from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.cli import main
from dala.errors import (
    DalaError,
    DeviceUnavailable,
    MissingPackage,
    ParameterError,
    VideoError,
    VideoNotFound,
)
from dala.media import video
from tests.media.video.clips import av, encode, number_of, numbered, packets

OPTIONS = {"g": "5", "bf": "0"}


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield
    assert not [t for t in threading.enumerate() if t.name.startswith("dala video")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    fast = {"movflags": "+faststart"}
    encode(folder / "a.mp4", numbered(30), options=OPTIONS, muxer=fast)
    encode(folder / "a.mkv", numbered(30), options=OPTIONS)
    return folder


def read(path):
    """Numbers of the frames that come, and the error after them."""
    seen = []
    with video.open(path) as reader:
        try:
            for frame in reader:
                seen.append(number_of(frame))
        except VideoError as damage:
            return seen, damage
    return seen, None


def test_intact_files_raise_nothing(whole):
    for suffix in ("mp4", "mkv"):
        assert read(whole / f"a.{suffix}") == (list(range(30)), None)


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
@pytest.mark.parametrize("part", [0.4, 0.6, 0.8])
def test_truncated_file_returns_its_frames_then_raises(tmp_path, whole, suffix, part):
    data = (whole / f"a.{suffix}").read_bytes()
    # the bytes of the last packet that is whole tell how many frames must come
    cut = data[: int(len(data) * part)]
    there = [p for _, _, p in packets(whole / f"a.{suffix}", "video")]
    complete = sum(cut.find(p) >= 0 for p in there)
    assert 0 < complete < 30
    path = tmp_path / f"cut.{suffix}"
    path.write_bytes(cut)
    seen, error = read(path)
    assert seen == list(range(complete))
    assert str(path) in str(error)
    assert " s: " in str(error)
    assert isinstance(error, OSError)


def test_damage_in_the_middle_is_skipped_and_reported(tmp_path, whole):
    data = bytearray((whole / "a.mp4").read_bytes())
    victim = packets(whole / "a.mp4", "video")[10][2]  # a key frame
    at = data.find(victim)
    data[at : at + len(victim)] = b"\xa5" * len(victim)
    path = tmp_path / "bad.mp4"
    path.write_bytes(data)
    seen, error = read(path)
    assert seen[:10] == list(range(10))
    assert seen[-15:] == list(range(15, 30))
    assert "after 0.360 s" in str(error)
    assert "Invalid data" in str(error)


def test_reader_works_after_an_error(tmp_path, whole):
    data = (whole / "a.mp4").read_bytes()
    path = tmp_path / "cut.mp4"
    path.write_bytes(data[: int(len(data) * 0.8)])
    with video.open(path) as reader:
        with pytest.raises(VideoError):
            list(reader)
        assert next(reader, None) is None
        reader.seek(0.2)
        assert number_of(next(reader)) == 5


def test_open_refuses_non_videos(tmp_path, whole):
    with pytest.raises(VideoNotFound, match="no such file") as caught:
        video.open(tmp_path / "none.mp4")
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(VideoError, match="is a folder"):
        video.open(tmp_path)
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(VideoError, match="0 bytes"):
        video.open(tmp_path / "empty.mp4")
    (tmp_path / "text.mp4").write_text("no video at all\n" * 100)
    with pytest.raises(VideoError, match=r"text\.mp4'?: Invalid data"):
        video.open(tmp_path / "text.mp4")
    (tmp_path / "headless.mp4").write_bytes((whole / "a.mp4").read_bytes()[:600])
    with pytest.raises(VideoError, match=r"headless\.mp4"):
        video.open(tmp_path / "headless.mp4")
    for bad in (None, 1.5, True, [1]):
        with pytest.raises(ParameterError, match="source must be a path"):
            video.open(bad)
    with pytest.raises(ParameterError, match="0 or more"):
        video.open(-1)
    with pytest.raises(VideoError, match="camera 77"):
        video.open(77)


def test_audio_only_file_is_refused(tmp_path):
    with av.open(str(tmp_path / "a.wav"), "w") as file:
        stream = file.add_stream("pcm_s16le", rate=8000, layout="mono")
        chunk = av.AudioFrame(format="s16", layout="mono", samples=800)
        chunk.sample_rate = 8000
        file.mux(stream.encode(chunk))
        file.mux(stream.encode(None))
    with pytest.raises(VideoError, match=r"no video stream\. It holds audio"):
        video.open(tmp_path / "a.wav")


def test_file_name_with_colon(tmp_path, whole):
    path = tmp_path / "at 12:30.mp4"
    path.write_bytes((whole / "a.mp4").read_bytes())
    assert read(path)[0] == list(range(30))


def test_unreachable_url():
    with pytest.raises(VideoError, match=r"127\.0\.0\.1:9"):
        video.open("http://127.0.0.1:9/a.mp4", timeout=2)


def test_hwaccel_never_falls_back_silently(whole):
    with pytest.raises(DeviceUnavailable, match=r"'no_such_thing' is not .* Leave hwaccel out"):
        video.open(whole / "a.mp4", hwaccel="no_such_thing")
    for wanted in ("cuda", "qsv"):
        with (
            contextlib.suppress(DeviceUnavailable),  # then it was said
            video.open(whole / "a.mp4", hwaccel=wanted) as reader,
        ):
            assert reader._opened("test").stream.codec_context.is_hwaccel


def test_without_pyav(monkeypatch, whole, tmp_path):
    monkeypatch.setitem(sys.modules, "av", None)
    for use in (
        lambda: video.open(whole / "a.mp4"),
        lambda: video.write(tmp_path / "b.mp4", fps=1),
    ):
        with pytest.raises(MissingPackage, match=r"pip install \"dala-gpu\[media\]\""):
            use()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_damage_gives_frames_or_video_errors(tmp_path, whole, data):
    name = data.draw(st.sampled_from(["a.mp4", "a.mkv"]))
    body = bytearray((whole / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        new = data.draw(st.binary(min_size=1, max_size=32))
        body[at : at + len(new)] = new
    body = body[: data.draw(st.integers(1, len(body)))]
    path = tmp_path / f"bad-{name}"
    path.write_bytes(body)
    with contextlib.suppress(DalaError), video.open(path) as reader:
        for frame in islice(reader, 200):
            assert frame.width > 0


# the end ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", ["mp4", "mkv", "webm", "mov", "avi", "ts", "ogv", "flv"])
@pytest.mark.parametrize("lost", [0.02, 0.3])
def test_a_video_that_lost_its_last_frames(tmp_path, suffix, lost):
    rng = np.random.default_rng(5)
    pictures = [rng.integers(0, 256, (48, 64, 3), np.uint8) for _ in range(25)]
    path = tmp_path / f"a.{suffix}"
    options = {} if suffix == "ogv" else {"g": 5}
    video.write(path, pictures, fps=25, options=options)
    with video.open(path) as reader:
        whole = sum(1 for _ in reader)
    data = path.read_bytes()
    cut = tmp_path / f"cut.{suffix}"
    cut.write_bytes(data[: int(len(data) * (1 - lost))])
    for source in (cut, cut.read_bytes()):
        found = []
        with (
            video.open(source) as reader,
            pytest.raises(VideoError, match=r"is damaged (near|after)"),
        ):
            found.extend(1 for _ in reader)
        assert 0 < len(found) <= whole
    assert main(["filter", str(cut), str(tmp_path / "out.mp4"), "--sepia"]) == 2
    assert (tmp_path / "out.mp4").is_file()
    assert main(["filter", str(path), str(tmp_path / "out.mp4"), "--sepia"]) == 0


def test_a_matroska_file_without_its_index_is_whole(tmp_path):
    rng = np.random.default_rng(5)
    path = tmp_path / "a.mkv"
    video.write(path, [rng.integers(0, 256, (48, 64, 3), np.uint8) for _ in range(5)], fps=25)
    data = path.read_bytes()
    path.write_bytes(data[:-4])  # in the index behind the frames
    with video.open(path) as reader:
        assert sum(1 for _ in reader) == 5
