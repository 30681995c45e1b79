"""Fixtures: real weights if present, photographs, and a small model."""

import os
from pathlib import Path

import numpy as np
import pytest

from dala.ml import stages
from dala.ml.convert.onnx_file import Graph
from dala.ml.models import find_model
from dala.ml.weights.find import cache_folder, find_weights
from tests.conftest import MUCH, resident_bytes, trim
from tests.ml.answers import read_photo
from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests"]

ROOT = Path(__file__).parents[2]
#: Folders to search for weights.
FOLDERS = [
    ROOT.parent / "shared" / "models",
    *(Path(p) for p in os.environ.get("DALA_MODELS", "").split(os.pathsep) if p),
    cache_folder(),
]


@pytest.fixture(scope="session")
def weights():
    """The folder with the real weights; skips the test if there is none."""
    place = weights_folder()
    if place is None:
        pytest.skip("the models' weights are not on this machine: dala models pull --all")
    return place


def weights_folder():
    """Return the folder with the real weights; None if there is none."""
    return next((place for place in FOLDERS if (place / "mobilenet_v2.onnx").is_file()), None)


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
                pytest.skip(f"no weights of {part} on this machine: dala models pull {part}")

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
