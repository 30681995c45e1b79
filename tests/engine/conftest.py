"""Fixtures of the conformance suite, and of the tests of single engines."""

from __future__ import annotations

from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests"]
