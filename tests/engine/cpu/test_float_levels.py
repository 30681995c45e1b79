"""f32 results are equal at all levels with fused operations and for any threads, to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.answers import ROOT, Engine, processors


def results(engine: Engine) -> dict[str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.floats"],
        env={**os.environ, **engine.environment}, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: dict[str, str] = json.loads(ran.stdout)
    return found


def test_levels_with_fused_operations_are_equal():
    levels = [each for each in processors() if each.label != "cpu at sse"]
    if len(levels) < 2:
        pytest.skip("this processor has one level with fused operations")
    first, *others = (results(level) for level in levels)
    assert len(first) > 2000
    for level, found in zip(levels[1:], others, strict=True):
        wrong = [name for name in first if first[name] != found.get(name)]
        assert not wrong, f"{level.label}: {len(wrong)} of {len(first)}: {wrong[:20]}"


def test_one_thread_equals_many():
    """The order of sums is that of the shapes."""
    one, many = (results(Engine("cpu", "cpu", {"DALA_THREADS": n})) for n in ("1", "7"))
    assert one == many
