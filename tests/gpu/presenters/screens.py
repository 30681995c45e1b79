"""Helpers of the presenter tests: a virtual screen, and a process that draws on it."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

#: Seconds that a test waits for an event before it fails: many, since machines may be busy.
PATIENCE = 300

#: The largest allowed difference of a screenshot, in steps of 255.
CLOSE = 2

#: Runs code from standard input, one JSON string per line, and prints the value of ``out``.
RUNNER = """
import json, sys, traceback
names = {}
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    names["out"] = None
    try:
        exec(json.loads(line), names)
        answer = {"out": names["out"]}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


def needed(program: str, package: str) -> str:
    """Return the path of a program; without it the test is skipped, or fails in CI."""
    path = shutil.which(program)
    require(path, f"{program} is not installed (Debian: apt-get install {package})")
    assert path is not None
    return path


def require(there: Any, why: str) -> None:
    """Skip the test if something is missing; in CI it fails instead."""
    if not there and os.environ.get("CI") == "true":
        pytest.fail(why)
    if not there:
        pytest.skip(why)


@contextmanager
def screen(width: int, height: int) -> Iterator[str]:
    """Run an X server without a window manager on a free display; yields its name."""
    xvfb = needed("Xvfb", "xvfb")
    readable, writable = os.pipe()
    size = f"{width}x{height}x24"
    server = subprocess.Popen(
        [xvfb, "-noreset", "-displayfd", str(writable), "-screen", "0", size, "-nolisten", "tcp"],
        pass_fds=[writable],
        stderr=subprocess.DEVNULL,
    )
    os.close(writable)
    try:
        ready, _, _ = select.select([readable], [], [], PATIENCE)
        number = os.read(readable, 16).decode().strip() if ready else ""
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        os.close(readable)
        server.terminate()
        server.wait(PATIENCE)


class Program:
    """A Python process that runs pieces of code one after another."""

    def __init__(self, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", RUNNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def run(self, code: str) -> Any:
        """Run code and return the value of ``out``."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the program ended with {self.process.wait(PATIENCE)}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["out"]

    def end(self) -> int:
        """Wait for the process to end and return its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait(PATIENCE)
            self.process.stdout.close()


def until(look: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Poll until a condition holds."""
    end = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.02)


def difference(seen: np.ndarray, wanted: np.ndarray) -> int:
    """Return the largest difference of two pictures in any channel."""
    assert seen.shape == wanted.shape
    return int(np.abs(seen.astype(int) - wanted.astype(int)).max())


def over_black(rgba: np.ndarray) -> np.ndarray:
    """Return a straight-alpha picture blended over black."""
    return np.rint(rgba[..., :3] * (rgba[..., 3:] / 255.0)).astype(np.uint8)


#: A picture that reveals mistakes: no symmetry, fine stripes, all alphas.
PICTURE = """
import numpy as np
def picture(w, h, seed=0):
    y, x = np.mgrid[0:h, 0:w]
    p = np.empty((h, w, 4), np.uint8)
    p[..., 0] = x * 255 // max(w - 1, 1)
    p[..., 1] = (y * 7 + seed * 40) % 256
    p[..., 2] = ((x ^ y) & 1) * 200
    p[..., 3] = 255
    p[h // 2:, : w // 4, 3] = (x[h // 2:, : w // 4] * 5) % 256
    return p
"""
_names: dict[str, Any] = {}
exec(PICTURE, _names)
picture: Callable[..., np.ndarray] = _names["picture"]
