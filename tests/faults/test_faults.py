"""Every public operation with faults: allocations, files, the compiler and threads that fail.

An operation is made to fail at its first call of those kinds, then at its second, until it
succeeds. Each time the error is one of ours, nothing is left behind, and the next call works.
"""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import pytest

import dala
from dala.gpu import create_surface
from dala.gpu.compute import Pipeline, Stream, buffer, buffer_zeros, kernel
from dala.media import Frame, FramePipeline, Scene, TexturePool, gpu, load_lut, load_scene, video
from dala.ml.gpu import load_model
from tests.support import faults, processes

pytest.importorskip("av")
pytest.importorskip("onnxruntime")

PICTURE = np.random.default_rng(2).integers(0, 255, (16, 16, 4), np.uint8)
FRAMES = [np.full((16, 16, 3), 50 * n, np.uint8) for n in range(3)]
_numbers = itertools.count(1)


def buffers(folder):
    with buffer([1.0, 2.0, 3.0]) as a, buffer_zeros((3,)) as b:
        return a.read_list() + b.read_list() + [float(a.numpy().sum())]


def expressions(folder):
    return ((buffer([1.0, 2.0]) * 2 + 1).sum().read_list(), (buffer([3.0]) > 1).read_list())


def kernels(folder):
    number = next(_numbers)  # compiled each time
    made = kernel(f"def faulty(x): return sin(x * {number}.0) * 0.0 + x * 2.0")
    return made(buffer([1.0, 2.0])).read_list()


def filters(folder):
    return gpu.blur(PICTURE, radius=2).tobytes() + gpu.resize(PICTURE, size=(8, 8)).tobytes()


def pipelines(folder):
    source, target = buffer(PICTURE, dtype="u8"), buffer_zeros((16, 16, 4), "u8")
    made = Pipeline()
    made.add({"op": "run_kernel", "kernel": "blur", "inputs": [source], "output": target,
              "params": {"radius": 2}})  # fmt: skip
    with made:
        made.run()
        return target.read()


def frame_pipelines(folder):
    with FramePipeline(16, 16) as made:
        return made.process(PICTURE, [("blur", {"radius": 2}), ("invert", {})]).tobytes()


def streams(folder):
    with Stream(workers=1) as stream:
        source, target = buffer([1.0, -2.0]), buffer_zeros((2,))
        stream.submit(
            {"op": "run_kernel", "kernel": "relu", "inputs": [source], "output": target}
        ).result(timeout=60)
        return target.read_list()


def surfaces(folder):
    with create_surface(8, 8) as surface:
        surface.clear("red")
        surface.load_image(1, PICTURE[:4, :4].tobytes(), 4, 4)
        surface.draw_image(1, 0, 0, 6, 6)
        surface.present()
        return surface.get_pixels()


def scenes(folder):
    with Scene(16, 16) as scene:
        path = folder / "image.png"
        if not path.exists():
            Frame.from_array(PICTURE).save(path)
        scene.add_image(str(path), position=(1, 2))
        scene.add_text("ab", size=8)
        scene.save(folder / "scene.json")
        first = np.asarray(scene.render()).tobytes()
    with load_scene(folder / "scene.json") as again:
        return first, np.asarray(again.render()).tobytes()


def pictures(folder):
    path = folder / "picture.png"
    with Frame.from_array(PICTURE) as frame:
        frame.save(path)
    with Frame.open(path) as again:
        return np.asarray(again).tobytes()


def videos(folder):
    with video.write(folder / "clip.mp4", fps=10) as sink:
        for picture in FRAMES:
            sink.write(picture)
    with video.open(folder / "clip.mp4") as reader:
        return [processes.total(frame) for frame in reader]


def tables(folder):
    path = folder / "table.cube"
    if not path.exists():
        rows = [f"{r} {g} {b}" for b in (0, 1) for g in (0, 1) for r in (0, 1)]
        path.write_text("LUT_3D_SIZE 2\n" + "\n".join(rows))
    return gpu.lut_apply(PICTURE, lut=load_lut(path)).tobytes()


def textures(folder):
    with TexturePool(1 << 20, device="cpu") as pool:
        return pool.load("a", PICTURE).buffer.read()


def models(folder):
    path = folder / "tiny.onnx"
    if not path.exists():
        processes.model_file(folder)
    with load_model(path, provider="cpu") as model:
        return np.asarray(model.predict(np.ones((1, 3, 4, 6), np.float32))).tolist()


OPERATIONS = (
    buffers, expressions, kernels, filters, pipelines, frame_pipelines, streams, surfaces, scenes,
    pictures, videos, tables, textures, models,
)  # fmt: skip

#: Few calls, and quick.
CHEAP = (buffers, kernels, pipelines, streams, surfaces, pictures)


@pytest.fixture(autouse=True)
def on_cpu(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "files").mkdir()
    with dala.device("cpu"):
        yield


@pytest.mark.parametrize("operation", CHEAP, ids=lambda o: o.__name__)
def test_faults(operation, tmp_path):
    assert faults.drive(operation, tmp_path / "files")


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.__name__)
def test_all_faults(operation, tmp_path: pathlib.Path):
    assert faults.drive(operation, tmp_path / "files")


def test_faults_are_found():
    """The driver itself: it sees leaks, wrong errors and wrong results."""
    with faults.failing(1, "allocation") as fault, pytest.raises(dala.BufferTooLarge):
        buffer_zeros((4,), device="cpu")
    assert fault.where.startswith("allocation: zeros in dala.gpu.compute.engines.cpu.memory:")
    with faults.failing(1, "thread") as fault, pytest.raises(dala.DeviceError, match="thread"):
        create_surface(2, 2)
    assert fault.where.startswith("thread: start in dala.gpu.render.worker:")


def test_leaks_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(faults, "PATIENCE", 0.1)
    kept = []

    def leaks(folder):
        try:
            return buffer([1.0], device="cpu").read_list()
        except dala.DalaError:
            kept.append(buffer_zeros((2,), device="reference"))
            raise

    with pytest.raises(AssertionError, match="left by allocation"):
        faults.drive(leaks, tmp_path)
