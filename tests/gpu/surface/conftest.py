"""Fixtures of these tests."""

from __future__ import annotations

import pytest

from dala.gpu import create_surface


@pytest.fixture
def s():
    with create_surface(32, 24) as made:
        yield made
