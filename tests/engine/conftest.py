"""Fixtures of the conformance suite, and of the tests of single engines."""

from __future__ import annotations

import pytest

from tests.engine.commands import Gate
from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests"]


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.open.set()  # release the kernels of a failed test
