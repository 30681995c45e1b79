"""Fixtures: real weights if present, photographs, and a small model."""

from pathlib import Path

import numpy as np
import pytest

from dala.ml import stages
from dala.ml.convert.onnx_file import Graph
from dala.ml.models import find_model
from dala.ml.weights import pull as pulling
from dala.ml.weights.find import find_weights
from tests.conftest import MUCH, resident_bytes, trim
from tests.ml.answers import read_photo
from tests.support.engines import dala_device, engine_id, pytest_generate_tests
from tests.support.weights import missing_reason, weights_folder

__all__ = ["dala_device", "engine_id", "pytest_generate_tests"]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def weights(monkeypatch):
    """The folder with weights; a test that needs others than are there is skipped."""
    place = weights_folder()
    if place is None:
        pytest.skip("the models' weights are not on this machine: dala models pull --all")
    monkeypatch.setattr(pulling, "pull", lambda name, *args: pytest.skip(missing_reason(name)))
    monkeypatch.setenv("DALA_MODELS", str(place))
    return place


@pytest.fixture(scope="module", autouse=True)
def closed():
    """Close the models that pipelines named: each is kept for the life of the process."""
    yield
    while stages._loaded:
        stages._loaded.popitem()[1].close()


@pytest.fixture
def here(monkeypatch):
    """A function that skips the test unless the weights of a model are here or in the package."""
    place = weights_folder()
    if place is not None:
        monkeypatch.setenv("DALA_MODELS", str(place))

    def need(name):
        steps = find_model(name).steps
        for part in (name, steps.detector) if steps else (name,):
            if find_weights(part) is None:
                pytest.skip(missing_reason(part))

    return need


@pytest.fixture
def real(here):
    """A function that loads real models by name."""
    from dala.ml.gpu import load_model

    opened = []

    def load(name, **options):
        here(name)
        opened.append(load_model(name, pull=False, **options))
        return opened[-1]

    yield load
    while opened:
        opened.pop().close()
    if resident_bytes() > MUCH:
        trim()  # what ONNX Runtime's threads freed


@pytest.fixture(scope="session")
def photo():
    """A function that reads photographs by name, as RGB."""
    return read_photo


@pytest.fixture
def tiny(tmp_path):
    """A classifier of 4 x 6 pictures: the mean of each channel times 10, and its negative."""
    graph = Graph("tiny")
    x = graph.input("pixels", ("batch", 3, 4, 6))
    mean = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    gain = graph.constant(np.concatenate([np.eye(3), -np.eye(3)], 1).astype(np.float32) * 10)
    graph.output(graph.node("MatMul", mean, gain), ("batch", 6), name="scores")
    path = tmp_path / "tiny.onnx"
    path.write_bytes(graph.save())
    return path
