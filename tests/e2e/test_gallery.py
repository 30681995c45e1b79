"""The gallery: each example runs with tiny settings, and its picture is the stored one."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dala
from tests.support import gallery

pytest.importorskip("av")
pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")
pytest.importorskip("onnxruntime")
image = pytest.importorskip("PIL.Image")

DRAWN = [name for name in gallery.NAMES if name != "wall"]  # whose picture another test compares


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with dala.device("cpu"):
        yield


@pytest.mark.third
@pytest.mark.parametrize("name", DRAWN)
def test_the_picture_is_the_stored_one(name):
    made = gallery.small(name).astype(int)
    with image.open(gallery.STORED / f"{name}.png") as stored:
        wanted = np.asarray(stored.convert("RGB")).astype(int)
    assert made.shape == wanted.shape
    assert made.std() > 5  # something is to be seen
    far = np.abs(made - wanted)
    # Sums of floats differ in their last bits from one processor to another, and letters and
    # encoded pictures from one version of a library to another.
    assert far.mean() < 2
    assert (far.max(axis=2) > 40).mean() < 0.03


def test_pictures_are_on_the_page():
    page = (gallery.ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[([^\]]+)\]\(images/gallery/([\w-]+)\.webp\)", page)
    assert sorted(name for _, name in shown) == sorted(gallery.NAMES)
    for text, name in shown:
        assert len(text) > 20, name  # words for those who do not see it
        assert f"(../examples/{name}.py)" in page
        path = gallery.PAGE / f"{name}.webp"
        assert path.stat().st_size < gallery.LARGEST
        with image.open(path) as made:
            assert made.width <= gallery.WIDTH
    assert len(shown) >= 12


def test_a_program_writes_a_picture_and_a_video(tmp_path, capsys):
    example = gallery.load("titles")
    running = gallery.load("running")
    words = ["--size", "64x36", "--seconds", "0.1", "--device", "cpu", "--out", str(tmp_path)]
    assert running.run(example.build, words, moment=0.2) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["titles.mp4", "titles.png"]
    assert "titles.png and " in capsys.readouterr().out


def test_the_call(tmp_path):
    from tests.media.live.receivers import levels

    stats = gallery.load("call").main("test", str(tmp_path / "call"), "test", seconds=1.0)
    assert stats["frames_in"] > 0
    assert 40 < max(levels(tmp_path / "call" / "live.m3u8")) < 220
    assert max(levels(tmp_path / "call" / "live.m3u8", "audio")) > 0.02
    with pytest.raises(dala.DalaError, match="virtual camera"):
        gallery.load("call").main("test", "camera:")
