"""The examples that people touch: played headless with injected events.

``python -m tests.e2e.test_interactive_examples`` writes their pictures again. Look at them.
"""

from __future__ import annotations

import importlib
import math
import pathlib
import subprocess
import sys
from datetime import datetime

import numpy as np
import pytest

from dala.gpu import create_surface

ROOT = pathlib.Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images" / "input"
sys.path.append(str(ROOT / "examples"))
breakout, clock, node_graph, sketch = map(
    importlib.import_module, ("breakout", "clock", "node_graph", "sketch")
)
STEP = 1 / 60


def post(s, kind, x=0.0, y=0.0, **more):
    if kind.startswith(("pointer", "double", "wheel")):
        more |= {"x": x, "y": y}
    s.post_event({"event_type": kind, **more})


def drag(s, *places):
    post(s, "pointer_down", *places[0])
    for place in places[1:]:
        post(s, "pointer_move", *place)
    post(s, "pointer_up", *places[-1])


def press(s, key, *modifiers):
    for kind in ("key_down", "key_up"):
        post(s, kind, key=key, modifiers=modifiers)


# how each is played -----------------------------------------------------------------------------
def play_sketch(s):
    app = sketch.Sketch(s)
    for n, color in enumerate((5, 2, 4, 6)):
        drag(s, (20, (color + 0.5) * 50))
        post(s, "wheel", dy=-400)
        curve = [(100 + 8 * i, 90 + 60 * n + 40 * math.sin(i / 5 + n)) for i in range(60)]
        drag(s, *curve)
    app.draw(s, STEP)
    return app


def play_clock(s):
    app = clock.Clock(s, lambda: datetime(2026, 1, 1, 10, 9, 36, 500_000))
    app.draw(s, STEP)
    return app


def play_breakout(s):
    app = breakout.Breakout(s)
    post(s, "pointer_down", 240, 300)
    for n in range(700):
        post(s, "pointer_move", app.x + 25 * math.sin(n), 300)
        app.draw(s, STEP)
    return app


def play_node_graph(s):
    app = node_graph.Graph(s)
    drag(s, (380, 178), (460, 200), (470, 288))  # a wire
    app.draw(s, 0.3)
    post(s, "pointer_down", 300, 170)
    post(s, "pointer_move", 320, 200)
    app.draw(s, 0.3)
    return app


PLAYED = {
    "sketch": (play_sketch, (sketch.WIDTH, sketch.HEIGHT)),
    "clock": (play_clock, (clock.SIZE, clock.SIZE)),
    "breakout": (play_breakout, (breakout.WIDTH, breakout.HEIGHT)),
    "node_graph": (play_node_graph, (node_graph.WIDTH, node_graph.HEIGHT)),
}


@pytest.fixture
def s(request):
    with create_surface(*PLAYED[request.param][1]) as made:
        yield made
        assert made.errors == []


def surface(name):
    return pytest.mark.parametrize("s", [name], indirect=True)


@pytest.mark.parametrize(("name", "s"), [(name, name) for name in PLAYED], indirect=["s"])
def test_pictures_are_the_stored_ones(s, name):
    image = pytest.importorskip("PIL.Image")
    PLAYED[name][0](s)
    with image.open(PICTURES / f"{name}.png") as stored:
        wanted = np.asarray(stored.convert("RGBA")).astype(int)
    far = np.abs(s.to_array() - wanted)
    assert far.mean() < 0.5  # letters differ from one version of FreeType to another
    assert (far.max(axis=2) > 40).mean() < 0.01


@pytest.mark.parametrize("name", PLAYED)
def test_they_run_as_programs(name, tmp_path):
    """Each opens a page, and ends with Ctrl-C."""
    code = f"""
import os, runpy, signal, sys, threading
os.environ["DALA_BROWSER"] = "none"
sys.argv = ["{name}.py", "browser"]
from dala.gpu import Surface
present = Surface.present
def presented(s):
    present(s)
    if s.stats["frames"] > 2:
        signal.raise_signal(signal.SIGINT)
Surface.present = presented
runpy.run_path({str(ROOT / "examples" / f"{name}.py")!r}, run_name="__main__")
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    assert f"dala: {name.replace('_', ' ')} is shown at http://127.0.0.1" in found.stderr


# the paint program ------------------------------------------------------------------------------
@surface("sketch")
def test_sketch(s, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = play_sketch(s)
    assert [color for color, _, _ in app.strokes] == [sketch.COLORS[n] for n in (5, 2, 4, 6)]
    assert [width for _, width, _ in app.strokes] == [12, 16, 20, 24]
    assert s.read_pixels(100, 90, 1, 1) == bytes([0x1D, 0x70, 0xB8, 255])  # where the first began
    press(s, "z", "Control")
    assert len(app.strokes) == 3
    press(s, "s")
    assert (tmp_path / "sketch.png").stat().st_size > 1000
    post(s, "wheel", dy=1e6)
    assert app.width == 1
    press(s, "c")
    app.draw(s, STEP)
    assert s.read_pixels(300, 200, 1, 1) == bytes([0xFB, 0xF7, 0xEF, 255])


@surface("sketch")
def test_sketch_with_two_fingers(s):
    app = sketch.Sketch(s)
    for n in range(5):
        touches = {7: {"x": 100 + n, "y": 50}, 8: {"x": 100 + n, "y": 250}}
        kind = "pointer_move" if n else "pointer_down"
        post(s, kind, 100 + n, 50, touches=touches, ntouches=2)
    post(s, "pointer_up", 104, 50, touches={8: {"x": 104, "y": 250}}, ntouches=1)
    post(s, "pointer_move", 120, 250, touches={8: {"x": 120, "y": 250}}, ntouches=1)
    post(s, "pointer_up", 120, 250, touches={}, ntouches=0)
    post(s, "pointer_move", 300, 300)
    first, second = (points for _, _, points in app.strokes)
    assert first == [(100 + n, 50) for n in range(5)]
    assert second == [*((100 + n, 250) for n in range(5)), (120, 250)]


# the clock --------------------------------------------------------------------------------------
@surface("clock")
def test_clock(s):
    app = play_clock(s)
    assert app.time() == 10 * 3600 + 9 * 60 + 36.5
    ink = tuple(s.read_pixels(180 + round(58 * math.sin(math.tau * 9.6 / 60)), 88, 1, 1))
    assert ink[3] == 255
    post(s, "pointer_down", 100, 100)  # the stopwatch
    for _ in range(90):
        app.draw(s, STEP)
    press(s, " ")
    app.draw(s, STEP)
    assert app.time() == pytest.approx(1.5)
    press(s, " ")
    app.draw(s, 1.0)
    assert app.time() == pytest.approx(2.5)
    press(s, "r")
    assert app.time() == 36576.5


# breakout ---------------------------------------------------------------------------------------
@surface("breakout")
def test_breakout_is_won_with_sound(s):
    app = breakout.Breakout(s)
    for n in range(30_000):
        app.serve()
        post(s, "pointer_move", app.x + 30 * math.sin(n * 0.7), 300)
        app.step(0.01)
        if not app.bricks:
            break
    assert app.bricks == set()
    assert app.lives == 3
    assert app.score == sum(10 * row for row in range(1, 7)) * 10
    assert app.sounds.played.count("won") == 1
    bricks = [name for name in app.sounds.played if name.startswith("brick")]
    assert len(bricks) == 59
    rising = [app.sounds.tones[f"brick{row}"] for row in (5, 0)]
    assert [tone.duration for tone in rising] == [rising[0].duration] * 2
    spectrum = [np.abs(np.fft.rfft(tone.numpy()[:, 0])).argmax() * 10 for tone in rising]
    assert spectrum == [600, 1000]  # hertz: ten periods a second for each bin


@surface("breakout")
def test_breakout_keys_and_lives(s):
    app = breakout.Breakout(s)
    post(s, "key_down", key="ArrowLeft")
    for _ in range(200):
        app.step(0.01)
    assert app.paddle == breakout.PADDLE / 2
    post(s, "key_up", key="ArrowLeft")
    post(s, "key_down", key="ArrowRight")
    app.step(0.01)
    assert app.paddle > breakout.PADDLE / 2
    post(s, "blur")
    for _ in range(3):
        press(s, " ")
        assert app.flying
        app.bricks = {(0, 0)}
        app.x, app.y, app.vx, app.vy = 400.0, 300.0, 0.0, 300.0
        for _ in range(60):
            app.step(0.01)
    assert app.lives == 0
    assert app.sounds.played.count("lost") == 3
    press(s, " ")
    assert not app.flying


# the graph --------------------------------------------------------------------------------------
@surface("node_graph")
def test_node_graph(s):
    app = play_node_graph(s)
    assert app.wires == [(0, 2), (1, 2), (2, 3), (2, 4)]
    assert (app.nodes[2].x, app.nodes[2].y) == (280, 170)
    assert s.cursor == "pointer"
    post(s, "pointer_up", 320, 200)
    drag(s, (380 + 20, 170 + 38), (200, 390))  # to nowhere
    assert len(app.wires) == 4
    post(s, "double_click", 280, 208)  # the input of the middle one
    assert app.wires == [(2, 3), (2, 4)]
    drag(s, (600, 380), (610, 390))  # the background
    assert app.origin == (10, 10)
    before = app.place({"x": 100, "y": 100})
    post(s, "wheel", dy=-300, x=100, y=100)
    assert app.zoom == pytest.approx(1.331)
    assert app.place({"x": 100, "y": 100}) == pytest.approx(before)  # zoomed about the pointer


def main() -> None:
    """Write the pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, (play, size) in PLAYED.items():
        with create_surface(*size) as s:
            play(s)
            s.save(PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
