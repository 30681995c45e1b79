"""The terminal presenter: its output to a pseudo terminal, interpreted as a terminal would."""

import contextlib
import os
import queue
import re
import sys
import threading
import time

import numpy as np
import pytest

import dala
from dala.gpu.presenters.quad import fit_rect
from dala.gpu.presenters.terminal import half_blocks, scale
from tests.gpu.presenters.screens import over_black, picture, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo terminals are Unix's")

#: Modes of a terminal as they were: the cursor, the second screen, updates at once, input.
MODES = {"25": True} | dict.fromkeys(("1049", "2026", "1003", "1004", "1006", "2004"), False)
SEQUENCE = re.compile(r"\x1b\[([?<>]?)([0-9;]*)([A-Za-z])")


class Screen:
    """A terminal emulator for the escape sequences that the presenter uses."""

    def __init__(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.cells = np.zeros((lines, columns, 2, 3), np.uint8)
        self.modes = dict(MODES)
        self.at, self.colors = [0, 0], [(0, 0, 0), (0, 0, 0)]
        #: The text of the normal screen, and the colors of its half blocks.
        self.plain, self.colored = "", []

    def feed(self, data):
        at = 0
        while at < len(data):
            found = SEQUENCE.match(data, at)
            if found:
                self.obey(*found.groups())
                at = found.end()
            else:
                self.put(data[at])
                at += 1

    def obey(self, private, numbers, letter):
        if letter == "u":  # how keys are reported
            return
        if private:
            assert letter in "hl"
            assert numbers in self.modes, f"mode {numbers}"
            self.modes[numbers] = letter == "h"
        elif letter == "m":
            given = [int(n or 0) for n in numbers.split(";")]
            if given == [0]:
                self.colors = [(0, 0, 0), (0, 0, 0)]
            else:
                assert (given[0], given[1], given[5], given[6]) == (38, 2, 48, 2)
                self.colors = [tuple(given[2:5]), tuple(given[7:10])]
        elif letter == "H":
            line, column = (int(n) for n in numbers.split(";")) if numbers else (1, 1)
            self.at = [line - 1, column - 1]
        elif letter == "J":
            assert numbers == "2"
            self.cells[:] = 0
        else:
            raise AssertionError(f"an unexpected sequence: {numbers}{letter}")

    def put(self, character):
        if not self.modes["1049"]:
            self.plain += character
            if character == "▀":
                self.colored.append(self.colors)
            return
        assert character == "▀", repr(character)
        line, column = self.at
        assert line < self.lines
        assert column < self.columns
        self.cells[line, column] = self.colors
        self.at[1] += 1

    def picture(self):
        return self.cells.transpose(0, 2, 1, 3).reshape(self.lines * 2, self.columns, 3)


class Terminal:
    """A pseudo terminal as standard output, and the text written to it."""

    def __init__(self, columns, lines):
        self.ours, self.theirs = os.openpty()
        self.resize(columns, lines)
        self.screen = Screen(columns, lines)
        self._got = queue.SimpleQueue()
        self._rest = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # the other side is closed
            while data := os.read(self.ours, 65536):
                self._got.put(data)

    def resize(self, columns, lines):
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def fileno(self):
        return self.theirs

    def look(self):
        """Interpret the output so far, except an incomplete sequence at its end."""
        got = [self._got.get() for _ in range(self._got.qsize())]
        data = (self._rest + b"".join(got)).replace(b"\r\n", b"\n")
        end = data.rfind(b"\x1b")
        if end < 0 or re.search(rb"[A-Za-z]", data[end:]):
            end = len(data)
            while end and data[end - 1] >= 128:  # possibly an incomplete character
                end -= 1
        self._rest = data[end:]
        self.screen.feed(data[:end].decode())

    def close(self):
        os.close(self.theirs)
        self._reader.join(10)
        os.close(self.ours)


@pytest.fixture
def terminal(monkeypatch):
    made = Terminal(40, 15)
    monkeypatch.setattr(sys, "__stdout__", made)
    yield made
    made.close()


def means(rgb, w, h):
    """A plain definition: each pixel is the mean of its area."""
    high, wide = rgb.shape[:2]
    out = np.zeros((h, w, 3))
    for y in range(h):
        for x in range(w):
            part = rgb[y * high // h : (y + 1) * high // h, x * wide // w : (x + 1) * wide // w]
            out[y, x] = part.reshape(-1, 3).mean(0)
    return np.floor(out + 0.5).astype(np.uint8)


def shows(terminal, wanted):
    def look():
        terminal.look()
        return np.abs(terminal.screen.picture().astype(int) - wanted.astype(int)).max() <= 1

    until(look, "the picture in the terminal")


def test_terminal_shows_the_scaled_frame(terminal):
    with dala.gpu.create_surface(80, 60, show="terminal") as s:
        s.set_pixels(picture(80, 60))
        s.present()
        shows(terminal, means(over_black(picture(80, 60)), 40, 30))
        assert terminal.screen.modes["1049"]
        assert not terminal.screen.modes["25"]  # the cursor is hidden
        s.set_pixels(picture(80, 60, 2))
        s.present()
        shows(terminal, means(over_black(picture(80, 60, 2)), 40, 30))
        assert s.errors == []
    until(lambda: terminal.look() or terminal.screen.modes["25"], "the cursor")
    assert terminal.screen.modes == MODES
    until(lambda: terminal.look() or terminal.screen.plain.count("\n") == 14, "the last frame")
    assert terminal.screen.plain.splitlines() == ["▀" * fit_rect((80, 60), (40, 28))[2]] * 14


def test_last_frame_stays(terminal):
    with dala.gpu.create_surface(40, 28, show="terminal") as s:
        for i in range(100):
            s.clear((i, 2, 3))
            s.present()
        presenter = s.presenter
    until(lambda: terminal.look() or terminal.screen.plain.count("\n") == 14, "the last frame")
    assert terminal.screen.colored == [[(99, 2, 3)] * 2] * (40 * 14)
    assert presenter.shown + presenter.renderer.dropped == 100


def test_small_surface_is_enlarged_and_centered(terminal):
    with dala.gpu.create_surface(2, 2, show="terminal") as s:
        s.clear("red")
        s.fill_rect(1, 1, 1, 1, "blue")
        s.present()
        wanted = np.zeros((30, 40, 3), np.uint8)
        wanted[:, 5:35] = (255, 0, 0)
        wanted[15:, 20:35] = (0, 0, 255)
        shows(terminal, wanted)


def test_resized_terminal_is_cleared(terminal):
    with dala.gpu.create_surface(40, 30, show="terminal") as s:
        s.clear("lime")
        s.present()
        shows(terminal, np.full((30, 40, 3), (0, 255, 0), np.uint8))
        terminal.resize(20, 15)
        s.present()
        until(lambda: s.presenter.shown == 2, "the frame")
        wanted = np.zeros((30, 40, 3), np.uint8)
        y = fit_rect((40, 30), (20, 30))[1] // 2 * 2
        wanted[y : y + 16, :20] = (0, 255, 0)
        wanted[y + 15, :20] = 0  # fifteen rows: the last half is empty
        shows(terminal, wanted)


def test_frame_rate_is_limited(terminal):
    with dala.gpu.create_surface(4, 4, show="terminal") as s:
        for _ in range(50):
            s.present()
        s.synchronize()
        until(lambda: not s.presenter.frame_waiting, "the newest frame")
        assert s.stats["frames"] == 50
        s.presenter.close()
        assert s.stats["dropped"] + s.presenter.shown == 50


def test_closed_terminal_is_an_error_of_the_surface(terminal, monkeypatch):
    with dala.gpu.create_surface(4, 4, show="terminal") as s:
        monkeypatch.setattr(s.presenter, "_out", 10**6)  # the terminal is gone
        s.present()
        until(lambda: s.presenter.closed, "the end")
        with pytest.raises(dala.errors.DeviceError, match="show='terminal' failed: OSError"):
            s.get_pixels()
        assert s.get_pixels() == bytes(64)
        monkeypatch.undo()


def test_error_without_a_terminal(tmp_path, monkeypatch):
    with (tmp_path / "file").open("w") as file:
        for out in (file, None):
            monkeypatch.setattr(sys, "__stdout__", out)
            with pytest.raises(
                dala.errors.DeviceUnavailable, match="needs a terminal as standard output"
            ):
                dala.gpu.create_surface(8, 8, show="terminal")


def test_wait_closed_times_out(terminal):
    with dala.gpu.create_surface(4, 4, show="terminal") as s:
        began = time.monotonic()
        assert dala.gpu.wait_closed(s, 0.3) is False
        assert time.monotonic() - began >= 0.3
        presenter = s.presenter
    assert presenter.closed


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (7, 5), (40, 30), (64, 3)])
def test_scale(size):
    rgb = over_black(picture(37, 23))
    got = scale(rgb, *size)
    assert got.shape == (size[1], size[0], 3)
    rows = np.arange(size[1]) * 23 // size[1]
    columns = np.arange(size[0]) * 37 // size[0]
    if size[0] >= 37 and size[1] >= 23:
        assert np.array_equal(got, rgb[rows][:, columns])
    if size == (7, 5):
        assert np.array_equal(got, means(rgb, 7, 5))


def test_half_blocks_write_a_color_once_per_run():
    image = np.zeros((2, 4, 3), np.uint8)
    image[:, 2:] = 9
    assert half_blocks(image) == [
        "\x1b[38;2;0;0;0;48;2;0;0;0m▀▀\x1b[38;2;9;9;9;48;2;9;9;9m▀▀\x1b[0m"
    ]
