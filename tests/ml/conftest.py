"""Fixtures: real weights if present, photographs, and a small model."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dala.ml.convert.onnx_file import Graph
from dala.ml.models import find_model
from dala.ml.weights.find import cache_folder, find_weights
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
    for place in FOLDERS:
        if (place / "mobilenet_v2.onnx").is_file():
            return place
    pytest.skip("the models' weights are not on this machine: dala models pull --all")


@pytest.fixture
def real(weights, monkeypatch):
    """A function that loads real models by name."""
    from dala.ml.gpu import load_model

    monkeypatch.setenv("DALA_MODELS", str(weights))
    opened = []

    def load(name, **options):
        steps = find_model(name).steps
        for part in (name, steps.detector) if steps else (name,):
            if find_weights(part) is None:
                pytest.skip(f"the weights of {part} are not in {weights}")
        opened.append(load_model(name, pull=False, **options))
        return opened[-1]

    yield load
    for model in opened:
        model.close()


@pytest.fixture(scope="session")
def photo():
    """A function that reads photographs by name, as RGB."""

    def read(name):
        folder = Path(__file__).with_name("known") if name == "hands" else ROOT / "tests" / "photos"
        with Image.open(folder / f"{name}.png") as image:
            return np.asarray(image.convert("RGB"))

    return read


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
