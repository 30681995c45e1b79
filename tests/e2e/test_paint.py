"""``examples/paint.py``: its picture compared with docs/images/paint.png."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import numpy as np
import pytest
from PIL import Image

from dala import gpu
from dala.gpu import protocol

ROOT = pathlib.Path(__file__).parents[2]
STORED = ROOT / "docs" / "images" / "paint.png"
FRAME = 45
NOT_DRAWN = ("resize", "remove_sprite", "remove_image", "read_pixels", "set_uniform")
#: Commands of a call that has another one, or another name.
OTHER = ("image_blit", "draw_round_rect_signed", "fill_round_rect_signed")


def _load():
    spec = importlib.util.spec_from_file_location("paint", ROOT / "examples" / "paint.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = _load()


def _drawn(*frames):
    with gpu.create_surface(example.WIDTH, example.HEIGHT) as s:
        example.prepare(s)
        for frame in frames:
            example.paint(s, frame)
        picture = s.to_array()
        assert s.errors == []
        return picture


@pytest.fixture(scope="module")
def picture():
    return _drawn(FRAME)


def test_the_picture_is_the_stored_one(picture):
    with Image.open(STORED) as stored:
        expected = np.asarray(stored.convert("RGBA")).astype(int)
    assert picture.shape == expected.shape
    far = np.abs(picture - expected).max(2)
    # Images are scaled in f32 and waves are sines: machines may differ in the last bit.
    assert far.max() <= 2
    assert (far > 0).mean() < 0.02


def test_a_frame_depends_on_its_number_alone(picture):
    assert np.array_equal(_drawn(200, 3, FRAME), picture)


def test_it_moves(picture):
    changed = (_drawn(FRAME + 30) != picture).any(2)
    assert 0.02 < changed.mean() < 0.7
    assert changed[:, : example.WIDTH // 2].any()
    assert changed[: example.SHORE].any()


def test_the_lake_mirrors_what_is_above(picture):
    # The red cottage, and its darker and distorted reflection below the shore.
    above = picture[260, 200:288].astype(int)
    below = picture[2 * example.SHORE - 272 : 2 * example.SHORE - 266, 200:288].astype(int)
    assert (above[:, 0] > above[:, 2] + 40).mean() > 0.5
    assert (below[..., 0] > below[..., 2] + 20).mean() > 0.4
    assert below[..., 0].mean() < above[:, 0].mean()


def test_every_primitive_is_used(monkeypatch):
    used = set()

    def noted(name, method):
        def call(self, *arguments):
            used.add(name)
            return method(self, *arguments)

        return call

    exact = [name for name, opcode in protocol.OPCODES.items() if opcode <= 0x1A]
    drawing = [name for name in exact if name not in (*NOT_DRAWN, *OTHER)]
    for name in ("draw_image", *drawing):
        monkeypatch.setattr(gpu.Surface, name, noted(name, getattr(gpu.Surface, name)))
    _drawn(0)
    assert used == {"draw_image", *drawing}


def test_as_a_program(tmp_path, capsys, picture):
    out = tmp_path / "night.png"
    assert example.main(["--frames", "2", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"frame 2 is in {out}\n"
    with Image.open(out) as made:
        pixels = np.asarray(made)
    assert np.array_equal(pixels, _drawn(1))


def test_errors_are_printed(tmp_path, capsys):
    assert example.main(["--out", str(tmp_path / "none" / "night.png")]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("paint: ")
    assert printed.count("\n") == 1
    with pytest.raises(SystemExit):
        example.main(["--frames", "0"])
    assert "--frames must be at least 1, got 0" in capsys.readouterr().err


if __name__ == "__main__":  # python -m tests.e2e.test_paint stores the picture
    sys.exit(example.main(["--frames", str(FRAME + 1), "--out", str(STORED)]))
