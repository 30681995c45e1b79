"""Models as stages of pipelines: what comes before one overlaps the model of another."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from dala.gpu.compute import Pipeline, buffer_zeros, from_array
from dala.ml import stages
from dala.ml.gpu import load_model

pytest.importorskip("onnxruntime")

PATIENCE = 60.0


class Gated:
    """A model whose first run waits for an event, as a slow one would for its end."""

    def __init__(self, model) -> None:
        self._model = model
        self.inside, self.go = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self._model, name)

    def run(self, tensor):
        if not self.inside.is_set():
            self.inside.set()
            assert self.go.wait(PATIENCE)
        return self._model.run(tensor)


def test_a_frame_is_preprocessed_while_the_model_runs_on_another(engine_id, monkeypatch):
    """Two pipelines with buffers of their own, submitted: the crossing of one does not wait."""
    rng = np.random.default_rng(0)
    with load_model("selfie", provider="cpu") as model:
        gated = Gated(model)
        monkeypatch.setitem(stages._loaded, "selfie", gated)
        pipelines, tensors, masks = [], [], []
        for _ in range(2):
            picture = from_array(rng.integers(0, 256, (32, 48, 3), dtype=np.uint8))
            tensor, mask = buffer_zeros((1, 256, 256, 3)), buffer_zeros((1, 256, 256, 1))
            made = Pipeline()
            for kernel, a, b, params in (
                ("preprocess", picture, tensor, model.preprocess),
                ("selfie", tensor, mask, {}),
            ):
                made.add(
                    {"op": "run_kernel", "kernel": kernel, "inputs": [a], "output": b,
                     "params": params}
                )  # fmt: skip
            pipelines.append(made)
            tensors.append(tensor)
            masks.append(mask)
        first = pipelines[0].submit()
        assert gated.inside.wait(PATIENCE)
        second = pipelines[1].submit()
        end = time.monotonic() + PATIENCE
        while not tensors[1].numpy().any():  # the model still waits
            assert time.monotonic() < end
            time.sleep(0.005)
        assert not first.done()
        gated.go.set()
        first.result(PATIENCE)
        second.result(PATIENCE)
        for tensor, mask in zip(tensors, masks, strict=True):
            (wanted,) = model.run(tensor.numpy()).values()
            np.testing.assert_allclose(mask.numpy(), wanted, atol=1e-5)
