"""``dala compose --watch`` in a window on a virtual screen."""

import importlib.util
import json
import os
import signal
import socket
import struct
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import dala
from tests.gpu.presenters.screens import PATIENCE, difference, require, screen, until
from tests.gpu.presenters.test_window import grab
from tests.support.engines import NO_ADAPTER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Xvfb is Unix's")

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


def test_window_reloads_the_file_and_its_picture(display, tmp_path):
    def write(*nodes):
        data = {"dala": 2, "width": WIDE, "height": HIGH, "nodes": list(nodes)}
        (tmp_path / "scene.json").write_text(json.dumps(data))

    def sees(color, what):
        wanted = np.full((HIGH, WIDE, 3), color, np.uint8)
        until(lambda: difference(grab(display, WIDE, HIGH), wanted) <= 2, what)

    picture = {"type": "image", "source": "a.png", "size": [WIDE, HIGH]}
    Image.new("RGB", (4, 4), (200, 30, 60)).save(tmp_path / "a.png")
    write(picture)
    command = [sys.executable, "-m", "dala", "compose", str(tmp_path / "scene.json")]
    environment = {**os.environ, "DISPLAY": display, "DALA_DEVICE": "cpu"}
    with open(tmp_path / "told", "w") as told, subprocess.Popen(
        [*command, "--watch", "--show", "window"], env=environment, stderr=told
    ) as process:  # fmt: skip
        try:
            sees((200, 30, 60), "the picture")
            Image.new("RGB", (4, 4), (20, 180, 60)).save(tmp_path / "a.png")
            sees((20, 180, 60), "the picture that was painted over")
            (tmp_path / "scene.json").write_text('{"dala": 2,')
            until(lambda: "line 1, column 12" in (tmp_path / "told").read_text(), "the error")
            sees((20, 180, 60), "the last good scene")
            write({"type": "overlay", "color": [20, 30, 210]})
            sees((20, 30, 210), "the scene that was mended")
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait(PATIENCE)
    assert "Traceback" not in (tmp_path / "told").read_text()
