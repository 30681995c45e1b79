"""Kernels that are made and dropped leave nothing behind: no code, no pipelines, no memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap

import pytest

from dala.gpu.compute import buffer, kernel
from dala.gpu.compute.engines.cpu import engine as cpu_engine
from dala.gpu.compute.engines.cpu.jit import Code

MANY = 12
KEPT = 6


def run_many(source, first):
    for number in range(first, first + MANY):
        scale = kernel(f"def scale(x): return x * {number}.5 + 0.125")
        assert scale(source).read_list() == [number + 0.625]


def test_pipelines_of_dropped_kernels_are_released(engine_id, monkeypatch):
    if engine_id in ("cpu", "reference"):
        pytest.skip("has no pipelines")
    from dala.gpu.compute.engines.webgpu import engine as webgpu_engine

    monkeypatch.setattr(webgpu_engine, "MAX_PIPELINES", KEPT)
    source = buffer([1.0])
    source.engine._compiled.clear()  # the plans of earlier tests keep those they use
    run_many(source, 7_000)
    counts = []
    for first in (8_000, 9_000):
        run_many(source, first)
        gc.collect()
        source.engine.synchronize()
        counts.append(source.engine.stats()["pipelines"])
    assert counts[0] == counts[1] >= KEPT


def test_a_pipeline_lives_as_long_as_a_plan_that_uses_it(engine_id, monkeypatch):
    if engine_id in ("cpu", "reference"):
        pytest.skip("has no pipelines")
    from dala.gpu.compute.engines.webgpu import engine as webgpu_engine

    monkeypatch.setattr(webgpu_engine, "MAX_PIPELINES", KEPT)
    source = buffer([1.0])
    held = kernel("def held(x): return x * 6999.5 + 0.125")
    assert held(source).read_list() == [6999.625]
    run_many(source, 6_000)  # the engine's cache has forgotten it by now
    assert held(source).read_list() == [6999.625]


def test_code_of_dropped_kernels_is_freed(engine_id, monkeypatch):
    if engine_id != "cpu":
        pytest.skip("has no object code in memory")
    monkeypatch.setattr(cpu_engine, "MAX_PROGRAMS", KEPT)
    source = buffer([1.0])
    source.engine.close()  # drops the code of earlier tests
    run_many(source, 7_000)
    counts = []
    for first in (8_000, 9_000):
        run_many(source, first)
        gc.collect()
        counts.append(sum(isinstance(found, Code) for found in gc.get_objects()))
    assert counts[0] == counts[1] >= KEPT


THOUSANDS = """
    import gc, sys
    from dala.gpu.compute import buffer, kernel

    def megabytes():
        with open("/proc/self/status") as file:
            return int(file.read().split("VmRSS:")[1].split()[0]) / 1024

    device, count = sys.argv[1], int(sys.argv[2])
    source = buffer([1.0], device=device)

    def run(number):
        kernel(f"def scale(x): return x * {number}.5 + 0.25")(source).free()

    for number in range(600):  # fill the caches
        run(number)
    gc.collect()
    start = megabytes()
    for number in range(600, 600 + count):
        run(number)
    gc.collect()
    print(megabytes() - start)
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ten_thousand_kernels_keep_no_memory(engine_id, dala_device, monkeypatch):
    if engine_id == "reference":
        pytest.skip("compiles nothing")
    monkeypatch.setenv("DALA_CACHE", "off")
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(THOUSANDS), dala_device, "10000"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(found.stdout.split()[-1]) < 50
