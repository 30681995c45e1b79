"""f32 results are equal at all levels with fused operations and for any threads, to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.answers import ROOT, Engine, processors

#: `make test` tries a sixth of the settings, `make test-long` all.
STEPS = [pytest.param(6, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)]


def results(engine: Engine, step: int) -> dict[str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.floats", str(step)],
        env={**os.environ, **engine.environment}, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: dict[str, str] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("step", STEPS)
def test_levels_with_fused_operations_are_equal(step):
    levels = [each for each in processors() if each.label != "cpu at sse"]
    if len(levels) < 2:
        pytest.skip("this processor has one level with fused operations")
    first, *others = (results(level, step) for level in levels)
    assert len(first) > 2000 / step
    for level, found in zip(levels[1:], others, strict=True):
        wrong = [name for name in first if first[name] != found.get(name)]
        assert not wrong, f"{level.label}: {len(wrong)} of {len(first)}: {wrong[:20]}"


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_one_thread_equals_many(step):
    """The order of sums is that of the shapes."""
    one, many = (results(Engine("cpu", "cpu", {"DALA_THREADS": n}), step) for n in ("1", "7"))
    assert one == many
