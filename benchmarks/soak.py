"""Soak: everything, again and again, for an hour; memory, threads and descriptors stay flat.

``make soak`` runs an hour, ``python -m benchmarks.soak --minutes 5`` five minutes. The last half of
the samples is checked: a resource that grows is a leak, and the exit status is 1. The plot is drawn
with our own scenes and text.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import numpy as np

import dala
from dala import resources
from dala.gpu import create_surface
from dala.gpu.compute import Pipeline, Stream, buffer, buffer_zeros, kernel
from dala.media import Frame, Scene, TexturePool, gpu, video

#: What may grow between the two middles of the last half, beyond its own noise.
ALLOWED = {"memory MB": 24.0, "threads": 2.0, "descriptors": 2.0, "objects": 2.0}
COLORS = {"memory MB": "#4c9", "threads": "#fa4", "descriptors": "#5af", "objects": "#f6a"}

_numbers = itertools.count(1)


def kernels(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """Compile a new kernel, run it and drop it."""
    number = next(_numbers)
    made = kernel(f"def soak(x): return x * {number}.5 + 1")
    found = made(buffer([1.0, 2.0])).read_list()
    assert found == [number + 1.5, 2 * number + 2.0], found


def pipelines(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """A pipeline of a new shape."""
    height, width = (int(n) for n in rng.integers(1, 200, 2))
    source = buffer(rng.integers(0, 255, (height, width, 4), np.uint8), dtype="u8")
    between = buffer_zeros(source.shape, "u8", transient=True)
    target = buffer_zeros(source.shape, "u8")
    with Pipeline() as made:
        for name, start, end in (("blur", source, between), ("invert", between, target)):
            made.add({"op": "run_kernel", "kernel": name, "inputs": [start], "output": end})
        made.run()
        target.read()


def streams(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """A stream of commands."""
    with Stream(workers=2) as stream:
        a, b = buffer([1.0, -1.0]), buffer_zeros((2,))
        spec = {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": b}
        for _ in range(20):
            stream.submit(spec)
    assert b.read_list() == [1.0, 0.0]


def surfaces(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """A surface with images, which is resized."""
    with create_surface(64, 64) as surface:
        for n in range(20):
            surface.fill_circle(n, n, 9, (n, 2 * n, 3 * n))
            surface.load_image(n, bytes(4 * 64), 8, 8)
            surface.draw_image(n, 1, 1, 20, 20)
        surface.present()
        surface.resize(int(rng.integers(8, 300)), 40)
        surface.get_pixels()


def scenes(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """A scene with text, an image, an effect and a video."""
    with Scene(120, 80) as scene:
        scene.add_video(str(folder / "clip.mp4"))
        scene.add_text(f"soak {next(_numbers)}", size=14)
        scene.add_image(rng.integers(0, 255, (16, 16, 4), np.uint8), position=(20, 20))
        scene.add_effect("blur", radius=2)
        for n in range(4):
            scene.render(time=n / 10)


def videos(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """Write a video and read it, not always to its end."""
    path = folder / "made.mp4"
    with video.write(path, fps=10) as sink:
        for n in range(4):
            sink.write(np.full((32, 48, 3), 60 * n, np.uint8))
    with video.open(path) as reader:
        next(iter(reader))
        if rng.integers(2):
            list(reader)


def pictures(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """Filters of a new size, files, textures."""
    size = tuple(int(n) for n in rng.integers(4, 100, 2))
    picture = rng.integers(0, 255, (*size, 4), np.uint8)
    with Frame.from_array(gpu.resize(gpu.blur(picture, radius=2), 30, 20)) as frame:
        frame.save(folder / "picture.png")
    with Frame.open(folder / "picture.png"), TexturePool(1 << 22) as pool:
        pool.load("a", picture)


def models(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """Load a model, run it, close it."""
    from dala.ml.gpu import load_model

    with load_model(folder / "tiny.onnx", provider="cpu") as model:
        model.predict(rng.random((1, 3, 8, 8), np.float32))


def devices(rng: np.random.Generator, folder: pathlib.Path) -> None:
    """Work on every device in turn."""
    for device in ("reference", "cpu", "null", *_webgpu()):
        with dala.device(device):
            (buffer([1.0, 2.0]) * 2 + 1).read_list()


def _webgpu() -> list[str]:
    return [device.id for device in dala.devices() if device.backend == "webgpu"][:1]


USES: tuple[Callable[[np.random.Generator, pathlib.Path], None], ...] = (
    kernels, pipelines, streams, surfaces, scenes, videos, pictures, models, devices,
)  # fmt: skip


def prepare(folder: pathlib.Path) -> None:
    """Write the files that the uses read."""
    from dala.ml.convert.onnx_file import Graph

    with video.write(folder / "clip.mp4", fps=10) as sink:
        for n in range(5):
            sink.write(np.full((32, 48, 3), 50 * n, np.uint8))
    graph = Graph("tiny")
    x = graph.input("pixels", ("batch", 3, 8, 8))
    mean = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    graph.output(mean, ("batch", 3), name="scores")
    (folder / "tiny.onnx").write_bytes(graph.save())


def sample() -> dict[str, float]:
    """Return what must stay flat."""
    gc.collect()
    memory = 0.0
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        row = next(r for r in status.read_text().splitlines() if r.startswith("VmRSS"))
        memory = int(row.split()[1]) / 1024
    opened = pathlib.Path("/proc/self/fd")
    return {
        "memory MB": memory,
        "threads": float(threading.active_count()),
        "descriptors": float(len(os.listdir(opened))) if opened.exists() else 0.0,
        "objects": float(sum(row["count"] for row in resources.snapshot().values())),
    }


def growth(values: list[float]) -> float:
    """Return how much the last quarter lies above the one before, by their medians."""
    half = values[len(values) // 2 :]
    middle = len(half) // 2
    return statistics.median(half[middle:]) - statistics.median(half[:middle])


def leaks(samples: list[dict[str, float]]) -> list[str]:
    """Return the resources that grew, as text."""
    found = []
    for name, most in ALLOWED.items():
        more = growth([row[name] for row in samples])
        if more > most:
            found.append(f"{name} grew by {more:.1f}, at most {most:g}")
    return found


def plot(samples: list[dict[str, float]], minutes: float, path: pathlib.Path) -> None:
    """Draw the samples as a picture, with a scene."""
    width, height, gap = 900, 130, 30
    with Scene(width, (height + gap) * len(ALLOWED) + gap, background="#111820") as scene:
        for row, name in enumerate(ALLOWED):
            values = np.array([each[name] for each in samples])
            top = gap + row * (height + gap)
            most = max(values.max() * 1.1, 1.0)
            canvas = np.zeros((height, width - 40, 4), np.uint8)
            canvas[:] = (32, 42, 54, 255)
            color = tuple(17 * int(digit, 16) for digit in COLORS[name][1:])
            columns = np.linspace(0, len(values) - 1, width - 40).round().astype(int)
            heights = (values[columns] / most * (height - 4)).round().astype(int)
            for x, y in enumerate(heights):
                canvas[height - 1 - y : height, x, :3] = np.array(color) // 3
                canvas[max(height - 3 - y, 0) : height - y, x, :3] = color
            scene.add_image(canvas, position=(20, top))
            text = f"{name}: {values[0]:.0f} to {values[-1]:.0f}, at most {values.max():.0f}"
            scene.add_text(text, size=15, position=(20, top - 21), color="white")
        text = f"{len(samples)} samples over {minutes:.0f} minutes"
        scene.add_text(text, size=14, position=(20, scene.height - 24), color="#9ab")
        scene.render().save(path)


def run(minutes: float, seed: int = 1) -> list[dict[str, float]]:
    """Use everything for some minutes; return the samples, at most one a second."""
    rng = np.random.default_rng(seed)
    samples: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name, dala.device("cpu"):
        folder = pathlib.Path(name)
        prepare(folder)
        for use in USES:  # caches and pools fill
            use(rng, folder)
        end, due = time.monotonic() + minutes * 60, 0.0
        while time.monotonic() < end:
            for index in rng.permutation(len(USES)):
                USES[index](rng, folder)
            if time.monotonic() >= due:
                samples.append(sample())
                due = time.monotonic() + 1.0
    return samples


def main() -> None:
    """Run, print, plot, and exit with 1 at a leak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--plot", type=pathlib.Path, help="a PNG file for the plot")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the samples")
    args = parser.parse_args()
    samples = run(args.minutes)
    for name in ALLOWED:
        values = [row[name] for row in samples]
        print(f"{name:12} first {values[0]:8.1f}  last {values[-1]:8.1f}  max {max(values):8.1f}"
              f"  growth of the last half {growth(values):+.1f}")  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps(samples))
    if args.plot:
        plot(samples, args.minutes, args.plot)
    found = leaks(samples)
    for row in found:
        print(f"LEAK: {row}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
