"""wgpu by its public functions, as with versions whose internals are not known."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import wgpu

from dala.gpu.compute.engines.webgpu import calls
from dala.gpu.compute.engines.webgpu.calls.public import PublicCalls
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.engine.webgpu.by_hand import OF_WGPU
from tests.support.engines import NO_ADAPTER

ROOT = Path(__file__).parents[3]
ADAPTERS = {a.backend.lower(): a for a in OF_WGPU}

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture
def unknown(monkeypatch):
    monkeypatch.setattr(wgpu, "version_info", (calls.KNOWN[0], calls.KNOWN[1] + 1, 0))
    monkeypatch.setattr(calls, "_noticed", set())


@pytest.mark.parametrize("api", list(ADAPTERS))
def test_transfers_and_notice(unknown, caplog, api):
    data = np.random.default_rng(3).integers(0, 256, (9 << 20) + 3, np.uint8)
    with caplog.at_level(logging.WARNING, "dala"):
        for _ in range(2):
            engine = WebGPUEngine(ADAPTERS[api])
            assert type(engine.device.calls) is PublicCalls
            for nbytes in (0, 1, 4097, data.size):
                storage = engine.allocate(nbytes, zero=False)
                engine.upload(storage, data[:nbytes])
                back = engine.download(storage)
                assert back.tobytes() == data[:nbytes].tobytes()
                engine.release(storage)
            with engine.profile() as times:
                assert times is None  # the unit of time stamps is not public
            engine.close()
    (notice,) = [r.getMessage() for r in caplog.records if r.name == "dala"]
    assert notice.endswith("is slower. Install wgpu 0.32 for full speed.")


def test_the_known_version_is_called_natively():
    if wgpu.version_info[:2] != calls.KNOWN:
        pytest.skip(f"this is wgpu {wgpu.__version__}")
    engine = WebGPUEngine(next(iter(ADAPTERS.values())))
    assert type(engine.device.calls) is not PublicCalls
    engine.close()


def test_work_by_public_functions():
    """Kernels, order, errors, lost devices and threads: tests of the engine, in a process."""
    chosen = "round_trip or contract or order or lost or loss or threads or closed or in_flight"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-pno:cacheprovider", "-pno:benchmark",
         "-p", "tests.support.unknown_wgpu", "-k", f"({chosen} or tiny) and not exit and not cpu",
         "tests/engine/test_tiny.py", "tests/engine/webgpu/test_engine.py"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert "wgpu by public functions: True" in ran.stdout
