"""Random kernels of bytes: equal on the CPU at every level, and nearly so on GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import dala
from dala.answers.table import checksum
from dala.gpu.compute.engines.cpu.level import LEVELS, host_features, is_x86
from tests.fuzz.byte_programs import ByteProgram, report
from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests"]
COUNT = 12


@cache
def expected(number):
    with dala.device("reference"):
        return ByteProgram(number).run()


@cache
def on_the_reference():
    with dala.device("reference"):
        return [*report(0, COUNT)]


def test_random_kernels_on_every_engine(engine_id, dala_device):
    """Each function of a GPU's own may move a byte by a step, in 1 of 1,000 values."""
    moved = values = 0
    for number in range(COUNT):
        with dala.device(dala_device):
            got = ByteProgram(number).run()
        apart = np.abs(got.astype(int) - expected(number))
        assert engine_id.startswith("webgpu") or not apart.any(), ByteProgram(number).source
        steps = np.minimum(apart, 256 - apart)  # fract leaps from white to black
        assert steps.max() <= 1, ByteProgram(number).source
        moved, values = moved + np.count_nonzero(apart), values + apart.size
    assert moved <= values / 1000


@pytest.mark.parametrize("level", LEVELS)
def test_random_kernels_at_every_level(level):
    if not is_x86() or not all(map(host_features().get, LEVELS[level][1])):
        pytest.skip(f"the processor has no {level}")
    command = [sys.executable, "-m", "tests.fuzz.byte_programs", "0", str(COUNT)]
    done = subprocess.run(
        command, env={**os.environ, "DALA_CPU": level}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == on_the_reference()
    assert [line for line in on_the_reference()[2 * COUNT :] if not line.endswith(" 0")] == []


def test_random_kernels_differ():
    assert len({checksum(expected(number)) for number in range(COUNT)}) == COUNT
    sources = [ByteProgram(number).source for number in range(COUNT)]
    assert any("img" in text for text in sources)
    assert any("for d" in text for text in sources)
    assert any("sin(" in text for text in sources)
