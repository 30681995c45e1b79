"""``load_model_async`` and ``predict_async``: nothing waits on the loop's thread."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer_zeros
from dala.ml import gpu
from dala.ml.runtime.session import Session
from dala.offload import LoopWorker
from tests.support.waiting import Waits

pytest.importorskip("onnxruntime")

PICTURE = np.full((4, 6, 3), 255, np.uint8)


@pytest.fixture
def waits(monkeypatch):
    found = Waits(monkeypatch)
    for name in ("__init__", "run", "close"):
        found.watch(Session, name)
    return found


def test_no_wait_on_the_thread_of_the_loop(tiny, waits):
    async def main():
        model = await gpu.load_model_async(tiny, "cpu", preprocess={"normalize": "unit"})
        scores = await gpu.predict_async(model, PICTURE)
        await LoopWorker("test").run(model.close)
        return threading.get_ident(), scores

    with dala.device("cpu"):
        thread, scores = asyncio.run(main())
        with gpu.load_model(tiny, "cpu", preprocess={"normalize": "unit"}) as model:
            assert np.array_equal(scores, model.predict(PICTURE))
    calls = [name for name in waits.on(thread) if name.startswith("Session")]
    assert calls == ["Session.__init__", "Session.run", "Session.close"]  # those of the last lines
    assert waits.names >= {"Session.__init__", "Session.run"}


def test_it_runs_on_the_device_of_the_caller(tiny):
    def decode(outputs):
        return buffer_zeros((1,)).device

    async def main():
        with dala.device("reference"):
            model = await gpu.load_model_async(tiny, "cpu", decode=decode)
            return await gpu.predict_async(model, PICTURE)

    assert asyncio.run(main()) == "reference"


def test_a_cancelled_load_closes_its_model(tiny, waits, monkeypatch):
    loading, released, closed = threading.Event(), threading.Event(), threading.Event()
    load, close = gpu.load_model, dala.ml.Model.close

    def slow(*args, **options):
        loading.set()
        assert released.wait(60)
        return load(*args, **options)

    monkeypatch.setattr(gpu, "load_model", slow)
    monkeypatch.setattr(dala.ml.Model, "close", lambda self: (close(self), closed.set()))

    async def main():
        task = asyncio.create_task(gpu.load_model_async(tiny, "cpu"))
        await LoopWorker("test").run(lambda: loading.wait(60))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        released.set()

    asyncio.run(main())
    assert closed.wait(60)


def test_errors_arrive():
    async def main():
        with pytest.raises(dala.UnknownModel, match="Did you mean 'mobilenet_v2'"):
            await gpu.load_model_async("mobilenet_v3")

    asyncio.run(main())
