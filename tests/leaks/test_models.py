"""Predictions leak no buffers, threads or memory."""

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
from tests.ml.conftest import here, real, tiny

__all__ = ["here", "real", "tiny"]


def buffers():
    gc.collect()
    return dala.diagnostics()["objects"]["buffer"]["count"]


def resident():
    """Return the resident memory in bytes."""
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


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory use from /proc")
def test_predictions_leak_no_memory(tmp_path):
    """Each output has a megabyte, so a leak shows at once."""
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


def test_segmentations_hold_small_planes(real):
    """Planes are scaled on access, so only the class map has the picture's size."""
    picture = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3), np.uint8)
    seen = real("deeplab").predict(picture)
    assert seen.classes.nbytes == 1080 * 1920
    held = sum(share.nbytes for share in seen.planes._shares.values())
    assert held <= 257 * 257 * 4 * 21
    assert seen.mask("person").shape == (1080, 1920)
