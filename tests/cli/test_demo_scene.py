"""The video of ``dala demo``: its frames, and the fallback without PyAV."""

import os
import shlex
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import dala
from dala.cli import demo, main
from dala.cli.scenes import demo_scene


def frame(seconds, width=128, height=72):
    with demo_scene.Drawing(width, height) as drawing:
        drawing.start(seconds)
        return drawing.take()


def test_drawing_moves_and_is_deterministic():
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
        assert caption
        for name, _ in filters:
            assert name in dala.media.gpu.filters()


def test_inset_caption_and_bar():
    """In the second chapter the picture is blurred, the inset is not."""
    with dala.device("cpu"), demo_scene.DemoScene(256, 144, 10, 10) as film:
        made = np.asarray(film.frame(3)).astype(int)
        plain = frame(0.3, 256, 144)[..., :3].astype(int)
    assert np.abs(made[40:90, 10:120, :3] - plain[40:90, 10:120]).mean() > 2
    inset = made[8:36, 192:248, :3]
    small = plain[6 * 4 : 30 * 4, 8:248]
    assert abs(inset[4:-4, 4:-4].mean() - plain.mean()) < 25
    assert small.size
    assert made[143, 5].tolist() == [255, 214, 128, 255]  # three tenths of the bar
    assert made[143, 100].tolist() != [255, 214, 128, 255]
    caption = made[128:139, 8:60, :3]
    assert (caption.min(axis=2) > 180).any()  # light letters


def test_frames_depend_only_on_their_time():
    with dala.device("cpu"), demo_scene.DemoScene(128, 72, 10, 10) as one:
        for number in range(4):
            last = np.asarray(one.frame(number)).copy()
    with dala.device("cpu"), demo_scene.DemoScene(128, 72, 10, 10) as two:
        alone = np.asarray(two.frame(3))
    assert np.abs(last.astype(int) - alone).max() <= 1


def test_video(tmp_path, capsys):
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
    assert 'pip install "dala-gpu[media]"' in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["demo.png"]


#: Runs ``dala demo`` as if no extra were installed.
CORE = """
import sys
for name in ("av", "PIL", "freetype", "uharfbuzz", "glfw", "onnxruntime", "PyOpenColorIO"):
    sys.modules[name] = None
from dala.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_with_the_core_alone(tmp_path):
    size = ["--size", "64x36", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-c", CORE, "demo", "--out", "made", *size],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["demo.png"]
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["video"] == 'skipped: it needs PyAV: pip install "dala-gpu[media]"'
    assert lines["text"].startswith("skipped: ")
    assert lines["text"].endswith('pip install "dala-gpu[media]"')
    with Image.open(tmp_path / "made" / "demo.png") as made:
        pixels = np.asarray(made)
    with dala.device("cpu"):
        drawn = demo.draw(64, 36)
    assert pixels.shape == drawn.shape  # the same picture, but for the letters
    assert np.median(np.abs(pixels.astype(int) - drawn)) == 0
    assert (pixels != drawn).any()


def test_the_last_line_works_as_typed(tmp_path, monkeypatch):
    script = tmp_path / "dala"
    script.write_text("")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))  # not the one of this interpreter
    words = shlex.split(demo.view_command("out dir/demo.mp4"))
    assert words[1:] == ["-m", "dala", "view", "out dir/demo.mp4"]
    shown = subprocess.run([*words[:3], "--version"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip
    assert shown.stdout == f"dala {dala.__version__}\n"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert demo.view_command("a.mp4") == "dala view a.mp4"
