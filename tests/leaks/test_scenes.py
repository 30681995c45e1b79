"""Scenes release all memory, long runs do not grow, memory matches the content."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dala
from dala.gpu.compute.engines.cpu.loops import chain
from dala.media import Scene
from dala.media.sources.feed import TimedPicture
from dala.media.sources.player import AHEAD

STATM = "/proc/self/statm"

WORDS = """WEBVTT

00:00.000 --> 00:01.000
one

00:02.000 --> 00:03.000
two
"""


def resident():
    """Bytes of memory that the process has in use, by the kernel's count."""
    with open(STATM) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def counted():
    """What is alive, by kind: how many and how many bytes."""
    gc.collect()
    return {
        kind: (item["count"], item["bytes"])
        for kind, item in dala.diagnostics()["objects"].items()
        if item["count"]
    }


def threads_end(number):
    """Waits for the threads of sources that were closed or collected."""
    end = time.monotonic() + 300
    while threading.active_count() > number:
        assert time.monotonic() < end, f"threads are left: {threading.enumerate()}"
        time.sleep(0.001)


def busy_scene(device=None):
    """A small scene with something of every kind, and what changes it for a frame."""
    scene = Scene(64, 48, fps=30, device=device)
    picture = np.random.default_rng(2).integers(0, 256, (20, 30, 4), dtype=np.uint8)
    endless = (np.full((12, 16, 3), n % 256, np.uint8) for n in itertools.count())
    scene.add_video(endless, position=(2, 2), fps=30, radius=3)
    scene.add_video(lambda t: np.full((8, 8, 3), int(t * 60) % 256, np.uint8), position=(50, 2))
    image = scene.add_image(
        picture, position=(20, 10), shadow=(1, 1, 3, "black"), border=(1, "red")
    )
    text = scene.add_text("0", size=12, position=(4, 30), outline_width=1)
    scene.add_subtitles(WORDS, size=8)
    blur = scene.add_effect("gaussian_blur", image, sigma=1.0)
    scene.add_effect("invert", position=(40, 20), size=(16, 16), corner_radius=4)
    group = scene.add_group(canvas=(20, 20), position=(30, 20), opacity=0.5)
    dot = group.add_overlay(color="gold", shape="circle", size=(8, 8))
    scene.add_animation(dot, "x", 0, 12, 0.5, repeat=-1, yoyo=True)
    scene.textures.load("stamp", picture[:8, :8])
    scene.add_image("stamp", position=(0, 40))

    def change(n):
        image.x = 20 + n % 17
        image.rotation = n % 90
        text.text = str(n % 100)
        blur.sigma = 0.5 + n % 5 / 4
        if n % 50 == 0:  # nodes come and go
            extra = scene.add_image("stamp", position=(30, 40), id="extra")
            scene.add_effect("grayscale", extra)
            scene.add_animation(extra, "x", 30, 50, 0.5)
        if n % 50 == 30:
            scene["extra"].remove()

    return scene, change


def run(scene, change, frames):
    """Frames, some of them held for a while."""
    held = []
    for n in range(frames):
        change(n)
        frame = scene.render()
        if n % 7 == 0:
            held = [*held[-1:], frame]
    del frame, held


def live_objects():
    """How many objects of each of the library's types there are."""
    # A bounded cache of analyzed programs, which fills as nodes come and go.
    chain._analyze.cache_clear()
    gc.collect()
    names = (f"{type(o).__module__}.{type(o).__qualname__}" for o in gc.get_objects())
    return Counter(name for name in names if name.startswith("dala."))


def objects_end(before):
    """Waits until no type has more objects: a source's thread may be between two pictures.

    It may also have been when they were counted before, so what a source reads ahead is allowed.
    """
    end = time.monotonic() + 300
    before = before | Counter({f"{TimedPicture.__module__}.TimedPicture": AHEAD + 1})
    while more := live_objects() - before:
        assert time.monotonic() < end, f"objects are left: {more}"
        time.sleep(0.001)


def own_memory():
    """Bytes that Python and NumPy allocated in lines of the library."""
    only = tracemalloc.Filter(True, str(Path(dala.__file__).parent / "*"))
    return sum(t.size for t in tracemalloc.take_snapshot().filter_traces([only]).traces)


@pytest.mark.long
def test_a_long_run_keeps_nothing():
    """Once caches are filled, counts of resources and objects are equal, and memory nearly."""
    scene, change = busy_scene("cpu")
    with scene:
        run(scene, change, 100)
        tracemalloc.start()
        try:
            run(scene, change, 100)
            before, objects, threads = counted(), live_objects(), threading.active_count()
            memory = own_memory()
            run(scene, change, 200)
            threads_end(threads)
            assert counted() == before
            objects_end(objects)
            grown = own_memory() - memory
        finally:
            tracemalloc.stop()
        assert scene.errors == {}
        assert scene.frame_count == 400
        assert len(scene.nodes) == len(busy_nodes())
        assert len(scene.animator) <= 2
    # A frame of 12 KiB kept in ten would be 245 KB; ints and names in caches of CPython vary.
    assert grown < 64_000, f"{grown} bytes"


RESIDENT = """
from tests.leaks.test_scenes import busy_scene, counted, resident, run
scene, change = busy_scene("cpu")
with scene:
    run(scene, change, 1000)
    before, memory = counted(), resident()
    run(scene, change, 9000)
    print(counted() == before, resident() - memory)
"""


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists(STATM), reason="the kernel's count of memory is Linux's")
def test_resident_memory_of_ten_thousand_frames():
    """In a process of its own, which no other test fragments."""
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    same, grown = done.stdout.split()
    assert same == "True"
    # A frame of 12 KiB kept in a hundred would be 1.1 MiB; the allocator itself moves about less.
    assert int(grown) < 1 << 20, f"{grown} bytes in 9,000 frames"


def busy_nodes():
    scene, _ = busy_scene("null")
    with scene:
        return scene.nodes


def test_a_run_does_not_grow(engine_id, dala_device):
    scene, change = busy_scene(dala_device)
    with scene:
        run(scene, change, 40)  # the node that comes and goes is gone
        before = counted()
        run(scene, change, 90)
        assert counted() == before
        assert scene.errors == {}


def use(n, device):
    """A scene as programs use them, ended in one of six ways."""
    scene, change = busy_scene(device)
    way = n % 6
    if way == 5:
        scene.close()  # nothing was drawn
        return None
    change(50)
    frame = scene.render()
    scene.render(0.5)
    if way == 0:
        scene.close()
    elif way == 1:
        with scene:
            scene.background = "transparent"
            scene.render()
    elif way == 2:
        scene.knot = scene  # left to the collector
    elif way == 3:
        scene.close()
        scene.close()
        with pytest.raises(dala.DalaError):
            scene.render()
    elif way == 4:
        scene.close()
        return frame  # a frame outlives its scene
    return None


def test_many_scenes_leave_no_memory(engine_id, dala_device):
    many = 60 if engine_id == "cpu" else 24
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for n in range(6):
            use(n, dala_device)
        before, threads = counted(), threading.active_count()
        last = None
        for n in range(many):
            last = use(n, dala_device) or last
        assert np.array(last).shape == (48, 64, 4)
        del last
        assert counted() == before
        threads_end(threads)


MEASURED = """
import gc, os, sys
import numpy as np
from dala.media import Scene
from dala.media.sources.feed import TimedPicture
from dala.media.sources.player import AHEAD

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def grown(width, height, size, step):
    dice = np.random.default_rng(1)
    images = [dice.integers(0, 256, (size[1], size[0], 4), dtype=np.uint8) for _ in range(20)]
    frame, before = None, resident()
    with Scene(width, height, device="cpu") as scene:
        nodes = [
            scene.add_image(image, position=(n % 5 * step, n // 5 * step))
            for n, image in enumerate(images)
        ]
        for n in range(40):
            nodes[-1].x = 3 * n
            frame = scene.render()
        return resident() - before, scene.stats["framebuffers"], scene.stats["cached"]

step = int(sys.argv[1])
grown(96, 54, (32, 18), max(1, step // 20))  # whatever is compiled or loaded once
print(*grown(1920, 1080, (640, 360), step))
"""


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists(STATM), reason="the kernel's count of memory is Linux's")
@pytest.mark.parametrize("step", [200, 10])
def test_memory_of_a_scene(step):
    """Twenty images at 1080p, measured by the kernel in a process of its own.

    They lie side by side, or on each other below one that moves: the images (copied, since arrays
    are) and two framebuffers, one of which the user holds while the other is drawn on.
    """
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(step)],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    grown, framebuffers, cached = map(int, done.stdout.split())
    images, frame = 20 * 640 * 360 * 4, 1920 * 1080 * 4
    assert framebuffers == 2
    assert cached == 0  # there is no room for more than the two
    assert grown < images + 2 * frame + (2 << 20), f"{grown / 1e6:.1f} MB"
