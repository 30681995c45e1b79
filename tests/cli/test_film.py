"""The film of ``dala demo``: its frames, and what is done without PyAV."""

import sys

import numpy as np
import pytest

import dala
from dala.cli import demo_font, demo_scene, main
from dala.gpu import create_surface


def frame(seconds, width=128, height=72):
    scene = demo_scene.Scene(width, height)
    try:
        scene.start(seconds)
        return scene.take()
    finally:
        scene.close()


def test_the_scene_moves_and_is_the_same_each_time():
    with dala.device("cpu"):
        first, again, later = frame(0.5), frame(0.5), frame(1.5)
    assert (first == again).all()
    changed = (first != later).any(axis=2).mean()
    assert changed > 0.2
    assert (first[..., 3] == 255).all()


def test_chapters():
    captions = [demo_scene.filters(n / 50)[0] for n in range(50)]
    assert len({caption.split("=")[0] for caption in captions}) == len(demo_scene.CHAPTERS)
    assert demo_scene.filters(0.3) == ("blur radius=24", [("blur", {"radius": 24})])
    for n in range(51):  # every one can be drawn
        caption, filters = demo_scene.filters(n / 50)
        assert all(sign in demo_font.GLYPHS for sign in caption.upper())
        for name, _ in filters:
            assert name in dala.media.gpu.filters()


def test_the_inset_and_the_caption():
    plain = np.full((72, 128, 4), 100, np.uint8)
    inset = np.full((18, 32, 4), (200, 30, 30, 255), np.uint8)
    scene = demo_scene.Scene(128, 72)
    try:
        made = scene.put_together(plain, inset, "blur", 0.5)
    finally:
        scene.close()
    assert made[4, 100].tolist() == [200, 30, 30, 255]
    assert (made[40, 60] == 100).all()
    assert (made[71, 10] != made[71, 120]).any()  # the bar of time, half way
    assert (made[55:70, 2:40] != 100).any()


def test_font():
    with create_surface(20, 12) as s:
        s.clear("black")
        s.batch(demo_font.write("Il", 1, 2, 1, "white"))
        dots = s.to_array()[..., 0] > 0
    letter_i = ["01110", "00100", "00100", "00100", "00100", "00100", "01110"]
    letter_l = ["10000"] * 6 + ["11111"]
    for column, letter in ((1, letter_i), (7, letter_l)):
        expected = np.array([[dot == "1" for dot in row] for row in letter])
        assert (dots[2:9, column : column + 5] == expected).all()
    assert dots.sum() == sum(row.count("1") for row in letter_i + letter_l)
    assert demo_font.width("Il", 3) == 33


def test_the_film(tmp_path, capsys):
    av = pytest.importorskip("av")
    size = ["--size", "129x72", "--seconds", "0.5", "--device", "cpu"]
    assert main(["demo", "--out", str(tmp_path), *size]) == 0
    assert "demo.mp4: 128x72, 15 frames" in capsys.readouterr().out
    with av.open(str(tmp_path / "demo.mp4")) as box:
        stream = box.streams.video[0]
        assert (stream.codec_context.name, stream.average_rate) == ("h264", 30)
        frames = [f.to_ndarray(format="rgb24").astype(int) for f in box.decode(video=0)]
    assert len(frames) == 15
    with dala.device("cpu"):
        drawn = frame(0.0)
    middle = (slice(20, 50), slice(10, 90))  # without inset and caption; chroma is halved
    assert np.abs(frames[0][middle] - drawn[..., :3][middle]).mean() < 10
    assert np.abs(frames[14][middle] - drawn[..., :3][middle]).mean() > 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.mp4", "demo.png"]


def test_without_pyav(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    assert main(["demo", "--out", str(tmp_path), "--size", "64x48", "--device", "cpu"]) == 0
    assert "pip install 'dala[media]'" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["demo.png"]
