"""Dispatches in a trace: times of the device on the host's clock."""

import time

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer, kernel
from dala.gpu.compute.engines.instances import find
from dala.trace.recorder import tracer

DEVICES = [d.id for d in dala.devices() if d.backend == "webgpu"]


@pytest.mark.skipif(not DEVICES, reason="no adapter")
@pytest.mark.parametrize("device", DEVICES)
def test_dispatches_lie_where_the_host_waited(device):
    twice = kernel("def traced_twice(x): return x * 2.0")
    a = buffer(np.ones(1 << 20, np.float32), device=device)
    able = find(device).device.tracing.able
    twice(a).read_list()
    spans = []
    with dala.trace(None) as run:
        tracer.frame = 77
        for _ in range(5):
            begin = time.perf_counter_ns()
            twice(a).numpy()
            spans.append((begin, time.perf_counter_ns()))
        find(device).synchronize()
        end = time.monotonic() + 30
        while able and time.monotonic() < end:
            if sum(r[0] == "pass" and r[4] >= 1 << 23 for r in list(tracer.records)) >= 5:
                break
            time.sleep(0.01)
    tracer.frame = None
    found = [r for _, r in run.events if r[0] == "pass" and r[4] >= 1 << 23]
    if not able:
        assert found == []
        return
    (name,) = {run.threads[r[4]] for r in found}
    assert name.startswith(f"{device}, clock within ")
    error = 1000 * (1 + int(name.rpartition("within ")[2].split()[0]))
    assert len(found) >= 5
    for record, (begin, done) in zip(sorted(found, key=lambda r: r[2]), spans, strict=False):
        assert record[1] == "traced_twice"
        assert record[5] == 77
        assert record[3] > record[2]
        assert begin - error <= record[2]
        assert record[3] <= done + error


@pytest.mark.skipif(not DEVICES, reason="no adapter")
def test_results_are_the_same_in_a_trace():
    twice = kernel("def traced_again(x): return x * 3.0 + 1.0")
    a = buffer(np.arange(1000, dtype=np.float32), device=DEVICES[0])
    wanted = twice(a).read_list()
    with dala.trace(None):
        assert twice(a).read_list() == wanted
    assert twice(a).read_list() == wanted
