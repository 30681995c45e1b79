"""Delays in real runs: the stage that was delayed is the one that the report names."""

import functools
import random
import re
import threading
import time
import urllib.request
from contextlib import suppress

import numpy as np
import pytest

import dala
from dala.cli import main
from dala.gpu.compute import kernel
from dala.media import Scene, gpu, live, video
from dala.media.video.chain import VideoChain
from dala.ml.gpu import load_model
from dala.trace import recorder

FRAMES = 40
#: Seconds of an injected delay: far more than a busy machine holds a thread up.
DELAY = 0.8
GPUS = [d.id for d in dala.devices() if d.backend == "webgpu"]
PICTURE = np.zeros((240, 400, 4), np.uint8)
FAST = {"preset": "ultrafast", "tune": "zerolatency"}


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "in.mp4"
    base = np.random.default_rng(3).integers(0, 255, (96, 160, 3), np.uint8)
    video.write(path, [np.roll(base, 4 * n, 1) for n in range(FRAMES)], fps=30)
    return path


# real runs: of a clip, to a file, and the frame in which something is slow by itself -------------
def filtered(clip, out, slow):
    """Decode, filter, encode: with threads of the decoder, of the encoder, and this one."""
    with (
        video.open(clip, format="native", device="cpu") as reader,
        VideoChain([("blur", {"radius": 3})], device="cpu", range="limited") as chain,
        video.write(out, fps=reader.fps, options=FAST) as sink,
    ):
        for frame in chain.stream(reader):
            sink.write(frame, copy=False)


def composed(clip, out, slow):
    with Scene(160, 96, fps=30, device="cpu") as scene:
        scene.add_video(clip, id="film")
        scene.add_text("late", x=4, y=4, size=12)
        scene.render_to(out, FRAMES / 30, options=FAST)


def sent(clip, out, slow):
    with live.open(out.with_suffix(""), (160, 96), fps=30) as sink:
        for n in range(FRAMES):
            sink.write(np.full((96, 160, 3), n, np.uint8))
            time.sleep(1 / 30)


def changed(clip, out, slow):
    """A kernel that no machine has compiled begins in a frame, beside one that is known."""
    with video.open(clip, device="cpu") as reader, video.write(out, fps=30, options=FAST) as sink:
        for n, frame in enumerate(reader):
            number = random.random() if n == slow else 0.5
            made = kernel(f"def traced_new(px: Pixel): return rgba(px.rgb * {number!r}, px.a)")
            sink.write(gpu.apply(frame, made, device="cpu"))


def predicted(clip, out, slow):
    with (
        video.open(clip, device="cpu") as reader,
        load_model("blazeface", "cpu") as model,
        video.write(out, fps=30, options=FAST) as sink,
    ):
        for frame in reader:
            model.predict(frame)
            sink.write(frame)


def shown(clip, out, slow):
    """A surface in a page, which asks for one frame after the other."""
    with dala.gpu.create_surface(64, 64, show="browser") as surface:

        def look():
            number = "0"
            with suppress(OSError):
                while True:
                    address = f"{surface.presenter.address}frame?after={number}"
                    with urllib.request.urlopen(address, timeout=30) as answer:
                        number = answer.headers.get("X-Frame", number)

        page = threading.Thread(target=look)
        page.start()
        for n in range(FRAMES):
            surface.fill_rect(n, 0, 1, 64, "red")
            surface.present()
            time.sleep(1 / 30)
        time.sleep(DELAY / 2)
    page.join()


def on_gpu(clip, out, slow):
    """A pass of a GPU is slow by itself: the time is the device's own."""
    if not GPUS:
        pytest.skip("no adapter")
    spin, rounds = slow_kernel()
    with video.open(clip, device="cpu") as reader, video.write(out, fps=30, options=FAST) as sink:
        for n, frame in enumerate(reader):
            times = rounds if n == slow else 1
            np.asarray(gpu.apply(PICTURE, spin, rounds=times, device=GPUS[0]))
            sink.write(frame)


SPIN = """
def traced_spin(px: Pixel, *, rounds: int = 1):
    x = px.r
    for i in range(rounds):
        for j in range(100):
            x = fract(x * 1.7 + 0.1)
    return rgba(vec3(x, px.g, px.b), px.a)
"""


@functools.cache
def slow_kernel():
    """Return a kernel, and with how many rounds it takes as long as a delay here."""
    spin, rounds = kernel(SPIN), 1
    while True:
        for _ in range(2):  # the first one compiles
            begin = time.monotonic()
            np.asarray(gpu.apply(PICTURE, spin, rounds=rounds, device=GPUS[0]))
        if time.monotonic() - begin > DELAY:
            return spin, rounds
        rounds *= 2


# what is delayed --------------------------------------------------------------------------------
@pytest.fixture
def delayed(monkeypatch):
    """Return a function that holds up one span of a stage, in the thread that it runs in."""
    enter = recorder.WorkSpan.__enter__

    def delay(stage, name, at, seconds=DELAY, times=1):
        seen = [0]

        def entered(span):
            made = enter(span)
            if span.stage == stage and name in span.name:
                seen[0] += 1
                if at <= seen[0] < at + times:
                    time.sleep(seconds)
            return made

        monkeypatch.setattr(recorder.WorkSpan, "__enter__", entered)

    return delay


#: Runs, with the stage that is delayed and the name of its span.
DELAYED = [
    (filtered, "decode", ""),
    (filtered, "convert", "decoded"),
    (filtered, "upload", ""),
    (filtered, "pass", "blur"),
    (filtered, "mux", "out"),
    (changed, "compile", "traced_new"),
    (predicted, "model", ""),
    (composed, "compose", "film"),
    (composed, "encode", ""),
    (sent, "network", ""),
    (shown, "present", "browser"),
    pytest.param(on_gpu, "pass", "", marks=pytest.mark.long),
]


@functools.cache
def warmed(run, clip):
    """Run once, which compiles."""
    if run not in (sent, shown):
        run(clip, clip.with_name("first.mp4"), -1)


def named(run, stage, name, clip, out, delayed, at, seconds=DELAY):
    """Check that the report of a run with a delay names the stage that was delayed."""
    if run is not on_gpu:
        delayed(stage, name, 1 if run is changed else at, seconds)
    with dala.trace(None) as trace:
        run(clip, out, at)
    report = trace.report(tolerance=seconds * 500)
    worst = max(report.late, key=lambda frame: frame.late)
    (found, share), *_ = worst.causes
    assert found[0] == report.causes[0].stage == stage, str(report)
    assert share > 0.5


@pytest.mark.third
@pytest.mark.slow
@pytest.mark.parametrize(("run", "stage", "name"), DELAYED)
def test_names_the_stage_that_was_delayed(clip, tmp_path, delayed, run, stage, name):
    warmed(run, clip)
    named(run, stage, name, clip, tmp_path / "out.mp4", delayed, FRAMES // 2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_names_random_delays(clip, tmp_path, delayed, seed):
    chance = random.Random(seed)
    run, stage, name = [getattr(one, "values", one) for one in DELAYED][seed % len(DELAYED)]
    warmed(run, clip)
    at, seconds = chance.randint(5, 25), chance.uniform(0.5, 1.5)
    named(run, stage, name, clip, tmp_path / "out.mp4", delayed, at, seconds)


def test_waits_for_locks_are_recorded(clip, tmp_path, delayed):
    def both(work):
        with dala.trace(None) as trace:
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        waits = [r for _, r in trace.events if r[0] == "wait:lock" and r[3] - r[2] > 1e8]
        return {record[1] for record in waits}

    with Scene(160, 96, fps=30, device="cpu") as scene:
        delayed("compose", "scene", 1, 0.3)
        assert both(lambda: scene.render(0.0)) == {"scene"}
    with video.write(tmp_path / "out.mp4", fps=30) as sink:
        delayed("convert", "yuv", 1, 0.3)
        assert both(lambda: sink.write(PICTURE[..., :3])) == {"writer"}


def test_a_run_that_dropped_frames_says_why(tmp_path, delayed, capsys):
    delayed("network", "", 10, 0.3, times=3)
    words = ["live", "camera:test", "--size", "64x48", "--fps", "30", "--seconds", "1.5", "--stats"]
    assert main([*words, "--to", str(tmp_path / "show"), "--device", "cpu"]) == 0
    said = capsys.readouterr()
    assert "frames late by more than 8 ms" in said.err
    assert re.search(r"- \d+ waited for the network \(hls: ", said.err)
