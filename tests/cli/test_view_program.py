"""``dala view program.py``: it runs, is shown, and is started again when its files change."""

import json
import os
import signal
import subprocess
import sys

import pytest

from dala.cli import main
from tests.gpu.presenters.screens import PATIENCE, until

PROGRAM = """
import pathlib, dala, part
log = pathlib.Path(__file__).with_name("log.txt")
def draw(s, dt):
    s.clear("red")
    if s.stats["frames"] == 2:
        log.write_text(log.read_text() + f"{part.NAME} {s.presenter.kind}\\n")
        END
with dala.gpu.create_surface(8, 8) as s:
    s.run(draw)
"""


OPTIONS = ("--show", "browser", "--json")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "log.txt").write_text("")
    (tmp_path / "part.py").write_text("NAME = 'one'\n")
    (tmp_path / "game.py").write_text(PROGRAM.replace("END", "pass"))
    return tmp_path


@pytest.fixture
def view(folder):
    if os.name != "posix":
        pytest.skip("signals of Unix")
    made = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "dala",
            "view",
            str(folder / "game.py"),
            "--show",
            "browser",
            "--json",
        ],
        env={**os.environ, "DALA_BROWSER": "none"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield made
    if made.poll() is None:
        os.killpg(made.pid, signal.SIGKILL)
    made.wait(PATIENCE)
    made.stdout.close()
    made.stderr.close()


def log(folder, wanted):
    until(lambda: (folder / "log.txt").read_text() == wanted, wanted)


def test_reloads_until_it_ends(folder, view):
    log(folder, "one browser\n")
    (folder / "part.py").write_text("NAME = 'second'\n")
    log(folder, "one browser\nsecond browser\n")
    (folder / "game.py").write_text("an error of mine")
    until(lambda: "game.py failed" in view.stderr.readline(), "the failure")
    (folder / "game.py").write_text(PROGRAM.replace("END", "s.stop()"))
    out, text = view.communicate(timeout=PATIENCE)
    assert view.returncode == 0
    assert (folder / "log.txt").read_text() == "one browser\nsecond browser\nsecond browser\n"
    report = json.loads(out)
    assert (report["starts"], report["show"]) == (4, "browser")
    assert "game.py changed: it is started again." in text


def test_ctrl_c_ends_both(folder, view):
    log(folder, "one browser\n")
    os.killpg(view.pid, signal.SIGINT)
    out, text = view.communicate(timeout=PATIENCE)
    assert view.returncode == 0
    assert "Traceback" not in text
    assert json.loads(out)["starts"] == 1


def test_seconds_and_errors(folder, capfd):
    (folder / "game.py").write_text("import time; time.sleep(1000)")
    assert main(["view", str(folder / "game.py"), "--seconds", "0.3"]) == 0
    assert main(["view", str(folder / "game.py"), "--sepia"]) == 2
    assert "filters are for pictures and videos, not for programs" in capfd.readouterr().err
    assert main(["view", str(folder / "none.py")]) != 0
