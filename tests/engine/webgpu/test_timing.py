"""Durations of dispatches from device timestamps."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer_zeros, from_array, run_kernel
from dala.gpu.compute.engines.webgpu import adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.engines.webgpu.timing import QUERY_SET_SIZE, DispatchTimes
from tests.support.engines import NO_ADAPTER

ADAPTERS = {a.backend.lower(): a for a in adapters.list_adapters()}

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(params=list(ADAPTERS))
def given(request):
    """Return an engine with timestamps, an image and an output."""
    adapter = ADAPTERS[request.param]
    if "timestamp-query" not in adapter.features:
        pytest.skip(f"{adapter.name} has no time stamps")
    with dala.device(adapter.id):
        image = from_array(np.full((90, 160, 4), 60, np.uint8))
        if "timestamp-query" not in image.engine.device.native.features:
            pytest.skip("the unit of time stamps is known of wgpu 0.32 only")
        yield image.engine, image, buffer_zeros(image.shape, "u8")


def test_each_dispatch_has_a_duration(given):
    engine, image, out = given
    run_kernel("blur", [image], out, {"radius": 20})
    engine.synchronize()
    started = time.perf_counter()
    with engine.profile() as times:
        run_kernel("sharpen", [image], out)
        times.mark()
        run_kernel("blur", [image], out, {"radius": 20})  # two dispatches
        times.mark()
        times.mark()
        assert times.seconds == []
    waited = time.perf_counter() - started
    assert len(times.seconds) == 3
    assert min(times.seconds) >= 0
    assert 0 < sum(times.seconds) < waited
    first, *rest = times.seconds
    assert times.passes == [first, sum(rest), 0.0]


def test_results_are_the_same(given):
    engine, image, out = given
    with engine.profile():
        run_kernel("brightness", [image], out, {"value": 0.2})
    assert (np.array(out)[..., :3] == 111).all()


def test_dispatches_outside_the_block_are_not_timed(given):
    engine, image, out = given
    run_kernel("invert", [image], out)
    with engine.profile() as none:
        pass
    run_kernel("invert", [image], out)
    with engine.profile() as times:
        run_kernel("invert", [image], out)
    assert (none.seconds, none.passes, len(times.seconds)) == ([], [], 1)


def test_only_one_timer_runs(given):
    engine, image, out = given
    with engine.profile() as times:
        with engine.profile() as second:
            run_kernel("invert", [image], out)
        run_kernel("invert", [image], out)
    assert second is None
    assert len(times.seconds) == 2


def test_an_error_in_the_block_stops_the_timer(given):
    engine, image, out = given
    with pytest.raises(ZeroDivisionError), engine.profile():
        run_kernel("invert", [image], out)
        raise ZeroDivisionError
    with engine.profile() as times:
        run_kernel("invert", [image], out)
    assert len(times.seconds) == 1


def test_more_dispatches_than_one_query_set(given):
    engine, _, _ = given
    image, out = from_array(np.zeros(4, np.float32)), buffer_zeros((4,))
    count = QUERY_SET_SIZE // 2 + 3
    with engine.profile() as times:
        for _ in range(count):
            run_kernel("relu", [image], out)
    assert len(times.seconds) == count
    assert max(times.seconds) < 60


@pytest.mark.parametrize("backend", list(ADAPTERS))
def test_a_device_without_timestamps(backend):
    adapter = ADAPTERS[backend]
    engine = WebGPUEngine(replace(adapter, features=adapter.features - {"timestamp-query"}))
    try:
        with engine.profile() as times:
            engine.synchronize()
        assert times is None
    finally:
        engine.close()


def test_marks():
    times = DispatchTimes(lambda: None)
    times.fill([1.0, 2.0, 4.0, 8.0], [1, 1, 3])
    assert times.passes == [1.0, 0, 6.0]
