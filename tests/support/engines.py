"""The engines that conformance tests run on, and what a test may ask about them.

A test that takes ``engine_id`` runs once for each engine here ("reference", "cpu",
"webgpu-vulkan", ...), inside ``with dala.device(...)`` of that engine. Where WebGPU has no adapter
its tests are skipped and say so; with ``CI=true`` or ``DALA_REQUIRE_WEBGPU=1`` they fail instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute import kernels
from dala.gpu.compute.engines.webgpu import calls
from tests.support.tolerances import NUMPY

__all__ = [
    "NO_ADAPTER",
    "NUMPY",
    "complaints",
    "dala_device",
    "engine_id",
    "evaluate",
    "needs",
    "pytest_generate_tests",
    "run",
    "targets",
]

NO_ADAPTER = (
    "WebGPU has no adapter on this machine; Debian's mesa-vulkan-drivers gives it a software one "
    "(`dala doctor` says more)"
)


@cache
def targets() -> dict[str, str | None]:
    """Names of engines for test ids, each with the device to ask the library for."""
    found: dict[str, str | None] = {"reference": "reference", "cpu": "cpu"}
    for device in dala.devices():
        if device.backend == "webgpu":
            name = f"webgpu-{device.api.lower()}"
            found[name if name not in found else f"{name}-{device.id[7:]}"] = device.id
    if not any(name.startswith("webgpu") for name in found):
        found["webgpu"] = None
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dala_device" in metafunc.fixturenames:
        metafunc.parametrize("target", list(targets()), scope="session")


@pytest.fixture
def dala_device(target: str) -> str:
    """The library's own name for the engine under test: "cpu", "webgpu:1", ..."""
    device = targets()[target]
    if device is None:
        if os.environ.get("CI") == "true" or os.environ.get("DALA_REQUIRE_WEBGPU") == "1":
            pytest.fail(NO_ADAPTER)
        pytest.skip(NO_ADAPTER)
    return device


@pytest.fixture
def engine_id(target: str, dala_device: str) -> Iterator[str]:
    """The engine's name in test ids and in the tolerance table; it is the current device."""
    before = set(kernels())
    with dala.device(dala_device):
        yield target
    for name in set(kernels()) - before:
        compute.Kernel.unregister(name)


def needs(*dtypes: str) -> AbstractContextManager[Any]:
    """Around a test of some dtypes: on a device without one of them, UnsupportedDtype must come."""
    if set(dtypes) <= set(compute.supported_dtypes()):
        return nullcontext()
    return pytest.raises(dala.UnsupportedDtype)


def run(
    kernel: Any,
    inputs: Sequence[np.ndarray],
    out_shape: tuple[int, ...],
    out_dtype: str,
    params: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Runs a kernel on arrays and gives its output as an array of the test's own."""
    out = compute.buffer_zeros(out_shape, out_dtype)
    compute.run_kernel(kernel, [compute.from_array(a) for a in inputs], out, params or {})
    return np.array(compute.to_array(out))


def evaluate(
    source: str,
    inputs: Sequence[np.ndarray],
    out_dtype: str,
    params: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Runs kernel text over arrays, into an output of their broadcast shape."""
    shape = np.broadcast_shapes(*(a.shape for a in inputs))
    return run(compute.kernel(source), inputs, shape, out_dtype, params)


def complaints(stderr: str) -> str:
    """Return what a process wrote; versions of wgpu that are not known may log as they like."""
    try:
        import wgpu
    except ImportError:  # the root for ARM has none
        return stderr
    known = wgpu.version_info[:2] == calls.KNOWN
    return stderr if known or "Traceback" in stderr else ""
