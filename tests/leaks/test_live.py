"""Live streams of simulated hours: memory, threads, processes and files stay as they are."""

from __future__ import annotations

import gc
import os
import threading
from fractions import Fraction

import numpy as np
import pytest

import dala
from dala.media import live
from tests.leaks.test_scenes import counted, resident

pytest.importorskip("av")

SIZE, FPS = (64, 48), 30
STEP = 2 * FPS  # frames between two looks


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


def tone(start: int, count: int) -> np.ndarray:
    wave = 0.2 * np.sin(2 * np.pi * 440 * np.arange(start, start + count) / 48000)
    return np.repeat(wave[:, None], 2, 1).astype(np.float32)


def stream(folder, seconds: int) -> list[int]:
    """Send pictures and sound of so many seconds without a clock; return memory after each part."""
    pictures = [np.full((SIZE[1], SIZE[0], 3), v, np.uint8) for v in (20, 120, 220)]
    found = []
    with live.LiveOutput(folder, SIZE, fps=Fraction(FPS), sound=True) as sink:
        for slot in range(seconds * FPS):
            sink.put(pictures[slot % 3], slot, captured=0.0, sound=tone)
            sink.flush()
            if slot % STEP == STEP - 1:
                gc.collect()
                found.append(resident())
        assert sink.stats["shown"] == seconds * FPS
    return found


def test_half_a_minute(tmp_path):
    stream(tmp_path, 10)  # what is loaded and cached once
    before, threads, files = counted(), threading.active_count(), len(os.listdir("/proc/self/fd"))
    found = stream(tmp_path, 30)
    assert max(found[5:]) - min(found[5:]) < 8 << 20
    assert counted() == before
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files
    # HLS keeps its last segments only.
    assert len([p for p in tmp_path.iterdir() if p.suffix == ".ts"]) < 12


@pytest.mark.long
def test_an_hour(tmp_path):
    stream(tmp_path, 10)
    found = stream(tmp_path, 3600)
    half = len(found) // 2
    assert max(found[half:]) - max(found[:half]) < 8 << 20


@pytest.mark.long
def test_microphones_and_sound_of_live_sources(tmp_path):
    """Streams with a microphone leave no thread, file or object behind, nor does a dropped one."""
    from dala.media import Scene, camera, microphone

    def run(number: int) -> None:
        with microphone.open("test") as voice:
            source = camera.open("test", size=SIZE, fps=20)
            live.send(source, tmp_path / f"a{number}", seconds=0.3, audio=voice)
        with Scene(*SIZE, fps=20) as scene:
            scene.add_audio("microphone://test")
            scene.live(tmp_path / f"b{number}", seconds=0.3)

    run(0)
    gc.collect()
    before, threads, files = counted(), threading.active_count(), len(os.listdir("/proc/self/fd"))
    for number in (1, 2):
        run(number)
    gc.collect()
    assert counted() == before
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files
