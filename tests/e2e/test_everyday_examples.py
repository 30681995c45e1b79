"""The examples of everyday tasks: each runs, and its result has the right values."""

from __future__ import annotations

import ast
import asyncio
import pathlib
import runpy
import sys

import numpy as np
import pytest

import dala
from dala.media import Frame, gpu, video
from tests.ml.conftest import weights

__all__ = ["weights"]
pytest.importorskip("av")
image = pytest.importorskip("PIL.Image")

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
NAMES = ("asyncio_frames", "background_blur", "jpegs_to_webp", "life")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    with dala.device("cpu"):
        yield


def load(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def run(name, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


def pixels(path):
    with image.open(path) as opened:
        return np.asarray(opened.convert("RGB")).astype(float)


def faded(picture, strength):
    gray = picture @ [0.299, 0.587, 0.114]
    old = np.stack([30.6 + 0.83 * gray, 20.4 + 0.84 * gray, 15.3 + 0.80 * gray], -1)
    return picture + (old - picture) * strength


def test_jpegs_to_webp(tmp_path, monkeypatch, capsys):
    run("jpegs_to_webp", monkeypatch)
    written = capsys.readouterr().out.splitlines()
    assert written == [f"out/webp/{n}.webp" for n in ("astronaut", "chelsea", "coffee")]
    for path in map(pathlib.Path, written):
        wanted = faded(pixels(f"out/jpegs/{path.stem}.jpg"), 0.5)
        assert np.abs(pixels(path) - wanted).mean() < 4  # WebP loses a little
    exact = load("jpegs_to_webp")["faded"](Frame.open("out/jpegs/coffee.jpg"), strength=1.0)
    assert np.abs(np.asarray(exact) - faded(pixels("out/jpegs/coffee.jpg"), 1.0)).max() <= 0.51


def test_jpegs_to_webp_of_folders(tmp_path, monkeypatch, capsys):
    (tmp_path / "in").mkdir()
    Frame.from_array(np.full((8, 8, 3), 200, np.uint8)).save(tmp_path / "in" / "one.JPEG")
    (tmp_path / "in" / "notes.txt").write_text("not a picture")
    run("jpegs_to_webp", monkeypatch, "in", "deep/down")
    assert capsys.readouterr().out == "deep/down/one.webp\n"
    assert [p.name for p in (tmp_path / "deep" / "down").iterdir()] == ["one.webp"]


def test_background_blur(tmp_path, monkeypatch, weights):
    example = load("background_blur")
    with pytest.warns(match="converted for mp4"):
        path = example["main"](tmp_path, seconds=0.2)
    source = np.stack(list(example["camera"](0.2))).astype(float)
    with video.open(path) as reader:
        assert reader.has_audio
        made = np.stack([np.asarray(frame)[..., :3] for frame in reader]).astype(float)
    assert made.shape == source.shape == (5, 360, 360, 3)

    def detail(clip, rows, columns):
        return np.abs(np.diff(clip[:, rows, columns], axis=2)).mean()

    behind, face = (slice(240, 300), slice(310, 350)), (slice(60, 160), slice(125, 215))
    assert detail(made, *behind) < 0.5 * detail(source, *behind)
    assert detail(made, *face) > 0.7 * detail(source, *face)
    assert np.abs(made - source)[:, face[0], face[1]].mean() < 6


def test_life(tmp_path):
    example = load("life")
    cells = np.zeros((108, 192), bool)
    for x, y in example["start"]():
        cells[y, x] = True
    assert cells.sum() > 1000
    path = example["main"](generations=31, folder=tmp_path)
    for _ in range(31):
        around = sum(
            np.roll(cells, (y, x), (0, 1)).astype(int)
            for y in (-1, 0, 1) for x in (-1, 0, 1) if (x, y) != (0, 0)
        )  # fmt: skip
        cells = (around == 3) | (cells & (around == 2))
    made = pixels(path)
    assert np.array_equal(made[..., 0] > 127, cells)
    assert set(np.unique(made[..., 0])) == {0, 255}


def test_asyncio_frames(tmp_path):
    counts = asyncio.run(load("asyncio_frames")["main"](tmp_path))
    assert counts == {"astronaut": 75, "chelsea": 75}
    for name in counts:
        with (
            video.open(tmp_path / f"{name}.mp4") as made,
            video.open(dala.samples.video(name)) as source,
        ):
            first = np.asarray(gpu.sharpen(next(source), amount=0.5)).astype(float)
            assert np.abs(np.asarray(next(made)) - first)[..., :3].mean() < 4
            assert made.fps == source.fps
            assert made.frames == 75


@pytest.mark.parametrize("name", NAMES)
def test_they_are_short_and_say_how_to_run_them(name):
    text = (EXAMPLES / f"{name}.py").read_text("utf-8")
    assert len(text.splitlines()) <= 70
    assert f"python examples/{name}.py" in ast.get_docstring(ast.parse(text))
    assert "tests" not in text  # they run anywhere, not only in a clone
