"""The public operations that faults are put into, made from the lists that the project has.

Each takes an empty folder, and returns a value that is the same every time. Names that a list has
and this module does not are found by ``test_lists.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import dala
from dala.gpu import Path as Outline
from dala.gpu import compute, create_surface
from dala.gpu.compute import Pipeline, Stream, buffer, buffer_zeros, kernel
from dala.media import (
    Frame,
    FramePipeline,
    Scene,
    TexturePool,
    Timeline,
    audio,
    effects,
    gpu,
    load_lut,
    load_scene,
    load_subtitles,
    video,
)
from dala.ml.gpu import load_model
from tests.support import processes

Operation = Callable[[Path], object]

PICTURE = np.random.default_rng(2).integers(0, 255, (16, 16, 4), np.uint8)
FRAMES = [np.full((16, 16, 3), 50 * n, np.uint8) for n in range(3)]
IDENTITY = np.eye(3, dtype=np.float32)
_numbers = itertools.count(1)


def table(folder: Path) -> Path:
    path = folder / "table.cube"
    if not path.exists():
        rows = [f"{r} {g} {b}" for b in (0, 1) for g in (0, 1) for r in (0, 1)]
        path.write_text("LUT_3D_SIZE 2\n" + "\n".join(rows))
    return path


def picture(folder: Path) -> Path:
    path = folder / "in.png"
    if not path.exists():
        Frame.from_array(PICTURE).save(path)
    return path


def drawing(folder: Path) -> Path:
    path = folder / "in.svg"
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"/>')
    return path


def clip(folder: Path) -> Path:
    path = folder / "in.mp4"
    if not path.exists():
        with video.write(path, fps=10) as sink:
            for frame in FRAMES:
                sink.write(frame)
    return path


def weights(folder: Path) -> Path:
    path = folder / "tiny.onnx"
    return path if path.exists() else processes.model_file(folder)


# compute ------------------------------------------------------------------------------------------
def buffers(folder: Path) -> object:
    with buffer([1.0, 2.0, 3.0]) as a, buffer_zeros((3,)) as b:
        a.write([4.0, 5.0, 6.0])
        return a.read_list() + b.read_list() + [float(a.numpy().sum()), a.copy().read_list()]


def large_buffers(folder: Path) -> object:
    """Uploads and downloads through mapped memory."""
    with compute.from_array(np.arange(1 << 19, dtype=np.float32)) as made:
        return float(made.numpy()[-1])


def expressions(folder: Path) -> object:
    return ((buffer([1.0, 2.0]) * 2 + 1).sum().read_list(), (buffer([3.0]) > 1).read_list())


def kernels(folder: Path) -> object:
    number = next(_numbers)  # compiled each time
    made = kernel(f"def faulty(x): return sin(x * {number}.0) * 0.0 + x * 2.0")
    return made(buffer([1.0, 2.0])).read_list()


def operations(folder: Path) -> object:
    """Operations with engine code of their own."""
    a = buffer(np.arange(16, dtype=np.float32).reshape(4, 4))
    return (
        compute.matmul(a, a).read_list(),
        compute.softmax(a).read_list(),
        a.sum(axis=1).read_list(),
        a.T.copy().read_list(),
    )


def async_reads(folder: Path) -> object:
    async def reads() -> object:
        out = buffer_zeros((2,))
        await compute.run_kernel_async("relu", [buffer([-1.0, 2.0])], out)
        return bytes(await compute.read_async(out))

    return asyncio.run(reads())


def pipelines(folder: Path) -> object:
    source, target = buffer(PICTURE, dtype="u8"), buffer_zeros((16, 16, 4), "u8")
    between = buffer_zeros((16, 16, 4), "u8", transient=True)
    made = Pipeline()
    for name, start, end in (("blur", source, between), ("invert", between, target)):
        made.add({"op": "run_kernel", "kernel": name, "inputs": [start], "output": end})
    with made:
        made.run()
        made.explain()
        return target.read()


def streams(folder: Path) -> object:
    with Stream(workers=1) as stream:
        source, target = buffer([1.0, -2.0]), buffer_zeros((2,))
        stream.submit(
            {"op": "run_kernel", "kernel": "relu", "inputs": [source], "output": target}
        ).result(timeout=60)
        return target.read_list()


def frame_pipelines(folder: Path) -> object:
    with FramePipeline(16, 16) as made:
        return made.process(PICTURE, [("blur", {"radius": 2}), ("invert", {})]).tobytes()


def textures(folder: Path) -> object:
    with TexturePool(1 << 20) as pool:
        return pool.load("a", PICTURE).buffer.read()


#: Those that run on every engine.
COMPUTE: tuple[Operation, ...] = (
    buffers, large_buffers, expressions, kernels, operations, async_reads, pipelines, streams,
    frame_pipelines, textures,
)  # fmt: skip

# filters ------------------------------------------------------------------------------------------
#: Parameters of filters that need some, made in a folder.
NEEDED: dict[str, Callable[[Path], dict[str, Any]]] = {
    "bicubic_scale": lambda folder: {"scale": 2.0},
    "color_matrix": lambda folder: {"matrix": IDENTITY},
    "crop": lambda folder: {"box": (2, 3, 10, 12)},
    "lut_apply": lambda folder: {"lut": load_lut(table(folder))},
    "pad": lambda folder: {"padding": (1, 2, 3, 4)},
    "remap": lambda folder: {"map": np.zeros((16, 16, 2), np.float32)},
    "resize": lambda folder: {"size": (8, 8)},
    "rotate": lambda folder: {"angle": 20},
    "thumbnail": lambda folder: {"size": 8},
    "warp_affine": lambda folder: {"matrix": IDENTITY[:2]},
    "warp_perspective": lambda folder: {"matrix": IDENTITY},
    "grade": lambda folder: {"saturation": 1.5},
    "temperature": lambda folder: {"value": 0.3},
    "curves": lambda folder: {"master": [(0.0, 0.0), (0.5, 0.6), (1.0, 1.0)]},
}
#: Filters of two pictures.
OF_TWO = ("blend", "overlay_alpha", "video_mix", "overlay")
#: Filters that need a model's weights, which are not on every machine.
WITH_MODEL = ("virtual_background",)


def filter_operation(name: str) -> Operation:
    """Return the operation of a filter."""
    call = getattr(gpu, name, None) or getattr(effects, name)

    def run(folder: Path) -> object:
        more = (np.flipud(PICTURE).copy(),) if name in OF_TWO else ()
        found = call(PICTURE, *more, **NEEDED.get(name, lambda _: {})(folder))
        return np.asarray(found).tobytes()

    return run


# surfaces -----------------------------------------------------------------------------------------
SHADER = "def tint(px: Pixel, *, by=0.5): return rgba(px.r * by, px.g, px.b, px.a)"


def layered(s: Any) -> None:
    with s.layer(opacity=0.5, blend="screen", blur=1.0):
        s.circle(4, 4, 3, "teal")


#: One call of each drawing command, in an order in which each has what it needs.
DRAWING: dict[str, Callable[[Any], object]] = {
    "clear": lambda s: s.clear("red"),
    "fill_rect": lambda s: s.fill_rect(0, 0, 4, 4, "blue"),
    "draw_line": lambda s: s.draw_line(0, 0, 7, 7, "white"),
    "load_sprite": lambda s: s.load_sprite(3, PICTURE[:4, :4].tobytes(), 4, 4),
    "blit": lambda s: s.blit(3, 1, 1),
    "remove_sprite": lambda s: s.remove_sprite(3),
    "load_shader": lambda s: s.load_shader("tint", SHADER),
    "set_uniform": lambda s: s.set_uniform("by", struct.pack("<f", 0.25)),
    "dispatch_compute": lambda s: s.dispatch_compute("tint"),
    "draw_circle": lambda s: s.draw_circle(4, 4, 3, "lime"),
    "fill_circle": lambda s: s.fill_circle(4, 4, 2, "#00ff0080"),
    "draw_triangle": lambda s: s.draw_triangle(0, 0, 7, 0, 0, 7, "red"),
    "fill_triangle": lambda s: s.fill_triangle(0, 0, 7, 0, 0, 7, "gray"),
    "draw_round_rect": lambda s: s.draw_round_rect(1, 1, 6, 6, 2, "red"),
    "fill_round_rect": lambda s: s.fill_round_rect(1, 1, 6, 6, 2, "navy"),
    "load_path": lambda s: s.load_path(1, dala.gpu.Path.circle(4, 4, 3)),
    "remove_path": lambda s: s.remove_path(1),
    "fill": lambda s: s.fill(dala.gpu.Path.circle(4, 4, 3), "#ff00ff80"),
    "stroke": lambda s: s.stroke(dala.gpu.Path.circle(4, 4, 3), "white", dash=[2, 1]),
    "load_gradient": lambda s: s.load_gradient(
        1, "linear", "pad", "srgb", False, 1, 0, 0, 1, 0, 0, [0, 255, 0, 0, 255, 1, 0, 255, 0, 9]
    ),
    "load_image": lambda s: s.load_image(1, PICTURE[:4, :4].tobytes(), 4, 4),
    "load_pattern": lambda s: s.load_pattern(2, 1, "repeat", "linear", 1, 0, 0, 1, 0, 0),
    "remove_paint": lambda s: s.remove_paint(2),
    "load_mask": lambda s: s.load_mask(1, 4, 2, bytes(range(8))),
    "draw_masks": lambda s: s.draw_masks(0, "red", [(1, 2, 3)]),
    "remove_mask": lambda s: s.remove_mask(1),
    "layer": lambda s: layered(s),
    "clip": lambda s: s.clip(dala.gpu.Path.circle(4, 4, 3)).__enter__(),
    "push": lambda s: s.push(),
    "transform": lambda s: s.transform(1, 0.5, 0, 1, 2, 0),
    "pop": lambda s: s.pop(),
    "set_clip": lambda s: s.set_clip(1, 1, 5, 5),
    "reset_clip": lambda s: s.reset_clip(),
    "draw_image": lambda s: s.draw_image(1, 0, 0, 6, 6),
    "remove_image": lambda s: s.remove_image(1),
    "batch": lambda s: s.batch([dala.gpu.command.encode_clear("teal")]),
    "resize": lambda s: s.resize(9, 7),
    "set_pixels": lambda s: s.set_pixels(bytes(9 * 7 * 4)),
    "with_pixels": lambda s: s.with_pixels(lambda pixels: pixels.fill(9)),
    "present": lambda s: s.present(),
    "read_pixels": lambda s: s.read_pixels(0, 0, 2, 2),
}


def surfaces(folder: Path) -> object:
    """Every drawing command."""
    with create_surface(8, 8) as surface:
        for draw in DRAWING.values():
            draw(surface)
            surface.synchronize()
            if surface.errors:
                raise surface.errors[0]
        surface.save(folder / "surface.png")
        return surface.get_pixels()


def to_surfaces(folder: Path) -> object:
    """A kernel that writes to a surface."""
    with create_surface(16, 16) as surface:
        source, out = buffer(PICTURE, dtype="u8"), buffer_zeros((16, 16, 4), "u8")
        compute.run_to_surface("invert", [source], out, surface)
        return surface.get_pixels()


def browser(folder: Path) -> object:
    """A surface in the browser, whose page asks for a frame."""
    with (
        contextlib.redirect_stderr(io.StringIO()),
        create_surface(4, 4, show="browser") as surface,
    ):
        surface.clear("red")
        surface.present()
        address = urlsplit(surface.presenter.address)
        with socket.create_connection((address.hostname, address.port), 10) as page:
            ask = f"GET {address.path}frame?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            page.sendall(ask.encode())
            answer = b""
            while len(answer.partition(b"\r\n\r\n")[2]) < 64 and (got := page.recv(4096)):
                answer += got
        surface.synchronize()
        if surface.errors:
            raise surface.errors[0]
        head, _, pixels = answer.partition(b"\r\n\r\n")
        if len(pixels) < 64:
            raise ConnectionError("the page was not answered")
        return head.partition(b"\r\n")[0], pixels


def terminal(folder: Path) -> object:
    """A surface in a terminal, which is read while it is drawn."""
    ours, theirs = os.openpty()
    reader = threading.Thread(target=drain, args=(ours,), daemon=True)
    reader.start()
    before, sys.__stdout__ = sys.__stdout__, os.fdopen(theirs, "w")  # type: ignore[misc]
    try:
        with create_surface(4, 4, show="terminal") as surface:
            surface.clear("red")
            surface.present()
            surface.synchronize()
            return surface.get_pixels()
    finally:
        sys.__stdout__.close()
        sys.__stdout__ = before  # type: ignore[misc]
        reader.join()
        os.close(ours)


def drain(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # the other side is closed
        while os.read(descriptor, 4096):
            pass


SURFACES: tuple[Operation, ...] = (surfaces, to_surfaces, browser, terminal)


# media --------------------------------------------------------------------------------------------
def pictures(folder: Path) -> object:
    with Frame.from_array(PICTURE) as frame:
        for suffix in ("png", "jpg", "webp", "tiff", "bmp"):
            frame.save(folder / f"picture.{suffix}")
    found = []
    for suffix in ("png", "jpg", "webp", "tiff", "bmp"):
        with Frame.open(folder / f"picture.{suffix}") as again:
            found.append(np.asarray(again).tobytes())
    return found


def videos(folder: Path) -> object:
    with video.write(folder / "clip.mp4", fps=10) as sink:
        for each in FRAMES:
            sink.write(each)
    with video.open(folder / "clip.mp4") as reader:
        found = [processes.total(frame) for frame in reader]
        reader.seek(0.1)
        return [*found, *(processes.total(frame) for frame in reader)]


def native_videos(folder: Path) -> object:
    """Frames of the decoder's own layout, and a writer that keeps tracks of another file."""
    source = clip(folder)
    with (
        video.open(source, format="native") as reader,
        video.write(folder / "copy.mkv", codec="ffv1", tracks_from=source) as sink,
    ):
        for frame in reader:
            sink.write(frame)
    with video.open(folder / "copy.mkv") as again:
        return [processes.total(frame) for frame in again]


def deep_videos(folder: Path) -> object:
    """Frames of floats, at ten bits."""
    frames = [np.full((16, 16, 4), 0.25 * n, np.float32) for n in range(3)]
    video.write(folder / "deep.mkv", frames, fps=10, codec="ffv1", pixel_format="yuv420p10le")
    with video.open(folder / "deep.mkv", depth="float") as reader:
        return [round(float(np.asarray(frame).sum()), 3) for frame in reader]


def animations(folder: Path) -> object:
    found = []
    for suffix in ("gif", "apng", "webp"):
        path = folder / f"moving.{suffix}"
        video.write(path, FRAMES, fps=10)
        with video.open(path) as reader:
            found.append([processes.total(frame) for frame in reader])
    return found


def async_videos(folder: Path) -> object:
    async def copy() -> object:
        found = []
        async with video.write(folder / "later.mp4", fps=10) as sink:
            for each in FRAMES:
                await sink.write_async(each)
        async with video.open(folder / "later.mp4") as reader:
            async for frame in reader:
                found.append(processes.total(frame))
        return found

    return asyncio.run(copy())


def tables(folder: Path) -> object:
    other = folder / "table.spi1d"
    if not other.exists():
        other.write_text("Version 1\nFrom 0 1\nLength 3\nComponents 1\n{\n0.0\n0.5\n1.0\n}\n")
    cube = load_lut(table(folder))
    compute.save_cube(cube, folder / "saved.cube")
    return [cube.table.tolist(), load_lut(other).table.shape]


def texts(folder: Path) -> object:
    """Text with a font file, which is opened and shaped again, and subtitles."""
    path = folder / "lines.srt"
    if not path.exists():
        path.write_text("1\n00:00:00,000 --> 00:00:01,000\nHi <i>there</i>\n")
    with Scene(32, 16) as scene:
        scene.add_text(f"ab{next(_numbers)}"[:2], size=8)
        scene.add_subtitles(str(path), size=6)
        return len(load_subtitles(path)), np.asarray(scene.render(time=0.5)).tobytes()


def scenes(folder: Path) -> object:
    """Every kind of node, an effect, an animation; saved, loaded and rendered."""
    with Scene(16, 16) as inner, Scene(16, 16, fps=10) as scene:
        inner.add_overlay(size=(3, 3), color="lime")
        scene.add_image(str(picture(folder)), position=(1, 2))
        scene.add_text("ab", size=8)
        box = scene.add_overlay(size=(4, 4), color="red")
        scene.add_group()
        scene.add_video(str(clip(folder)))
        scene.add_shape(Outline.circle(2, 2, 2), fill="teal")
        scene.add_svg(str(drawing(folder)), width=4)
        scene.add_effect("blur", radius=2)
        scene.add_animation(box, "x", 0.0, 4.0, 1.0)
        scene.save(folder / "scene.json")
        first = np.asarray(scene.render(time=0.1)).tobytes()
        scene.add_scene(inner)
        second = np.asarray(scene.render(time=0.2)).tobytes()
        raise_first(scene)
    with load_scene(folder / "scene.json") as again:
        third = np.asarray(again.render(time=0.1)).tobytes()
        raise_first(again)
    return first, second, third


def sounding_scenes(folder: Path) -> object:
    """A timeline and a sound; saved, loaded, rendered with its sound."""
    path = folder / "tone.wav"
    if not path.exists():
        audio.tone(440, 0.3).save(path)
    with Scene(16, 16, fps=10) as scene:
        scene.add_timeline(Timeline().add("red", duration=0.1).add("lime", duration=0.2))
        scene.add_audio(str(path), volume=0.5)
        scene.save(folder / "sound.json")
        scene.render_to(folder / "sound.mkv", 0.3, progress=False)
        raise_first(scene)
    with audio.open(folder / "sound.mkv") as reader:
        return round(float(abs(reader.read().samples).max()), 3)


def raise_first(scene: Scene) -> None:
    """Raise the error of a node: a scene goes on without its picture, and keeps the error."""
    for error in scene.errors.values():
        raise error


def scene_outputs(folder: Path) -> object:
    """A scene as a video."""
    with Scene(16, 16, fps=10) as scene:
        scene.add_overlay(size=(4, 4), color="red")
        scene.render_to(folder / "scene.mp4", 0.3, progress=False)
    with video.open(folder / "scene.mp4") as reader:
        return [processes.total(frame) for frame in reader]


def models(folder: Path) -> object:
    with load_model(weights(folder), provider="cpu") as model:
        return np.asarray(model.predict(np.ones((1, 3, 4, 6), np.float32))).tolist()


def model_pictures(folder: Path) -> object:
    """A model that is shipped: a picture is prepared, and the result decoded."""
    with load_model("selfie", provider="cpu", pull=False) as model:
        return np.asarray(model.predict(PICTURE).mask).shape


MEDIA: tuple[Operation, ...] = (
    pictures, videos, native_videos, deep_videos, animations, async_videos, tables, texts, scenes,
    sounding_scenes, scene_outputs, models, model_pictures,
)  # fmt: skip
