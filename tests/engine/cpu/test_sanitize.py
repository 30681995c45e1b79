"""DALA_SANITIZE=1: accesses of native code outside its arrays are found, and there are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import Array, i64, u8
from dala.gpu.compute.engines.cpu.sanitize import CAN_FENCE

TESTS = Path(__file__).parents[2]
ROOT = TESTS.parent

pytestmark = pytest.mark.skipif(not CAN_FENCE, reason="this system cannot protect pages so")


@native
def last(a: Array[u8], at: i64) -> i64:
    return i64(a[at])


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DALA_SANITIZE": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, cwd=ROOT
    )


def test_native_code_is_checked():
    done = run(
        "-c",
        """
import numpy as np
from dala.gpu.compute.engines.cpu.native import compile_native
from tests.engine.cpu.test_sanitize import last
try:
    compile_native(last)(np.zeros(4, np.uint8), 4)
except IndexError as error:
    print(type(error).__name__, error)
""",
    )
    assert done.stdout.startswith("OutOfBounds native code last, line "), done.stderr
    assert "index 4 is out of bounds for an array of length 4." in done.stdout


def test_buffers_end_at_a_protected_page():
    """One byte beyond the padding of the alignment ends the process."""
    read = """
import ctypes
import dala
from dala.gpu import compute
from dala.gpu.compute.engines.cpu.memory import HostMemory
memory = HostMemory().allocate({}, zero=True)
print(memory.array.sum(), memory.address % 64, flush=True)
ctypes.string_at(memory.address, {})
print("alive")
"""
    assert run("-c", read.format(5, 64)).stdout.split() == ["0", "0", "alive"]
    beyond = run("-c", read.format(5, 65))
    assert beyond.returncode < 0
    assert "alive" not in beyond.stdout
    assert run("-c", read.format(8192, 8192)).stdout.split() == ["0", "0", "alive"]
    assert run("-c", read.format(8192, 8193)).returncode < 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_children_have_memory_of_their_own():
    """A child's results were the parent's too."""
    done = run(
        "-c",
        """
import os
from dala.gpu.compute.engines.cpu.memory import HostMemory
memory = HostMemory().allocate(5, zero=True)
child = os.fork()
if child == 0:
    memory.array[:] = 7
    os._exit(0)
os.waitpid(child, 0)
print(memory.array.tolist())
""",
    )
    assert done.stdout == "[0, 0, 0, 0, 0]\n", done.stderr


def test_blur_of_small_pictures():
    """Alpha of the last pixels was read with whole vectors, beyond the picture's memory."""
    done = run(
        "-c",
        """
import numpy as np
from dala.gpu import compute
for dtype in ("u8", "f32"):
    for size in ((1, 1), (2, 3), (5, 9), (3, 33)):
        a = compute.buffer_zeros((*size, 4), dtype, device="cpu")
        b = compute.buffer_zeros((*size, 4), dtype, device="cpu")
        for radius in (1, 3, 13, 70):
            compute.run_kernel("blur", [a], b, {"radius": radius})
print("fine")
""",
    )
    assert done.stdout == "fine\n", done.stderr


def test_windows_read_nothing_beyond_a_picture():
    """Pages before and after the picture are protected."""
    done = run(
        "-c",
        """
import ctypes, mmap
import dala
import numpy as np
from dala.gpu import compute
page, room = mmap.PAGESIZE, 64 * mmap.PAGESIZE
memory = mmap.mmap(-1, room + 2 * page)
whole = np.frombuffer(memory, np.uint8)
for fence in (0, room + page):
    at = ctypes.c_void_p(whole.ctypes.data + fence)
    assert ctypes.CDLL(None).mprotect(at, ctypes.c_size_t(page), 0) == 0
dala.use("cpu")
for dtype in (np.uint8, np.float32):
    for shape in ((3, 400, 4), (4, 385, 4), (2, 700, 3), (3, 1537), (3, 1600), (2, 33, 3), (1, 1)):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        for begin in (page, page + room - size):
            a = compute.from_dlpack(whole[begin : begin + size].view(dtype).reshape(shape))
            b = compute.from_dlpack(np.zeros(shape, dtype))
            for name in ("sharpen", "emboss", "median"):
                compute.run_kernel(name, [a], b, {})
print("fine")
""",
    )
    assert done.stdout == "fine\n", done.stderr


#: The whole CPU suite in pieces, each with what ``-k`` chooses of it.
PIECES = {
    "engine": (["engine", "gpu/raster", "null"], "not webgpu and not reference"),
    "surfaces and filters": (["gpu/surface", "media/filters"], "not webgpu"),
    "presenters and shaders": (["gpu/presenters", "gpu/shaders"], "not webgpu"),
    "drawing and input": (["gpu/vector", "gpu/input"], "not webgpu"),
    "scenes": (["media/scene", "media/transitions"], "not webgpu"),
    "videos": (["media/video", "media/audio", "media/live", "media/sources"], "not webgpu"),
    "text and pictures": (["media/text", "media/pictures", "media/test_*.py"], "not webgpu"),
    "models": (["ml"], "not webgpu"),
    "command line": (["cli"], "not webgpu"),
    "batch": (["batch"], "not webgpu"),
    "studio and pages": (["studio", "web"], "not webgpu"),
    "small parts": (["unit", "untrusted", "leaks", "../src"], "not webgpu"),
    "examples": (["e2e"], "not webgpu"),
    "ARM, faults and fuzzing": (["arm", "faults", "fuzz"], "not webgpu"),
}


def files(pattern: str) -> list[Path]:
    """Return the files that an entry of PIECES stands for, or the folder."""
    return [TESTS / pattern] if "*" not in pattern else sorted(TESTS.glob(pattern))


def test_every_test_is_in_a_piece():
    pieces = [path for patterns, _ in PIECES.values() for name in patterns for path in files(name)]
    assert all(path.exists() for path in pieces)
    for path in TESTS.rglob("test_*.py"):
        holding = [piece for piece in pieces if path.is_relative_to(piece)]
        assert len(holding) == 1, path


@pytest.mark.long
@pytest.mark.parametrize("piece", PIECES)
def test_suite_of_the_cpu_engine(piece):
    """The whole CPU suite, sanitized. Tests of what that changes take the fixture unsanitized."""
    patterns, chosen = PIECES[piece]
    tests = [os.path.relpath(path, ROOT) for name in patterns for path in files(name)]
    done = run("-m", "pytest", "-q", "-pno:cacheprovider", "-pno:benchmark", *tests, "-k", chosen)
    sys.stdout.writelines(done.stdout.splitlines()[-1:])  # the counts, for pytest -rP
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
