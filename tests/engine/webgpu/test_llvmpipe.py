"""llvmpipe as on a processor without AVX-512, for which it compiles other code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dala

ROOT = Path(__file__).parents[3]
TESTS = (
    "tests/engine/test_tiny.py",
    "tests/engine/lang/test_elementwise.py",
    "tests/engine/lang/test_functions.py",
    "tests/engine/lang/test_odd_numbers.py",
    "tests/fuzz/test_programs.py",
)


def test_level_below_avx512():
    if not any("llvmpipe" in device.name for device in dala.devices()):
        pytest.skip("llvmpipe comes with Debian's mesa-vulkan-drivers")
    # "avx" is the highest level that Mesa 22.3 takes; it ignores names that it does not know.
    level = {"GALLIUM_OVERRIDE_CPU_CAPS": "avx", "GALLIUM_DUMP_CPU": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-n0", "-pno:cacheprovider", "-pno:benchmark",
         "-k", "webgpu and not dispatch_axis", *TESTS],
        env={**os.environ, **level}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, cwd=ROOT,
    )  # fmt: skip
    used = [line for line in ran.stdout.splitlines() if line.startswith("util_cpu_caps.")]
    tests = "\n".join(line for line in ran.stdout.splitlines() if line not in used)
    assert ran.returncode == 0, tests[-4000:]
    assert " passed" in tests
    assert "util_cpu_caps.has_avx512f = 0" in used
    assert "util_cpu_caps.has_avx512f = 1" not in used
