"""The small conformance contract on SwiftShader, a third adapter, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not DRIVER.is_file(), reason="SwiftShader comes with Debian's chromium")
def test_contract_on_swiftshader():
    environment = {**os.environ, "VK_DRIVER_FILES": str(DRIVER)}
    name = "import dala; print([d.name for d in dala.devices() if d.backend == 'webgpu'])"
    listed = subprocess.run(
        [sys.executable, "-c", name], env=environment, capture_output=True, text=True, cwd=ROOT
    )
    assert "SwiftShader" in listed.stdout, listed.stderr[-2000:]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", "-pno:benchmark",
         "-k", "webgpu", "tests/engine/test_tiny.py"],
        env=environment, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout
