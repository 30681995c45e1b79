"""Predictions leave nothing behind: no buffer, no thread, and memory that stops growing."""

from __future__ import annotations

import gc
import resource
import sys
import threading

import numpy as np
import pytest

import dala
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model
from tests.ml.conftest import real, tiny, weights

__all__ = ["real", "tiny", "weights"]


def buffers():
    gc.collect()
    return dala.diagnostics()["objects"]["buffer"]["count"]


def resident():
    """Bytes of memory in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_predictions_leave_no_buffers(tiny, engine_id):
    picture = np.zeros((32, 48, 3), np.uint8)
    with load_model(tiny) as model:
        model.predict(picture)
        before = buffers()
        for _ in range(50):
            model.predict([picture, picture])
        assert buffers() == before


def test_streams_leave_no_threads(tiny):
    picture = np.zeros((4, 6, 3), np.uint8)
    with load_model(tiny) as model:
        for _ in range(20):
            list(model.stream([picture] * 5, policy="latest"))
            left = model.stream([picture] * 5, policy="latest")
            next(left)
            left.close()
    assert not [t for t in threading.enumerate() if t.name == "dala-model-stream"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by /proc")
def test_five_hundred_predictions_take_no_memory(tmp_path):
    """Each has an output of a megabyte, so one that stayed would show at once."""
    graph = Graph("wide")
    x = graph.input("x", (1, 3, 16, 16))
    flat = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    gain = graph.constant(np.ones((3, 1 << 18), np.float32))
    graph.output(graph.node("MatMul", flat, gain), (1, 1 << 18), name="y")
    path = tmp_path / "wide.onnx"
    path.write_bytes(graph.save())
    picture = np.zeros((64, 64, 3), np.uint8)
    with load_model(path, task="raw", threads=1) as model:
        for _ in range(30):
            model.predict(picture)
        gc.collect()
        before = resident()
        for _ in range(500):
            model.predict(picture)
        gc.collect()
        assert resident() - before < 64 << 20


def test_results_of_segmentations_are_small(real):
    """Planes are enlarged when they are asked for: what stays is the map of classes."""
    picture = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3), np.uint8)
    seen = real("deeplab").predict(picture)
    assert seen.classes.nbytes == 1080 * 1920
    held = sum(share.nbytes for share in seen.planes._shares.values())
    assert held <= 257 * 257 * 4 * 21
    assert seen.mask("person").shape == (1080, 1920)
