"""The progress line: its text, and that only terminals get it."""

import io
import sys

import pytest

from dala.media import progress
from dala.media.progress import Progress, line


@pytest.mark.parametrize(("done", "total", "seconds", "text"), [
    (50, 200, 2.0, "[######                  ]  25%  50/200 frames  25.0 fps  0:06 left"),
    (200, 200, 8.0, "[########################] 100%  200/200 frames  25.0 fps  0:00 left"),
    (1, 7202, 1.0, "[                        ]   0%  1/7202 frames  1.0 fps  2:00:01 left"),
    (300, 200, 10.0, "300 frames  30.0 fps  0:10"),
    (75, None, 60.0, "75 frames  1.2 fps  1:00"),
    (0, 10, 0.0, "[                        ]   0%  0/10 frames  0.0 fps  ? left"),
])  # fmt: skip
def test_line(done, total, seconds, text):
    assert line(done, total, seconds, "frames") == text
    others = text.replace(" fps", "/s").replace("frames", "pictures")
    assert line(done, total, seconds, "pictures") == others


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_only_terminals_get_it(monkeypatch, terminal):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    with Progress(2, "pictures") as p:
        p.step()
        p.step()
    assert p.done == 2
    text = screen.getvalue()
    assert ("2/2 pictures" in text) == terminal
    assert text.endswith("\r\x1b[K" if terminal else "")
    if not terminal:
        assert text == ""
