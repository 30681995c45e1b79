"""``dala filter``: encoders, alpha, odd sizes and tags of the videos that it writes."""

import json
import subprocess
import sys

import numpy as np
import pytest

from dala.media import video
from dala.media.video.output import opening as hardware
from tests.cli.test_filter import CPU, fails, works
from tests.cli.test_filter_video import clip, read

av = pytest.importorskip("av")


def test_auto_says_what_it_tried(tmp_path, capsys):
    first = clip(tmp_path / "in.mp4", 3)
    works(first, tmp_path / "out.mp4", "--invert", "--encoder", "auto", "--json")
    report = json.loads(capsys.readouterr().out)
    (said,) = report["notices"]
    assert said.startswith("video.write: encoder 'auto' uses ")
    assert len(read(tmp_path / "out.mp4")) == 3


def test_hardware_that_is_missing(tmp_path, capsys, monkeypatch):
    first = clip(tmp_path / "in.mp4", 3)
    monkeypatch.setattr(hardware, "refusal", lambda *a: "no such card")
    words = fails(capsys, first, tmp_path / "out.mp4", "--invert", "--encoder", "nvenc")
    assert "encoder 'nvenc' cannot encode h264 at 96x64 here: no such card." in words
    assert [p.name for p in tmp_path.iterdir()] == ["in.mp4"]


def glass():
    y, x = np.mgrid[0:16, 0:24]
    return np.stack([x * 10, y * 15, x * 0 + 60, x * 11], axis=-1).astype(np.uint8)


@pytest.mark.parametrize(("name", "off"), [("out.mov", 3), ("out.mkv", 0), ("out.webm", 20)])
def test_alpha(tmp_path, name, off):
    first = tmp_path / "in.mkv"
    video.write(first, [glass()] * 3, fps=25, alpha=True)
    works(first, tmp_path / name, "--invert", "--alpha")
    with video.open(tmp_path / name, device="cpu") as reader:
        frames = [np.asarray(f).astype(int) for f in reader]
    wanted = np.dstack([255 - glass()[..., :3], glass()[..., 3:]])
    assert len(frames) == 3
    assert np.abs(frames[0] - wanted)[..., 3].max() <= min(off, 3)
    assert np.abs(frames[0] - wanted).max() <= off


def test_dropped_alpha_is_reported(tmp_path, capsys):
    first = tmp_path / "in.mkv"
    video.write(first, [glass()] * 3, fps=25, alpha=True)
    works(first, tmp_path / "out.mp4", "--invert")
    assert capsys.readouterr().err.count("does not keep the alpha of its frames") == 1
    words = fails(capsys, first, tmp_path / "no.mp4", "--invert", "--alpha")
    assert "no codec of 'mp4' holds alpha" in words


def test_odd_sizes(tmp_path, capsys):
    first = clip(tmp_path / "in.mp4", 3)
    works(first, tmp_path / "out.mp4", "--resize", "size=31x21")
    assert "is 32x22 instead of 31x21: h264 needs even sizes" in capsys.readouterr().err
    works(first, tmp_path / "out.webm", "--resize", "size=31x21")
    assert "instead of" not in capsys.readouterr().err
    for name, size in (("out.mp4", (32, 22)), ("out.webm", (31, 21))):
        frames = read(tmp_path / name)
        assert [(f.width, f.height) for f in frames] == [size] * 3


def test_chroma_stays_in_place(tmp_path):
    """A height of 2 modulo 4, through the planes of decoder and encoder."""
    picture = np.zeros((22, 32, 3), np.uint8)
    picture[:11], picture[11:] = (220, 30, 30), (30, 30, 220)
    video.write(tmp_path / "in.mkv", [picture] * 2, fps=25, codec="ffv1")
    works(tmp_path / "in.mkv", tmp_path / "out.mkv", "--brightness", "0", "--codec", "ffv1")
    a, b = (read(tmp_path / name)[0].to_ndarray().astype(int) for name in ("in.mkv", "out.mkv"))
    assert np.abs(a - b).max() <= 12  # displaced by a row it would be 90


def test_tags_survive(tmp_path):
    with av.open(str(tmp_path / "in.mkv"), "w") as out:
        stream = out.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        context = stream.codec_context
        context.color_primaries, context.color_trc = 8, 7
        frame = av.VideoFrame(32, 32, "yuv420p")
        frame.pts = 0
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    works(tmp_path / "in.mkv", tmp_path / "out.mkv", "--invert")
    found = read(tmp_path / "out.mkv")[0]
    assert (int(found.color_primaries), int(found.color_trc)) == (8, 7)


def test_pipes_through_a_shell(tmp_path):
    first = clip(tmp_path / "in.mp4", 5)
    command = [
        sys.executable,
        "-m",
        "dala",
        "filter",
        "-",
        "-",
        "--format",
        "mkv",
        "--invert",
        *CPU,
    ]
    with first.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=True)
    (tmp_path / "out.mkv").write_bytes(done.stdout)
    assert b"5 frames" in done.stderr
    assert len(read(tmp_path / "out.mkv")) == 5
    with av.open(str(tmp_path / "out.mkv")) as box:
        assert len(box.streams.audio) == 1
