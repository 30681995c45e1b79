"""``dala compose``: rendered files, errors, and --watch."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

import dala
from dala.cli import main
from dala.cli.scenes.watch import Watch
from dala.media.scene.file.load import load_scene, schema

av = pytest.importorskip("av")

from tests.media.video.clips import encode, numbered, packets  # noqa: E402

CPU = ["--device", "cpu"]
BOX = {"type": "overlay", "id": "box", "color": "red", "size": [16, 16]}
MOVE = {"node": "box", "property": "x", "from": 0, "to": 32, "duration": 1}


def scene(*nodes, **more):
    return {"dala": 2, "width": 48, "height": 32, "fps": 10, "nodes": list(nodes or [BOX]), **more}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(scene(animations=[MOVE])))
    return path


def works(capsys, *arguments):
    assert main(["compose", *map(str, arguments), *CPU]) == 0
    return capsys.readouterr().out


def fails(capsys, *arguments):
    """Run a command that must fail; return its standard error."""
    try:
        code = main(["compose", *map(str, arguments), *CPU])
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    return err


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGBA")).astype(int)


def read(path):
    with av.open(str(path)) as source:
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in source.decode(video=0)]


# files ------------------------------------------------------------------------------------------
def test_video(file, tmp_path, capsys):
    out = tmp_path / "out.mp4"
    report = json.loads(works(capsys, file, "-o", out, "--crf", "1", "--json"))
    assert report["frames"] == 10
    assert (report["width"], report["height"], report["nodes"]) == (48, 32, 1)
    assert report["errors"] == {}
    frames = read(out)
    with load_scene(file, "cpu") as made:
        for number, frame in enumerate(frames):
            assert np.abs(frame - np.array(made.render(number / 10))[..., :3]).mean() < 8
    assert np.abs(frames[0] - frames[9]).mean() > 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mp4", "scene.json"]


def test_seconds_fps_start_and_size(file, tmp_path, capsys):
    out = tmp_path / "out.mp4"
    said = works(
        capsys, file, "-o", out, "--seconds", "0.5", "--fps", "20", "--start", "0.5",
        "--size", "96x96",
    )  # fmt: skip
    assert said.startswith(f"{out}: 96x96, 10 frames, ")
    frames = read(out)
    assert len(frames) == 10
    assert frames[0].shape == (96, 96, 3)
    # Twice as large, 16 rows of black above and below; at 0.5 s the box begins at 16.
    assert frames[0][16 + 8, 2 * 16 + 8, 0] > 200
    assert frames[0][16 + 8, 8, 0] < 40
    assert frames[0][8, 40, 0] < 40


def test_frame(file, tmp_path, capsys):
    works(capsys, file, "--frame", "0.5", "-o", tmp_path / "out.png")
    with load_scene(file, "cpu") as made:
        assert (pixels(tmp_path / "out.png") == np.array(made.render(0.5))).all()
    works(capsys, file, "--frame", "0.5", "--size", "24x16", "-o", tmp_path / "small.png")
    assert (pixels(tmp_path / "small.png")[4, 12] == [255, 0, 0, 255]).all()


def test_sound_of_a_node(tmp_path, capsys):
    clip = encode(tmp_path / "clip.mp4", numbered(10), rate=10, tone=True)
    video = {"type": "video", "id": "talk", "source": "clip.mp4", "size": [48, 32], "offset": 0.5}
    (tmp_path / "scene.json").write_text(json.dumps(scene(video)))
    out = tmp_path / "out.mp4"
    report = json.loads(
        works(capsys, tmp_path / "scene.json", "-o", out, "--audio", "talk", "--json")
    )
    assert report["frames"] == 15
    assert float(packets(out, "audio")[0][0]) == pytest.approx(0.5, abs=0.03)
    assert [p[2] for p in packets(out, "audio")] == [p[2] for p in packets(clip, "audio")]


def test_errors_of_sources_are_reported(tmp_path, capsys):
    clip = encode(tmp_path / "clip.mp4", numbered(30), rate=10, muxer={"movflags": "faststart"})
    data = clip.read_bytes()
    clip.write_bytes(data[: len(data) * 2 // 3])
    video = {"type": "video", "id": "talk", "source": "clip.mp4"}
    (tmp_path / "scene.json").write_text(json.dumps(scene(video)))
    out = tmp_path / "out.mp4"
    assert main(["compose", str(tmp_path / "scene.json"), "-o", str(out), *CPU]) == 0
    err = capsys.readouterr().err
    assert err.startswith("dala compose: talk: ")
    assert "clip.mp4" in err
    assert len(read(out)) == 30


def test_plan_prints_the_cost_and_opens_nothing(tmp_path, capsys):
    inner = {"width": 8, "height": 8, "nodes": [{"type": "image", "source": "none.png"}]}
    nodes = [{"type": "scene", "scene": inner}] * 2
    path = tmp_path / "scene.json"
    path.write_text(json.dumps({"dala": 1, "width": 16, "height": 16, "nodes": nodes}))
    text = works(capsys, str(path), "--plan")
    assert text.endswith(
        "4 nodes, 3 scenes in 2 levels; 384 pixels a frame, at least 1.5 KiB of memory\n"
    )
    report = json.loads(works(capsys, str(path), "--plan", "--json"))
    assert report | {"in": ""} == {
        "in": "", "nodes": 4, "depth": 2, "scenes": 3, "pixels": 384, "bytes": 1536,
    }  # fmt: skip


def test_schema(capsys):
    assert json.loads(works(capsys, "--schema")) == schema()


# errors --------------------------------------------------------------------------------
@pytest.mark.parametrize(("arguments", "message"), [
    ([], "SCENE is required"),
    (["SCENE"], "-o is required: -o out.mp4, or --watch"),
    (["SCENE", "-o", "out.png"], "-o must be a video such as out.mp4 (--frame 0 writes a picture)"),
    (["SCENE", "-o", "out.mp4", "--frame", "1"], "-o must be a picture such as out.png"),
    (["SCENE", "-o", "out.mp4", "--seconds", "0"], "must be a number of seconds above 0, got '0'"),
    (["SCENE", "-o", "out.mp4", "--size", "12"], "must be WxH such as 1280x720, got '12'"),
    (["SCENE", "-o", "out.mp4", "--size", "13x13"], "13"),
    (["SCENE", "-o", "out.mp4", "--fps", "much"], "--fps: must be a number above 0"),
    (["SCENE", "-o", "out.mp4", "--audio", "bx"], "no such file: 'bx'"),
    (["SCENE", "-o", "out.mp4", "--show", "window"], "--show requires --watch"),
    (["SCENE", "-o", "out.mp4", "--watch"], "leave out -o and --frame"),
    (["no.json", "-o", "out.mp4"], "there is no file 'no.json'"),
])  # fmt: skip
def test_errors(file, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(file.parent)
    err = fails(capsys, *({"SCENE": file}.get(word, word) for word in arguments))
    assert message in err
    assert err.count("\n") == 1
    assert [path.name for path in file.parent.iterdir()] == ["scene.json"]


def test_invalid_scene_files(file, capsys, tmp_path):
    file.write_text(json.dumps(scene(BOX | {"position": [1, "left"]}, {"type": "txt"})))
    err = fails(capsys, file, "-o", tmp_path / "out.mp4").splitlines()
    assert err[0] == (
        "dala compose: scene.json: nodes[0].position[1]: must be a number, got 'left'."
    )
    assert err[1].startswith("scene.json: nodes[1].type: must be one of 'animation'")


def test_inputs_are_not_overwritten(tmp_path, capsys):
    Image.new("RGB", (8, 8), "lime").save(tmp_path / "a.png")
    (tmp_path / "scene.json").write_text(json.dumps(scene({"type": "image", "source": "a.png"})))
    before = (tmp_path / "a.png").read_bytes()
    err = fails(capsys, tmp_path / "scene.json", "--frame", "0", "-o", tmp_path / "a.png")
    assert "is an input and is not overwritten" in err
    assert (tmp_path / "a.png").read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="no POSIX signals")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_signals_leave_no_file(file, tmp_path, number):
    (tmp_path / "out.mp4").write_bytes(b"an older one")
    started = tmp_path / "started"
    code = f"""
import sys, time, pathlib
from dala.cli import main
from dala.media.video.writer import Writer
write = Writer.write
def slow(self, *given, **named):
    write(self, *given, **named)
    pathlib.Path({str(started)!r}).touch()
    time.sleep(0.3)
Writer.write = slow
sys.exit(main(["compose", {str(file)!r}, "-o", {str(tmp_path / "out.mp4")!r}, "--device", "cpu"]))
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environ, stderr=-1) as process:
        while not started.exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(getattr(signal, number))
        _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + getattr(signal, number), err
    assert b"Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.mp4", "scene.json", "started"]
    assert (tmp_path / "out.mp4").read_bytes() == b"an older one"


# watching ---------------------------------------------------------------------------------------
class Editor:
    """Edits between frames: each step waits for a condition, then acts."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.frames = 0

    def __call__(self, surface):
        self.frames += 1
        assert self.frames < 5000, f"never seen; {len(self.steps)} steps are left"
        expected, then = self.steps[0]
        if expected(surface):
            self.steps.pop(0)
            then()
        return bool(self.steps)


def color(x, y, rgb):
    """Return a check that a surface has a color at a pixel."""
    return lambda surface: (
        surface is not None and surface.to_array()[y, x, :3].tolist() == list(rgb)
    )


def wall(color="red", **more):
    return json.dumps(scene({"type": "overlay", "color": color}, **more))


def nothing():
    pass


def test_watch_reloads_an_edited_file(file, capsys):
    file.write_text(wall())
    editor = Editor(
        (color(5, 5, (255, 0, 0)), lambda: file.write_text(wall("lime", background="navy"))),
        (color(5, 5, (0, 255, 0)), lambda: file.write_text('{"dala": 2, "width"')),
        # After an error the last good scene stays.
        (lambda s: watch.failures == 1 and color(5, 5, (0, 255, 0))(s),
         lambda: file.write_text(wall("blue", width=64))),
        (lambda s: s.size == (64, 32) and color(60, 5, (0, 0, 255))(s), file.unlink),
        (lambda s: watch.failures == 2 and color(5, 5, (0, 0, 255))(s), nothing),
    )  # fmt: skip
    watch = Watch(file, "cpu", pause=0)
    watch.run(None, 60, on_frame=editor)
    watch.close()
    assert (watch.loads, watch.failures) == (3, 2)
    err = capsys.readouterr().err.splitlines()
    assert err == [
        "dala compose: scene.json: line 1, column 20: expecting ':' delimiter.",
        f"dala compose: load_scene: there is no file {str(file)!r}.",
    ]


def test_watch_reloads_a_changed_picture(file, tmp_path, capsys):
    def paint(color):
        Image.new("RGB", (8, 8), color).save(tmp_path / "other.png")
        os.replace(tmp_path / "other.png", tmp_path / "a.png")

    node = {"type": "image", "source": "a.png", "size": [48, 32]}
    file.write_text(json.dumps(scene(node)))
    editor = Editor(
        # The picture is missing at first: nothing is shown.
        (lambda s: s is None and watch.failures == 1, lambda: paint("red")),
        (color(5, 5, (255, 0, 0)), lambda: paint("lime")),
        (color(5, 5, (0, 255, 0)), nothing),
    )
    watch = Watch(file, "cpu", pause=0)
    watch.run(None, 60, on_frame=editor)
    watch.close()
    assert (watch.loads, watch.failures) == (2, 1)
    assert "nodes[0].source: the file 'a.png' does not exist" in capsys.readouterr().err


def test_watch_continues_at_the_current_time(file):
    """A reload continues at the current time."""
    times = []
    file.write_text(wall(duration=5))
    watch = Watch(file, "cpu", pause=0, start=2.0)

    def frame(surface):
        times.append(watch.scene.time)
        if len(times) == 3:
            file.write_text(wall("lime", duration=5))
        return watch.loads < 2

    watch.run(None, 60, on_frame=frame)
    watch.close()
    assert times[0] == pytest.approx(2.0, abs=0.5)
    assert times == sorted(times)


def test_watch_option(file, capsys):
    arguments = [str(file), "--watch", "--show", "none", "--seconds", "0.3", "--json"]
    report = json.loads(works(capsys, *arguments))
    assert report["loads"] == 1
    assert report["frames"] >= 1
    assert report["show"] == "none"


def test_watch_missing_file(tmp_path, capsys):
    assert "there is no file" in fails(capsys, tmp_path / "no.json", "--watch", "--show", "none")


def test_watch_closes_all_scenes(file):
    def count():
        return dala.diagnostics()["objects"].get("scene", {"count": 0})["count"]

    before = count()
    watch = Watch(file, "cpu", pause=0, size=(96, 64))
    steps = iter(range(3))

    def frame(surface):
        file.write_text(wall(("red", "lime", "blue")[watch.loads % 3]))
        return next(steps, None) is not None

    watch.run(None, 60, on_frame=frame)
    watch.close()
    assert count() == before
