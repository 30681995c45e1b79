"""Memory that is given back after the start: it goes, and what needs it again works on."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import dala
from dala.cli import _memory as memory
from dala.gpu import compute

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's way")


def resident(library):
    """Kilobytes of a library's code and tables that are in memory."""
    total, inside = 0, False
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                inside = words[1] in ("r-xp", "r--p") and library in line
            elif inside and words[0] == "Rss:":
                total += int(words[1])
    return total


@linux
def test_code_of_the_compiler_goes_and_comes_back():
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

    def blurred(radius):
        with dala.device("cpu"):
            made = compute.buffer_zeros(image.shape, "u8")
            compute.run_kernel("blur", [compute.from_array(image)], made, {"radius": radius})
            return made.numpy().copy()

    before = blurred(1)
    assert resident("libllvmlite") > 0
    memory.settle()
    assert resident("libllvmlite") < 4096  # what the loader has filled in stays
    assert np.array_equal(blurred(1), before)
    with dala.device("reference"):
        made = compute.buffer_zeros(image.shape, "u8")
        compute.run_kernel("blur", [compute.from_array(image)], made, {"radius": 2})
    assert np.abs(blurred(2).astype(int) - made.numpy()).max() <= 1  # compiled anew


@linux
def test_only_what_nobody_has_written_to_is_named():
    import llvmlite.binding  # noqa: F401  # it must be there to be found

    found = dict(memory._unwritten("libllvmlite"))
    assert all(start % 4096 == 0 and size > 0 for start, size in found.items())
    kinds = {}
    with open("/proc/self/maps") as file:
        for line in file:
            if "libllvmlite" in line:
                place, rights, *_ = line.split()
                kinds[int(place.split("-")[0], 16)] = rights
    assert {kinds[start] for start in found} == {"r-xp", "r--p"}
    assert len(found) < len(kinds)
    assert list(memory._unwritten("no such library")) == []


@linux
def test_small_pages_are_asked_for_in_a_process_of_its_own():
    told = "import pathlib; print(pathlib.Path('/proc/self/status').read_text())"
    code = f"from dala.cli import memory; memory.small_pages(); {told}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = (x for x in done.stdout.splitlines() if x.startswith("THP_enabled:"))
    assert line.split()[1] == "0"


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(memory.ctypes, "CDLL", None)  # calling it would raise
    memory.settle()
    memory.small_pages()
