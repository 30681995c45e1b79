"""``examples/slide_show.py``: its clips, its own transition, and the video it writes."""

from __future__ import annotations

import importlib.util
import pathlib
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")

ROOT = pathlib.Path(__file__).parents[2]


def load():
    path = ROOT / "examples" / "slide_show.py"
    spec = importlib.util.spec_from_file_location("slide_show", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_slide_show(tmp_path, monkeypatch):
    from dala.media import video

    example = load()
    with example.build("cpu") as scene:
        show = scene["show"]
        assert show.length() == Fraction(57, 5)
        title, coffee = (np.asarray(scene.render(t)).astype(int) for t in (1, 4))
        mixed = np.asarray(scene.render(2.25)).astype(int)
        # Shutters: columns of the title, and of the photograph at its time.
        assert (np.abs(mixed - title).max(axis=(0, 2)) == 0).sum() > 200
        assert (np.abs(mixed - title).max(axis=(0, 2)) > 60).sum() > 200
        assert np.abs(coffee - title).mean() > 30
        assert scene.errors == {}
    monkeypatch.chdir(tmp_path)
    assert example.main(["--seconds", "0.1", "--device", "cpu"]) == 0
    with video.open("out/slide_show.mp4", device="cpu") as written:
        assert (written.width, written.height, len(list(written))) == (960, 540, 3)
