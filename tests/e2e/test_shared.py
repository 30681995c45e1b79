"""One object of each kind, used by several threads that are switched as often as possible."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import dala
from dala.gpu import create_surface
from dala.gpu.compute import Pipeline, Stream, buffer, buffer_zeros, kernel
from dala.media import (
    Frame,
    FramePipeline,
    Scene,
    TextStyle,
    TexturePool,
    gpu,
    set_text,
    video,
)
from dala.ml.gpu import load_model
from tests.support import processes

pytest.importorskip("av")
pytest.importorskip("onnxruntime")

THREADS = 4
PICTURE = np.random.default_rng(4).integers(0, 255, (16, 16, 4), np.uint8)


def hammer(work, rounds):
    """Call ``work(thread, round)`` on all threads; return the results by thread and round."""
    results = [[None] * rounds for _ in range(THREADS)]
    errors = []
    ready = threading.Barrier(THREADS)

    def run(thread):
        try:
            ready.wait()
            for n in range(rounds):
                results[thread][n] = work(thread, n)
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
            assert not thread.is_alive(), "a thread hangs"
    finally:
        sys.setswitchinterval(before)
    assert errors == []
    return results


def same(results, expected):
    assert all(value == expected for row in results for value in row)


def kernels(rounds, folder):
    made = kernel("def shared(x, *, by=2.0): return x * by + 1")
    source = buffer([1.0, 2.0, 3.0])
    same(hammer(lambda t, n: made(source).read_list(), rounds), [3.0, 5.0, 7.0])
    found = hammer(lambda t, n: made(source, by=float(t)).read_list(), rounds)
    assert all(v == [t + 1.0, 2 * t + 1.0, 3 * t + 1.0] for t, row in enumerate(found) for v in row)


def new_kernels(rounds, folder):
    """The same kernel is compiled by several threads at once, for shapes that are new."""

    def work(thread, n):
        made = kernel(f"def racing{n}(x): return x * {n}.0 + 0.5")
        return made(buffer([[2.0] * (n + 1)])).read_list()

    for row in hammer(work, rounds // 10 + 1):
        assert row == [[2.0 * n + 0.5] * (n + 1) for n in range(len(row))]


def buffers(rounds, folder):
    shared = buffer(np.arange(64, dtype=np.float32))

    def work(thread, n):
        made = shared * float(thread) + 1  # an expression over the shared memory
        return made.read_list()[:3], float(shared.numpy().sum()), shared[3:5].read_list()

    for thread, row in enumerate(hammer(work, rounds)):
        same([row], ([1.0, thread + 1.0, 2 * thread + 1.0], 2016.0, [3.0, 4.0]))


def pipelines(rounds, folder):
    source, target = buffer(PICTURE, dtype="u8"), buffer_zeros((16, 16, 4), "u8")
    made = Pipeline()
    made.add({"op": "run_kernel", "kernel": "invert", "inputs": [source], "output": target})
    made.run()
    expected = target.read()
    hammer(lambda t, n: made.run(), rounds)
    assert target.read() == expected


def frame_pipelines(rounds, folder):
    with FramePipeline(16, 16) as made:
        filters = [[("invert", {})], [("blur", {"radius": 2})], [("sepia", {})], []]
        expected = [made.process(PICTURE, each).tobytes() for each in filters]
        found = hammer(lambda t, n: made.process(PICTURE, filters[t]).tobytes(), rounds)
        for row, wanted in zip(found, expected, strict=True):
            same([row], wanted)


def streams(rounds, folder):
    total = buffer_zeros((2,))
    one = buffer([1.0, 2.0])
    with Stream(workers=2) as stream:
        spec = {"op": "run_kernel", "kernel": "elementwise_add", "inputs": [total, one],
                "output": total}  # fmt: skip
        hammer(lambda t, n: int(stream.submit(spec)), rounds)
        stream.synchronize(timeout=120)
    assert total.read_list() == [float(THREADS * rounds), 2.0 * THREADS * rounds]


def surfaces(rounds, folder):
    with create_surface(4 * THREADS, 4) as surface:

        def work(thread, n):
            surface.fill_rect(4 * thread, 0, 4, 4, (thread, n % 256, 7))
            if n % 5 == 0:
                surface.present()
            return surface.read_pixels(4 * thread, 0, 1, 1)

        for thread, row in enumerate(hammer(work, rounds)):
            assert row == [bytes((thread, n % 256, 7, 255)) for n in range(rounds)]


def scenes(rounds, folder):
    with Scene(16, 16) as scene:
        scene.add_image(PICTURE, position=(1, 2))
        node = scene.add_overlay(size=(4, 4), color="red")
        expected = {}
        for x in range(THREADS):
            node.position = (x, 0)
            expected[np.asarray(scene.render()).tobytes()] = x

        def work(thread, n):
            node.position = (thread, 0)
            return np.asarray(scene.render()).tobytes()

        for row in hammer(work, rounds):
            assert set(row) <= set(expected)  # each is a whole frame of some position


def models(rounds, folder):
    with load_model(processes.model_file(folder), provider="cpu") as model:
        inputs = [np.full((1, 3, 4, 6), n, np.float32) for n in range(THREADS)]
        expected = [np.asarray(model.predict(each)).tolist() for each in inputs]
        found = hammer(lambda t, n: np.asarray(model.predict(inputs[t])).tolist(), rounds)
        for row, wanted in zip(found, expected, strict=True):
            same([row], wanted)


def textures(rounds, folder):
    with TexturePool(1 << 20) as pool:
        wanted = [int(PICTURE.sum())] * 8
        pictures = [np.roll(PICTURE, n, 0) for n in range(8)]

        def work(thread, n):
            return int(pool.load(n % 8, pictures[n % 8]).array.sum())

        for row in hammer(work, rounds):
            assert row == [wanted[n % 8] for n in range(rounds)]
        assert (pool.misses, len(pool)) == (8, 8)


def readers(rounds, folder):
    path = processes.video_file(folder)
    with video.open(path) as reader:
        expected = sorted(processes.total(frame) for frame in reader)
    with video.open(path) as reader:
        walk = iter(reader)

        def work(thread, n):
            frame = next(walk, None)
            return None if frame is None else processes.total(frame)

        found = hammer(work, len(expected))
    assert sorted(v for row in found for v in row if v is not None) == expected


def writers(rounds, folder):
    """One writer: each frame is written once, whole, in some order."""
    rounds = min(rounds, 200)
    path = folder / "shared.mkv"
    with video.write(path, fps=100, codec="ffv1", pixel_format="bgra") as sink:
        hammer(lambda t, n: sink.write(np.full((4, 4, 3), t * 60, np.uint8)), rounds)
    with video.open(path) as reader:
        found = sorted(int(np.asarray(frame)[0, 0, 0]) for frame in reader)
    assert found == sorted([t * 60 for t in range(THREADS)] * rounds)


def devices(rounds, folder):
    """Each thread switches between devices; another thread's choice is not its own."""
    names = ("cpu", "reference", "null")

    def work(thread, n):
        name = names[(thread + n) % 2]
        with dala.device(name):
            made = buffer([1.0, float(n)]) * 2
            with dala.device(names[2]):
                buffer_zeros((2,))
            return made.device == name, made.read_list()

    for row in hammer(work, rounds):
        assert row == [(True, [2.0, 2.0 * n]) for n in range(rounds)]


def texts(rounds, folder):
    """Glyphs and layouts are cached for the process; the cache has room for few."""
    styles = [TextStyle(size=8 + n) for n in range(4)]
    expected = [np.asarray(set_text("Wave", each).pixels).tobytes() for each in styles]

    def work(thread, n):
        return np.asarray(set_text("Wave", styles[(thread + n) % 4]).pixels).tobytes()

    for thread, row in enumerate(hammer(work, rounds)):
        assert row == [expected[(thread + n) % 4] for n in range(rounds)]


def frames(rounds, folder):
    """One frame, converted and read by all."""
    frame = Frame.from_array(PICTURE, device="cpu")
    gray = np.asarray(gpu.grayscale(frame)).tobytes()
    found = hammer(
        lambda t, n: (np.asarray(frame).tobytes(), np.asarray(gpu.grayscale(frame)).tobytes()),
        rounds,
    )
    same(found, (PICTURE.tobytes(), gray))


def commands(rounds, folder):
    """One command of a stream, waited for by all; and pictures saved to one path."""
    with Stream(workers=2) as stream:
        a, b = buffer([1.0, -1.0]), buffer_zeros((2,))
        spec = {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": b}
        made = [stream.submit(spec) for _ in range(rounds)]
        hammer(lambda t, n: made[n].result(timeout=60), rounds)
    frame = Frame.from_array(PICTURE, device="cpu")
    path = folder / "shared.png"

    def save(thread, n):
        frame.save(path)
        with Frame.open(path, device="cpu") as again:
            return np.asarray(again).tobytes()

    same(hammer(save, min(rounds, 500)), PICTURE.tobytes())
    assert sorted(each.name for each in folder.iterdir()) == ["shared.png"]


USES = (
    kernels, new_kernels, buffers, pipelines, frame_pipelines, streams, surfaces, scenes, models,
    textures, readers, writers, devices, texts, frames, commands,
)  # fmt: skip

#: Rounds of the long version: together a few minutes on two cores. The others have 2,000.
LONG = {"new_kernels": 400, "kernels": 10_000, "buffers": 10_000, "streams": 20_000,
        "surfaces": 10_000, "pipelines": 20_000, "devices": 10_000}  # fmt: skip


@pytest.fixture(autouse=True)
def on_cpu():
    before = dala.device
    dala.use("cpu")
    yield before
    dala.use("auto")


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_shared_by_threads(use, tmp_path):
    use(10, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_shared_by_threads_for_long(use, tmp_path):
    use(LONG.get(use.__name__, 2000), tmp_path)
