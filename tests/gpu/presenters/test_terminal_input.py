"""Input of the terminal presenter: a program on a pseudo terminal, and what it leaves behind."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.gpu.presenters.screens import PATIENCE, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo terminals are Unix's")

PROGRAM = """
import json, sys, dala
out = open(sys.argv[1], "w", buffering=1, encoding="utf-8")
with dala.gpu.create_surface(80, 60, show="terminal") as s:
    @s.on("*")
    def seen(event):
        event.pop("time_stamp")
        print(json.dumps(event, ensure_ascii=False), s.clipboard, file=out)
    def draw(s, dt):
        if s.stats["frames"] == 1:
            s.title = "mine"
        if "q" in [e.get("key") for e in s.events()]:
            s.stop()
        if "k" in s.keys:
            raise ZeroDivisionError
    s.run(draw, fps=100)
print("end", file=out)
"""


class Session:
    """The program on a pseudo terminal of 40 x 20 cells, whose pixels are two of its own."""

    def __init__(self, folder, program=PROGRAM, errors=subprocess.PIPE):
        import fcntl
        import struct
        import termios

        self.log = folder / "log"
        self.log.touch()
        self.ours, self.theirs = os.openpty()
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 40, 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        self.output = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(self.log)],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=errors,
            start_new_session=True,
        )

    def read(self):
        while select.select([self.ours], [], [], 0)[0]:
            self.output += os.read(self.ours, 65536)
        return self.output

    def write(self, data):
        os.write(self.ours, data)

    def lines(self):
        self.read()
        return self.log.read_text("utf-8").splitlines()

    def ready(self):
        """Wait until a frame is drawn."""
        until(lambda: b"mine" in self.read() and "▀".encode() in self.output, "a frame")
        return self

    def ended(self):
        """Wait for the end, and return the exit status and the error output."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < end
            time.sleep(0.01)
        return self.process.returncode, self.errors()

    def errors(self):
        return self.process.stderr.read().decode() if self.process.stderr else ""

    def restored(self):
        """Whether the modes are as they were."""
        import termios

        self.read()
        modes = {}
        for start in (m for m in range(len(self.output)) if self.output.startswith(b"\x1b[?", m)):
            text = self.output[start + 3 : start + 9].decode(errors="replace")
            number = text[: len(text) - len(text.lstrip("0123456789"))]
            modes[number] = text[len(number) : len(number) + 1]
        kitty = self.output.count(b"\x1b[>27u") <= self.output.count(b"\x1b[<u")
        off = {n: modes.get(n) for n in ("1003", "1004", "1006", "2004", "1049")}
        return (
            kitty
            and off == dict.fromkeys(off, "l")
            and modes["25"] == "h"
            and termios.tcgetattr(self.theirs) == self.before
        )

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        if self.process.stderr:
            self.process.stderr.close()
        self.process.wait(PATIENCE)
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def session(tmp_path):
    made = Session(tmp_path)
    yield made.ready()
    made.close()


def test_events_and_the_usual_end(session):
    session.write("é".encode())
    session.write(b"\x1b[<0;11;6M\x1b[<0;11;6m")
    session.write(b"\x1b[200~pasted\x1b[201~")
    until(lambda: sum("char" in line for line in session.lines()) == 2, "the events")
    lines = [line for line in session.lines() if "resize" not in line]
    assert lines[0].startswith('{"event_type": "key_down", "key": "é", "modifiers": []}')
    # The picture of 80 x 60 is shown on 40 x 30 of 40 x 40 half blocks, from the third line on.
    place = '"button": 1, "buttons": [1], "x": 21.0, "y": 14.0'
    assert any("pointer_down" in line and place in line for line in lines), lines
    assert lines[-1] == '{"event_type": "char", "data": "pasted", "modifiers": []} pasted'
    session.write(b"q")
    assert session.ended() == (0, "")
    assert session.lines()[-1] == "end"
    assert session.restored()
    assert session.output.rstrip().endswith(b"\x1b[0m")  # the last frame stays
    assert b"\x1b[22;2t\x1b]2;mine" in session.output
    assert b"\x1b[23;2t" in session.output


def test_an_exception_restores_and_shows_its_traceback(session):
    session.write(b"\x1b[107;1:1u")  # k, held
    status, text = session.ended()
    assert status == 1
    assert "ZeroDivisionError" in text
    assert session.restored()


def test_a_traceback_is_shown_on_the_normal_screen(tmp_path):
    """Also of a program that does not close its surface."""
    code = """
import dala
s = dala.gpu.create_surface(80, 60, show="terminal")
s.run(lambda s, dt: 1 / (3 - s.stats["frames"]), fps=100)
"""
    made = Session(tmp_path, code, subprocess.STDOUT)
    made.ended()
    output = made.read().decode(errors="replace")
    assert output.index("\x1b[?1049l") < output.index("ZeroDivisionError")
    assert made.restored()
    made.close()


def test_ctrl_c(session):
    session.write(b"\x1b[99;5u")  # as kitty's protocol has it
    assert session.ended() == (0, "")
    assert session.lines()[-1] == "end"
    assert session.restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGABRT])
def test_a_killed_program_is_restored_by_its_guard(session, number):
    assert not session.restored()
    session.process.send_signal(number)
    assert session.ended()[0] == -number
    until(session.restored, "the guard")
