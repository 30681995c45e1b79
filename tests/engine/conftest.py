"""Fixtures of the conformance suite, and of the tests of single engines."""

from __future__ import annotations

import pytest

from dala.gpu.compute.engines.cpu import memory
from dala.gpu.compute.engines.cpu.native import compiled
from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests", "unsanitized"]


@pytest.fixture
def unsanitized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is reused and native code is unchecked, also with DALA_SANITIZE=1."""
    for module in (memory, compiled):
        monkeypatch.setattr(module, "SANITIZE", False)
