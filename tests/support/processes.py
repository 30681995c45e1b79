"""Every kind of object, and how to use it, for tests of other processes."""

from __future__ import annotations

import faulthandler
import pathlib
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import dala
from dala.gpu import create_surface
from dala.gpu.compute import Pipeline, Stream, buffer, buffer_zeros, kernel, read_async, submit
from dala.gpu.compute.kernel import get
from dala.media import Frame, FramePipeline, Scene, TextStyle, TexturePool, load_lut, video
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model

GAIN = 3.0


@kernel
def forked_gain(x, *, by: float = 2.0):
    """A kernel of a module, with a constant of it."""
    return x * by + GAIN


def model_file(folder: pathlib.Path) -> pathlib.Path:
    """Write a small classifier whose product needs the threads of ONNX Runtime."""
    graph = Graph("tiny")
    x = graph.input("pixels", ("batch", 3, 4, 6))
    flat = graph.node("Flatten", x, axis=1)
    rng = np.random.default_rng(3)
    wide = graph.constant(rng.normal(size=(72, 4096)).astype(np.float32))
    narrow = graph.constant(rng.normal(size=(4096, 6)).astype(np.float32) / 64)
    made = graph.node("MatMul", graph.node("MatMul", flat, wide), narrow)
    graph.output(made, ("batch", 6), name="scores")
    path = folder / "tiny.onnx"
    path.write_bytes(graph.save())
    return path


def video_file(folder: pathlib.Path) -> pathlib.Path:
    """Write a video of six frames."""
    path = folder / "clip.mp4"
    with video.write(path, fps=10) as sink:
        for n in range(6):
            sink.write(np.full((16, 16, 3), 40 * n, np.uint8))
    return path


def total(picture: Any) -> int:
    return int(np.asarray(picture).sum())


def _relu(stream: Any) -> list[float]:
    made, out = buffer([1.0, -2.0]), buffer_zeros((2,))
    spec = {"op": "run_kernel", "kernel": "relu", "inputs": [made], "output": out}
    stream.submit(spec).result(timeout=60)
    return out.read_list()


#: How each kind of object is used; the results can be compared.
USES: dict[str, Callable[[Any], object]] = {
    "buffer": lambda b: (b * 2).read_list(),
    "expression": lambda b: b.read_list(),
    "frame": total,
    "kernel": lambda k: k(buffer([1.0, 2.0]), by=4.0).read_list(),
    "text kernel": lambda k: k(buffer([1.0, 2.0])).read_list(),
    "built-in": lambda k: k(buffer([-1.0, 2.0])).read_list(),
    "command": int,
    "cube": lambda c: c.table.tolist(),
    "style": lambda s: (s.size, s.weight),
    "error": lambda e: (type(e).__name__, str(e)),
    "device": lambda d: d.id,
    "pipeline": lambda p: p.run(),
    "stream": _relu,
    "future": lambda f: bytes(f.result(timeout=60)),
    "texture": lambda t: total(t.array),
    "textures": lambda p: total(p.load("again", np.full((2, 2, 3), 9, np.uint8)).array),
    "frames": lambda p: total(p.process(np.full((16, 16, 4), 80, np.uint8), [("invert", {})])),
    "scene": lambda s: total(s.render(time=1.0)),
    "node": lambda n: tuple(n.position),
    "model": lambda m: (
        np.asarray(m.predict(np.ones((1, 3, 4, 6), np.float32)).raw).tolist()
        if not isinstance(m.predict(np.ones((1, 3, 4, 6), np.float32)).raw, dict)
        else [v.tolist() for v in m.predict(np.ones((1, 3, 4, 6), np.float32)).raw.values()]
    ),
    "surface": lambda s: s.get_pixels(),
    "reader": lambda r: [total(frame) for frame in r],
    "writer": lambda w: w.write(np.zeros((16, 16, 3), np.uint8)),
    "video scene": lambda s: total(s.render(time=0.4)),
}


def make(folder: pathlib.Path) -> dict[str, Any]:
    """Return one object of each kind, in use: their threads run."""
    dala.use("cpu")
    rng = np.random.default_rng(5)
    picture = rng.integers(0, 255, (16, 16, 4), np.uint8)
    clip = video_file(folder)
    table = folder / "table.cube"
    rows = [f"{r} {g} {b}" for b in (0, 1) for g in (0, 1) for r in (0, 1)]
    table.write_text("LUT_3D_SIZE 2\n" + "\n".join(rows))
    source, target = buffer([1.0, -2.0]), buffer_zeros((2,))
    chain = Pipeline().add(
        {"op": "run_kernel", "kernel": "relu", "inputs": [source], "output": target}
    )
    textures = TexturePool(1 << 20)
    scene, moving = Scene(16, 16), Scene(16, 16)
    node = scene.add_image(picture, position=(2, 3))
    scene.add_text("fork", size=8)
    moving.add_video(str(clip))
    surface = create_surface(4, 4)
    surface.clear("red")
    reader = video.open(clip)
    next(iter(reader))
    writer = video.write(folder / "written.mp4", fps=10)
    stream = Stream(workers=1)
    return {
        "buffer": buffer([1.0, 2.0]),
        "expression": buffer([1.0, 2.0]) * 3 + 1,
        "frame": Frame.from_array(picture),
        "kernel": forked_gain,
        "text kernel": kernel("def forked_text(x): return x + 1.5"),
        "built-in": get("relu"),
        "command": submit({"op": "barrier"}),
        "cube": load_lut(table),
        "style": TextStyle(size=12),
        "error": dala.FreedError("gone", call="read"),
        "device": dala.devices()[-1],
        "pipeline": chain,
        "stream": stream,
        "future": read_async(buffer([1.0])),
        "texture": textures.load("red", picture),
        "textures": textures,
        "frames": FramePipeline(16, 16),
        "scene": scene,
        "node": node,
        "model": load_model(model_file(folder), provider="cpu", threads=2),
        "surface": surface,
        "reader": reader,
        "writer": writer,
        "video scene": moving,
    }


def attempt(kind: str, made: Any) -> object:
    """Return the result of a use, or the text of its error."""
    try:
        return USES[kind](made)
    except dala.DalaError as error:
        return f"{type(error).__name__}: {error}"


def attempt_all(objects: Mapping[str, Any]) -> dict[str, object]:
    """Return the result of each use; runs in another process."""
    dala.use("cpu")
    return {kind: attempt(kind, made) for kind, made in objects.items()}


def send_all(pipe: Any, objects: Mapping[str, Any]) -> None:
    """Send the results of all uses; the main function of a child process."""
    if hasattr(signal, "alarm"):  # a child that hangs says where
        faulthandler.register(signal.SIGALRM, file=sys.__stderr__, chain=True)
        signal.alarm(30)
    pipe.send(attempt_all(objects))
    pipe.close()
