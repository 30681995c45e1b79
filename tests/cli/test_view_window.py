"""``dala view`` on a virtual screen and in a terminal, and how it ends."""

import importlib.util
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

import dala
from dala.media import gpu
from tests.gpu.presenters.screens import PATIENCE, difference, require, screen, until
from tests.gpu.presenters.test_terminal import Terminal
from tests.gpu.presenters.test_window import grab
from tests.support.engines import NO_ADAPTER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Xvfb and pseudo terminals are Unix's")

WIDE, HIGH = 120, 80


@pytest.fixture(scope="module")
def display():
    require(importlib.util.find_spec("glfw"), "glfw is not installed (pip install glfw)")
    require(any(d.backend == "webgpu" for d in dala.devices()), NO_ADAPTER)
    with screen(300, 200) as name, socket.socket(socket.AF_UNIX) as client:
        # A server whose last client leaves begins anew, and whoever comes just then is cut off.
        client.connect(f"/tmp/.X11-unix/X{name[1:]}")
        client.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
        assert client.recv(1) == b"\x01"
        yield name


@pytest.fixture
def photo(tmp_path):
    y, x = np.mgrid[0:HIGH, 0:WIDE]
    pixels = np.stack([x * 2, y * 3, (x + y) % 256], axis=-1).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "in.png")
    return tmp_path / "in.png", pixels


@pytest.fixture
def clip(tmp_path):
    """Half a second of one color, half a second of another."""
    pytest.importorskip("av")
    from dala.media import video

    colors = ((200, 40, 40), (40, 60, 200))
    with video.write(tmp_path / "in.mp4", fps=10, options={"crf": 1}) as sink:
        for color in colors:
            for _ in range(5):
                sink.write(np.full((HIGH, WIDE, 3), color, np.uint8))
    return tmp_path / "in.mp4", colors


@contextmanager
def running(*arguments, **options):
    """Run the command in a process and end it with Ctrl-C."""
    environment = {**os.environ, **options.pop("env", {}), "DALA_DEVICE": "cpu"}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    process = subprocess.Popen(
        [sys.executable, "-m", "dala", "view", *map(str, arguments)], env=environment, **options
    )
    try:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait(PATIENCE)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def assert_seen(display, wanted, close=2):
    until(lambda: difference(grab(display, WIDE, HIGH), wanted) <= close, "it on the screen")


def test_picture_in_a_window(display, photo):
    path, pixels = photo
    with running(path, "--sepia", "--show", "window", env={"DISPLAY": display}):
        assert_seen(display, gpu.sepia(pixels, device="cpu"))
    until(lambda: not grab(display, WIDE, HIGH).any(), "an empty screen")


def test_video_in_a_window(display, clip):
    path, colors = clip
    where = {"DISPLAY": display, "WAYLAND_DISPLAY": ""}
    with running(path, "--invert", "--loop", env=where):  # a window is the first choice
        for color in (*colors, *colors):
            wanted = np.full((HIGH, WIDE, 3), [255 - c for c in color], np.uint8)
            assert_seen(display, wanted, close=6)


@pytest.fixture
def terminal():
    made = Terminal(60, 20)
    yield made
    made.close()


def test_picture_in_a_terminal(terminal, tmp_path):
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:20], pixels[20:, 30:] = (250, 10, 20), (30, 200, 90)
    Image.fromarray(pixels).save(tmp_path / "in.png")
    options = {"stdout": terminal.theirs, "stdin": terminal.theirs, "start_new_session": True}
    with running(tmp_path / "in.png", "--invert", "--show", "terminal", **options):

        def shown():
            terminal.look()
            return difference(terminal.screen.picture(), 255 - pixels) <= 2

        until(shown, "the picture in the terminal")
        assert terminal.screen.modes["1049"]  # on the second screen
    until(lambda: terminal.look() or not terminal.screen.modes["1049"], "the first screen")
    assert terminal.screen.modes["25"]  # with its cursor


def test_not_a_terminal(photo):
    done = subprocess.run(
        [sys.executable, "-m", "dala", "view", str(photo[0]), "--show", "terminal"],
        env={**os.environ, "DALA_DEVICE": "cpu"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "needs a terminal as standard output" in done.stderr


@pytest.mark.long
def test_json(clip):
    done = subprocess.run(
        [sys.executable, "-m", "dala", "view", str(clip[0]), "--show", "browser", "--json",
         "--seconds", "1.5", "--invert"],
        env={**os.environ, "DALA_DEVICE": "cpu", "DALA_BROWSER": "none"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert 1 <= found["frames"] <= 10  # depends on the speed of the machine
    assert found["seconds"] >= 0
    assert (found["show"], found["device"]) == ("browser", "cpu")
    assert found["filters"] == [{"filter": "invert"}]
