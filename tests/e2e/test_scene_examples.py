"""The scene examples: their pictures against the stored ones (docs/images/scenes), their videos.

``python -m tests.e2e.test_scene_examples`` writes the pictures again. Look at them.
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.media.scene.scene_catalogue import FREETYPE
from tests.support.engines import NO_ADAPTER, targets

pytest.importorskip("av")
pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")
image = pytest.importorskip("PIL.Image")

ROOT = pathlib.Path(__file__).parents[2]
STORED = ROOT / "docs" / "images" / "scenes"
NAMES = ("talking_head", "wall", "lower_third")


def _load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = {name: _load(name) for name in NAMES}


def picture(name, time=None, device="cpu"):
    example = EXAMPLES[name]
    with example.build(device) as scene:
        made = np.array(scene.render(example.MOMENT if time is None else time))
        assert scene.errors == {}
    return made


def assert_stored(name, drawn):
    import freetype

    with image.open(STORED / f"{name}.png") as stored:
        far = np.abs(drawn[..., :3].astype(int) - np.asarray(stored.convert("RGB"))).max(axis=2)
    if freetype.version() == FREETYPE:
        assert far.max() == 0
    else:  # letters may be fitted to pixels differently, and nothing else
        assert (far > 0).mean() < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_the_stored_one(name):
    drawn = picture(name)
    assert drawn.shape == (540, 960, 4)
    assert (drawn[..., 3] == 255).all()
    assert_stored(name, drawn)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", [name for name in targets() if name != "cpu"])
def test_the_picture_on_the_other_engines(engine, name):
    if targets()[engine] is None:
        pytest.skip(NO_ADAPTER)
    assert_stored(name, picture(name, device=targets()[engine]))


@pytest.mark.parametrize("name", NAMES)
def test_runs_without_arguments(name, tmp_path, monkeypatch, capsys):
    from dala.media import video

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DALA_DEVICE", "cpu")
    example = EXAMPLES[name]
    assert example.main(["--seconds", "0.2"]) == 0
    assert "out" in capsys.readouterr().out
    with image.open(f"out/{name}.png") as drawn:
        assert_stored(name, np.asarray(drawn.convert("RGBA")))
    with video.open(f"out/{name}.mp4", device="cpu") as written:
        frames = [np.array(frame).astype(int) for frame in written]
    assert len(frames) == 6
    # Encoding loses a little of each frame, and keeps the picture.
    assert np.abs(frames[3][..., :3] - picture(name, 0.1)[..., :3]).mean() < 4


def test_run_from_the_shell(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "wall.py"), "--seconds", "0.1"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["wall.mp4", "wall.png"]


def test_invalid_output_folder(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file")
    assert EXAMPLES["wall"].main(["--out", str(tmp_path / "taken" / "x")]) == 1
    assert capsys.readouterr().err.startswith("wall: ")


def test_lower_third_enters_and_leaves():
    example = EXAMPLES["lower_third"]
    with example.build("cpu") as scene:
        for time, there in ((0.0, False), (0.7, True), (2.4, True), (5.9, False)):
            scene["third"].visible = True
            shown = np.array(scene.render(time))
            scene["third"].visible = False
            bare = np.array(scene.render(time))
            assert (shown != bare).any() == there, time
        assert scene.errors == {}


def test_examples_are_in_the_docs():
    page = (ROOT / "docs" / "media" / "scenes.md").read_text(encoding="utf-8")
    used = re.findall(r"\(../images/scenes/([\w-]+)\.png\)", page)
    assert sorted(used) == sorted(NAMES)
    assert {path.stem for path in STORED.glob("*.png")} >= set(NAMES)


def main():
    STORED.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        made = image.fromarray(np.ascontiguousarray(picture(name)[..., :3]))
        made.save(STORED / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
