"""Fixtures of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dala.gpu.compute.composite import Compositor
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.engine.webgpu.by_hand import (
    ADAPTERS,
    IDS,
    engine_for,
)


@pytest.fixture(params=ADAPTERS, ids=IDS)
def engine(request: pytest.FixtureRequest) -> WebGPUEngine:
    return engine_for(request.param)


@pytest.fixture(params=ADAPTERS, ids=IDS)
def fresh(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return a factory of engines for one test."""
    made: list[WebGPUEngine] = []

    def make(**options: Any) -> WebGPUEngine:
        made.append(WebGPUEngine(request.param, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(params=ADAPTERS, ids=IDS)
def adapter_id(request: pytest.FixtureRequest) -> str:
    return request.param.id


@pytest.fixture
def compositor(adapter_id: str) -> Iterator[Compositor]:
    with Compositor(adapter_id) as made:
        yield made
