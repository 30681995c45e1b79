"""Processes that are killed, disks that are full, standard streams that are closed."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
import time

import pytest

from dala.cli import COMMANDS

pytest.importorskip("av")

from dala.media import video

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")

#: Arguments of each command, with FOLDER for the folder of the test. What needs weights, a window,
#: a server or a camera is given a file that is not there: the error must find its way, too.
ARGUMENTS = {
    "background": ["FOLDER/none.png", "FOLDER/out/a.png", "--blur", "3"],
    "batch": ["images", "FOLDER/photos/*.png", "FOLDER/out/{stem}.png", "--invert", "--workers",
              "1"],
    "classify": ["FOLDER/none.png"],
    "compose": ["FOLDER/scene.json", "--frame", "0", "-o", "FOLDER/out/a.png"],
    "completion": ["bash"],
    "concat": ["FOLDER/in.mp4", "FOLDER/in.mp4", "-o", "FOLDER/out/a.mp4"],
    "cut": ["FOLDER/in.mp4", "--from", "0", "--to", "0.2", "-o", "FOLDER/out/a.mp4"],
    "demo": ["--seconds", "0", "--out", "FOLDER/out"],
    "detect": ["FOLDER/none.png"],
    "doctor": [],
    "export": ["--invert", "-o", "FOLDER/out/a.html"],
    "faces": ["FOLDER/none.png"],
    "filter": ["FOLDER/in.mp4", "FOLDER/out/a.gif", "--invert"],
    "hands": ["FOLDER/none.png"],
    "info": ["FOLDER/in.mp4"],
    "kernels": ["blur"],
    "live": ["FOLDER/none.mp4", "--invert", "--to", "FOLDER/out/hls/"],
    "models": [],
    "poses": ["FOLDER/none.png"],
    "render": ["FOLDER/none.fs", "-o", "FOLDER/out/a.mp4"],
    "segment": ["FOLDER/none.png"],
    "selftest": ["--only", "invert", "--share", "few", "--device", "reference"],
    "studio": ["FOLDER/none.png"],
    "view": ["FOLDER/none.png"],
    "why": ["FOLDER/none.json"],
}  # fmt: skip
#: Those that are run in each way in the quick tests.
QUICK = ("compose", "export", "filter", "info", "studio")


def ending(folder, *words, prefix=()):
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "tests.support.endings", words[0], str(folder), *words[1:]],
        capture_output=True, text=True, timeout=3000, env={**os.environ, "DALA_DEVICE": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_killed_processes_leave_whole_files(tmp_path):
    """At any call while a file is unfinished: the old file is whole, or the new one."""
    kinds = (
        "video",
        "gif",
        "webp",
        "png",
        "audio",
        "page",
        "page folder",
        "new page folder",
        "scene",
        "surface",
        "table",
        "batch pictures",
        "batch videos",
    )
    ending(tmp_path, "kill", "2", *kinds)


def test_a_partial_file_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match=r"careless, killed at \d+ of .*a\.txt is partial"):
        ending(tmp_path, "kill", "5", "careless")
    (tmp_path / "torn").mkdir()
    with pytest.raises(AssertionError, match=r"torn, .* neither the old folder nor the new one"):
        ending(tmp_path / "torn", "kill", "5", "torn")


@pytest.mark.long
def test_a_hundred_kills_of_each_kind(tmp_path, capsys):
    said = ending(tmp_path, "kill", "100")
    with capsys.disabled():
        sys.stdout.write("\n" + said)


SENDS = """
import sys, numpy as np
from dala.media import live
with live.open(sys.argv[1], (64, 48), fps=50) as sink:
    print("sends", flush=True)
    while True:
        sink.write(np.zeros((48, 64, 3), np.uint8))
"""


@pytest.mark.long
def test_playlists_of_killed_processes(tmp_path):
    """At any moment, each segment that the playlist lists is there and decodes."""
    listed, moments = 0, random.Random(3)
    for n in range(20):
        out = tmp_path / str(n)
        with subprocess.Popen([sys.executable, "-c", SENDS, out], stdout=subprocess.PIPE) as sends:
            sends.stdout.readline()
            time.sleep(moments.random() * 6)
            sends.kill()
        for playlist in out.glob("*.m3u8"):
            lines = playlist.read_text().splitlines()
            assert lines[0] == "#EXTM3U"
            for name in (line for line in lines if line and line[0] != "#"):
                listed += 1
                with video.open(out / name, device="cpu") as segment:
                    assert next(iter(segment)).width == 64
    assert listed > 10


def mounting(folder):
    """Return the command before one that may mount a file system that it alone sees."""
    (folder / "mounted").mkdir()
    for prefix in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        words = [*prefix, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", f"{folder}/mounted"]
        try:
            if subprocess.run(words, capture_output=True).returncode == 0:
                return prefix
        except OSError:
            break
    pytest.skip("no small file system can be mounted here")


def test_a_disk_that_is_full(tmp_path):
    """The old file stays, nothing is left, and with more room the new file is made."""
    prefix = mounting(tmp_path)
    ending(tmp_path, "full", "[1]", "audio", "page", "batch pictures", prefix=prefix)


def test_a_careless_writer_on_a_full_disk_is_noticed(tmp_path):
    prefix = mounting(tmp_path)
    with pytest.raises(AssertionError, match=r"careless, 0 pages: .*a\.txt is partial"):
        ending(tmp_path, "full", "[0]", "careless", prefix=prefix)


def test_a_command_that_minds_closed_streams_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match=r"print into.* differ"):
        ending(tmp_path, "closed", "[[1]]", json.dumps([["print into", f"{tmp_path}/out/a.txt"]]))


@pytest.mark.long
def test_disks_that_are_nearly_full(tmp_path, capsys):
    said = ending(tmp_path, "full", json.dumps([0, 1, 2, 3, 5, 8]), prefix=mounting(tmp_path))
    with capsys.disabled():
        sys.stdout.write("\n" + said)


def scene(folder):
    from dala.media import Scene

    with Scene(16, 16) as made:
        made.add_text("ab", size=8)
        made.save(folder / "scene.json")


def commands(folder, names):
    return [
        [name, *(word.replace("FOLDER", str(folder)) for word in ARGUMENTS[name])] for name in names
    ]


def test_every_command_is_listed():
    assert sorted(ARGUMENTS) == sorted(COMMANDS)


def test_closed_standard_streams(tmp_path):
    """Nothing but the results is written into the results, and no command fails for that."""
    scene(tmp_path)
    ending(tmp_path, "closed", "[[0, 1, 2], [1]]", json.dumps(commands(tmp_path, QUICK)))


@pytest.mark.long
def test_closed_standard_streams_of_every_command(tmp_path):
    scene(tmp_path)
    ways = [[0, 1, 2], [0], [1], [2], [0, 1], [1, 2]]
    ending(tmp_path, "closed", json.dumps(ways), json.dumps(commands(tmp_path, ARGUMENTS)))


def test_streams_that_the_shell_has_closed(tmp_path):
    """The same from the beginning of a process."""
    scene(tmp_path)
    (command,) = commands(tmp_path, ["compose"])
    (tmp_path / "out").mkdir()
    words = shlex.join([sys.executable, "-m", "dala", *command])
    for closed in ("<&- >&- 2>&-", ">&-"):
        done = subprocess.run(
            ["sh", "-c", f"exec {words} {closed}"], capture_output=True, timeout=300,
            env={**os.environ, "DALA_DEVICE": "cpu"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b""), closed
        assert (tmp_path / "out" / "a.png").read_bytes()[:4] == b"\x89PNG"
        (tmp_path / "out" / "a.png").unlink()
