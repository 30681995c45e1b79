"""Models on ONNX Runtime's CUDA provider: its CPU provider takes the place, the host the GPU's."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import from_array
from dala.gpu.compute.engines import instances
from dala.gpu.compute.engines.webgpu.cuda import dlpack, sharing
from dala.ml.gpu import load_model
from dala.ml.runtime import providers
from dala.ml.runtime.cuda_runs import CudaRuns
from tests.engine.cuda.conftest import engine
from tests.ml.gpu_provider import small, uneven

__all__ = ["engine"]


@pytest.fixture
def device(engine, monkeypatch):
    """The device "cuda:7", whose memory ONNX Runtime's CPU provider takes for its own."""
    monkeypatch.setitem(instances.by_name, "cuda:7", engine)
    monkeypatch.setitem(providers.PROVIDERS, "cuda", "CPUExecutionProvider")
    monkeypatch.setattr(CudaRuns, "memory", "cpu")
    monkeypatch.setattr(dlpack, "CUDA", 1)  # the number of the host's memory
    monkeypatch.setattr(sharing, "ordinal_of", lambda engine: 0)
    with dala.device("cuda:7"):
        yield engine


def crossed(device, work):
    device.synchronize()
    before = device.stats()
    made = work()
    after = device.stats()
    return made, [after[k] - before[k] for k in ("uploaded_bytes", "downloaded_bytes")]


def test_a_model_takes_buffers_where_they_are(device, tmp_path):
    path = small(False, tmp_path, "conv")
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 6)).astype(np.float32)
    with load_model(path, "cpu", task="raw") as cpu, load_model(path, task="raw") as model:
        assert (model.info["provider"], model.info["reason"]) == ("cuda", "the device is cuda:7")
        wanted = cpu.run(x)["y"]
        tensor = from_array(x)
        made, bytes = crossed(device, lambda: model.run(tensor))
        assert bytes == [0, wanted.nbytes]
        assert np.allclose(made["y"], wanted, atol=1e-6)
        made, bytes = crossed(device, lambda: model.run(x))
        assert bytes == [x.nbytes, wanted.nbytes]
        assert np.allclose(made["y"], wanted, atol=1e-6)


def test_pictures_are_prepared_on_the_gpu_and_stay_there(device, tmp_path):
    path = small(False, tmp_path, "conv")
    picture = from_array(np.random.default_rng(2).integers(0, 256, (40, 60, 3), np.uint8))
    with load_model(path, "cpu", task="raw") as cpu, load_model(path, task="raw") as model:
        wanted = cpu.predict(picture.numpy())["y"]
        made, (up, _) = crossed(device, lambda: model.predict(picture))
        assert up == 0
        assert np.allclose(made["y"], wanted, atol=1e-5)


def test_outputs_of_unknown_size_and_of_no_elements(device, tmp_path):
    with load_model(uneven(tmp_path), task="raw") as model:
        x = np.zeros((1, 3, 4, 6), np.float32)
        x[0, 1, 2, 3] = 4
        assert model.run(x)["y"].tolist() == [[0], [1], [2], [3]]
        assert model.run(x * 0)["y"].shape == (4, 0)


def test_the_session_gets_the_gpu_and_the_stream(device):
    assert providers.cuda_place() == ("cuda:7", 0, 77)
    with dala.device("cpu"):
        assert providers.cuda_place() is None
