"""``dala.limits`` around every public area: each looks at the deadline as often as it works.

The clock of these tests is no clock: each look at it is one tick, so that a deadline of n ticks
ends whatever looks n times, and nothing that looks less often. Nothing depends on the machine.
"""

from __future__ import annotations

import io
import struct
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.format import open_memmap

import dala
from dala import batch, budget
from dala.gpu import Path as Path2D
from dala.gpu import compute
from dala.media import (
    Frame,
    Scene,
    audio,
    gpu,
    live,
    load_lut,
    load_scene,
    load_subtitles,
    text,
    video,
)
from dala.media.files import load_array
from dala.media.video.source import FrameQueue
from dala.ml.convert.tflite import convert_tflite
from dala.ml.convert.torch_file import read_torch
from dala.ml.gpu import load_model
from dala.ml.weights import pull
from dala.png import encode_png
from dala.shaders import isf, shadertoy
from tests.fuzz.flatbuffer import tflite_network
from tests.fuzz.targets.weights import zipped
from tests.support import processes

Bomb = Callable[[Path], Callable[[], object]]
#: Seconds of a tick: no real clock reaches the end of a block.
TICK = 1000.0

NOISE = np.random.default_rng(3).integers(0, 255, (64, 48, 3), np.uint8)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The looks at the clock so far."""
    found = SimpleNamespace(count=0)
    base = monotonic()

    def read() -> float:
        found.count += 1
        return base + found.count * TICK

    monkeypatch.setattr(budget, "clock", SimpleNamespace(monotonic=read))
    return found


# the bombs: each returns what runs inside of the block --------------------------------------------
def kernel_text(folder: Path) -> Callable[[], object]:
    lines = "    x = x * 1.5 + 0.25\n" * 60
    return lambda: compute.kernel(f"def f(x):\n{lines}    return x\n").source("ir")


def picture(folder: Path) -> Callable[[], object]:
    pixels = np.random.default_rng(1).integers(0, 255, (700, 700, 3), np.uint8)
    data = encode_png(pixels)
    return lambda: Frame.open(io.BytesIO(data))


def saved_picture(folder: Path) -> Callable[[], object]:
    frame = Frame.from_array(np.zeros((2000, 1100, 4), np.uint8))
    return lambda: frame.save(folder / "out.png")


def animation(folder: Path, suffix: str = "gif") -> Callable[[], object]:
    path = folder / f"bomb.{suffix}"
    with video.write(path, fps=10) as writer:
        for n in range(20):
            writer.write(np.roll(NOISE, n, 0))
    return lambda: list(video.open(path))


def apng(folder: Path) -> Callable[[], object]:
    return animation(folder, "apng")


def webp(folder: Path) -> Callable[[], object]:
    return animation(folder, "webp")


def empty_gif(folder: Path) -> Callable[[], object]:
    path = folder / "bomb.gif"
    path.write_bytes(b"GIF89a" + struct.pack("<HHB", 10, 10, 0) + b"\0\0" + b"\1" * 200)
    return lambda: video.open(path)


def first_picture(folder: Path) -> Callable[[], object]:
    """A GIF of many pictures, of which the first is asked for."""
    animation(folder)
    data = (folder / "bomb.gif").read_bytes()

    def run() -> Frame:
        with warnings.catch_warnings(action="ignore"):  # there are more pictures
            return Frame.open(data)

    return run


def many_chunks(folder: Path) -> Callable[[], object]:
    animation(folder, "apng")
    data = (folder / "bomb.apng").read_bytes()
    at = data.index(b"IEND") - 4
    return lambda: video.open(data[:at] + (bytes(4) + b"tEXt" + bytes(4)) * 200 + data[at:])


def clip(folder: Path) -> Path:
    path = folder / "clip.mp4"
    with video.write(path, fps=25) as writer:
        for n in range(20):
            writer.write(np.roll(NOISE, n, 0))
    return path


def frames(folder: Path) -> Callable[[], object]:
    path = clip(folder)
    return lambda: list(video.open(path))


def written(folder: Path) -> Callable[[], object]:
    def write() -> None:
        with video.write(folder / "out.mp4", fps=25) as writer:
            for _ in range(20):
                writer.write(NOISE)

    return write


def sound(folder: Path) -> Callable[[], object]:
    path = folder / "sound.wav"
    audio.noise(8).save(path)
    return lambda: audio.open(path).read()


def saved_sound(folder: Path) -> Callable[[], object]:
    noise = audio.noise(8)
    return lambda: noise.save(folder / "out.flac")


def effects(folder: Path) -> Callable[[], object]:
    noise = audio.noise(8)
    return lambda: noise.echo()


def loudness(folder: Path) -> Callable[[], object]:
    noise = audio.noise(8)
    return lambda: noise.loudness()


CUES = "".join(f"00:0{n % 9}:01.000 --> 00:0{n % 9}:02.000\nline {n}\n\n" for n in range(40))


def srt(folder: Path) -> Callable[[], object]:
    return lambda: load_subtitles(CUES)


def vtt(folder: Path) -> Callable[[], object]:
    return lambda: load_subtitles("WEBVTT\n\n" + CUES)


def ass(folder: Path) -> Callable[[], object]:
    line = "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Hi\n"
    return lambda: load_subtitles("[Script Info]\n[Events]\n" + line * 40)


def one_cue(folder: Path) -> Callable[[], object]:
    return lambda: load_subtitles("00:00:01,000 --> 00:00:02,000\n" + "word\n" * 40)


def table(folder: Path) -> Callable[[], object]:
    path = folder / "bomb.cube"
    path.write_text("LUT_3D_SIZE 4\n" + "0.1 0.2 0.3\n" * 64)
    return lambda: load_lut(path)


def nodes(count: int) -> dict[str, Any]:
    box = {"type": "overlay", "color": "red", "size": [4, 4]}
    return {"dala": 1, "width": 16, "height": 16, "nodes": [box] * count}


def loaded_scene(folder: Path) -> Callable[[], object]:
    return lambda: load_scene(nodes(40), "cpu")


def first_frame(folder: Path) -> Callable[[], object]:
    scene = load_scene(nodes(40), "cpu")
    return lambda: scene.render()


def scene_frames(folder: Path) -> Callable[[], object]:
    scene = Scene(16, 16, device="cpu")
    return lambda: [scene.render() for _ in range(40)]


def inner_scenes(folder: Path) -> Callable[[], object]:
    data = nodes(1)
    for _ in range(30):
        data = {"width": 16, "height": 16, "nodes": [{"type": "scene", "scene": data}]}
    scene = load_scene({"dala": 1, **data}, "cpu")
    return lambda: scene.render()


def words(folder: Path) -> Callable[[], object]:
    return lambda: text.set_text(" ".join(f"w{n}" for n in range(60)))


def long_word(folder: Path) -> Callable[[], object]:
    with Scene(16, 16, device="cpu") as scene:
        node = scene.add_text("x" * 300, size=10, width=30)
        return lambda: node.natural()


def model(folder: Path) -> Callable[[], object]:
    path = processes.model_file(folder)
    return lambda: load_model(path, provider="cpu")


def predictions(folder: Path) -> Callable[[], object]:
    made = load_model(processes.model_file(folder), provider="cpu")
    given = np.ones((1, 3, 4, 6), np.float32)
    return lambda: [made.predict(given) for _ in range(10)]


def keyframes(folder: Path) -> Callable[[], object]:
    moves = {"node": "n", "property": "x", "keyframes": [[n, n] for n in range(100)]}
    data = {**nodes(0), "nodes": [{**nodes(1)["nodes"][0], "id": "n"}], "animations": [moves]}
    return lambda: load_scene(data, "cpu")


def path_data(folder: Path) -> Callable[[], object]:
    return lambda: Path2D.svg("M0 0" + "L1 1" * 60)


def drawing(folder: Path) -> Callable[[], object]:
    text = "<rect/>" * (3 * 4096)
    data = f'<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4">{text}</svg>'
    return lambda: Frame.open(data.encode())


def shapes(folder: Path) -> Callable[[], object]:
    path = Path2D.svg("M0 0H4V4Z")
    with Scene(16, 16, device="cpu") as scene:
        made = [scene.add_shape(path, fill="red") for _ in range(20)]
    return lambda: [node.content() for node in made]


def pickled(folder: Path) -> Callable[[], object]:
    data = zipped(b"\x80\x02]q\x00(" + b"K\x01" * 60 + b"e.")
    return lambda: read_torch(data)


def network(folder: Path) -> Callable[[], object]:
    data = tflite_network()
    return lambda: convert_tflite(data)


def array(folder: Path) -> Callable[[], object]:
    open_memmap(folder / "map.npy", "w+", np.uint8, (16, 1 << 20)).flush()
    return lambda: load_array(folder / "map.npy")


def shader(folder: Path) -> Callable[[], object]:
    lines = "    c = c * 1.5 + vec4(0.25);\n" * 100
    return lambda: isf(f"/*{{}}*/ void main() {{ vec4 c; {lines} gl_FragColor = c; }}")


def macros(folder: Path) -> Callable[[], object]:
    given = f"#define F(a) {'a ' * 100}\nvoid main() {{ F(F(;)) }}"
    return lambda: isf("/*{}*/" + given)


def passes(folder: Path) -> Callable[[], object]:
    made = shadertoy("void mainImage(out vec4 c, in vec2 p) { c = vec4(iTime); }")

    def run() -> None:
        with made.start(4, 4, device="cpu") as state:
            for _ in range(40):
                state.render()

    return run


def mistakes(folder: Path) -> Callable[[], object]:
    data = {**nodes(0), "nodes": [{"type": "overlay", "below": "x"}] * 60}

    def run() -> None:
        with suppress(dala.errors.SceneFileError):
            load_scene(data, "cpu")

    return run


def pictures(folder: Path, count: int = 40) -> str:
    for number in range(count):
        Frame.from_array(NOISE).save(folder / f"{number}.png")
    return str(folder / "*.png")


def found_files(folder: Path) -> Callable[[], object]:
    job = batch.images(pictures(folder), f"{folder}/out/", ["invert"], device="cpu")
    return lambda: job.plan(calibrate=False)


def job(folder: Path) -> Callable[[], object]:
    given = pictures(folder, 2)
    made = batch.images(given, f"{folder}/out/", ["invert"], device="cpu")
    return lambda: made.run(workers=1, progress=False, resume=True).check()


def exported(folder: Path) -> Callable[[], object]:
    from dala import web

    return lambda: web.export(["grayscale"], folder / "page")


def download(folder: Path) -> Callable[[], object]:
    command = [sys.executable, "-c", "import time; time.sleep(0.5)"]
    (folder / "got").mkdir()
    return lambda: pull._run("a model", command, folder, lambda done: None)


def sent(folder: Path) -> Callable[[], object]:
    path = clip(folder)
    return lambda: live.send(str(path), str(folder / "out.m3u8"))


def filtered(folder: Path) -> Callable[[], object]:
    return lambda: [gpu.apply(NOISE, "median") for _ in range(20)]


#: How often each looks at the clock, at least.
BOMBS: dict[Bomb, int] = {
    kernel_text: 60, picture: 20, saved_picture: 30, animation: 20, apng: 20, webp: 20,
    empty_gif: 100, frames: 20, written: 20, sound: 40, saved_sound: 5, effects: 5, loudness: 5,
    srt: 40, vtt: 40, ass: 40, one_cue: 40, table: 64, loaded_scene: 40, first_frame: 40,
    scene_frames: 40, inner_scenes: 30, words: 60, long_word: 10, model: 10, predictions: 20,
    first_picture: 15, many_chunks: 200, keyframes: 100, path_data: 60, pickled: 60, network: 10,
    array: 2, filtered: 20, drawing: 3, shapes: 20,
    shader: 100, macros: 30, passes: 40, mistakes: 60, found_files: 40, job: 4, exported: 4,
    download: 2, sent: 4,
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_the_deadline_is_looked_at(bomb: Bomb, tmp_path: Path, ticks: SimpleNamespace) -> None:
    run = bomb(tmp_path)
    with dala.limits(time=TICK * BOMBS[bomb]), pytest.raises(dala.CommandTimeout) as info:
        run()
    assert "dala.limits" in str(info.value)
    before = ticks.count
    with suppress(dala.errors.VideoError):  # what is damaged stays so
        run()  # without limits it goes on, and nothing looks at a clock
    assert ticks.count == before


def test_waiting_for_a_frame_ends(ticks: SimpleNamespace) -> None:
    queue = FrameQueue(1, "every")
    with dala.limits(time=TICK * 2.5), pytest.raises(dala.CommandTimeout, match=r"video\.open"):
        queue.get()


# memory -------------------------------------------------------------------------------------------
def many_words(folder: Path) -> Callable[[], object]:
    scene = Scene(16, 16, device="cpu")
    scene.add_text("word " * 500, width=300)
    return scene.render


MEMORY: dict[str, Bomb] = {
    "buffer": lambda folder: lambda: compute.buffer_zeros((1000, 1000), device="cpu"),
    "surface": lambda folder: lambda: dala.gpu.create_surface(1000, 1000),
    "picture": picture,
    "animation": lambda folder: animation(folder),
    "frames": frames,
    "sound": sound,
    "silence": lambda folder: lambda: audio.silence(600),
    "effects": effects,
    "srt": lambda folder: lambda: load_subtitles(CUES * 200),
    "table": lambda folder: lambda: load_lut(large_table(folder)),
    "scene": lambda folder: lambda: Scene(1000, 1000, device="cpu").render(),
    "scene file": lambda folder: lambda: load_scene(nodes(20_000), "cpu"),
    "text": many_words,
    "array": lambda folder: array(folder),
    "model": model,
}


def large_table(folder: Path) -> Path:
    path = folder / "large.cube"
    path.write_text("LUT_3D_SIZE 32\n" + "0.1 0.2 0.3\n" * 32**3)
    return path


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_refused(name: str, tmp_path: Path) -> None:
    run = MEMORY[name](tmp_path)
    with dala.limits(memory=4000), pytest.raises(dala.LimitExceeded, match="memory"):
        run()


def test_files_without_blocks_on_the_disk(tmp_path: Path) -> None:
    """A file may claim a terabyte of zeros, and take none."""
    path = tmp_path / "map.npy"
    open_memmap(path, "w+", np.uint8, (1 << 20,)).flush()
    whole = path.read_bytes()
    with path.open("wb") as file:
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({1 << 40},), }}"
        file.write(whole[:10] + header.ljust(117).encode() + b"\n")
        file.truncate((1 << 40) + 128)
    with pytest.raises(dala.MemoryLimitExceeded, match=r"numpy\.load"):
        load_array(path)
