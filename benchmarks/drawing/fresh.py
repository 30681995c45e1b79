"""Fresh processes that draw: the time to the first command's pixels, and memory of a surface."""

from __future__ import annotations

import compileall
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Final

import dala
from benchmarks.harness import Machine, verdict

#: Target seconds to the first pixel: without a disk cache, and with one.
COLD: Final = 0.5
WARM: Final = 0.25
#: Target megabytes of a surface besides its two framebuffers.
BESIDES: Final = 2.0

#: Each prints the seconds since its first line; the whole process is timed, too.
OURS: Final = """
import time; start = time.perf_counter()
from dala.gpu import create_surface
s = create_surface(1920, 1080)
{command}
assert s.read_pixels(100, 100, 1, 1) == bytes([255, 0, 0, 255])
print(time.perf_counter() - start)
"""

#: The share of NumPy's import in our time.
NUMPY: Final = """
import time; start = time.perf_counter()
import numpy
print(time.perf_counter() - start)
"""

PYGAME: Final = """
import time; start = time.perf_counter()
import pygame
s = pygame.Surface((1920, 1080), pygame.SRCALPHA, 32)
s.fill((255, 0, 0), (90, 90, 20, 20))
assert s.get_at((100, 100)) == (255, 0, 0, 255)
print(time.perf_counter() - start)
"""

SKIA: Final = """
import time; start = time.perf_counter()
import numpy, skia
a = numpy.zeros((1080, 1920, 4), numpy.uint8)
s = skia.Surface(a)
s.getCanvas().drawRect(skia.Rect.MakeXYWH(90, 90, 20, 20), skia.Paint(Color=0xFFFF0000))
assert a[100, 100].tolist() == [255, 0, 0, 255]
print(time.perf_counter() - start)
"""

#: Ten surfaces after a first one that loads the code; each draws and presents, without images.
MEMORY: Final = """
import gc, pathlib
from dala.gpu import command, create_surface
def used():
    gc.collect()
    lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
commands = [command.encode_fill_circle(20 * n % 1900, n % 1080, 10, "red") for n in range(10_000)]
def draw():
    s = create_surface(1920, 1080)
    for _ in range(3):
        s.clear("black")
        s.batch(commands)
        s.present()
    s.{last}()
    return s
first = draw()
before = used()
many = [draw() for _ in range(10)]
print((used() - before) / len(many) - 2 * 1920 * 1080 * 4)
"""


def _run(code: str, **env: str) -> tuple[float, float]:
    """Return the seconds of the whole process, and its output."""
    settings = {**os.environ, "PYGAME_HIDE_SUPPORT_PROMPT": "1", "SDL_VIDEODRIVER": "dummy", **env}
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, env=settings, capture_output=True, text=True
    )
    return time.perf_counter() - start, float(done.stdout.split()[-1])


def _row(seconds: list[tuple[float, float]]) -> dict[str, float]:
    whole, inside = zip(*seconds, strict=True)
    return {
        "min_ms": min(whole) * 1e3,
        "median_ms": statistics.median(whole) * 1e3,
        "inside_min_ms": min(inside) * 1e3,
    }


def first(rounds: int = 10) -> dict[str, Any]:
    """Time whole processes to the first pixels, including the start of Python."""
    # As pip installs a package; a clone has no bytecode before its first import.
    compileall.compile_dir(str(pathlib.Path(dala.__file__).parent), quiet=1)
    rect = OURS.format(command='s.fill_rect(90, 90, 20, 20, "red")')
    disc = OURS.format(command='s.fill_circle(100, 100, 10, "red")')
    seconds: dict[str, list[tuple[float, float]]] = {}
    left_out = {}
    with tempfile.TemporaryDirectory() as warm, Machine() as machine:
        for code in (rect, disc):
            _run(code, DALA_CACHE_DIR=warm)
        for _ in range(rounds):
            for name, code in (("dala", rect), ("dala, a disc", disc)):
                with tempfile.TemporaryDirectory() as cold:
                    times = seconds.setdefault(f"{name}, cold cache", [])
                    times.append(_run(code, DALA_CACHE_DIR=cold))
                seconds.setdefault(name, []).append(_run(code, DALA_CACHE_DIR=warm))
            seconds.setdefault("python and numpy", []).append(_run(NUMPY))
            for name, code in (("pygame", PYGAME), ("skia", SKIA)):
                if importlib.util.find_spec(name):
                    seconds.setdefault(name, []).append(_run(code))
                else:
                    left_out[name] = "not installed"
    times_ms = {name: _row(found) for name, found in seconds.items()}
    met: dict[str, bool | None] = {
        f"warm cache < {WARM:g} s": times_ms["dala"]["min_ms"] < WARM * 1e3,
        f"cold cache < {COLD:g} s": times_ms["dala, cold cache"]["min_ms"] < COLD * 1e3,
    }
    base = times_ms["dala"]["min_ms"]
    return {
        "times": times_ms,
        "ratios": {n: t["min_ms"] / base for n, t in times_ms.items() if n != "dala"},
        "targets": met if machine.quiet else dict.fromkeys(met),
        "others": machine.others,
        "left_out": left_out,
    }


def memory() -> dict[str, Any]:
    """Measure the megabytes of a 1920x1080 surface besides its framebuffers, in fresh processes."""
    if not pathlib.Path("/proc/self/smaps_rollup").exists():
        return {"missing": "it is measured on Linux alone"}
    besides = {
        how: _run(MEMORY.replace("{last}", last))[1] / 1e6
        for how, last in (("drawn on", "synchronize"), ("read once", "get_pixels"))
    }
    met = max(besides.values()) < BESIDES
    for how, megabytes in besides.items():
        print(f"\nmemory of a surface besides its framebuffers, {how}: {megabytes:.2f} MB", end="")
    return {f"target < {BESIDES:g} MB": verdict(met, None), "besides_mb": besides}
